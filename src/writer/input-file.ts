/** Files that are copied from. Each is opened once, so that its header and its data are of the same file. */
import { closeFile, OpenFile } from "../file/handle";
import { siblingPath } from "../file/shard-names";
import { openEach, shardsOf } from "../file/splits";
import { PIECE_BYTES } from "../layout/layout";
import { type FileAccess, FileSource } from "../source/file";
import { type HeaderLimits, readHeader } from "../source/header";
import { changedError, type Source } from "../source/source";
import { RawHeader } from "./raw-header";

const HEADER_LIMITS: HeaderLimits = { firstBytes: 256 << 10, maxBytes: 1 << 30 };

export interface InputFile extends OpenFile {
  readonly path: string;
  readonly source: FileSource;
  readonly header: RawHeader;
  /** Where tensor data starts: at the end of a file that has none. */
  readonly dataOffset: number;
}

/** Bytes of a file that follow each other. */
export interface Extent {
  readonly source: Source;
  readonly offset: number;
  readonly byteLength: number;
}

/** Opens one file. */
export async function openInput(path: string, access: FileAccess = "r", signal?: AbortSignal): Promise<InputFile> {
  return inputOf(await FileSource.open(path, access), signal);
}

/** Reads the header of a file. Where that fails, the file is closed. */
async function inputOf(source: FileSource, signal: AbortSignal | undefined): Promise<InputFile> {
  const { path } = source;
  try {
    const { handle, bytes } = await readHeader(source, HEADER_LIMITS, false, signal);
    const file = new OpenFile(handle, path);
    const header = new RawHeader(file, bytes);
    const dataOffset = Math.min(file.info.dataOffset, source.byteLength);
    return Object.assign(file, { path, source, header, dataOffset });
  } catch (error) {
    await source.close();
    throw error;
  }
}

/** Opens all files of a model; `path` is any of them, which may be open. */
export function openInputs(path: string | FileSource, signal?: AbortSignal): Promise<[InputFile, ...InputFile[]]> {
  const first = typeof path === "string" ? undefined : path;
  const name = typeof path === "string" ? path : path.path;
  const open = (each: string, stop: AbortSignal): Promise<InputFile> =>
    first !== undefined && each === name ? inputOf(first, stop) : openInput(each, "r", stop);
  return openEach(shardsOf<InputFile>(name, true, siblingPath), open, signal, closeInput);
}

/** More than once is fine. */
export async function closeInput(input: InputFile): Promise<void> {
  closeFile(input);
  await input.source.close();
}

export async function closeInputs(inputs: readonly InputFile[]): Promise<void> {
  for (const input of inputs) await closeInput(input);
}

/**
 * Checks that a file is still what was opened. Its header is read again: two changes within the resolution of the file
 * system's clock leave the time as it is.
 * @throws GgufError ERR_GGUF_CHANGED
 */
export async function checkInput({ source, header }: InputFile): Promise<void> {
  await source.check();
  const now = new Uint8Array(header.byteLength);
  await source.read(0, now);
  if (!header.equals(now)) throw changedError(source.path, "its header is another one");
}

/** @throws GgufError ERR_GGUF_CHANGED where one of the files is no longer what was opened */
export async function checkInputs(inputs: readonly InputFile[]): Promise<void> {
  for (const input of inputs) await checkInput(input);
}

/** The bytes of an extent in pieces. */
export async function* extentPieces({
  source,
  offset,
  byteLength,
}: Extent): AsyncGenerator<Uint8Array, void, undefined> {
  const end = offset + byteLength;
  for (let at = offset; at < end; at += PIECE_BYTES) {
    const piece = new Uint8Array(Math.min(PIECE_BYTES, end - at));
    await source.read(at, piece);
    yield piece;
  }
}
