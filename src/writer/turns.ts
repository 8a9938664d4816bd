/** Changes to one file by this process, one after the other in the order in which they were asked for. */
import { realpathSync, statSync } from "node:fs";

/** The last change that was asked for, by path without links and by inode. */
const last = new Map<string, Promise<unknown>>();

/**
 * Runs `change` once all changes to the same file that were asked for before have ended, whatever paths they have. A
 * path counts as well as an inode: a change may put another file under the name.
 */
export async function inTurn<T>(path: string, change: () => Promise<T>): Promise<T> {
  const keys = identitiesOf(path);
  const before = keys.map((key) => last.get(key));
  const running = Promise.allSettled(before).then(change);
  for (const key of keys) last.set(key, running);
  try {
    return await running;
  } finally {
    for (const key of keys) if (last.get(key) === running) last.delete(key);
  }
}

/** Without waiting: calls keep their order. A path that leads nowhere is its own identity, and opening it will fail. */
function identitiesOf(path: string): string[] {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return [realpathSync.native(path), `${dev}:${ino}`];
  } catch {
    return [path];
  }
}
