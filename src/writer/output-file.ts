/**
 * Files that appear under their name only once they are complete: written beside it, flushed to the disk, renamed.
 */
import { randomBytes } from "node:crypto";
import { access, chmod, constants, type FileHandle, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { abortable } from "../abortable";
import type { checkProgress, checkSignal } from "../arguments";
import { GgufError, invalidArgValue } from "../errors";
import { destinationOf } from "./destination";

/** What everything that writes files takes. */
export interface WriteOptions {
  /**
   * Aborting makes the promise reject with the signal's reason, and leaves no file behind. (A process that is killed
   * leaves the temporary one, `gguf-native.<random>.tmp`, in the folder of the new file.)
   */
  signal?: AbortSignal | undefined;
  /** Called now and then with the bytes written so far and in all. */
  onProgress?: ((done: number, total: number) => void) | undefined;
}

/** The result of a system call; its failure becomes ERR_GGUF_WRITE. */
export async function orWriteError<T>(path: string, call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof GgufError) throw error;
    throw new GgufError("ERR_GGUF_WRITE", `cannot be written: ${(error as Error).message}`, {
      path,
      cause: error,
    });
  }
}

/** Pieces up to this size are written together. */
const GATHER_BYTES = 256 << 10;

export class OutputFile {
  readonly #path: string;
  readonly #target: string;
  readonly #temporary: string;
  readonly #handle: FileHandle;
  readonly #mode: number | undefined;
  readonly #gather = new Uint8Array(GATHER_BYTES);
  #gathered = 0;

  private constructor(
    path: string,
    target: string,
    temporary: string,
    handle: FileHandle,
    mode: number | undefined,
  ) {
    this.#path = path;
    this.#target = target;
    this.#temporary = temporary;
    this.#handle = handle;
    this.#mode = mode;
  }

  /** Begins a file. One that is there under this name stays as it is until {@link commit}, and gives it its mode. */
  static async create(path: string): Promise<OutputFile> {
    if (path === "") throw invalidArgValue("path", "must not be empty", path);
    return orWriteError(path, OutputFile.#create(path));
  }

  static async #create(path: string): Promise<OutputFile> {
    const { path: target, existing, isReplaced } = await destinationOf(path);
    if (!isReplaced) throw Object.assign(new Error("it is not a regular file"), { code: "EINVAL", path });
    // Renaming would replace even a file that its owner has write-protected.
    if (existing !== undefined) await access(target, constants.W_OK);
    // Not derived from the file's own name, which may already be as long as names can be.
    const temporary = join(dirname(target), `gguf-native.${randomBytes(6).toString("hex")}.tmp`);
    return new OutputFile(path, target, temporary, await open(temporary, "wx"), existing?.mode);
  }

  /** Small pieces are gathered, so that a thousand tensors of a few bytes are not a thousand system calls. */
  async write(bytes: Uint8Array): Promise<void> {
    if (this.#gathered + bytes.length > GATHER_BYTES) await this.#flush();
    if (bytes.length > GATHER_BYTES) return this.#writeNow(bytes);
    this.#gather.set(bytes, this.#gathered);
    this.#gathered += bytes.length;
  }

  async #flush(): Promise<void> {
    const length = this.#gathered;
    this.#gathered = 0;
    await this.#writeNow(this.#gather.subarray(0, length));
  }

  async #writeNow(bytes: Uint8Array): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      done += (await orWriteError(this.#path, this.#handle.write(bytes, done))).bytesWritten;
    }
  }

  /** Makes sure that everything is on the disk; {@link commit} is then all that is left. */
  async finish(): Promise<void> {
    await this.#flush();
    if (this.#mode !== undefined) await orWriteError(this.#path, chmod(this.#temporary, this.#mode & 0o7777));
    await orWriteError(this.#path, this.#handle.sync());
    await orWriteError(this.#path, this.#handle.close());
  }

  /** Puts the file under its name. */
  async commit(): Promise<void> {
    await orWriteError(this.#path, rename(this.#temporary, this.#target));
    await syncFolder(dirname(this.#target));
  }

  /** Leaves nothing behind. */
  async discard(): Promise<void> {
    await this.#handle.close().catch(() => undefined);
    await rm(this.#temporary, { force: true }).catch(() => undefined);
  }
}

/** Makes the new name survive a power cut, on systems where a folder can be flushed. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r").catch(() => undefined);
  await folder?.sync().catch(() => undefined);
  await folder?.close();
}

/** A file to be written, of which the size is known. */
export interface Output {
  readonly path: string;
  readonly byteLength: number;
  readonly chunks: AsyncGenerator<Uint8Array, void, undefined>;
}

/**
 * Writes files, of which either all or none appear under their names.
 *
 * @param beforeCommit called once everything is written, before a file gets its name: to check that what was copied did
 *   not change meanwhile, and to close it, since not every system lets a file be replaced that is still open
 * @throws GgufError ERR_GGUF_WRITE; the reason of the signal; whatever a chunk or the progress callback throws
 */
export async function writeOutputs(
  outputs: readonly Output[],
  signal: ReturnType<typeof checkSignal>,
  onProgress: ReturnType<typeof checkProgress>,
  beforeCommit?: () => Promise<void>,
): Promise<void> {
  const total = outputs.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const files: OutputFile[] = [];
  let done = 0;
  try {
    for (const { path, chunks } of outputs) {
      signal?.throwIfAborted();
      const file = await OutputFile.create(path);
      files.push(file);
      for (;;) {
        const { done: ended, value } = await abortable(chunks.next(), signal, () => undefined);
        if (ended) break;
        await file.write(value);
        done += value.length;
        signal?.throwIfAborted();
        onProgress?.(done, total);
      }
      await file.finish();
    }
    await beforeCommit?.();
    signal?.throwIfAborted();
    for (const file of files) await file.commit();
  } catch (error) {
    for (const file of files) await file.discard();
    // Not waited for: a source of chunks may never answer.
    for (const { chunks } of outputs) chunks.return().catch(() => undefined);
    throw error;
  }
}
