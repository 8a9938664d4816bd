/** The one journal that a process must have while it changes a model; journal-file.ts says what is in it. */
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { checkWritable } from "../backend/permission-model";
import { changedError } from "../source/source";
import { createJournal, type Plan, removeJournal, replaceJournal } from "./journal-file";
import { removeLeftovers } from "./leftovers";
import { thisProcess } from "./process-identity";
import { busyError, folderOf, journalsOf, settle } from "./settle";
import { lookAt, orWriteError, syncFolder } from "./system-calls";

/** Changes take this long at most, apart from the writing before them. */
const MOST_WAITING_MS = 30_000;

export class Journal {
  readonly path: string;
  #inode: bigint;
  #isAbandoned = false;

  private constructor(path: string, inode: bigint) {
    this.path = path;
    this.#inode = inode;
  }

  /**
   * Waits until no other process, and nothing else in this one, has the journal. What a killed process left is settled.
   * @throws the system's error, GgufError ERR_GGUF_CHANGED after half a minute, the reason of the signal
   */
  static async acquire(path: string, signal?: AbortSignal): Promise<Journal> {
    for (const end = Date.now() + MOST_WAITING_MS; ; ) {
      const inode = await createJournal(path);
      if (inode !== undefined) return new Journal(path, inode);
      await untilSettled(path, path, end, signal);
    }
  }

  /** Says what is about to happen; on the disk when it is done. */
  async record(plan: Plan): Promise<void> {
    await this.check();
    this.#inode = await replaceJournal(this.path, { owner: thisProcess(), plan });
  }

  /** Leaves the plan for whoever comes next: this process could neither finish nor undo it. */
  async abandon(plan: Plan): Promise<void> {
    this.#isAbandoned = true;
    await replaceJournal(this.path, { owner: null, plan }).catch(() => undefined);
  }

  /** To be called right before each change: somebody may have removed the journal by hand. */
  async check(): Promise<void> {
    if ((await lookAt(this.path))?.ino !== this.#inode) {
      throw changedError(this.path, "another process has removed the journal of this change");
    }
  }

  async release(): Promise<void> {
    if (this.#isAbandoned) return;
    await removeJournal(this.path, this.#inode).catch(() => undefined);
    await syncFolder(dirname(this.path));
  }
}

/** Waits until nobody is changing a model that is to be read or changed. What a killed process left is settled. */
export async function settleModel(file: string, signal?: AbortSignal): Promise<void> {
  checkWritable(file);
  const end = Date.now() + MOST_WAITING_MS;
  for (const journal of await journalsOf(file)) {
    await orWriteError(journal, untilSettled(journal, file, end, signal), signal);
  }
  await removeLeftovers(await folderOf(file));
}

async function untilSettled(journal: string, file: string, end: number, signal?: AbortSignal): Promise<void> {
  for (let pause = 2; ; pause = Math.min(2 * pause, 100)) {
    signal?.throwIfAborted();
    const result = await settle(journal);
    if (typeof result !== "string") return;
    if (Date.now() > end) throw busyError(file, result);
    await delay(pause);
  }
}
