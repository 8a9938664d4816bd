/** Calls of the file system that writing needs in several places. */
import { randomBytes } from "node:crypto";
import { type BigIntStats, constants } from "node:fs";
import { type FileHandle, link, lstat, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { GgufError } from "../base/errors";
import { flush } from "../source/file";
import { processTag } from "./process-identity";

/**
 * A name of what is written before it gets its own. It tells the process, so that what a killed one left is known. Not
 * derived from the later name: names may already be as long as they can be.
 */
export function temporaryPath(folder: string): string {
  return join(folder, `gguf-native.${processTag()}-${randomName()}.tmp`);
}

/** The tag of the process in the name of a temporary file; undefined for any other name. */
export function temporaryTag(name: string): string | undefined {
  return /^gguf-native\.(.*)-[0-9a-f]{12}\.tmp$/.exec(name)?.[1];
}

/** A second name of what is replaced: unlike a temporary file, it is removed only by what a journal says. */
export function backupPath(folder: string): string {
  return join(folder, `gguf-native.${randomName()}.old`);
}

/** What plans may call temporary files and backups. */
export const PLANNED_NAME = /^gguf-native\.[0-9a-z-]+\.(tmp|old)$/;

function randomName(): string {
  return randomBytes(6).toString("hex");
}

/** Creates a file for its owner alone. Fails where there is one; a link in its place is not followed. */
export function createPrivate(path: string): Promise<FileHandle> {
  // Windows has no such links, and no such flag.
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW = 0 } = constants;
  return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
}

/** Writes all of `bytes`. Fails where they turn out to be fewer meanwhile: their memory can be taken away. */
export async function writeAll(handle: FileHandle, bytes: Uint8Array, position: number | null = null): Promise<void> {
  const { length } = bytes;
  for (let done = 0; done < length; ) {
    const at = position === null ? null : position + done;
    const { bytesWritten } = await handle.write(bytes, done, length - done, at);
    done += bytesWritten;
    if (bytes.length !== length) throw shrunkError(length, bytes.length);
  }
}

export function shrunkError(before: number, after: number): GgufError {
  return new GgufError("ERR_GGUF_CHANGED", `data of ${before} bytes became ${after} bytes while it was written`);
}

/** Whether a file belongs to the user of this process. */
export function isOwnUser(uid: bigint): boolean {
  return process.geteuid === undefined || BigInt(process.geteuid()) === uid;
}

/** What is at a path, links not followed; undefined where nothing is. */
export async function lookAt(path: string): Promise<BigIntStats | undefined> {
  return lstat(path, { bigint: true }).catch(undefinedIfMissing);
}

export function undefinedIfMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
  return undefined;
}

/** How often, and after how many milliseconds, {@link patiently} tries again. */
const TRIES = 50;
const PAUSE_MS = 20;

/**
 * What a call gives that changes a name. Windows refuses it while somebody has the file open, a process that looks at the
 * journal among others: there, it is tried again for a second.
 */
export async function patiently<T>(call: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await call();
    } catch (error) {
      const { code = "", message } = error as NodeJS.ErrnoException;
      if (process.platform !== "win32" || !["EPERM", "EACCES", "EBUSY"].includes(code)) throw error;
      if (tries === TRIES) {
        throw Object.assign(error as Error, { message: `${message} (does a program have the file open?)` });
      }
      await delay(PAUSE_MS);
    }
  }
}

/** Gives a file another name, which may be that of another file. */
export function replace(from: string, to: string): Promise<void> {
  return patiently(() => rename(from, to));
}

/** Gives a file a name that nothing has. @throws the system's error, EEXIST where something has it */
export async function placeNew(from: string, to: string): Promise<void> {
  try {
    await patiently(() => link(from, to));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") throw error;
    // A file system without hard links: an empty file keeps the name until the right one takes its place.
    await (await createPrivate(to)).close();
    return replace(from, to);
  }
  await removeQuietly(from);
}

/** Removes a file if it is there. */
export async function removeQuietly(path: string): Promise<void> {
  await patiently(() => rm(path, { force: true })).catch(() => undefined);
}

/** Makes changed names survive a power cut, on systems where a folder can be flushed. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r").catch(() => undefined);
  if (folder !== undefined) await flush(folder).catch(() => undefined);
  await folder?.close();
}

/** The result of a system call; its failure becomes ERR_GGUF_WRITE, unless it is the reason of `signal`. */
export async function orWriteError<T>(path: string, call: Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof GgufError || (signal?.aborted && error === signal.reason)) throw error;
    throw new GgufError("ERR_GGUF_WRITE", `cannot be written: ${(error as Error).message}`, {
      path,
      cause: error,
    });
  }
}
