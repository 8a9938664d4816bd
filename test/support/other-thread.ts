/**
 * Another thread that does something to a file while this one is busy, too busy for its event loop perhaps. It stands for
 * another process: a file that is cut off is cut off for everybody, whoever did it.
 */
import { once } from "node:events";
import { Worker } from "node:worker_threads";

/** What to do with the file: statements that use `fs`, `path` and `sleep`. */
export type Deed = string;

/** Places in the memory that both threads share; at the last, nothing ever happens. */
const [GO, DELAY, DONE, NEVER] = [0, 1, 2, 3] as const;

export class OtherThread {
  readonly #shared: Int32Array;
  readonly #exit: Promise<unknown>;

  private constructor(worker: Worker, shared: Int32Array) {
    this.#shared = shared;
    this.#exit = once(worker, "exit"); // rejects where the deed fails
    this.#exit.catch(() => {}); // `end` tells
  }

  /** Starts it; it waits for {@link go}. */
  static async start(deed: Deed, path: string): Promise<OtherThread> {
    const shared = new Int32Array(new SharedArrayBuffer(16));
    const program = `const fs = require("node:fs");
      const { parentPort, workerData: { path, shared } } = require("node:worker_threads");
      const sleep = (ms) => Atomics.wait(shared, ${NEVER}, 0, ms);
      parentPort.postMessage("ready");
      Atomics.wait(shared, ${GO}, 0);
      sleep(shared[${DELAY}]);
      ${deed}
      Atomics.store(shared, ${DONE}, 1);`;
    const worker = new Worker(program, { eval: true, workerData: { path, shared } });
    const thread = new OtherThread(worker, shared);
    await once(worker, "message");
    return thread;
  }

  /** Starts the deed, after some milliseconds. Does not wait for it. */
  go(delay = 5): void {
    Atomics.store(this.#shared, DELAY, delay);
    Atomics.store(this.#shared, GO, 1);
    Atomics.notify(this.#shared, GO);
  }

  /** Whether the deed is done; needs no turn of the event loop. */
  get done(): boolean {
    return Atomics.load(this.#shared, DONE) === 1;
  }

  /** Waits until the thread has ended. */
  async end(): Promise<void> {
    await this.#exit;
  }
}
