/** Binary32 to the 16-bit formats, rounded to nearest even. */

/**
 * Writes `count` floats as binary16 bits: values from 65520 up overflow to infinity, values under 2^-14 are
 * subnormal, a NaN keeps its sign and nothing else.
 */
export function roundToF16(floats: Float32Array, count: number, out: Uint16Array, to: number): void {
  const allBits = new Uint32Array(floats.buffer, floats.byteOffset, count);
  for (let i = 0; i < count; i++) {
    const bits = allBits[i]!;
    out[to + i] = ((bits >>> 16) & 0x8000) | f16Magnitude(bits & 0x7fffffff);
  }
}

/** The binary16 bits of a binary32 without its sign. */
function f16Magnitude(bits: number): number {
  if (bits > 0x7f800000) return 0x7e00; // NaN
  if (bits >= 0x477ff000) return 0x7c00; // 65520 and up: halfway to the next value, which would overflow
  if (bits >= 0x38800000) {
    // 2^-14 and up: drop 13 bits of fraction, move the exponent's bias from 127 to 15
    return (bits - 0x38000000 + 0xfff + ((bits >> 13) & 1)) >> 13;
  }
  if (bits < 0x33000000) return 0; // under half of 2^-24, the smallest subnormal
  // Subnormal: a multiple of 2^-24. fraction * 2^(exponent - 150) = fraction * 2^-shift * 2^-24
  const shift = 126 - (bits >> 23);
  const fraction = (bits & 0x7fffff) | 0x800000;
  const quotient = fraction >> shift;
  const rest = fraction & ((1 << shift) - 1);
  const halfway = 1 << (shift - 1);
  return rest > halfway || (rest === halfway && (quotient & 1) === 1) ? quotient + 1 : quotient;
}

/** Writes `count` floats as bfloat16 bits: their upper halves, rounded; a NaN stays a NaN. */
export function roundToBF16(floats: Float32Array, count: number, out: Uint16Array, to: number): void {
  const allBits = new Uint32Array(floats.buffer, floats.byteOffset, count);
  for (let i = 0; i < count; i++) {
    const bits = allBits[i]!;
    const nan = (bits & 0x7fffffff) > 0x7f800000;
    out[to + i] = nan ? (bits >>> 16) | 0x40 : (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
  }
}
