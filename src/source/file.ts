/** A file of this machine, read and written through one handle. */
import { type BigIntStats, constants, fsync, type Stats, statSync } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { getSystemErrorMap, promisify } from "node:util";
import { GgufError } from "../base/errors";
import { changedError, type FileAsOpened, type FileState, type Source } from "./source";

const fsyncAsync = promisify(fsync);

/** Has the system put a file or folder on the disk. By its number: Yarn's Plug'n'Play has handles without a `sync`. */
export async function flush(handle: FileHandle): Promise<void> {
  await fsyncAsync(handle.fd);
}

/** What a path leads to; undefined for nothing, and for what cannot be looked at: opening says why. */
export function stateOf(path: string): FileState | undefined {
  try {
    return statSync(path, { bigint: true });
  } catch {
    return undefined;
  }
}

/**
 * The path must still lead to the same file, of the same size and time. While the file is open or mapped, no other one can
 * have its inode.
 * @throws GgufError ERR_GGUF_CHANGED
 */
export function compareStates({ path, state: before }: FileAsOpened, now: FileState | undefined): void {
  if (now === undefined) throw changedError(path, "it was removed");
  if (now.dev !== before?.dev || now.ino !== before.ino) {
    throw changedError(path, "another file has taken its place");
  }
  if (now.size !== before.size) throw changedError(path, `its size was ${before.size} and is ${now.size}`);
  if (now.mtimeNs !== before.mtimeNs) {
    throw changedError(path, `it was modified on ${now.mtime.toISOString()}`);
  }
}

/** @throws GgufError ERR_GGUF_CHANGED where one of the files is no longer what was opened */
export async function checkStates(files: Iterable<FileAsOpened>): Promise<void> {
  for (const file of files) {
    compareStates(file, await stat(file.path, { bigint: true }).catch(() => undefined));
  }
}

/** "r" to read, "r+" to write as well. */
export type FileAccess = "r" | "r+";

/** A FIFO is refused, rather than waited for until somebody writes to it. Windows has no such flag. */
const NO_WAITING = constants.O_NONBLOCK ?? 0;

/**
 * Opens a regular file.
 * @throws GgufError ERR_GGUF_OPEN; ERR_GGUF_WRITE for a file that can be read, but not written
 */
export async function openRegularFile(
  path: string,
  access: FileAccess = "r",
): Promise<{ handle: FileHandle; opened: BigIntStats }> {
  const mode = access === "r" ? constants.O_RDONLY : constants.O_RDWR;
  const handle = await open(path, mode | NO_WAITING).catch(async (cause) => {
    if (access === "r") throw systemFailure("ERR_GGUF_OPEN", "cannot open the file", path, cause);
    // A file that cannot even be read is ERR_GGUF_OPEN.
    await (await openRegularFile(path)).handle.close();
    throw systemFailure("ERR_GGUF_WRITE", "cannot be written", path, cause);
  });
  try {
    const opened = await handle.stat({ bigint: true });
    if (opened.isFile()) return { handle, opened };
    throw opened.isDirectory()
      ? refusal(path, "it is a directory, not a file", "EISDIR")
      : refusal(path, "it is not a regular file", "EINVAL");
  } catch (error) {
    await handle.close();
    throw error;
  }
}

export class FileSource implements Source {
  readonly path: string;
  readonly byteLength: number;
  readonly #handle: FileHandle;
  /** The file as it was when it was opened. */
  readonly #opened: BigIntStats;

  private constructor(path: string, handle: FileHandle, opened: BigIntStats) {
    this.path = path;
    this.byteLength = Number(opened.size);
    this.#handle = handle;
    this.#opened = opened;
  }

  /** @throws as {@link openRegularFile} */
  static async open(path: string, access: FileAccess = "r"): Promise<FileSource> {
    const { handle, opened } = await openRegularFile(path, access);
    return new FileSource(path, handle, opened);
  }

  /** The number of its descriptor. */
  get descriptor(): number {
    return this.#handle.fd;
  }

  stat(): Promise<Stats> {
    return this.#handle.stat();
  }

  async read(begin: number, target: Uint8Array, signal?: AbortSignal): Promise<number> {
    const length = Math.max(0, Math.min(target.length, this.byteLength - begin));
    for (let done = 0; done < length; ) {
      signal?.throwIfAborted();
      const { bytesRead } = await this.#handle.read(target, done, length - done, begin + done).catch((cause) => {
        throw systemFailure("ERR_GGUF_OPEN", "cannot read the file", this.path, cause);
      });
      if (bytesRead === 0) {
        throw changedError(this.path, `it ends at byte ${begin + done}, and had ${this.byteLength} bytes`);
      }
      done += bytesRead;
    }
    return length;
  }

  /** Writes `bytes` at `begin`, in one call of the system if that takes them all, and has them on the disk then. */
  async overwrite(begin: number, bytes: Uint8Array): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      done += (await this.#handle.write(bytes, done, bytes.length - done, begin + done)).bytesWritten;
    }
    await flush(this.#handle);
  }

  check(): Promise<void> {
    return checkStates([{ path: this.path, state: this.#opened }]);
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }
}

function systemFailure(
  code: "ERR_GGUF_OPEN" | "ERR_GGUF_WRITE",
  what: string,
  path: string,
  cause: NodeJS.ErrnoException,
): GgufError {
  const [, reason] = getSystemErrorMap().get(cause.errno ?? 0) ?? [];
  return new GgufError(code, `${what}: ${reason ?? cause.message}`, { path, cause });
}

function refusal(path: string, detail: string, code: string): GgufError {
  const cause = Object.assign(new Error(`${code}: ${detail}`), { code, syscall: "open", path });
  return new GgufError("ERR_GGUF_OPEN", detail, { path, cause });
}
