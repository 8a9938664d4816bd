/**
 * Asynchronous work on this thread: in slices of some milliseconds, between which the event loop has its turns. Several
 * pieces of work take turns.
 */
import { nextTurn } from "../../base/event-loop";
import type { NativeJob, ProgressCallback, Started } from "../native-surface";

/** A slice ends after so long. */
const SLICE_MS = 4;

/**
 * Work that is done a step at a time, well below a slice. Yields how many elements are done; `finish` says what the result
 * is, and throws where there is none.
 */
export interface Work<Result> {
  steps: Iterator<number, void, undefined>;
  total: number;
  finish(): Result;
  /** Called once the work is over, in whatever way. */
  release(): void;
}

class Job<Result> {
  readonly promise: Promise<Result>;
  readonly #work: Work<Result>;
  readonly #onProgress: ProgressCallback | undefined;
  #resolve!: (result: Result) => void;
  #reject!: (reason: unknown) => void;
  #reported = 0;
  #isSettled = false;

  constructor(work: Work<Result>, onProgress: ProgressCallback | undefined) {
    this.#work = work;
    this.#onProgress = onProgress;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Makes the promise reject with undefined. */
  cancel(): void {
    this.#settle(() => this.#reject(undefined));
  }

  /** Works for a slice; returns whether that was the last. Progress may have cancelled it. */
  run(): boolean {
    if (this.#isSettled) return true;
    try {
      const end = performance.now() + SLICE_MS;
      for (;;) {
        const { done, value } = this.#work.steps.next();
        if (done) break;
        if (performance.now() < end) continue;
        this.#report(value);
        return this.#isSettled;
      }
      this.#report(this.#work.total);
      this.#settle(() => this.#resolve(this.#work.finish()));
    } catch (error) {
      this.#settle(() => this.#reject(error));
    }
    return true;
  }

  #report(done: number): void {
    if (this.#onProgress === undefined || done === this.#reported) return;
    this.#reported = done;
    this.#onProgress(done, this.#work.total);
  }

  /** Once: what comes later changes nothing. */
  #settle(settle: () => void): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    try {
      settle();
    } catch (error) {
      this.#reject(error);
    } finally {
      this.#work.release();
    }
  }
}

/** Those that are not done yet, in the order of their turns. */
const waiting: Job<unknown>[] = [];
let isRunning = false;

async function runAll(): Promise<void> {
  isRunning = true;
  for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
    await nextTurn();
    if (!job.run()) waiting.push(job);
  }
  isRunning = false;
}

/** Starts work; what `isSmall` is done at once. */
export function startJob<Result>(
  work: Work<Result>,
  onProgress: ProgressCallback | undefined,
  isSmall: boolean,
): Started<Result> {
  const job = new Job(work, onProgress);
  if (!isSmall || !job.run()) {
    waiting.push(job as Job<unknown>);
    if (!isRunning) void runAll();
  }
  return { job: job as unknown as NativeJob, promise: job.promise };
}

export function cancelJob(job: NativeJob): void {
  (job as unknown as Job<unknown>).cancel();
}
