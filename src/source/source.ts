/** Bytes by offset, wherever they are: what files and servers have in common. */
import { GgufError } from "../base/errors";

/** Told how many of the bytes asked for have arrived. */
export type Arrived = (bytes: number) => void;

/**
 * A file that was opened once. Everything that is read is what the file had when it was opened; if it was changed or
 * replaced since, that is ERR_GGUF_CHANGED.
 */
export interface Source {
  /** Its name in messages: a path, or a URL without its query. */
  readonly path: string;
  /** The size of the file in bytes. Of a server, Infinity until it has answered for the first time. */
  readonly byteLength: number;

  /**
   * Reads `target.length` bytes from `begin` on into `target`, or as many as there are up to the end of the file.
   * @returns how many that are
   * @throws GgufError ERR_GGUF_OPEN where the bytes cannot be read, ERR_GGUF_CHANGED; the reason of the signal
   */
  read(begin: number, target: Uint8Array, signal?: AbortSignal, arrived?: Arrived): Promise<number>;

  /**
   * Checks that the file is still what was opened. Call it before using what was read: a file can change
   * between two reads, and `read` does not notice everything.
   * @throws GgufError ERR_GGUF_CHANGED
   */
  check(): Promise<void>;

  /** More than once is fine. */
  close(): Promise<void>;
}

/** What tells whether a path still leads to the file that was opened. */
export type FileState = Readonly<Record<"dev" | "ino" | "size" | "mtimeNs", bigint> & { mtime: Date }>;

/** A file that was opened by its path, and as what. */
export interface FileAsOpened {
  readonly path: string;
  readonly state: FileState | undefined;
}

/** Whether it has the first bytes of a GGUF file. */
export async function beginsAsGguf(source: Pick<Source, "read">): Promise<boolean> {
  const magic = new Uint8Array(4);
  await source.read(0, magic);
  return String.fromCharCode(...magic) === "GGUF";
}

export function changedError(path: string, detail: string): GgufError {
  const message = `the file has changed since it was opened: ${detail}; open it again`;
  return new GgufError("ERR_GGUF_CHANGED", message, { path });
}
