/**
 * The file beside a model that says who is changing it, and what must be done if that process ends in the middle. Its
 * existence is the lock: it appears whole, and only where there is none.
 *
 * A line with the SHA-256 of the rest, a line of JSON, and for a change in place the bytes before and after.
 */
import { createHash } from "node:crypto";
import { type BigIntStats, constants } from "node:fs";
import { link, open } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { shardNumber, shardSuffix } from "../file/shard-names";
import { flush } from "../source/file";
import { type ProcessIdentity, thisProcess } from "./process-identity";
import {
  createPrivate,
  isOwnUser,
  lookAt,
  patiently,
  removeQuietly,
  replace,
  syncFolder,
  temporaryPath,
  undefinedIfMissing,
  writeAll,
} from "./system-calls";

/** Files that are about to get their names. All names are of files in the folder of the journal. */
export interface RenamePlan {
  readonly kind: "rename";
  readonly outputs: readonly PlannedRename[];
}

export interface PlannedRename {
  /** Complete, and on the disk. */
  readonly temporary: string;
  /** The inode of the temporary file. */
  readonly inode: string;
  readonly target: string;
  /** A second name for what is replaced. Null where there is nothing. */
  readonly backup: string | null;
}

/** Bytes of a file that are about to be written over. */
export interface OverwritePlan {
  readonly kind: "overwrite";
  /** In the folder of the journal. */
  readonly target: string;
  readonly inode: string;
  readonly offset: number;
  readonly before: Uint8Array;
  /** As many bytes as `before`. */
  readonly after: Uint8Array;
}

export type Plan = RenamePlan | OverwritePlan;

export interface JournalContent {
  /** Null: nobody, since the process that had it could not go on. */
  readonly owner: ProcessIdentity | null;
  /** What has begun. Without it, nothing has. */
  readonly plan?: Plan | undefined;
}

export interface FoundJournal {
  /** Undefined where the file is no whole journal. */
  readonly content: JournalContent | undefined;
  readonly stats: BigIntStats;
}

export const JOURNAL_NAME = /^gguf-native\.[0-9a-f]{16}\.journal$/;

/** The same for every file of a split model and for the model in one file. */
export function journalPath(target: string): string {
  const name = basename(target);
  const model = shardNumber(name) === undefined ? name : name.slice(0, -shardSuffix(0, 1).length);
  return pathOf(dirname(target), model.replace(/\.gguf$/i, "").toLowerCase());
}

/** For files of different models in one folder. */
export function folderJournalPath(folder: string): string {
  return pathOf(folder, "");
}

function pathOf(folder: string, model: string): string {
  const hash = createHash("sha256").update(model).digest("hex").slice(0, 16);
  return join(folder, `gguf-native.${hash}.journal`);
}

/** Creates a journal of this process. Returns its inode; undefined where there is a journal already. */
export async function createJournal(path: string): Promise<bigint | undefined> {
  const temporary = temporaryPath(dirname(path));
  const { ino } = await write(temporary, { owner: thisProcess() }, false);
  try {
    await patiently(() => link(temporary, path));
    return ino;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return undefined;
    if (code === "ENOENT" || code === "EACCES" || code === "EROFS") throw error;
    // A file system without hard links.
    return await createWithoutLink(path);
  } finally {
    await removeQuietly(temporary);
  }
}

async function createWithoutLink(path: string): Promise<bigint | undefined> {
  try {
    return (await write(path, { owner: thisProcess() }, false)).ino;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return undefined;
    throw error;
  }
}

/** Puts other content into a journal at one stroke, and on the disk. Returns its new inode. */
export async function replaceJournal(path: string, content: JournalContent): Promise<bigint> {
  const temporary = temporaryPath(dirname(path));
  try {
    const { ino } = await write(temporary, content, true);
    await replace(temporary, path);
    await syncFolder(dirname(path));
    return ino;
  } catch (error) {
    await removeQuietly(temporary);
    throw error;
  }
}

/** Removes a journal, unless it is another one by now. */
export async function removeJournal(path: string, inode: bigint): Promise<void> {
  if ((await lookAt(path))?.ino === inode) await removeQuietly(path);
}

/** Undefined where there is no journal. */
export async function readJournal(path: string): Promise<FoundJournal | undefined> {
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
  const flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;
  const handle = await patiently(() => open(path, flags)).catch(undefinedIfMissing);
  if (handle === undefined) return undefined;
  try {
    const stats = await handle.stat({ bigint: true });
    // Anybody can put a file of any size there. The header that a plan holds twice has a gigabyte at most.
    const isRead = stats.isFile() && stats.size <= (isOwnUser(stats.uid) ? 2 ** 31 - 1 : 2 ** 20);
    return { stats, content: isRead ? decode(await handle.readFile()) : undefined };
  } finally {
    await handle.close();
  }
}

async function write(path: string, content: JournalContent, sync: boolean): Promise<BigIntStats> {
  const handle = await createPrivate(path);
  try {
    for (const piece of encode(content)) await writeAll(handle, piece);
    if (sync) await flush(handle);
    return await handle.stat({ bigint: true });
  } catch (error) {
    await removeQuietly(path);
    throw error;
  } finally {
    await handle.close();
  }
}

function encode({ owner, plan }: JournalContent): Uint8Array[] {
  const [before, after] = plan?.kind === "overwrite" ? [plan.before, plan.after] : [EMPTY, EMPTY];
  const described = plan?.kind === "overwrite" ? { ...plan, before: undefined, after: undefined } : plan;
  const json = Buffer.from(`${JSON.stringify({ owner, plan: described })}\n`);
  const hash = createHash("sha256").update(json).update(before).update(after).digest("hex");
  return [Buffer.from(`${hash}\n`), json, before, after];
}

const EMPTY = new Uint8Array();
const HASH_BYTES = 64;

function decode(bytes: Buffer): JournalContent | undefined {
  const body = bytes.subarray(HASH_BYTES + 1);
  const hash = createHash("sha256").update(body).digest("hex");
  if (bytes.toString("latin1", 0, HASH_BYTES) !== hash) return undefined;
  const end = body.indexOf("\n");
  const { owner, plan } = parseObject(body.toString("utf8", 0, end));
  if (owner === undefined || (owner !== null && !Number.isInteger(owner.pid))) return undefined;
  if (plan?.kind !== "overwrite") return { owner, plan };
  const images = body.subarray(end + 1);
  const half = images.length / 2;
  return { owner, plan: { ...plan, before: images.subarray(0, half), after: images.subarray(half) } };
}

function parseObject(json: string): Partial<JournalContent> {
  try {
    return Object(JSON.parse(json));
  } catch {
    return {};
  }
}
