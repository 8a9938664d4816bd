/** One thread of a {@link MatVecPool}: computes the rows of each request, and reports when they are done. */
import { parentPort } from "node:worker_threads";
import { multiplyRows } from "./mat-vec";

/** A request to a thread. The arrays are in memory that all threads share. */
export interface Share {
  matrix: Float32Array;
  x: Float32Array;
  y: Float32Array;
  /** Rows `first` to `last` of `matrix`. */
  first: number;
  last: number;
}

parentPort?.on("message", ({ matrix, x, y, first, last }: Share) => {
  multiplyRows(matrix, x, y, first, last);
  parentPort?.postMessage("done");
});
