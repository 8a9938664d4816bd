/** Products of rows with vectors. */
import { partsOf } from "../../base/ranges";
import type { NativeAddon, NativeFile, ProgressCallback, Started } from "../native-surface";
import { outOrNew, run, type Steps, start } from "./block-jobs";
import { type Blocks, blocksOfArray, blocksOfTensor, columnsOf, elementsOf } from "./blocks";
import { about } from "./files";
import * as kernels from "./kernels";

/**
 * Multiplications of a step of a job, some milliseconds at most. Those with vectors of 8 bits are faster, the more vectors there
 * are. The fewest rows: packing the vectors, which is done for each step, takes as long as 50 rows do.
 */
const STEP_MULTIPLICATIONS = 2 ** 21;
const MOST_STEPS_AT_ONCE = 16;
const STEP_ROWS = 48;

/** Bytes of the rows of a step where the caller waits: a file is read so much at a time. */
const STEP_BYTES = 2 ** 24;

/** Products of so many multiplications are done at once. */
const SMALL_MULTIPLICATIONS = 2 ** 18;

/** Rows `first` to `end` of `columns` numbers. */
interface Rows {
  readonly blocks: Blocks;
  readonly columns: number;
  readonly first: number;
  readonly end: number;
}

/** What the addon does with blocks that are multiplied. */
export const products = {
  matmul: (file, index, given, x, first, end, out, int8, threads) =>
    multiplyNow(rowsOfTensor(file, index, given, first, end), x, out, int8, threads),
  matmulAll: (all, threads) => {
    const rows = all.map(([file, index, given, , first, end]) => rowsOfTensor(file, index, given, first, end));
    const x = all[0]?.[3].slice(); // any of the results may overlap it
    for (const [i, [, , , , , , out, int8]] of all.entries()) multiplyNow(rows[i]!, x!, out, int8, threads);
  },
  matmulAsync: (file, index, given, x, first, end, out, int8, onProgress, threads) =>
    multiplyLater(rowsOfTensor(file, index, given, first, end), x, out, int8, onProgress, threads),
  matmulBlocks: (type, array, columns, x, out, int8, threads) =>
    multiplyNow(rowsOfArray(type, array, columns, false), x, out, int8, threads),
  matmulBlocksAsync: (type, array, columns, x, out, int8, onProgress, threads, bigEndian) =>
    multiplyLater(rowsOfArray(type, array, columns, bigEndian), x, out, int8, onProgress, threads),
} satisfies Partial<NativeAddon>;

function rowsOfTensor(file: NativeFile, index: number, given: number | undefined, first: number, end: number): Rows {
  const blocks = blocksOfTensor(file, index);
  const columns = given ?? columnsOf(file, index);
  about(blocks.path, () => blocks.check(first * columns, (end - first) * columns));
  return { blocks, columns, first, end };
}

function rowsOfArray(type: number, array: Uint8Array, columns: number, bigEndian: boolean): Rows {
  const blocks = blocksOfArray(type, array, bigEndian);
  return { blocks, columns, first: 0, end: elementsOf(blocks, array) / columns };
}

/** Multiplies rows, as many at a time as make a step. */
function* multiply(
  { blocks, columns, first, end }: Rows,
  x: Float32Array,
  out: Float32Array,
  int8: boolean,
  threads: number | undefined,
  rowsOfStep: number,
): Steps {
  if (x.length === 0) return;
  const { format, bigEndian } = blocks;
  const vectors = x.length / columns;
  for (const { start: row, end: next } of partsOf(first, end, rowsOfStep)) {
    const rows = blocks.take(row * columns, (next - row) * columns);
    kernels.multiply(format.id, rows, bigEndian, columns, x, out.subarray(row - first), int8, end - first, threads);
    yield (next - first) * vectors;
  }
}

/** The caller's array for the products, or a new one. */
function resultOf({ columns, first, end }: Rows, x: Float32Array, out: Float32Array | undefined): Float32Array {
  const length = x.length === 0 ? 0 : (x.length / columns) * (end - first);
  return outOrNew(out, 0, length) as Float32Array;
}

function overlap(a: Float32Array, b: Float32Array): boolean {
  const startsWithin = (one: Float32Array, other: Float32Array): boolean =>
    one.byteOffset >= other.byteOffset && one.byteOffset < other.byteOffset + other.byteLength;
  return a.buffer === b.buffer && (startsWithin(a, b) || startsWithin(b, a));
}

function multiplyNow(
  rows: Rows,
  x: Float32Array,
  out: Float32Array | undefined,
  int8: boolean,
  threads: number | undefined,
): Float32Array {
  const y = resultOf(rows, x, out);
  const vectors = x.length > 0 && overlap(x, y) ? x.slice() : x;
  const { blockSize, typeSize } = rows.blocks.format;
  const rowBytes = (rows.columns / blockSize) * typeSize;
  const rowsOfStep = Math.max(STEP_ROWS, Math.floor(STEP_BYTES / rowBytes));
  run(rows.blocks, multiply(rows, vectors, y, int8, threads, rowsOfStep));
  return y;
}

function multiplyLater(
  rows: Rows,
  x: Float32Array,
  out: Float32Array | undefined,
  int8: boolean,
  onProgress: ProgressCallback | undefined,
  threads: number | undefined,
): Started<Float32Array> {
  const y = resultOf(rows, x, out);
  const vectors = x.length === 0 ? x : x.slice(); // one that is detached cannot be copied
  const multiplications = STEP_MULTIPLICATIONS * (int8 ? Math.min(x.length / rows.columns, MOST_STEPS_AT_ONCE) : 1);
  const rowsOfStep = Math.max(STEP_ROWS, Math.floor(multiplications / x.length));
  const work = multiply(rows, vectors, y, int8, threads, rowsOfStep);
  return start(rows.blocks, y, work, onProgress, y.length * rows.columns <= SMALL_MULTIPLICATIONS);
}
