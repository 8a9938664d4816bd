/** Temporary files that killed processes left. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { JOURNAL_NAME, readJournal } from "./journal-file";
import { hasEnded } from "./process-identity";
import { isOwnUser, lookAt, removeQuietly, temporaryTag } from "./system-calls";

/**
 * Removes the temporary files of a folder that this user's processes left which have ended. What a journal names stays:
 * whoever settles that needs it.
 * @returns the paths of what was removed
 */
export async function removeLeftovers(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch((): string[] => []);
  const left = names.filter((name) => {
    const tag = temporaryTag(name);
    return tag !== undefined && hasEnded(tag);
  });
  // Looked at afterwards: a process that has ended makes no journal any more.
  const planned = left.length === 0 ? undefined : await plannedNames(folder);
  if (planned === undefined) return [];
  const removed: string[] = [];
  for (const name of left) {
    const path = join(folder, name);
    const stats = await lookAt(path).catch(() => undefined);
    if (planned.has(name) || !stats?.isFile() || !isOwnUser(stats.uid)) continue;
    await removeQuietly(path);
    removed.push(path);
  }
  return removed;
}

/** The temporary files that the journals of a folder name; undefined where one of them cannot be read. */
async function plannedNames(folder: string): Promise<Set<string> | undefined> {
  const names = await readdir(folder).catch((): string[] => []);
  const planned = new Set<string>();
  for (const name of names.filter((each) => JOURNAL_NAME.test(each))) {
    try {
      const found = await readJournal(join(folder, name));
      if (found === undefined) continue;
      if (found.content === undefined) return undefined;
      const { plan } = found.content;
      if (plan?.kind === "rename") for (const { temporary } of plan.outputs) planned.add(temporary);
    } catch {
      return undefined;
    }
  }
  return planned;
}
