/** The results of many comparisons, in memory that is small for each: objects would take several times as much. */
import type { TensorComparison } from "../../index";

/** The fields that are kept, each a number. */
const FIELDS = [
  ...["count", "different", "incomparable", "maxError", "meanError", "rmsError", "relativeError", "snr"],
] as readonly (keyof Omit<TensorComparison, "sameBytes">)[];

const FIRST_ROWS = 64;

/** Comparisons of tensors whose bytes differ, by number. */
export class Comparisons {
  #rows = new Float64Array(FIRST_ROWS * FIELDS.length);
  #count = 0;
  /** By the number of the comparison: which row it has, and 1 more; 0 where it has none. */
  #rowOf = new Uint32Array(FIRST_ROWS);

  add(index: number, comparison: TensorComparison): void {
    if (index >= this.#rowOf.length) {
      const longer = new Uint32Array(Math.max(index + 1, 2 * this.#rowOf.length));
      longer.set(this.#rowOf);
      this.#rowOf = longer;
    }
    if ((this.#count + 1) * FIELDS.length > this.#rows.length) {
      const longer = new Float64Array(2 * this.#rows.length);
      longer.set(this.#rows);
      this.#rows = longer;
    }
    const begin = this.#count * FIELDS.length;
    for (let i = 0; i < FIELDS.length; i++)
      this.#rows[begin + i] = comparison[FIELDS[i] as (typeof FIELDS)[number]];
    this.#rowOf[index] = ++this.#count;
  }

  has(index: number): boolean {
    return (this.#rowOf[index] ?? 0) > 0;
  }

  get(index: number): TensorComparison | undefined {
    if (!this.has(index)) return undefined;
    const begin = ((this.#rowOf[index] as number) - 1) * FIELDS.length;
    const numbers = { sameBytes: false } as TensorComparison;
    for (let i = 0; i < FIELDS.length; i++)
      numbers[FIELDS[i] as (typeof FIELDS)[number]] = this.#rows[begin + i] as number;
    return numbers;
  }
}
