/** Memory that the addon owns: for outputs that are kept, and what becomes of it. */

import { dtypeNumber } from "../decode/kernels";
import type { Dequantized, DType } from "../decode/options";
import { checkDType } from "../decode/request";
import { invalidArgType } from "../errors";
import { native } from "../native";

/**
 * A zeroed array of `length` elements in memory that the addon owns: of huge pages where the system has them, and safe
 * to pass as `out` to asynchronous work, which writes straight into it. A `Float32Array`, or a `Uint16Array` of bits
 * for `"f16"` and `"bf16"`.
 *
 * @throws GgufError ERR_GGUF_RANGE where `length` is no whole number, or there is no memory for so much.
 */
export function allocate<D extends DType = "f32">(length: number, dtype?: D): Dequantized<D> {
  if (typeof length !== "number") throw invalidArgType("length", "of type number", length);
  return native.allocate(length, dtypeNumber(checkDType(dtype))) as Dequantized<D>;
}

/**
 * Gives memory back to the system that large results were made in and that is kept, once they are collected, to be used
 * again: an eighth of the machine's memory at most, never more than 1 GiB. The environment variable
 * `GGUF_NATIVE_POOL_MB` sets another limit; 0 keeps nothing.
 */
export function trim(): void {
  native.trim();
}
