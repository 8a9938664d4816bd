/** Finishing or undoing what a process left behind that ended while it changed a model. */
import { constants } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { GgufError } from "../base/errors";
import { flush } from "../source/file";
import { destinationOf } from "./destination";
import {
  createJournal,
  type FoundJournal,
  folderJournalPath,
  JOURNAL_NAME,
  journalPath,
  type OverwritePlan,
  type PlannedRename,
  readJournal,
  removeJournal,
} from "./journal-file";
import { isRunning } from "./process-identity";
import {
  isOwnUser,
  lookAt,
  PLANNED_NAME,
  placeNew,
  removeQuietly,
  replace,
  syncFolder,
  undefinedIfMissing,
  writeAll,
} from "./system-calls";

/** What became of one interrupted change. */
export interface Settled {
  readonly journal: string;
  /** Whether the change was completed or taken back; "nothing" where it had not begun, or the file was replaced since. */
  readonly outcome: "finished" | "undone" | "nothing";
}

/** A journal of an unknown process, such as one on another machine, counts for so long. */
const UNKNOWN_OWNER_MS = 10 * 60_000;

/** The journals that a change to a file, or to any file of a folder, may have left. */
export async function journalsOf(file: string): Promise<string[]> {
  const names = await readdir(file).catch(() => undefined);
  if (names !== undefined) {
    return names.filter((name) => JOURNAL_NAME.test(name)).map((name) => join(file, name));
  }
  // What is no file at all is found out by whoever opens it.
  const destination = await destinationOf(file).catch(() => undefined);
  if (destination === undefined) return [];
  return [journalPath(destination.path), folderJournalPath(dirname(destination.path))];
}

/** The folder that is meant by a folder, or by a file in it that need not be there. */
export async function folderOf(path: string): Promise<string> {
  const destination = await destinationOf(path).catch(() => undefined);
  return destination?.existing?.isDirectory() ? path : dirname(destination?.path ?? path);
}

export function busyError(path: string, holder: string): GgufError {
  return new GgufError("ERR_GGUF_CHANGED", `is being changed by ${holder}`, { path });
}

/**
 * Looks at a journal, and does what it says if its process has ended.
 * @returns what was done; undefined where there is no journal; who holds it where that may still run
 */
export async function settle(path: string): Promise<Settled | string | undefined> {
  const found = await readJournal(path).catch(async (cause: Error) => {
    // Of another user, or a link; or in a folder of which nothing can be seen.
    const isThere = await lookAt(path).catch(() => undefined);
    if (isThere !== undefined) throw foreignError(path, cause);
    return undefined;
  });
  if (found === undefined) return undefined;
  const holder = holderOf(path, found);
  if (holder !== undefined) return holder;

  // Only one process at a time does what follows: journals are removed by nobody else than their own process.
  const claim = path.replace(/journal$/, "recovery");
  const inode = await createJournal(claim);
  if (inode === undefined) {
    const other = await readJournal(claim);
    if (other !== undefined && holderOf(claim, other) === undefined) await removeJournal(claim, other.stats.ino);
    return `another process, which recovers it (${claim})`;
  }
  try {
    const same = await readJournal(path);
    if (same?.stats.ino !== found.stats.ino) return "another process";
    const outcome = await carryOut(path, found);
    await removeJournal(path, found.stats.ino);
    return { journal: path, outcome };
  } finally {
    await removeJournal(claim, inode);
  }
}

/** A journal of a model, and who still holds it. */
export interface Interruption {
  /** Undefined where nobody does: the change was interrupted. */
  readonly holder: string | undefined;
  /** Whether there is something to finish or to take back. */
  readonly hasBegun: boolean;
}

/** What the journals of a model say. Nothing is done about it. */
export async function interruptions(file: string): Promise<Interruption[]> {
  const all: Interruption[] = [];
  for (const path of await journalsOf(file)) {
    // What cannot be read may be of another user; it is there.
    const unknown = async (): Promise<boolean> => (await lookAt(path).catch(() => undefined)) !== undefined;
    const found = await readJournal(path).catch(async () => ((await unknown()) ? null : undefined));
    if (found === undefined) continue;
    if (found === null) all.push({ holder: undefined, hasBegun: true });
    else all.push({ holder: holderOf(path, found), hasBegun: found.content?.plan !== undefined });
  }
  return all;
}

/** Who may still be at it; undefined where nobody is. */
function holderOf(path: string, { content, stats }: FoundJournal): string | undefined {
  if (content?.owner === null) return undefined;
  const running = content && isRunning(content.owner);
  if (running === false) return undefined;
  if (running) return `process ${content?.owner.pid} (${path})`;
  const isOld = Date.now() - Number(stats.mtimeMs) > UNKNOWN_OWNER_MS;
  return isOld ? undefined : `a process of which nothing is known here (${path}; it counts for ten minutes)`;
}

async function carryOut(path: string, { content, stats }: FoundJournal): Promise<Settled["outcome"]> {
  const plan = content?.plan;
  if (plan === undefined) return "nothing";
  if (plan.kind === "overwrite") return undoOverwrite(path, plan, stats.uid);
  // In a folder that others can write to, names may lead elsewhere from one moment to the next.
  if (!isOwnUser(stats.uid)) throw foreignError(path);
  return finishRenames(path, plan.outputs);
}

/**
 * All temporary files are complete, so all get their names. Where one is missing, or something has appeared under a name
 * that nothing had, everything goes back to its place.
 */
async function finishRenames(journal: string, outputs: readonly PlannedRename[]): Promise<Settled["outcome"]> {
  const folder = dirname(journal);
  const at = (name: string): string => join(folder, checkName(journal, name));
  const isThere = async (name: string, inode: string): Promise<boolean> =>
    String((await lookAt(at(name)))?.ino) === inode;
  const waiting: PlannedRename[] = [];
  const done: PlannedRename[] = [];
  for (const each of outputs) {
    if (![each.temporary, each.backup ?? each.temporary].every((name) => PLANNED_NAME.test(name))) {
      throw new GgufError("ERR_GGUF_WRITE", "is no journal that can be followed", { path: journal });
    }
    // A new file has both names for a moment.
    if (await isThere(each.target, each.inode)) done.push(each);
    else if (!(await isThere(each.temporary, each.inode))) continue;
    else if (each.backup !== null || (await lookAt(at(each.target))) === undefined) waiting.push(each);
  }
  const canFinish = waiting.length + done.length === outputs.length;
  if (canFinish) {
    for (const { temporary, target, backup } of waiting) {
      await (backup === null ? placeNew : replace)(at(temporary), at(target));
    }
  } else await undoRenames(folder, outputs, done);
  await syncFolder(folder);
  for (const { temporary, backup } of outputs) {
    await removeQuietly(at(temporary));
    if (backup !== null) await removeQuietly(at(backup));
  }
  return canFinish ? "finished" : "undone";
}

/** Puts back what was replaced, and removes what is new. `done` are those that have their new names. */
export async function undoRenames(
  folder: string,
  outputs: readonly PlannedRename[],
  done: readonly PlannedRename[],
): Promise<void> {
  for (const { target, backup } of outputs) {
    if (backup === null) continue;
    // Two names of one file stay two names: the second one is removed afterwards.
    await replace(join(folder, backup), join(folder, target)).catch(undefinedIfMissing);
  }
  for (const { target, backup } of done) {
    if (backup === null) await removeQuietly(join(folder, target));
  }
}

async function undoOverwrite(
  journal: string,
  { target, inode, offset, before, after }: OverwritePlan,
  user: bigint,
): Promise<Settled["outcome"]> {
  const path = join(dirname(journal), checkName(journal, target));
  const { O_RDWR, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
  const handle = await open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK).catch(undefinedIfMissing);
  if (handle === undefined) return "nothing";
  try {
    const stats = await handle.stat({ bigint: true });
    // The owner of a file can write to it without a journal.
    if (!isOwnUser(user) && user !== stats.uid) throw foreignError(journal);
    const now = new Uint8Array(before.length);
    const { bytesRead } = await handle.read(now, 0, now.length, offset);
    const isEither = (byte: number, i: number): boolean => byte === before[i] || byte === after[i];
    if (!stats.isFile() || bytesRead < now.length || !now.every(isEither)) {
      if (String(stats.ino) !== inode) return "nothing";
      const detail = `is neither as before an interrupted change nor as after it: another program has written to it; if it is as it should be, remove ${journal}`;
      throw new GgufError("ERR_GGUF_WRITE", detail, { path });
    }
    if (Buffer.compare(now, after) === 0) return "finished";
    await writeAll(handle, before, offset);
    await flush(handle);
    return "undone";
  } finally {
    await handle.close();
  }
}

function checkName(journal: string, name: string): string {
  if (basename(name) === name && name !== "" && name !== "." && name !== "..") return name;
  throw new GgufError("ERR_GGUF_WRITE", "is a journal that names files elsewhere", { path: journal });
}

function foreignError(path: string, cause?: Error): GgufError {
  const detail = "is a journal of another user: that user must run 'gguf-native recover' on the model, or remove it";
  return new GgufError("ERR_GGUF_WRITE", detail, { path, cause });
}
