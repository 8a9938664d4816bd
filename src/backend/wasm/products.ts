/** Products of rows with vectors. */
import { partsOf } from "../../base/ranges";
import type { NativeAddon, ProgressCallback, Started } from "../native-surface";
import { outOrNew, run, start } from "./block-jobs";
import { type Blocks, blocksOfArray, blocksOfTensor, columnsOf, elementsOf } from "./blocks";
import { about } from "./files";
import * as kernels from "./kernels";

/** Multiplications of a step, and the fewest rows, which share the work of bringing the vectors. */
const STEP_MULTIPLICATIONS = 2 ** 21;
const STEP_ROWS = 48;

/** Products of so many multiplications are done at once. */
const SMALL_MULTIPLICATIONS = 2 ** 18;

/** What the addon does with blocks that are multiplied. */
export const products = {
  matmul: (file, index, given, x, first, end, out, int8) => {
    const blocks = blocksOfTensor(file, index);
    const columns = given ?? columnsOf(file, index);
    about(blocks.path, () => blocks.check(first * columns, (end - first) * columns));
    return multiplyNow(blocks, columns, first, end, x, out, int8);
  },
  matmulAsync: (file, index, given, x, first, end, out, int8, onProgress) => {
    const blocks = blocksOfTensor(file, index);
    const columns = given ?? columnsOf(file, index);
    about(blocks.path, () => blocks.check(first * columns, (end - first) * columns));
    return multiplyLater(blocks, columns, first, end, x, out, onProgress, int8);
  },
  matmulBlocks: (type, array, columns, x, out, int8) => {
    const blocks = blocksOfArray(type, array, false);
    return multiplyNow(blocks, columns, 0, elementsOf(blocks, array) / columns, x, out, int8);
  },
  matmulBlocksAsync: (type, array, columns, x, out, int8, onProgress, _threads, bigEndian) => {
    const blocks = blocksOfArray(type, array, bigEndian);
    const rowCount = elementsOf(blocks, array) / columns;
    return multiplyLater(blocks, columns, 0, rowCount, x, out, onProgress, int8);
  },
} satisfies Partial<NativeAddon>;

/** Multiplies rows `first` to `end`, as many at a time as make a step. */
function* multiply(
  blocks: Blocks,
  columns: number,
  first: number,
  end: number,
  x: Float32Array,
  out: Float32Array,
  int8: boolean,
): Generator<number, void, undefined> {
  if (x.length === 0) return;
  const { format, bigEndian } = blocks;
  const vectors = x.length / columns;
  const rowsOfStep = Math.max(STEP_ROWS, Math.floor(STEP_MULTIPLICATIONS / Math.max(1, x.length)));
  for (const { start: row, end: next } of partsOf(first, end, rowsOfStep)) {
    const rows = blocks.take(row * columns, (next - row) * columns);
    kernels.multiply(format.id, rows, bigEndian, columns, x, out.subarray(row - first), int8, end - first);
    yield (next - first) * vectors;
  }
}

function productLength(columns: number, first: number, end: number, x: Float32Array): number {
  return x.length === 0 ? 0 : (x.length / columns) * (end - first);
}

function overlap(a: Float32Array, b: Float32Array): boolean {
  const startsWithin = (one: Float32Array, other: Float32Array): boolean =>
    one.byteOffset >= other.byteOffset && one.byteOffset < other.byteOffset + other.byteLength;
  return a.buffer === b.buffer && (startsWithin(a, b) || startsWithin(b, a));
}

function multiplyNow(
  blocks: Blocks,
  columns: number,
  first: number,
  end: number,
  x: Float32Array,
  out: Float32Array | undefined,
  int8: boolean,
): Float32Array {
  const y = outOrNew(out, 0, productLength(columns, first, end, x)) as Float32Array;
  const vectors = x.length > 0 && overlap(x, y) ? x.slice() : x;
  run(blocks, multiply(blocks, columns, first, end, vectors, y, int8));
  return y;
}

function multiplyLater(
  blocks: Blocks,
  columns: number,
  first: number,
  end: number,
  x: Float32Array,
  out: Float32Array | undefined,
  onProgress: ProgressCallback | undefined,
  int8: boolean,
): Started<Float32Array> {
  const y = outOrNew(out, 0, productLength(columns, first, end, x)) as Float32Array;
  const vectors = x.length === 0 ? x : x.slice(); // one that is detached cannot be copied
  const work = multiply(blocks, columns, first, end, vectors, y, int8);
  return start(blocks, y, work, onProgress, y.length * columns <= SMALL_MULTIPLICATIONS);
}
