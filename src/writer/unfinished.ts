/** Whether this process has something half written: who ends it then has it cleaned up first, and only then. */
import { nextTurn } from "../base/event-loop";

type Watcher = (isUnfinished: boolean) => void;

let count = 0;
const watchers = new Set<Watcher>();

function tell(isUnfinished: boolean): void {
  for (const watcher of watchers) watcher(isUnfinished);
}

/** Calls `watcher` when the first piece of unfinished work begins, and when the last one has ended. Returns what stops that. */
export function watchUnfinished(watcher: Watcher): () => void {
  watchers.add(watcher);
  return () => void watchers.delete(watcher);
}

/** Runs work that leaves temporary files or a journal where the process ends in the middle of it. */
export async function unfinished<T>(work: () => Promise<T>): Promise<T> {
  if (count++ === 0) tell(true);
  try {
    return await work();
  } finally {
    // What has happened meanwhile is told first, such as a signal. The first turn may be the end of this one.
    await nextTurn();
    await nextTurn();
    if (--count === 0) tell(false);
  }
}
