/** Products of rows of blocks from anywhere with vectors. */
import { native } from "../backend/native";
import type {
  AsyncOptions,
  BlockArray,
  BlockProductOptions,
  Dequantized,
  Returned,
  ThreadOptions,
} from "../base/options";
import type { GgmlType } from "../base/types";
import { attempt, runJob } from "./jobs";
import { checkSupported } from "./kernels";
import { checkBlockProduct, endProduct } from "./product-request";
import { explainFailure } from "./request";

/**
 * Multiplies a matrix with vectors: y[v][r] is the sum over all columns c of w[r][c] * x[v][c], where w are the numbers
 * that {@link dequantizeSync} gives. Nothing is dequantized to memory: blocks are read once, whatever the number of
 * vectors. The sums have binary32 numbers and the order that docs/sums.md defines under "Products": the same bits on
 * every instruction set, for any number of vectors at a time, of rows and of threads, except for the sign and payload of a
 * NaN. So do those of `activations: "int8"`, which rounds the vectors, and is faster.
 *
 * @param type a tensor type
 * @param blocks whole rows of blocks of that type, one after the other, little-endian; any alignment
 * @param columns numbers of a row, a positive multiple of the type's block size
 * @param x n vectors of `columns` numbers, one after the other; it is copied first, so that `out` may overlap it
 * @returns n times the rows: for each vector, the products of all rows. Empty where `x` is empty
 * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
 * @throws GgufError ERR_GGUF_RANGE where `blocks` are not whole rows, `x` is not whole vectors, or `columns`, `threads`
 *   or the length of `out` or `bias` are wrong, or `accumulate` has no `out`; ERR_GGUF_UNSUPPORTED_TYPE for a type that cannot be turned into numbers
 */
export function matmulSync<A extends Float32Array = Dequantized<"f32">>(
  type: GgmlType,
  blocks: BlockArray,
  columns: number,
  x: Float32Array,
  options?: BlockProductOptions<A> & ThreadOptions,
): Returned<A> {
  const { info, bytes, request } = checkBlockProduct(type, blocks, columns, x, options, "sync");
  const { length, out, int8, threads } = request;
  checkSupported(type);
  const result = attempt(
    () => native.matmulBlocks(info.id, bytes, columns, x, out, int8, threads),
    (error) => explainFailure(error, length),
  );
  return endProduct(native, request, result) as Returned<A>;
}

/**
 * As {@link matmulSync}, off the main thread and on every core; progress is in numbers of the result. Wrong arguments reject
 * the promise. `x` may change once this has returned; `blocks` must not change until the promise settles. Blocks in memory
 * that JavaScript can take away (by detaching or shortening it) are copied while the work runs, a part at a time; if they are
 * taken away before that, the promise rejects with ERR_GGUF_RANGE. `out` is written directly if its memory cannot be taken
 * away (such as a SharedArrayBuffer), and otherwise at the end.
 *
 * @throws the reason of `options.signal` if it is aborted
 */
export async function matmul<A extends Float32Array = Dequantized<"f32">>(
  type: GgmlType,
  blocks: BlockArray,
  columns: number,
  x: Float32Array,
  options?: BlockProductOptions<A> & AsyncOptions,
): Promise<Returned<A>> {
  const { info, bytes, request } = checkBlockProduct(type, blocks, columns, x, options);
  const { length, out, int8, asyncOptions } = request;
  checkSupported(type);
  const result = await runJob(
    asyncOptions,
    (...how) => native.matmulBlocksAsync(info.id, bytes, columns, x, out, int8, ...how, false),
    (error) => explainFailure(error, length),
  );
  return endProduct(native, request, result) as Returned<A>;
}
