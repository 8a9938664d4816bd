/** The largest numbers of an array. */
import { plain } from "../base/typed-arrays";
import { floats, whole } from "./checks";

/** Some numbers of an array, and their indexes. */
export interface TopK {
  /** Their indexes. */
  indexes: Int32Array;
  /** The numbers themselves. */
  values: Float32Array;
}

/**
 * The `k` largest numbers, the largest first. Equal numbers, such as 0 and -0, are in the order of their indexes. A NaN
 * is less than all numbers.
 *
 * @param x any numbers
 * @param k how many: from 0 to all
 * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
 * @throws GgufError ERR_GGUF_RANGE for another `k`
 */
export function topK(x: Float32Array, k: number): TopK {
  const length = floats("x", x);
  const count = whole("k", k, 0, length);
  const numbers = plain(x);
  const isBefore = (i: number, j: number): boolean => {
    const [a, b] = [numbers[i] as number, numbers[j] as number];
    if (a > b || a < b) return a > b;
    const [lacks, otherLacks] = [Number.isNaN(a), Number.isNaN(b)];
    return lacks === otherLacks ? i < j : otherLacks;
  };
  // A heap with the last of the best so far on top.
  const heap = new Int32Array(count);
  const sink = (top: number, size: number): void => {
    const moved = heap[top] as number;
    let at = top;
    for (let child = 2 * at + 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && isBefore(heap[child] as number, heap[child + 1] as number)) child++;
      if (!isBefore(moved, heap[child] as number)) break;
      heap[at] = heap[child] as number;
      at = child;
    }
    heap[at] = moved;
  };
  for (let i = 0; i < count; i++) heap[i] = i;
  for (let i = count >> 1; i-- > 0; ) sink(i, count);
  for (let i = count; i < length && count > 0; i++) {
    if (!isBefore(i, heap[0] as number)) continue;
    heap[0] = i;
    sink(0, count);
  }
  // The last one goes to the end, again and again.
  for (let size = count - 1; size > 0; size--) {
    [heap[0], heap[size]] = [heap[size] as number, heap[0] as number];
    sink(0, size);
  }
  return { indexes: heap, values: Float32Array.from(heap, (i) => numbers[i] as number) };
}
