/**
 * Products of quantized rows with vectors in plain TypeScript, to the same bits as the native kernels.
 *
 * A product has one definition, whatever computes it (see "Products" in docs/sums.md):
 *
 *   1. The numbers of a row are those that dequantization gives, taken in the order in which the kernel of their type
 *      hands them over: ascending, except for the types of {@link INTERLEAVED}.
 *   2. There are 64 partial sums, +0 at first. The i-th number w, with the number x of the vector at the same column,
 *      goes to p[i % 64] by one fused multiply-add: p = w * x + p, rounded once.
 *   3. For h = 32, 16, 8, 4, 2, 1: p[i] += p[i + h] for all i < h. The product is p[0] + 0, which is never -0.
 */
import type { BlockArray, BlockProductOptions, Dequantized, Returned, ThreadOptions } from "../base/options";
import { plain } from "../base/typed-arrays";
import type { GgmlType } from "../base/types";
import { checkBlockProduct, type EndingFunctions, endProduct } from "../decode/product-request";
import { newOut } from "../decode/request";
import { littleEndianHost } from "./decoder";
import { codeDecoders, decoders } from "./decoders";
import { multiplyCodes } from "./integer-products";

/** How many partial sums a product has. */
const PARTIAL_SUMS = 64;

/** Kernels hand over 32 numbers at a time. */
const EXTENT = 32;

/** Types whose kernels take the eight extents of a block of 256 in the order of {@link INTERLEAVED_ORDER}. */
const INTERLEAVED: ReadonlySet<GgmlType> = new Set<GgmlType>(["Q2_K", "Q3_K", "TQ2_0"]);
const INTERLEAVED_ORDER = [0, 4, 1, 5, 2, 6, 3, 7] as const;

/** The columns of a row of `columns` numbers in the order in which they are added up. */
export function columnOrder(type: GgmlType, columns: number): Uint32Array {
  const order = new Uint32Array(columns);
  for (let i = 0; i < columns; i++) {
    const extent = Math.floor(i / EXTENT) % 8;
    const taken = INTERLEAVED.has(type) ? (INTERLEAVED_ORDER[extent] as number) : extent;
    order[i] = i + (taken - extent) * EXTENT;
  }
  return order;
}

const binary64 = new Float64Array(1);
const words = new Uint32Array(binary64.buffer);
/** Which of the two words holds the last bits. */
const LOW = littleEndianHost ? 0 : 1;
const HIGH = 1 - LOW;

/**
 * a * b + c of binary32 numbers, rounded once to binary32. The product is exact in binary64. The sum is rounded to odd
 * there: where it is not exact, it becomes the neighbour whose last bit is 1, so that the second rounding, to binary32,
 * sees on which side of it the exact sum lies.
 */
export function fusedMultiplyAdd(a: number, b: number, c: number): number {
  const product = a * b;
  const sum = product + c;
  const added = sum - product;
  const error = product - (sum - added) + (c - added); // what the sum lacks, exactly; NaN beyond the finite numbers
  if (error > 0 || error < 0) {
    binary64[0] = sum;
    const low = words[LOW] as number;
    if ((low & 1) === 0) {
      if (error > 0 === sum > 0) {
        words[LOW] = low + 1;
      } else {
        words[LOW] = low - 1;
        if (low === 0) words[HIGH] = (words[HIGH] as number) - 1;
      }
      return Math.fround(binary64[0] as number);
    }
  }
  return Math.fround(sum);
}

const partials = new Float32Array(PARTIAL_SUMS);

/** The product of a row with `vector`, both in the order of {@link columnOrder}. */
export function dotProduct(row: Float32Array, vector: Float32Array): number {
  partials.fill(0);
  for (let i = 0; i < row.length; i++) {
    const at = i % PARTIAL_SUMS;
    partials[at] = fusedMultiplyAdd(row[i] as number, vector[i] as number, partials[at] as number);
  }
  for (let half = PARTIAL_SUMS / 2; half >= 1; half /= 2) {
    for (let i = 0; i < half; i++) partials[i] = (partials[i] as number) + (partials[i + half] as number);
  }
  return (partials[0] as number) + 0;
}

/** Sums and products of arrays, number by number, into the first. */
export const endings: EndingFunctions = {
  addInto: (x, y) => {
    const [sum, other] = [plain(x), plain(y)];
    for (let i = 0; i < sum.length; i++) sum[i]! += other[i % other.length]!;
  },
  scaleInto: (x, factor) => {
    const f = Math.fround(factor);
    const numbers = plain(x);
    for (let i = 0; i < numbers.length; i++) numbers[i]! *= f;
  },
};

/**
 * Multiplies a matrix with vectors; arguments, result, bits and errors are those of `matmulSync` of `gguf-native`.
 * `threads` makes no difference here.
 *
 * @param type a tensor type
 * @param blocks whole rows of blocks of that type, one after the other, little-endian
 * @param columns numbers of a row, a positive multiple of the type's block size
 * @param x n vectors of `columns` numbers, one after the other; `out` may overlap it
 * @returns n times the rows: for each vector, the products of all rows. Empty where `x` is empty
 * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
 * @throws GgufError ERR_GGUF_RANGE where `blocks` are not whole rows, `x` is not whole vectors, or `columns`, `threads`
 *   or the length of `out` or `bias` are wrong, or `accumulate` has no `out`; ERR_GGUF_UNSUPPORTED_TYPE for a type that is not in `ggmlTypes`
 */
export function matmulSync<A extends Float32Array = Dequantized<"f32">>(
  type: GgmlType,
  blocks: BlockArray,
  columns: number,
  x: Float32Array,
  options?: BlockProductOptions<A> & ThreadOptions,
): Returned<A> {
  const { info, bytes: stored, request } = checkBlockProduct(type, blocks, columns, x, options, "sync");
  const { end: rowCount, length, out, int8 } = request;
  const result = (out ?? newOut("f32", length)) as Float32Array;
  const [y, given, bytes] = [plain(result), plain(x), plain(stored)];
  const rowBlocks = columns / info.blockSize;
  const codeDecoder = codeDecoders[type];
  if (int8 && codeDecoder !== undefined) {
    // Copies: `out` may overlap `x`.
    const vectors: Float32Array[] = [];
    for (let at = 0; at < given.length; at += columns) vectors.push(given.slice(at, at + columns));
    multiplyCodes(codeDecoder, bytes, info.typeSize, rowBlocks, vectors, rowCount, y);
    return endProduct(endings, request, result) as Returned<A>;
  }
  const order = columnOrder(type, columns);
  const inOrder = (numbers: Float32Array): Float32Array => {
    const ordered = new Float32Array(columns);
    for (let i = 0; i < columns; i++) ordered[i] = numbers[order[i] as number] as number;
    return ordered;
  };
  const vectors: Float32Array[] = [];
  for (let at = 0; at < given.length; at += columns) {
    vectors.push(inOrder(given.subarray(at, at + columns)));
  }
  const numbers = new Float32Array(columns);
  for (let row = 0; row < rowCount && vectors.length > 0; row++) {
    decoders[type](bytes, row * rowBlocks * info.typeSize, rowBlocks, numbers, 0);
    const weights = inOrder(numbers);
    vectors.forEach((vector, v) => {
      y[v * rowCount + row] = dotProduct(weights, vector);
    });
  }
  return endProduct(endings, request, result) as Returned<A>;
}
