/** Weight matrices, dequantized once into shared memory, or in slices each time they are used. */
import type { GgufTensor } from "gguf-native";
import { dot } from "../vectors";

/** Number of weights per slice: 256 KiB, which stay in the processor's cache until they are used. */
const SLICE = 65536;

/** Returns the values of the elements from `start` to `end`. The result is valid until the next call. */
type ReadSlice = (start: number, end: number) => Float32Array;

/** A matrix of `rows` by `columns`. In a file it is a tensor of shape `[columns, rows]`. */
export class Matrix {
  readonly rows: number;
  readonly columns: number;
  /** Bytes of memory that its weights take, in addition to the file's. */
  readonly residentBytes: number;
  readonly #read: ReadSlice;

  private constructor(
    { shape: [columns = 1, rows = 1] }: GgufTensor,
    residentBytes: number,
    read: ReadSlice,
  ) {
    this.rows = rows;
    this.columns = columns;
    this.residentBytes = residentBytes;
    this.#read = read;
  }

  /** Uses four bytes per weight, in memory that worker threads can share. */
  static async resident(tensor: GgufTensor): Promise<Matrix> {
    const values = new Float32Array(new SharedArrayBuffer(4 * tensor.elementCount));
    await tensor.dequantize({ out: values }); // on every core, directly into the shared memory
    return new Matrix(tensor, values.byteLength, (start, end) => values.subarray(start, end));
  }

  /** Uses only the memory of one slice: the weights stay quantized, in the file's mapping. */
  static perUse(tensor: GgufTensor): Matrix {
    let scratch = new Float32Array(0);
    return new Matrix(tensor, 0, (start, end) => {
      if (scratch.length < end - start) scratch = new Float32Array(end - start);
      return tensor.dequantizeSync({ start, end, out: scratch.subarray(0, end - start) });
    });
  }

  /** Multiplies the matrix with `count` vectors, one after the other in `x`. The results have the same layout. */
  multiply(x: Float32Array, count: number): Float32Array {
    const { rows, columns } = this;
    const result = new Float32Array(count * rows);
    const rowsAtOnce = Math.max(1, Math.floor(SLICE / columns));
    for (let first = 0; first < rows; first += rowsAtOnce) {
      const last = Math.min(rows, first + rowsAtOnce);
      const weights = this.#read(first * columns, last * columns);
      for (let vector = 0; vector < count; vector++) {
        for (let row = first; row < last; row++) {
          const start = (row - first) * columns;
          result[vector * rows + row] = dot(weights, start, x, vector * columns, columns);
        }
      }
    }
    return result;
  }
}
