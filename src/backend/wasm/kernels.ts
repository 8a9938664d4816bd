/**
 * The kernels of the module, over arrays of any size, which are brought there a piece at a time. The caller has checked
 * sizes: blocks are whole, and outputs as long as their results. Arrays may lie in shared memory.
 */

import type { OwnBytes } from "../../base/options";
import { partsOf } from "../../base/ranges";
import { Decoder } from "../../base/text-decoder";
import type { NativeDType, NativeFormat, NativeOut } from "../native-surface";
import { failure } from "./failure";
import { type Instance, inModule } from "./module";
import { taking } from "./reply";
import { inThreads } from "./threads";

/** Numbers that are in the module at a time: with their blocks they stay in the second-level cache. Whole groups. */
const PIECE_NUMBERS = 2 ** 16;

/** What statistics and comparisons add up before they join it: pieces of these are whole numbers of chunks. */
const CHUNK_NUMBERS = 2 ** 18;

/** Bytes of rows, and of vectors, that are in the module at a time. */
const ROW_BYTES = 2 ** 20;
const VECTOR_BYTES = 2 ** 23;

/** Rows are multiplied fastest so many at a time. */
const ROWS_AT_ONCE = 12;

let list: NativeFormat[] | undefined;

/** Every format of formats.def. */
export function formats(): NativeFormat[] {
  list ??= inModule((module) =>
    taking(module, module.exports.formats(), ([names, numbers]) => {
      const fields = new Uint32Array(numbers!);
      return new Decoder()
        .decode(names)
        .split(" ")
        .map((name, i) => {
          const [id, blockSize, typeSize, encodes, needsImportance] = fields.subarray(5 * i) as unknown as [
            ...[number, number, number, number, number],
          ];
          return {
            ...{ name, id, blockSize, typeSize },
            ...{ encodes: encodes === 1, needsImportance: needsImportance === 1 },
          };
        });
    }),
  );
  return list;
}

/** The format with this number. */
export function formatOf(type: number): NativeFormat {
  const format = formats().find(({ id }) => id === type);
  if (format !== undefined) return format;
  throw failure("ERR_GGUF_UNSUPPORTED_TYPE", `the tensor type ${type} is not known`);
}

/** Fills `out` with the numbers of `blocks`. */
export function dequantize(
  type: number,
  blocks: Uint8Array,
  bigEndian: boolean,
  dtype: NativeDType,
  out: NativeOut,
): void {
  const { blockSize, typeSize } = formatOf(type);
  const count = blocks.length / typeSize;
  const piece = Math.min(count, PIECE_NUMBERS / blockSize);
  const bytes = bytesOf(out);
  const numberBytes = blockSize * out.BYTES_PER_ELEMENT;
  inModule((module) => {
    const to = module.allocate(piece * numberBytes);
    bringEach(module, blocks, typeSize, piece, (from, first, n) => {
      module.exports.dequantize(type, dtype, Number(bigEndian), from, n, to);
      bytes.set(module.bytes(to, n * numberBytes), first * numberBytes);
    });
  });
}

/**
 * The products of all rows of `columns` numbers with the vectors of as many in `x`: product v of row r goes to
 * out[v * stride + r]. With `int8`, the vectors are rounded to 8 bits. Up to `threads` threads work.
 */
export function multiply(
  type: number,
  rows: Uint8Array,
  bigEndian: boolean,
  columns: number,
  x: Float32Array,
  out: Float32Array,
  int8: boolean,
  stride: number = out.length / (x.length / columns),
  threads?: number,
): void {
  const { blockSize, typeSize } = formatOf(type);
  const rowBytes = (columns / blockSize) * typeSize;
  const rowCount = rows.length / rowBytes;
  const vectors = x.length / columns;
  const vectorsInPiece = Math.min(vectors, Math.max(Math.floor(VECTOR_BYTES / (4 * columns)), 1));
  for (const { start, end } of partsOf(0, vectors, vectorsInPiece)) {
    const n = end - start;
    inThreads(
      n * columns * rowCount,
      threads,
      (module, { share, size, threads }) => {
        const { exports } = module;
        const products = exports.new_products(type, Number(bigEndian), columns, n, Number(int8), size);
        const vectors = module.put(bytesOf(x.subarray(start * columns, end * columns)));
        share(n, 1, (first, end) => ["products_pack", products, vectors, n, first, end]);
        const wholeRows = Math.floor((threads * ROW_BYTES) / rowBytes / ROWS_AT_ONCE) * ROWS_AT_ONCE;
        const rowsInPiece = Math.min(rowCount, Math.max(wholeRows, ROWS_AT_ONCE));
        const to = module.allocate(4 * rowsInPiece * n);
        bringEach(module, rows, rowBytes, rowsInPiece, (from, row, count) => {
          share(count, ROWS_AT_ONCE, (first, end) => [
            ...(["products_multiply", products, from + first * rowBytes, end - first, to + 4 * first, count] as const),
          ]);
          const y = new Float32Array(exports.memory.buffer, to, count * n);
          for (let v = 0; v < n; v++) {
            out.set(y.subarray(v * count, (v + 1) * count), (start + v) * stride + row);
          }
        });
        exports.free_products(products);
      },
      int8 && n > 1,
    );
  }
}

/** As `NativeAddon.stats`, of all `blocks`. */
export function stats(type: number, blocks: Uint8Array, bigEndian: boolean, totals: Float64Array): Float64Array {
  const { blockSize, typeSize } = formatOf(type);
  return inModule((module) => {
    const fields = module.put(bytesOf(totals));
    bringEach(module, blocks, typeSize, CHUNK_NUMBERS / blockSize, (from, _, n) => {
      const reply = module.exports.measure(type, Number(bigEndian), from, n, fields, totals.length);
      taking(module, reply, () => undefined);
    });
    return new Float64Array(module.copy(fields, totals.byteLength));
  });
}

/** Blocks of one of two tensors. */
export interface ComparedBlocks {
  type: number;
  blocks: Uint8Array;
  bigEndian: boolean;
}

/** As `NativeAddon.compareBlocksAsync`: both have the same number of numbers. */
export function compare(a: ComparedBlocks, b: ComparedBlocks, totals: Float64Array): Float64Array {
  const [sizeA, sizeB] = [a, b].map(({ type }) => formatOf(type)) as [NativeFormat, NativeFormat];
  const count = (a.blocks.length / sizeA.typeSize) * sizeA.blockSize;
  const piece = Math.min(count, CHUNK_NUMBERS);
  return inModule((module) => {
    const fields = module.put(bytesOf(totals));
    const fromA = module.allocate((piece / sizeA.blockSize) * sizeA.typeSize);
    const fromB = module.allocate((piece / sizeB.blockSize) * sizeB.typeSize);
    for (const { start, end } of partsOf(0, count, piece)) {
      const n = end - start;
      bring(module, fromA, a.blocks, sizeA, start, n);
      bring(module, fromB, b.blocks, sizeB, start, n);
      const [bigA, bigB] = [Number(a.bigEndian), Number(b.bigEndian)];
      taking(
        module,
        module.exports.compare(a.type, bigA, fromA, b.type, bigB, fromB, n, fields, totals.length),
        () => undefined,
      );
    }
    return new Float64Array(module.copy(fields, totals.byteLength));
  });
}

/** What {@link quantize} encodes: rows of `columns` numbers, with a weight for each column or without. */
export interface RowEncoding {
  type: number;
  columns: number;
  importance: Float32Array | undefined;
  best: boolean;
}

/** How many numbers to encode in one step. */
export function quantizeStep({ type, columns, importance, best }: RowEncoding): number {
  const hasImportance = Number(importance !== undefined);
  return inModule(({ exports }) => exports.quantize_step(type, columns, hasImportance, Number(best)));
}

/** Fills `out` with the blocks that `values` make: those of the rows from number `first` on. */
export function quantize(
  { type, columns, importance, best }: RowEncoding,
  first: number,
  values: Float32Array,
  out: Uint8Array,
): void {
  const { blockSize } = formatOf(type);
  inModule((module) => {
    const weights = importance === undefined ? 0 : module.put(bytesOf(importance));
    const from = module.put(bytesOf(values));
    const to = module.allocate(out.length);
    const count = values.length / blockSize;
    const reply = module.exports.quantize(
      ...([type, columns, weights, Number(best), first / blockSize] as const),
      ...([from, count, to] as const),
    );
    taking(module, reply, () => out.set(module.bytes(to, out.length)));
  });
}

/** The same blocks in the other byte order, in memory of their own. */
export function swapBytes(type: number, blocks: Uint8Array): OwnBytes {
  const { blockSize, typeSize } = formatOf(type);
  const count = blocks.length / typeSize;
  const piece = Math.min(count, PIECE_NUMBERS / blockSize);
  const out = new Uint8Array(blocks.length);
  inModule((module) => {
    const to = module.allocate(piece * typeSize);
    bringEach(module, blocks, typeSize, piece, (from, first, n) => {
      module.exports.swap(type, from, n, to);
      out.set(module.bytes(to, n * typeSize), first * typeSize);
    });
  });
  return out;
}

/**
 * Brings units of `unitBytes` to one place in the module, at most `most` of them at a time; `use` gets the place, the number
 * of the first unit there, and how many there are.
 */
function bringEach(
  module: Instance,
  bytes: Uint8Array,
  unitBytes: number,
  most: number,
  use: (from: number, first: number, count: number) => void,
): void {
  const count = bytes.length / unitBytes;
  const from = module.allocate(Math.min(most, count) * unitBytes);
  for (const { start, end } of partsOf(0, count, most)) {
    module.bytes(from, (end - start) * unitBytes).set(bytes.subarray(start * unitBytes, end * unitBytes));
    use(from, start, end - start);
  }
}

function bring(
  module: Instance,
  to: number,
  blocks: Uint8Array,
  { blockSize, typeSize }: NativeFormat,
  first: number,
  count: number,
): void {
  const bytes = blocks.subarray((first / blockSize) * typeSize, ((first + count) / blockSize) * typeSize);
  module.bytes(to, bytes.length).set(bytes);
}

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}
