/**
 * The state that a file, its metadata and its tensors share: the native handle, and whether it was closed.
 */

import { type NativeFile, type NativeFileInfo, native } from "../backend/native";
import { GgufError } from "../base/errors";
import type { FileState, Source } from "../source/source";

/**
 * An open file. Users of the package never get one. So it is the key to the classes that only the package may
 * construct: their constructors are private in TypeScript, and at run time they reject every other argument
 * ({@link checkOpenFile}).
 */
export class OpenFile {
  readonly handle: NativeFile;
  readonly info: NativeFileInfo;
  /** As the caller passed it; undefined for bytes in memory. */
  readonly path: string | undefined;
  /** Of a file that is mapped: as what it was opened. Sources know it by themselves. */
  readonly state: FileState | undefined;
  /** What its data is fetched from; undefined where the addon has it, in a file or in memory. */
  readonly source?: Source | undefined;
  closed = false;

  constructor(handle: NativeFile, path: string | undefined, state?: FileState) {
    this.handle = handle;
    this.state = state;
    this.info = native.info(handle);
    this.path = path;
  }
}

/** The first check of constructors that are not public; `hint` says where such objects come from. */
export function checkOpenFile(file: unknown, hint: string): void {
  if (file instanceof OpenFile) return;
  const error = new TypeError(`Illegal constructor: ${hint}`);
  throw Object.assign(error, { code: "ERR_ILLEGAL_CONSTRUCTOR" });
}

export function closeFile(file: OpenFile): void {
  if (file.closed) return;
  file.closed = true;
  native.close(file.handle);
}

/** The handle of a file that is still open. */
export function handleOf(file: OpenFile): NativeFile {
  if (file.closed) throw new GgufError("ERR_GGUF_CLOSED", "the file was closed", { path: file.path });
  return file.handle;
}
