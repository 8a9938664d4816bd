/**
 * Files that appear under their name only once they are complete: written beside it, flushed to the disk, renamed.
 */
import { type BigIntStats, constants, type Stats } from "node:fs";
import { access, copyFile, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { GgufError, invalidArgValue } from "../base/errors";
import { type FileSource, flush } from "../source/file";
import { destinationOf } from "./destination";
import { takeOver } from "./permissions";
import { existsError } from "./replaced-files";
import {
  createPrivate,
  lookAt,
  orWriteError,
  placeNew,
  removeQuietly,
  replace,
  shrunkError,
  temporaryPath,
  writeAll,
} from "./system-calls";

/** Pieces up to this size are written together. */
const GATHER_BYTES = 256 << 10;

/** Memory to gather pieces in, for any number of files that are written one after the other. */
export function gatherBuffer(): Uint8Array {
  return new Uint8Array(GATHER_BYTES);
}

export class OutputFile {
  /** As it was given, for messages. */
  readonly path: string;
  /** Where the links of `path` end. */
  readonly target: string;
  readonly temporary: string;
  readonly #handle: FileHandle;
  /** Whether it takes no other file's place, also of none that appears while it is written. */
  readonly isNew: boolean;
  /** What is there before. */
  readonly #existing: Stats | undefined;
  /** Undefined once the file is finished. */
  #gather: Uint8Array | undefined;
  #gathered = 0;
  #finished: BigIntStats | undefined;
  #isKept = false;

  private constructor(
    path: string,
    target: string,
    temporary: string,
    handle: FileHandle,
    existing: Stats | undefined,
    gather: Uint8Array,
    isNew: boolean,
  ) {
    this.path = path;
    this.target = target;
    this.temporary = temporary;
    this.#handle = handle;
    this.#existing = existing;
    this.#gather = gather;
    this.isNew = isNew;
  }

  /**
   * Begins a file, which only its owner can read until it is finished. One that is there under this name stays as it is
   * until {@link rename}, and gives it its owner and mode. Without `replaces`, none may be there then.
   */
  static async create(path: string, gather: Uint8Array, replaces: boolean): Promise<OutputFile> {
    if (path === "") throw invalidArgValue("path", "must not be empty", path);
    return orWriteError(path, OutputFile.#create(path, gather, replaces));
  }

  static async #create(path: string, gather: Uint8Array, replaces: boolean): Promise<OutputFile> {
    const { path: target, existing, isReplaced } = await destinationOf(path);
    if (!isReplaced) throw Object.assign(new Error("it is not a regular file"), { code: "EINVAL", path });
    if (existing !== undefined && !replaces) throw existsError(path);
    // Renaming would replace even a file that its owner has write-protected.
    if (existing !== undefined) await access(target, constants.W_OK);
    const temporary = temporaryPath(dirname(target));
    const handle = await createPrivate(temporary);
    return new OutputFile(path, target, temporary, handle, existing, gather, !replaces);
  }

  /**
   * Makes the file share its bytes with another, on file systems that can do so at once (Btrfs, XFS and others).
   * @returns whether it does; the file is empty otherwise
   */
  async share(source: FileSource): Promise<boolean> {
    // Copying gives the file the mode of the other for a moment, so that must not be more than that file's users have.
    const { mode, gid } = await source.stat();
    const groupHasMore = (mode & 0o070) >> 3 !== (mode & 0o007);
    const own = await this.#handle.stat();
    const isSafe = (mode & 0o6000) === 0 && (gid === own.gid || !groupHasMore);
    if (process.platform !== "linux" || !isSafe) return false;
    // By descriptors: whatever the names lead to by now, these are the files.
    const [from, to] = [source.descriptor, this.#handle.fd].map((fd) => `/proc/self/fd/${fd}`);
    try {
      await copyFile(from as string, to as string, constants.COPYFILE_FICLONE_FORCE);
      return true;
    } catch {
      return false;
    } finally {
      await orWriteError(this.path, this.#handle.chmod(0o600));
    }
  }

  /**
   * Appends bytes; after {@link share}, from the start. Small pieces are gathered, so that a thousand tensors of a few
   * bytes are not a thousand system calls.
   */
  async write(bytes: Uint8Array): Promise<void> {
    const gather = this.#gather as Uint8Array;
    const { length } = bytes;
    if (this.#gathered + length > gather.length) await this.#flush();
    if (length > gather.length) return orWriteError(this.path, writeAll(this.#handle, bytes));
    if (bytes.length !== length) throw shrunkError(length, bytes.length);
    gather.set(bytes, this.#gathered);
    this.#gathered += length;
  }

  async #flush(): Promise<void> {
    const length = this.#gathered;
    this.#gathered = 0;
    const bytes = (this.#gather as Uint8Array).subarray(0, length);
    await orWriteError(this.path, writeAll(this.#handle, bytes));
  }

  /**
   * Makes sure that everything is on the disk, and closes the file; {@link rename} is then all that is left.
   * @param byteLength what the header promises
   * @returns what could not be made as it was in the file that is replaced
   */
  async finish(byteLength: number): Promise<string | undefined> {
    await this.#flush();
    this.#gather = undefined;
    return orWriteError(this.path, this.#finish(byteLength));
  }

  async #finish(byteLength: number): Promise<string | undefined> {
    const warning = await takeOver(this.#handle, this.#existing);
    await flush(this.#handle);
    this.#finished = await this.#handle.stat({ bigint: true });
    await this.#handle.close();
    const { size } = this.#finished;
    if (size === BigInt(byteLength)) return warning;
    const detail = `${size} bytes were written, and its header promises ${byteLength}: a source changed meanwhile`;
    throw new GgufError("ERR_GGUF_CHANGED", detail, { path: this.path });
  }

  get inode(): bigint | undefined {
    return this.#finished?.ino;
  }

  /**
   * The temporary name must still be that of the file that was written, and the later one free where it has to be.
   * @throws GgufError ERR_GGUF_CHANGED, ERR_GGUF_WRITE
   */
  async check(): Promise<void> {
    if (this.isNew && (await orWriteError(this.path, lookAt(this.target))) !== undefined) throw existsError(this.path);
    const now = await orWriteError(this.path, lookAt(this.temporary));
    const before = this.#finished;
    if (before !== undefined && now?.ino === before.ino && now.dev === before.dev && now.size === before.size) return;
    const detail = `another program has put something else in the place of ${this.temporary}`;
    throw new GgufError("ERR_GGUF_CHANGED", detail, { path: this.path });
  }

  /** Puts the file under its name. */
  async rename(): Promise<void> {
    await this.check();
    const { temporary, target, isNew } = this;
    const placed = (isNew ? placeNew : replace)(temporary, target).catch((error: NodeJS.ErrnoException) => {
      throw isNew && error.code === "EEXIST" ? existsError(this.path) : error;
    });
    await orWriteError(this.path, placed);
  }

  /** {@link discard} then leaves the temporary file: a journal refers to it. */
  keep(): void {
    this.#isKept = true;
  }

  /** Leaves nothing behind. */
  async discard(): Promise<void> {
    this.#gather = undefined;
    await this.#handle.close().catch(() => undefined);
    if (!this.#isKept) await removeQuietly(this.temporary);
  }
}
