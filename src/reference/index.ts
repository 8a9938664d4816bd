/**
 * `gguf-native/reference`: dequantization and products in plain TypeScript, for runtimes without native code,
 * browsers among them. It is also the oracle that the native kernels are tested against and the other side of
 * the benchmarks.
 *
 * To add a type: write its decoder, with its byte diagram and formula, in the file of its family, and add it
 * to that file's table. A new family is one more line in decoders.ts.
 *
 * @module gguf-native/reference
 */
import { checkOptions } from "../base/arguments";
import type { BlockArray, Dequantized, DequantizeOptions, DType, OutArray, Returned } from "../base/options";
import { plain } from "../base/typed-arrays";
import type { GgmlType, GgmlTypeInfo } from "../base/types";
import { checkBlocks, checkRequest, DECODE_OPTIONS, newOut } from "../decode/request";
import type { Decoder } from "./decoder";
import { decoders } from "./decoders";
import { roundToBF16, roundToF16 } from "./rounding";

export { GgufError, type GgufErrorCode } from "../base/errors";
export type {
  ActivationOptions,
  Activations,
  BlockArray,
  BlockProductOptions,
  Dequantized,
  DequantizeOptions,
  DType,
  OutArray,
  ProductResultOptions,
  ThreadOptions,
} from "../base/options";
export { type GgmlType, type GgmlTypeInfo, ggmlTypes, isGgmlType } from "../base/types";
export type {
  ActivateOptions,
  Activation,
  AttentionOptions,
  CacheType,
  Floats,
  KvCacheOptions,
  NormOptions,
  OutOptions,
  RopeOptions,
  RotationsOptions,
  SoftmaxOptions,
  YarnOptions,
} from "../network/options";
export { Rotations } from "../network/rotations";
export { type TopK, topK } from "../network/top-k";
export type { PlainQuantizeOptions as QuantizeOptions } from "../quantize/request";
export {
  activate,
  add,
  attention,
  gated,
  KvCache,
  layerNorm,
  logSumExp,
  meanOfRows,
  normalize,
  rmsNorm,
  rope,
  roundingError,
  scale,
  softmax,
} from "./network";
export { matmulSync } from "./products";
export { type QuantizableType, quantizeSync } from "./quantize";

/**
 * The number of elements decoded at a time for 16-bit outputs: a multiple of every block size, 16 KiB of
 * floats.
 */
const CHUNK = 4096;

/**
 * Turns blocks of `type` into numbers; arguments, result and errors are those of `dequantizeSync` of
 * `gguf-native`.
 *
 * @param type a tensor type
 * @param blocks whole blocks of that type, little-endian
 * @returns elements `start` to `end`: a `Float32Array`, or a `Uint16Array` of bits for `f16` and `bf16`
 * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
 * @throws GgufError ERR_GGUF_RANGE if `blocks`, `start` or `end` are not whole blocks or `out` has the wrong
 *   length; ERR_GGUF_UNSUPPORTED_TYPE for a type that is not in `ggmlTypes`
 */
export function dequantizeSync<D extends DType = "f32", A extends OutArray<D> = Dequantized<D>>(
  type: GgmlType,
  blocks: BlockArray,
  options?: DequantizeOptions<D, A>,
): Returned<A> {
  const { info, bytes, elementCount } = checkBlocks(type, blocks);
  const checked = checkOptions(options, DECODE_OPTIONS, [blocks], undefined, "sync");
  const { dtype, start, end, given, out } = checkRequest(checked, elementCount, info.blockSize);
  const decode = decoders[type];
  const from = (start / info.blockSize) * info.typeSize;
  const result = plain(out ?? newOut(dtype, end - start));
  if (dtype === "f32") {
    decode(plain(bytes), from, result.length / info.blockSize, result as Float32Array, 0);
  } else {
    const round = dtype === "f16" ? roundToF16 : roundToBF16;
    decodeRounded(decode, info, plain(bytes), from, result as Uint16Array, round);
  }
  return (given ?? (result as Dequantized)) as Returned<A>;
}

function decodeRounded(
  decode: Decoder,
  info: GgmlTypeInfo,
  blocks: Uint8Array,
  from: number,
  result: Uint16Array,
  round: typeof roundToF16,
): void {
  const chunk = new Float32Array(Math.min(CHUNK, result.length));
  for (let done = 0; done < result.length; done += CHUNK) {
    const elements = Math.min(CHUNK, result.length - done);
    decode(blocks, from + (done / info.blockSize) * info.typeSize, elements / info.blockSize, chunk, 0);
    round(chunk, elements, result, done);
  }
}
