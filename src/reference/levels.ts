/** Types whose four-bit codes represent unevenly spaced levels: IQ4_NL, IQ4_XS, MXFP4, NVFP4. */
import { type CodeTable, half } from "./decoder";

/** The levels of IQ4_NL and IQ4_XS: denser around zero, as weights are. */
export const NONLINEAR_LEVELS = Int8Array.of(
  ...[-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113],
);

/**
 * The levels of MXFP4 and NVFP4: twice the floats of two exponent bits and one fraction bit. There is no -0.
 */
export const FP4_LEVELS = Int8Array.of(...[0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12]);

/** Half the value of every scale byte of NVFP4: four bits of exponent (bias 7), three of fraction, no sign. */
const NVFP4_SCALES = Float32Array.from({ length: 256 }, (_, byte) => {
  if ((byte & 0x7f) === 0 || byte === 0x7f) return 0;
  const exponent = (byte >> 3) & 15;
  const fraction = byte & 7;
  return 0.5 * (exponent === 0 ? fraction * 2 ** -9 : (1 + fraction / 8) * 2 ** (exponent - 7));
});

/** 2^(e - 128), for every scale byte e of MXFP4. */
const POWERS = Float32Array.from({ length: 256 }, (_, e) => 2 ** (e - 128));

export const levels = {
  // byte     0    2                18
  //          d    q[16]
  // bits     f16  hi: y[j+16], lo: y[j]
  //
  // y = d * level[q]
  IQ4_NL: {
    run: 32,
    decode(bytes, from, count, { levels, scales }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 18, y += 32) {
        scales[block] = half(bytes, b);
        nibbles(bytes, b + 2, 16, NONLINEAR_LEVELS, levels, y);
      }
    },
  },

  // byte     0    2        4                8                136
  //          d    sh       sl[4]            q[128]
  // bits     f16  2 each   hi: odd group    16 per group,
  //                        lo: even group   hi: y[j+16], lo: y[j]
  //
  // 8 groups of 32 weights. The scale of group g has six bits: the nibble of sl[g/2], and above it bits 2g
  // and 2g+1 of sh. y[32g+j] = d*(scale[g] - 32) * level[q]
  IQ4_XS: {
    run: 32,
    decode(bytes, from, count, { levels, scales }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 136) {
        const d = half(bytes, b);
        const high = bytes[b + 2]! | (bytes[b + 3]! << 8);
        for (let g = 0; g < 8; g++, y += 32) {
          const low = (bytes[b + 4 + (g >> 1)]! >> ((g & 1) << 2)) & 15;
          scales[y / 32] = d * ((low | (((high >> (2 * g)) & 3) << 4)) - 32);
          nibbles(bytes, b + 8 + g * 16, 16, NONLINEAR_LEVELS, levels, y);
        }
      }
    },
  },

  // byte     0    1                17
  //          e    q[16]
  // bits     u8   hi: y[j+16], lo: y[j]
  //
  // y = level[q] * 2^(e - 128)
  MXFP4: {
    run: 32,
    decode(bytes, from, count, { levels, scales }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 17, y += 32) {
        scales[block] = POWERS[bytes[b]!]!;
        nibbles(bytes, b + 1, 16, FP4_LEVELS, levels, y);
      }
    },
  },

  // byte     0          4                36
  //          scale[4]   q[32]
  // bits     8 each     8 per group,
  //                     hi: y[j+8], lo: y[j]
  //
  // 4 groups of 16 weights; y[16s+j] = level[q] * scale[s] / 2
  NVFP4: {
    run: 16,
    decode(bytes, from, count, { levels, scales }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 36) {
        for (let s = 0; s < 4; s++, y += 16) {
          scales[y / 16] = NVFP4_SCALES[bytes[b + s]!]!;
          nibbles(bytes, b + 4 + s * 8, 8, FP4_LEVELS, levels, y);
        }
      }
    },
  },
} satisfies CodeTable;

/** Writes the levels of the low nibbles of `count` bytes, then those of the high nibbles. */
function nibbles(
  bytes: Uint8Array,
  from: number,
  count: number,
  level: Int8Array,
  levels: Int8Array,
  to: number,
): void {
  for (let j = 0; j < count; j++) {
    const q = bytes[from + j]!;
    levels[to + j] = level[q & 15]!;
    levels[to + count + j] = level[q >> 4]!;
  }
}
