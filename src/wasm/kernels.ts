/**
 * The kernels of the module, over arrays of any size, which are brought there a piece at a time. The caller has checked
 * sizes: blocks are whole, and outputs as long as their results. Arrays may lie in shared memory.
 */
import type { OwnBytes } from "../decode/options";
import type { NativeDType, NativeFormat, NativeOut } from "../native-surface";
import { failure } from "./failure";
import { type Instance, inModule } from "./module";
import { taking } from "./reply";

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
      return new TextDecoder()
        .decode(names)
        .split(" ")
        .map((name, i) => {
          const [id, blockSize, typeSize] = fields.subarray(3 * i) as unknown as [number, number, number];
          return { name, id, blockSize, typeSize };
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
    const from = module.allocate(piece * typeSize);
    const to = module.allocate(piece * numberBytes);
    for (let first = 0; first < count; first += piece) {
      const n = Math.min(piece, count - first);
      module.bytes(from, n * typeSize).set(blocks.subarray(first * typeSize, (first + n) * typeSize));
      module.exports.dequantize(type, dtype, Number(bigEndian), from, n, to);
      bytes.set(module.bytes(to, n * numberBytes), first * numberBytes);
    }
  });
}

/**
 * The products of all rows of `columns` numbers with the vectors of as many in `x`: product v of row r goes to
 * out[v * stride + r]. What is not exact has two roundings for each multiplication.
 */
export function multiply(
  type: number,
  rows: Uint8Array,
  bigEndian: boolean,
  columns: number,
  x: Float32Array,
  out: Float32Array,
  exact: boolean,
  stride: number = out.length / (x.length / columns),
): void {
  const { blockSize, typeSize } = formatOf(type);
  const rowBytes = (columns / blockSize) * typeSize;
  const rowCount = rows.length / rowBytes;
  const vectors = x.length / columns;
  const wholeRows = Math.floor(ROW_BYTES / rowBytes / ROWS_AT_ONCE) * ROWS_AT_ONCE;
  const rowsInPiece = Math.min(rowCount, Math.max(wholeRows, ROWS_AT_ONCE));
  const vectorsInPiece = Math.min(vectors, Math.max(Math.floor(VECTOR_BYTES / (4 * columns)), 1));
  for (let first = 0; first < vectors; first += vectorsInPiece) {
    const n = Math.min(vectorsInPiece, vectors - first);
    inModule((module) => {
      const { exports } = module;
      const products = exports.new_products(type, Number(bigEndian), columns, n, Number(exact));
      exports.products_pack(
        products,
        module.put(bytesOf(x.subarray(first * columns, (first + n) * columns))),
      );
      const from = module.allocate(rowsInPiece * rowBytes);
      const to = module.allocate(4 * rowsInPiece * n);
      for (let row = 0; row < rowCount; row += rowsInPiece) {
        const count = Math.min(rowsInPiece, rowCount - row);
        module.bytes(from, count * rowBytes).set(rows.subarray(row * rowBytes, (row + count) * rowBytes));
        exports.products_multiply(products, from, count, to, count);
        const y = new Float32Array(exports.memory.buffer, to, count * n);
        for (let v = 0; v < n; v++) {
          out.set(y.subarray(v * count, (v + 1) * count), (first + v) * stride + row);
        }
      }
      exports.free_products(products);
    });
  }
}

/** As `NativeAddon.stats`, of all `blocks`. */
export function stats(
  type: number,
  blocks: Uint8Array,
  bigEndian: boolean,
  totals: Float64Array,
): Float64Array {
  const { blockSize, typeSize } = formatOf(type);
  const count = blocks.length / typeSize;
  const piece = Math.min(count, CHUNK_NUMBERS / blockSize);
  return inModule((module) => {
    const fields = module.put(bytesOf(totals));
    const from = module.allocate(piece * typeSize);
    for (let first = 0; first < count; first += piece) {
      const n = Math.min(piece, count - first);
      module.bytes(from, n * typeSize).set(blocks.subarray(first * typeSize, (first + n) * typeSize));
      const reply = module.exports.measure(type, Number(bigEndian), from, n, fields, totals.length);
      taking(module, reply, () => undefined);
    }
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
    for (let first = 0; first < count; first += piece) {
      const n = Math.min(piece, count - first);
      bring(module, fromA, a.blocks, sizeA, first, n);
      bring(module, fromB, b.blocks, sizeB, first, n);
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

/** Fills `out` with the blocks that `values` make. */
export function quantize(type: number, values: Float32Array, out: Uint8Array): void {
  const { name, blockSize, typeSize } = formatOf(type);
  const count = values.length / blockSize;
  const piece = Math.min(count, PIECE_NUMBERS / blockSize);
  inModule((module) => {
    if (module.exports.can_quantize(type) === 0) {
      throw failure("ERR_GGUF_UNSUPPORTED_TYPE", `cannot make blocks of the tensor type ${name}`);
    }
    const from = module.allocate(4 * piece * blockSize);
    const to = module.allocate(piece * typeSize);
    for (let first = 0; first < count; first += piece) {
      const n = Math.min(piece, count - first);
      const numbers = values.subarray(first * blockSize, (first + n) * blockSize);
      module.bytes(from, numbers.byteLength).set(bytesOf(numbers));
      module.exports.quantize(type, from, n, to);
      out.set(module.bytes(to, n * typeSize), first * typeSize);
    }
  });
}

/** The same blocks in the other byte order, in memory of their own. */
export function swapBytes(type: number, blocks: Uint8Array): OwnBytes {
  const { blockSize, typeSize } = formatOf(type);
  const count = blocks.length / typeSize;
  const piece = Math.min(count, PIECE_NUMBERS / blockSize);
  const out = new Uint8Array(blocks.length);
  inModule((module) => {
    const from = module.allocate(piece * typeSize);
    const to = module.allocate(piece * typeSize);
    for (let first = 0; first < count; first += piece) {
      const n = Math.min(piece, count - first);
      module.bytes(from, n * typeSize).set(blocks.subarray(first * typeSize, (first + n) * typeSize));
      module.exports.swap(type, from, n, to);
      out.set(module.bytes(to, n * typeSize), first * typeSize);
    }
  });
  return out;
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
