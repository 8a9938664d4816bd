/** The results of many comparisons, in memory that is small for each: objects would take several times as much. */
import type { TensorComparison } from "../../index";

/** The fields that are kept, each a number. */
const FIELDS = [
  ...["count", "different", "incomparable", "maxError", "meanError", "rmsError", "relativeError", "snr"],
] as readonly (keyof Omit<TensorComparison, "sameBytes">)[];

/** Rows that are in memory of their own: one array would have to be copied to grow. */
const CHUNK_ROWS = 4096;

/** Comparisons of tensors whose bytes differ, by number. */
export class Comparisons {
  readonly #chunks: Float64Array[] = [];
  #count = 0;
  /** By the number of the comparison: which row it has, and 1 more; 0 where it has none. */
  #rowOf = new Uint32Array(CHUNK_ROWS);

  add(index: number, comparison: TensorComparison): void {
    if (index >= this.#rowOf.length) {
      const longer = new Uint32Array(Math.max(index + 1, 2 * this.#rowOf.length));
      longer.set(this.#rowOf);
      this.#rowOf = longer;
    }
    if (this.#count % CHUNK_ROWS === 0) this.#chunks.push(new Float64Array(CHUNK_ROWS * FIELDS.length));
    const { chunk, begin } = this.#place(this.#count);
    FIELDS.forEach((field, i) => {
      chunk[begin + i] = comparison[field];
    });
    this.#rowOf[index] = ++this.#count;
  }

  has(index: number): boolean {
    return (this.#rowOf[index] ?? 0) > 0;
  }

  get(index: number): TensorComparison | undefined {
    if (!this.has(index)) return undefined;
    const { chunk, begin } = this.#place((this.#rowOf[index] as number) - 1);
    const comparison = { sameBytes: false } as TensorComparison;
    FIELDS.forEach((field, i) => {
      comparison[field] = chunk[begin + i] as number;
    });
    return comparison;
  }

  #place(row: number): { chunk: Float64Array; begin: number } {
    const chunk = this.#chunks[Math.floor(row / CHUNK_ROWS)] as Float64Array;
    return { chunk, begin: (row % CHUNK_ROWS) * FIELDS.length };
  }
}
