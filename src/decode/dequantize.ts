/** Dequantization of blocks in memory. */

import { native } from "../backend/native";
import { checkOptions } from "../base/arguments";
import type {
  AsyncOptions,
  BlockArray,
  Dequantized,
  DequantizeOptions,
  DType,
  OutArray,
  Returned,
} from "../base/options";
import { isFloat32Array } from "../base/typed-arrays";
import type { GgmlType } from "../base/types";
import { copyF32, isMappedView } from "./copy";
import { attempt, runJob } from "./jobs";
import { checkSupported, dtypeNumber } from "./kernels";
import { checkBlocks, checkRequest, DECODE_OPTIONS, explainFailure } from "./request";

/** Up to so many bytes, JavaScript has copied them before a call of the addon is over. */
const COPIED_BYTES = 2 ** 20;

/**
 * Turns blocks of `type` into numbers.
 *
 * @param type a tensor type
 * @param blocks whole blocks of that type, little-endian; any alignment
 * @returns elements `start` to `end`: a `Float32Array`, or a `Uint16Array` of bits for `f16` and `bf16`. The
 *   bits equal ggml's results on every instruction set, except for the sign and payload of a NaN
 * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
 * @throws GgufError ERR_GGUF_RANGE if `blocks`, `start` or `end` are not whole blocks or `out` has the wrong
 *   length; ERR_GGUF_UNSUPPORTED_TYPE for a type that cannot be turned into numbers
 */
export function dequantizeSync<D extends DType = "f32", A extends OutArray<D> = Dequantized<D>>(
  type: GgmlType,
  blocks: BlockArray,
  options?: DequantizeOptions<D, A>,
): Returned<A> {
  const { info, bytes, elementCount } = checkBlocks(type, blocks);
  const checked = checkOptions(options, DECODE_OPTIONS, [blocks], undefined, "sync");
  const { dtype, start, end, given, out } = checkRequest(checked, elementCount, info.blockSize);
  checkSupported(type);
  if (type === "F32" && isFloat32Array(out) && 4 * (end - start) <= COPIED_BYTES && !isMappedView(bytes)) {
    copyF32(bytes, 4 * start, end - start, out, 0);
    return out as Returned<A>;
  }
  const result = attempt(
    () => native.dequantizeBlocks(info.id, bytes, dtypeNumber(dtype), start, end, out),
    (error) => explainFailure(error, end - start),
  );
  return (given ?? result) as Returned<A>;
}

/**
 * As {@link dequantizeSync}, off the main thread and on every core. Wrong arguments reject the promise.
 * `blocks` must not change until it settles. Memory that JavaScript can take away (by detaching or shortening
 * it) is copied while the work runs, a part at a time; if it is taken away before that, the promise rejects
 * with ERR_GGUF_RANGE.
 *
 * @throws the reason of `options.signal` if it is aborted
 */
export async function dequantize<D extends DType = "f32", A extends OutArray<D> = Dequantized<D>>(
  type: GgmlType,
  blocks: BlockArray,
  options?: DequantizeOptions<D, A> & AsyncOptions,
): Promise<Returned<A>> {
  const { info, bytes, elementCount } = checkBlocks(type, blocks);
  const checked = checkOptions(options, DECODE_OPTIONS, [blocks]);
  const { dtype, start, end, given, out } = checkRequest(checked, elementCount, info.blockSize);
  checkSupported(type);
  const result = await runJob(
    checked,
    (...how) => native.dequantizeBlocksAsync(info.id, bytes, dtypeNumber(dtype), start, end, out, ...how, false),
    (error) => explainFailure(error, end - start),
  );
  return (given ?? result) as Returned<A>;
}
