/** Blocks to numbers. */
import { partsOf } from "../../base/ranges";
import type { NativeAddon, NativeDType, NativeOut, ProgressCallback, Started } from "../native-surface";
import { outOrNew, run, SMALL_NUMBERS, STEP_NUMBERS, type Steps, start } from "./block-jobs";
import { type Blocks, blocksOfArray, blocksOfTensor, columnsOf } from "./blocks";
import { about } from "./files";
import * as kernels from "./kernels";

/** What the addon does with blocks whose numbers are wanted. */
export const decoding = {
  dequantize: (file, index, dtype, first, end, out) => {
    const blocks = blocksOfTensor(file, index);
    about(blocks.path, () => blocks.check(first, end - first));
    const array = outOrNew(out, dtype, end - first);
    run(blocks, dequantize(blocks, dtype, first, end, array));
    return array;
  },
  dequantizeAsync: (file, index, dtype, first, end, out, onProgress) => {
    const blocks = blocksOfTensor(file, index);
    return startDequantize(blocks, dtype, first, end, out, onProgress);
  },
  rows: (file, index, rows, count, dtype, out) => {
    const blocks = blocksOfTensor(file, index);
    const columns = columnsOf(file, index);
    const asked = rows.subarray(0, count);
    about(blocks.path, () => checkRows(blocks, asked, columns));
    const array = outOrNew(out, dtype, count * columns);
    run(blocks, dequantizeRows(blocks, asked, columns, dtype, array));
    return array;
  },
  rowsAsync: (file, index, rows, count, dtype, out, onProgress) => {
    const blocks = blocksOfTensor(file, index);
    const columns = columnsOf(file, index);
    const asked = rows.slice(0, count);
    about(blocks.path, () => checkRows(blocks, asked, columns));
    const length = count * columns;
    if (blocks.isMemory) {
      // Memory may change after the call.
      const copied = copyRows(blocks, asked, columns);
      return startDequantize(copied, dtype, 0, length, out, onProgress);
    }
    const array = outOrNew(out, dtype, length);
    const work = dequantizeRows(blocks, asked, columns, dtype, array);
    return start(blocks, array, work, onProgress, length <= SMALL_NUMBERS);
  },
  dequantizeBlocks: (type, array, dtype, first, end, out) => {
    const blocks = blocksOfArray(type, array, false);
    const result = outOrNew(out, dtype, end - first);
    run(blocks, dequantize(blocks, dtype, first, end, result));
    return result;
  },
  dequantizeBlocksAsync: (type, array, dtype, first, end, out, onProgress, _threads, bigEndian) => {
    // `out` may overlap the blocks.
    const source = array.length > 0 && array.buffer === out?.buffer ? array.slice() : array;
    const blocks = blocksOfArray(type, source, bigEndian);
    return startDequantize(blocks, dtype, first, end, out, onProgress);
  },
} satisfies Partial<NativeAddon>;

/** Dequantizes elements `first` to `end`, a step at a time. */
function* dequantize(blocks: Blocks, dtype: NativeDType, first: number, end: number, out: NativeOut): Steps {
  const { format, bigEndian } = blocks;
  for (const { start: from, end: to } of partsOf(first, end, STEP_NUMBERS)) {
    const part = out.subarray(from - first, to - first);
    kernels.dequantize(format.id, blocks.take(from, to - from), bigEndian, dtype, part);
    yield to - first;
  }
}

/** Dequantizes rows in their order, as many at a time as make a step. */
function* dequantizeRows(
  blocks: Blocks,
  rows: Float64Array,
  columns: number,
  dtype: NativeDType,
  out: NativeOut,
): Steps {
  const rowsOfStep = Math.max(1, Math.floor(STEP_NUMBERS / Math.max(1, columns)));
  for (const { start, end } of partsOf(0, rows.length, rowsOfStep)) {
    const copied = copyRows(blocks, rows.subarray(start, end), columns);
    const part = out.subarray(start * columns, end * columns);
    for (const done of dequantize(copied, dtype, 0, part.length, part)) yield start * columns + done;
  }
}

/** The blocks of rows, one after the other. */
function copyRows({ format, bigEndian, take }: Blocks, rows: Float64Array, columns: number): Blocks {
  const rowBytes = (columns / format.blockSize) * format.typeSize;
  const copy = new Uint8Array(rows.length * rowBytes);
  for (const [i, row] of rows.entries()) copy.set(take(row * columns, columns), i * rowBytes);
  return blocksOfArray(format.id, copy, bigEndian);
}

/** Throws unless the bytes up to the last of these rows are there. */
function checkRows(blocks: Blocks, rows: Float64Array, columns: number): void {
  const count = rows.reduce((most, row) => Math.max(most, row + 1), 0);
  blocks.check(0, count * columns);
}

function startDequantize(
  blocks: Blocks,
  dtype: NativeDType,
  first: number,
  end: number,
  out: NativeOut | undefined,
  onProgress: ProgressCallback | undefined,
): Started<NativeOut> {
  const count = end - first;
  about(blocks.path, () => blocks.check(first, count));
  const array = outOrNew(out, dtype, count);
  const work = dequantize(blocks, dtype, first, end, array);
  return start(blocks, array, work, onProgress, count <= SMALL_NUMBERS);
}
