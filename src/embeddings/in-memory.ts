/** Models whose bytes are elsewhere, brought to memory. */
import { native } from "../backend/native";
import { GgufError } from "../base/errors";
import { OpenFile } from "../file/handle";
import { filesOf, type GgufModel } from "../file/model";
import { GgufFile } from "../file/parse";

/**
 * Reads all files of a model on a server or in blobs, and closes it.
 * @throws GgufError ERR_GGUF_OUT_OF_MEMORY; otherwise as reading
 */
export async function inMemory(model: GgufModel, signal?: AbortSignal): Promise<GgufFile> {
  try {
    const files: OpenFile[] = [];
    for (const { source, path } of filesOf(model)) {
      if (source === undefined) throw new TypeError("its bytes are on this machine");
      const bytes = allocated(source.byteLength, path);
      await source.read(0, bytes, signal);
      await source.check();
      files.push(new OpenFile(native.parse(bytes, false), path));
    }
    return GgufFile.of(files as [OpenFile, ...OpenFile[]]);
  } finally {
    model.close();
  }
}

/** Memory for a file. @throws GgufError ERR_GGUF_OUT_OF_MEMORY */
export function allocated(
  byteLength: number,
  path: string | undefined,
  Memory: new (byteLength: number) => ArrayBufferLike = ArrayBuffer,
): Uint8Array {
  try {
    return new Uint8Array(new Memory(byteLength));
  } catch (cause) {
    const detail = `an embedder needs the ${byteLength} bytes of the file in memory`;
    throw new GgufError("ERR_GGUF_OUT_OF_MEMORY", detail, { path, cause });
  }
}
