/** Threads that multiply matrices with vectors in shared memory. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { Share } from "./worker";

export class MatVecPool {
  readonly #workers: readonly Worker[];

  constructor(threads: number) {
    const file = require.resolve("./worker");
    this.#workers = Array.from({ length: threads }, () => new Worker(file));
  }

  /**
   * Writes the product of a matrix, stored row by row, and the vector `x` to `y`. Each thread computes some of the
   * rows. All three arrays are in SharedArrayBuffers, so a message to a thread contains references, not numbers. Wait
   * for one product before you start the next.
   */
  async multiply(matrix: Float32Array, x: Float32Array, y: Float32Array): Promise<void> {
    const threads = this.#workers.length;
    const rowsBefore = (thread: number): number => Math.floor((thread * y.length) / threads);
    await Promise.all(
      this.#workers.map(async (worker, i) => {
        const share: Share = { matrix, x, y, first: rowsBefore(i), last: rowsBefore(i + 1) };
        worker.postMessage(share);
        await once(worker, "message"); // rejects if the thread fails
      }),
    );
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }
}
