/** A model on standard input, of which only the header is read. */
import { read } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { native } from "../../backend/native";
import { errorAbout, GgufError } from "../../base/errors";
import { closeFile, OpenFile } from "../../file/handle";
import { RemoteGgufFile } from "../../file/remote-file";
import { type HeaderLimits, readHeader } from "../../source/header";
import { StreamSource } from "../../source/stream";

/** What it is called in messages. */
export const PATH = "standard input";
const LIMITS: HeaderLimits = { firstBytes: 512 << 10, maxBytes: 1 << 28 };

/** Milliseconds until a stream that had nothing, and does not wait, is asked again. */
const PAUSE_MS = 10;

/**
 * A function that opens standard input, and can be called again to accept that its tensor data is cut off. Whether it is, is
 * known only if its end has come with the header: the size is otherwise the one that the header says.
 */
export function standardInput(): (partial: boolean) => Promise<RemoteGgufFile> {
  const source = new StreamSource(PATH, readSome);
  let header: Promise<Uint8Array> | undefined;
  return async (partial) => {
    header ??= headerOf(source);
    const bytes = await header;
    const isEnded = source.byteLength < Number.MAX_SAFE_INTEGER;
    const byteLength = isEnded ? source.byteLength : sizeOf(bytes);
    return modelOf(opened(bytes, partial || !isEnded, byteLength), source);
  };
}

async function headerOf(source: StreamSource): Promise<Uint8Array> {
  const { handle, bytes } = await readHeader(source, LIMITS, true);
  native.close(handle);
  return bytes;
}

function modelOf(file: OpenFile, source: StreamSource): RemoteGgufFile {
  return RemoteGgufFile.of([Object.assign(file, { source })]);
}

/** How long the file is, by its header. */
function sizeOf(header: Uint8Array): number {
  const file = opened(header, true, Number.MAX_SAFE_INTEGER);
  try {
    const { tensors } = modelOf(file, new StreamSource(PATH, async () => 0));
    let end = file.info.dataOffset;
    for (const { offset, byteLength } of tensors.values()) end = Math.max(end, offset + (byteLength || 0));
    return end;
  } finally {
    closeFile(file);
  }
}

function opened(header: Uint8Array, partial: boolean, byteLength: number): OpenFile {
  try {
    return new OpenFile(native.parse(header, partial, byteLength) as OpenFile["handle"], PATH);
  } catch (error) {
    throw error instanceof GgufError ? errorAbout(error, { path: PATH }) : error;
  }
}

const readDescriptor = promisify(read);

async function readSome(target: Uint8Array): Promise<number> {
  for (;;) {
    try {
      return (await readDescriptor(0, target, 0, target.length, null)).bytesRead;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      // So Windows says that a pipe has ended.
      if (code === "EOF") return 0;
      if (code !== "EAGAIN")
        throw new GgufError("ERR_GGUF_OPEN", `cannot be read: ${message}`, { path: PATH, cause: error });
    }
    await delay(PAUSE_MS);
  }
}
