/** Weight matrices: dequantized once into shared memory, or a slice at a time whenever they are used. */
import type { GgufTensor } from "gguf-native";
import { dot } from "../vectors";

/** Weights that are worked on at a time: 256 KiB, which stay in the processor's cache until they have been used. */
const SLICE = 65536;

/** Where a matrix gets its values from: those of elements `start` to `end`, good until the next call. */
type ReadSlice = (start: number, end: number) => Float32Array;

/** A matrix of `rows` by `columns`, in a file a tensor of shape `[columns, rows]`. */
export class Matrix {
  readonly rows: number;
  readonly columns: number;
  /** Bytes of memory that its weights take, besides the file's. */
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

  /** Takes four bytes per weight, in memory that worker threads could share. */
  static async resident(tensor: GgufTensor): Promise<Matrix> {
    const values = new Float32Array(new SharedArrayBuffer(4 * tensor.elementCount));
    await tensor.dequantize({ out: values }); // on every core, straight into the shared memory
    return new Matrix(tensor, values.byteLength, (start, end) => values.subarray(start, end));
  }

  /** Takes no memory besides one slice: the weights stay quantized, in the file's mapping. */
  static perUse(tensor: GgufTensor): Matrix {
    let scratch = new Float32Array(0);
    return new Matrix(tensor, 0, (start, end) => {
      if (scratch.length < end - start) scratch = new Float32Array(end - start);
      return tensor.dequantizeSync({ start, end, out: scratch.subarray(0, end - start) });
    });
  }

  /** The products with `count` vectors that lie one after the other in `x`; so do the results. */
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
