/** Complete files get their names: all of them, or none. */
import { link } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { GgufError } from "../base/errors";
import { Journal } from "./journal";
import { folderJournalPath, journalPath, type PlannedRename, type RenamePlan } from "./journal-file";
import type { OutputFile } from "./output-file";
import { undoRenames } from "./settle";
import { backupPath, lookAt, orWriteError, removeQuietly, replace, syncFolder } from "./system-calls";

/** The files of one folder, which one journal is about. */
interface Group {
  readonly folder: string;
  readonly files: readonly OutputFile[];
  readonly journal: Journal;
  plan?: RenamePlan;
  readonly done: PlannedRename[];
}

/**
 * Renames complete files over what is there; new ones only where nothing is. While this goes on, no other process changes the same model.
 *
 * @param check called when nobody else can change anything any more, before the first file gets its name
 */
export async function commit(
  files: readonly OutputFile[],
  check: () => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  const groups: Group[] = [];
  try {
    for (const [folder, members] of byFolder(files)) {
      const path = journalOf(folder, members);
      const journal = await orWriteError(members[0]?.path ?? folder, Journal.acquire(path, signal), signal);
      groups.push({ folder, files: members, journal, done: [] });
    }
    await check();
    for (const file of files) await file.check();
    for (const { journal } of groups) await journal.check();
    signal?.throwIfAborted();
    // One rename is whole in itself.
    if (files.length === 1) await files[0]?.rename();
    else await renameAll(groups);
    for (const { folder } of groups) await syncFolder(folder);
  } finally {
    for (const { journal } of groups) await journal.release();
  }
}

function byFolder(files: readonly OutputFile[]): Map<string, OutputFile[]> {
  const folders = new Map<string, OutputFile[]>();
  for (const file of files) {
    const folder = dirname(file.target);
    const members = folders.get(folder);
    if (members === undefined) folders.set(folder, [file]);
    else members.push(file);
  }
  // Everybody takes several journals in the same order, so that nobody waits for one another.
  return new Map([...folders].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function journalOf(folder: string, files: readonly OutputFile[]): string {
  const [first, ...others] = files.map(({ target }) => journalPath(target));
  return first !== undefined && others.every((path) => path === first) ? first : folderJournalPath(folder);
}

async function renameAll(groups: readonly Group[]): Promise<void> {
  try {
    for (const group of groups) {
      group.plan = { kind: "rename", outputs: await planned(group) };
      await orWriteError(group.folder, group.journal.record(group.plan));
      await makeBackups(group);
    }
    for (const { files, plan, done } of groups) {
      for (const [i, file] of files.entries()) {
        await file.rename();
        done.push(plan?.outputs[i] as PlannedRename);
      }
    }
  } catch (error) {
    await undo(groups, error);
    throw error;
  }
  for (const group of groups) await removeBackups(group);
}

async function planned({ files, folder }: Group): Promise<PlannedRename[]> {
  const outputs: PlannedRename[] = [];
  for (const { temporary, target, inode, isNew } of files) {
    const replaces = !isNew && (await lookAt(target)) !== undefined;
    outputs.push({
      temporary: basename(temporary),
      inode: String(inode),
      target: basename(target),
      backup: replaces ? basename(backupPath(folder)) : null,
    });
  }
  return outputs;
}

/** Second names for what is replaced. It keeps its first one until the new file has it. */
async function makeBackups({ folder, plan }: Group): Promise<void> {
  for (const { target, backup } of plan?.outputs ?? []) {
    if (backup === null) continue;
    const [from, to] = [join(folder, target), join(folder, backup)];
    // Not every file system has hard links, and not every file may get one.
    await orWriteError(
      from,
      link(from, to).catch(() => replace(from, to)),
    );
  }
}

async function removeBackups({ folder, plan }: Group): Promise<void> {
  for (const { backup } of plan?.outputs ?? []) {
    if (backup !== null) await removeQuietly(join(folder, backup));
  }
}

async function undo(groups: readonly Group[], cause: unknown): Promise<void> {
  for (const group of groups) {
    const { folder, plan, journal, done } = group;
    if (plan === undefined) continue;
    try {
      await undoRenames(folder, plan.outputs, done);
      await syncFolder(folder);
      await removeBackups(group);
    } catch (error) {
      await journal.abandon(plan);
      for (const file of group.files) file.keep();
      const detail = `${(error as Error).message}, while the old files were put back after this error: ${(cause as Error).message}; all files, old and new, are still in the folder: 'gguf-native recover ${folder}' gives them their names`;
      throw new GgufError("ERR_GGUF_WRITE", detail, { path: folder, cause });
    }
  }
}
