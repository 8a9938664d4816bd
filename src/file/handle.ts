/**
 * The state that a file, its metadata and its tensors share: the native handle, and whether it was closed.
 */
import { GgufError } from "../errors";
import { type NativeFile, type NativeFileInfo, native } from "../native";

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
  closed = false;

  constructor(handle: NativeFile, path: string | undefined) {
    this.handle = handle;
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

/** Names that earlier files of a split model use. */
export interface TakenNames {
  readonly names: ReadonlyMap<string, unknown>;
  /** For each name that occurred more than once: the number to try for the next one. */
  readonly nextCopies: Map<string, number>;
}

/**
 * The decoded names of a file, made unique. Names that differ in the file may be equal after decoding,
 * because bytes that are not UTF-8 become U+FFFD. The first keeps its name; later ones get " (2)", " (3)"
 * ..., so that each can be found.
 */
export function indexNames(names: readonly string[], taken?: TakenNames): Map<string, number> {
  const index = new Map<string, number>();
  const nextCopies = taken?.nextCopies ?? new Map<string, number>();
  const isTaken = (name: string): boolean => index.has(name) || taken?.names.has(name) === true;
  for (let i = 0; i < names.length; i++) {
    const decoded = names[i] as string;
    let name = decoded;
    if (isTaken(name)) {
      let copy = nextCopies.get(decoded) ?? 2;
      do name = `${decoded} (${copy++})`;
      while (isTaken(name));
      nextCopies.set(decoded, copy);
    }
    index.set(name, i);
  }
  return index;
}
