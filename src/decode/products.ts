/** Products of rows of blocks from anywhere with vectors. */
import { native } from "../native";
import type { GgmlType } from "../types";
import { attempt } from "./jobs";
import { checkSupported } from "./kernels";
import type { BlockProductOptions, Dequantized, Returned } from "./options";
import { checkBlockProduct, checkThreads } from "./product-request";
import { explainFailure } from "./request";

/**
 * Multiplies a matrix with vectors: y[v][r] is the sum over all columns c of w[r][c] * x[v][c], where w are the numbers
 * that {@link dequantizeSync} gives. Nothing is dequantized to memory: blocks are read once, whatever the number of
 * vectors. The sums have binary32 numbers and the order that docs/design.md defines under "Products": the same bits on
 * every instruction set, for any number of vectors at a time, of rows and of threads, except for the sign and payload of a
 * NaN. In WebAssembly, `exact: false` gives other bits, and is faster.
 *
 * @param type a tensor type
 * @param blocks whole rows of blocks of that type, one after the other, little-endian; any alignment
 * @param columns numbers of a row, a positive multiple of the type's block size
 * @param x n vectors of `columns` numbers, one after the other; it is copied first, so that `out` may overlap it
 * @returns n times the rows: for each vector, the products of all rows. Empty where `x` is empty
 * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
 * @throws GgufError ERR_GGUF_RANGE where `blocks` are not whole rows, `x` is not whole vectors, or `columns`, `threads`
 *   or the length of `out` are wrong; ERR_GGUF_UNSUPPORTED_TYPE for a type that cannot be turned into numbers
 */
export function matmulSync<A extends Float32Array = Dequantized<"f32">>(
  type: GgmlType,
  blocks: Uint8Array,
  columns: number,
  x: Float32Array,
  options?: BlockProductOptions<A>,
): Returned<A>;
export function matmulSync(
  type: GgmlType,
  blocks: Uint8Array,
  columns: number,
  x: Float32Array,
  options?: BlockProductOptions,
): Float32Array {
  const { info, length, out, exact } = checkBlockProduct(type, blocks, columns, x, options);
  const threads = checkThreads(options?.threads);
  checkSupported(type);
  return attempt(
    () => native.matmulBlocks(info.id, blocks, columns, x, out, threads, exact),
    (error) => explainFailure(error, length),
  );
}
