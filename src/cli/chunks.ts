/** A tensor's values a piece at a time, so that memory stays bounded however large the tensor is. */
import { setImmediate } from "node:timers/promises";
import type { Dequantized, DType, GgufTensor } from "../index";

/** A multiple of every block size. */
const CHUNK_ELEMENTS = 2 ** 20;

/** Yields consecutive pieces of the tensor; each piece is only good until the next one. */
export async function* chunks<D extends DType>(tensor: GgufTensor, dtype: D): AsyncGenerator<Dequantized<D>> {
  const total = tensor.elementCount;
  const buffer = new (dtype === "f32" ? Float32Array : Uint16Array)(Math.min(total, CHUNK_ELEMENTS));
  for (let start = 0; start < total; start += CHUNK_ELEMENTS) {
    const end = Math.min(total, start + CHUNK_ELEMENTS);
    const out = buffer.subarray(0, end - start) as Dequantized<D>;
    yield tensor.dequantizeSync({ dtype, start, end, out });
    if (end < total) await setImmediate(); // lets signals through
  }
}
