/** Results compared bit for bit, a NaN being equal to any NaN. */
import type { DType } from "gguf-native/reference";

/** The first index where two results differ; -1 if none does. */
export function firstDifference(
  actual: Float32Array | Uint16Array,
  expected: Float32Array | Uint16Array,
  dtype: DType = "f32",
): number {
  if (actual.length !== expected.length) return Math.min(actual.length, expected.length);
  const a = bits(actual);
  const b = bits(expected);
  const infinity = { f32: 0x7f800000, f16: 0x7c00, bf16: 0x7f80 }[dtype];
  const magnitude = dtype === "f32" ? 0x7fffffff : 0x7fff;
  for (let i = 0; i < a.length; i++) {
    if (a[i] === b[i]) continue;
    if ((a[i]! & magnitude) <= infinity || (b[i]! & magnitude) <= infinity) return i;
  }
  return -1;
}

function bits(values: Float32Array | Uint16Array): Uint32Array | Uint16Array {
  if (values instanceof Uint16Array) return values;
  return new Uint32Array(values.buffer, values.byteOffset, values.length);
}
