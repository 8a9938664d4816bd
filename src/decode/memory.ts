/** Memory that the addon owns: allocating arrays, and returning memory to the system. */

import { native } from "../backend/native";
import { invalidArgType } from "../base/errors";
import type { Dequantized, DType } from "../base/options";
import { dtypeNumber } from "../decode/kernels";
import { checkDType } from "../decode/request";

/**
 * A zeroed array of `length` elements in memory that the addon owns. It uses huge pages if the system has
 * them. Pass it as `out` to asynchronous work, which writes directly into it. A `Float32Array`, or a
 * `Uint16Array` of bits for `"f16"` and `"bf16"`.
 *
 * It cannot be transferred to another thread, as results without `out` can: Node.js 22 and newer throw a
 * `DataCloneError`, Node.js 20 copies it.
 *
 * @throws TypeError ERR_INVALID_ARG_TYPE, ERR_INVALID_ARG_VALUE for another `dtype`
 * @throws GgufError ERR_GGUF_RANGE if `length` is not a whole number, or longer than arrays can be;
 *   ERR_GGUF_OUT_OF_MEMORY if there is not enough memory
 */
export function allocateArray<D extends DType = "f32">(length: number, dtype?: D): Dequantized<D> {
  if (typeof length !== "number") throw invalidArgType("length", "of type number", length);
  return native.allocate(length, dtypeNumber(checkDType(dtype))) as Dequantized<D>;
}

/**
 * Returns kept memory to the system. The memory of large arrays of {@link allocateArray} is kept for the next ones after
 * the garbage collector has collected them: at most an eighth of the machine's memory, and at most 1 GiB. The
 * environment variable `GGUF_NATIVE_POOL_MB` sets another limit; 0 keeps nothing.
 */
export function releaseMemory(): void {
  native.trim();
}

/** @deprecated The old name of {@link allocateArray}. */
export const allocate = allocateArray;

/** @deprecated The old name of {@link releaseMemory}. */
export const trim = releaseMemory;
