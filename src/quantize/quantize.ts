/** Numbers to blocks, natively. */

import { native } from "../backend/native";
import type { OwnBytes, Returned } from "../base/options";
import { checkQuantize, type QuantizableType, type QuantizeOptions } from "./request";

/**
 * Turns numbers into blocks of `type`: the opposite of {@link dequantizeSync}, with the loss of the type.
 *
 * The bytes equal those of ggml's reference rounding (`quantize_row_q4_0_ref` and so on, and its conversions to binary16
 * and bfloat16), on every machine. That rounding knows no importance of weights; for the best quality of a type below 8
 * bits, a model is quantized by llama.cpp with an importance matrix.
 *
 * NaN and infinite numbers have defined results, too. F32 keeps their bits. In F16 and BF16, a NaN stays a NaN and an
 * infinity an infinity; numbers from 65,520 up become infinite in F16. A block of the other types cannot hold them. With an
 * infinite number in it, the block's scale or offset is infinite, so that the whole block dequantizes to infinities and
 * NaNs. A NaN gets the lowest code of Q4_0, Q4_1, Q5_0 and Q5_1, and the code 0 of Q8_0, whose scale is NaN if the last
 * number of the block is; an earlier NaN hides the numbers before it from the choice of the scale. A block of numbers so
 * small that the inverse of its scale is infinite gets these codes as well.
 *
 * @param type one of F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0 and Q5_1
 * @param values whole blocks of numbers: a multiple of 32, except for F32, F16 and BF16
 * @returns the blocks, little-endian
 * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
 * @throws GgufError ERR_GGUF_UNSUPPORTED_TYPE for another type; ERR_GGUF_RANGE for numbers that are not whole blocks, or
 *   an `out` of another length
 */
export function quantizeSync<A extends Uint8Array = OwnBytes>(
  type: QuantizableType,
  values: Float32Array,
  options?: QuantizeOptions<A>,
): Returned<A>;
export function quantizeSync(
  type: QuantizableType,
  values: Float32Array,
  options?: QuantizeOptions,
): Uint8Array {
  const { info, out } = checkQuantize(type, values, options);
  native.quantize(info.id, values, out);
  return out;
}
