/** Super-blocks of 256 weights with small integer scales per group: Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, Q8_K. */
import { type Codes, type CodeTable, half } from "./decoder";

export const kQuants = {
  // byte     0            16       80    82     84
  //          scales[16]   q[64]    d     dmin
  // bits     hi: min      2 each   f16   f16
  //          lo: scale
  //
  // 16 groups of 16 weights, two per bit pair of a half: for half n, bit pair j and l < 32, with s = scales[8n+2j+l/16],
  // y[128n+32j+l] = d*lo(s) * ((q[32n+l] >> 2j) & 3) - dmin*hi(s)
  Q2_K: {
    run: 16,
    affine: true,
    decode(bytes, from, count, { levels, scales, minima }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 84) {
        const d = half(bytes, b + 80);
        const dmin = half(bytes, b + 82);
        for (let group = 0; group < 16; group++, y += 16) {
          const s = bytes[b + group]!;
          scales[y / 16] = d * (s & 15);
          minima[y / 16] = -dmin * (s >> 4);
          const q = b + 16 + ((group >> 3) << 5) + ((group & 1) << 4);
          const shift = group & 6;
          for (let l = 0; l < 16; l++) levels[y + l] = (bytes[q + l]! >> shift) & 3;
        }
      }
    },
  },

  // byte     0               32       96              108   110
  //          hmask[32]       q[64]    S[12]           d
  // bits     1 each, bit     2 each   6 each, packed  f16
  //          4n+j
  //
  // S: the low nibbles of scales 0..7 are the low nibbles of S[0..7], those of scales 8..15 the high ones; the upper
  // two bits of scale i are bits 2*(i/4) and up of S[8 + i%4].
  // y[128n+32j+l] = d*(scale[8n+2j+l/16] - 32) * (((q[32n+l] >> 2j) & 3) - (hmask bit set ? 0 : 4))
  Q3_K: {
    run: 16,
    decode(bytes, from, count, { levels, scales }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 110) {
        const d = half(bytes, b + 108);
        for (let group = 0; group < 16; group++, y += 16) {
          const low = (bytes[b + 96 + (group & 7)]! >> ((group >> 3) << 2)) & 15;
          const high = (bytes[b + 104 + (group & 3)]! >> ((group >> 2) << 1)) & 3;
          scales[y / 16] = d * ((low | (high << 4)) - 32);
          const mask = b + ((group & 1) << 4);
          const q = b + 32 + ((group >> 3) << 5) + ((group & 1) << 4);
          const shift = group & 6;
          const bit = group >> 1;
          for (let l = 0; l < 16; l++) {
            const third = ((bytes[mask + l]! >> bit) & 1) << 2;
            levels[y + l] = ((bytes[q + l]! >> shift) & 3) + third - 4;
          }
        }
      }
    },
  },

  // byte     0    2      4                16                    144
  //          d    dmin   S[12]            q[128]
  // bits     f16  f16    scales and mins, hi: odd group,
  //                      6 each, packed   lo: even group
  //
  // 8 groups of 32 weights; y[32g+l] = d*scale[g] * nibble - dmin*min[g], from byte q[32*(g/2)+l]
  Q4_K: {
    run: 32,
    affine: true,
    decode(bytes, from, count, codes) {
      const { levels } = codes;
      for (let block = 0, b = from, y = 0; block < count; block++, b += 144, y += 256) {
        scaleGroups(bytes, b, codes, block * 8);
        for (let g = 0; g < 8; g += 2) {
          const q = b + 16 + g * 16;
          const even = y + g * 32;
          for (let l = 0; l < 32; l++) {
            const pair = bytes[q + l]!;
            levels[even + l] = pair & 15;
            levels[even + 32 + l] = pair >> 4;
          }
        }
      }
    },
  },

  // byte     0    2      4                16               48                    176
  //          d    dmin   S[12]            qh[32]           q[128]
  // bits     f16  f16    scales and mins, bit g: 5th bit   hi: odd group,
  //                      6 each, packed   of y[32g+l]      lo: even group
  //
  // As Q4_K, with 16 added to the nibble if bit g of qh[l] is set
  Q5_K: {
    run: 32,
    affine: true,
    decode(bytes, from, count, codes) {
      const { levels } = codes;
      for (let block = 0, b = from, y = 0; block < count; block++, b += 176, y += 256) {
        scaleGroups(bytes, b, codes, block * 8);
        for (let g = 0; g < 8; g += 2) {
          const q = b + 48 + g * 16;
          const even = y + g * 32;
          for (let l = 0; l < 32; l++) {
            const pair = bytes[q + l]!;
            const fifth = bytes[b + 16 + l]! >> g;
            levels[even + l] = (pair & 15) | ((fifth & 1) << 4);
            levels[even + 32 + l] = (pair >> 4) | ((fifth & 2) << 3);
          }
        }
      }
    },
  },

  // byte     0               128            192          208   210
  //          ql[128]         qh[64]         sc[16]       d
  // bits     nibbles         2 each         i8           f16
  //
  // For half n and l < 32 with a = ql[64n+l], c = ql[64n+32+l], t = qh[32n+l] the quants
  //   lo(a)|(t&3)<<4   lo(c)|((t>>2)&3)<<4   hi(a)|((t>>4)&3)<<4   hi(c)|(t>>6)<<4
  // go to y[128n+l], +32, +64, +96: y = d*sc[8n + l/16 + 0, 2, 4, 6] * (quant - 32)
  Q6_K: {
    run: 16,
    decode(bytes, from, count, { levels, scales }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 210) {
        const d = half(bytes, b + 208);
        for (let n = 0; n < 2; n++, y += 128) {
          for (let sixteen = 0; sixteen < 2; sixteen++) {
            const sc = b + 192 + n * 8 + sixteen;
            for (let i = 0; i < 8; i += 2) scales[y / 16 + sixteen + i] = d * signed(bytes[sc + i]!);
            const ql = b + n * 64 + sixteen * 16;
            const qh = b + 128 + n * 32 + sixteen * 16;
            const at = y + sixteen * 16;
            for (let l = 0; l < 16; l++) {
              const a = bytes[ql + l]!;
              const c = bytes[ql + 32 + l]!;
              const t = bytes[qh + l]!;
              levels[at + l] = ((a & 15) | ((t & 3) << 4)) - 32;
              levels[at + 32 + l] = ((c & 15) | ((t & 12) << 2)) - 32;
              levels[at + 64 + l] = ((a >> 4) | (t & 48)) - 32;
              levels[at + 96 + l] = ((c >> 4) | ((t & 192) >> 2)) - 32;
            }
          }
        }
      }
    },
  },

  // byte     0    4          260           292
  //          d    q[256]     sums[16]
  // bits     f32  i8         i16, unused
  //
  // y = d * q
  Q8_K: {
    run: 32,
    decode(bytes, from, count, { levels, scales }) {
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      for (let block = 0, b = from, y = 0; block < count; block++, b += 292, y += 256) {
        scales.fill(view.getFloat32(b, true), block * 8, block * 8 + 8);
        for (let j = 0; j < 256; j++) levels[y + j] = bytes[b + 4 + j]!;
      }
    },
  },
} satisfies CodeTable;

/** A byte as a signed integer. */
function signed(byte: number): number {
  return (byte << 24) >> 24;
}

/*
 * The twelve bytes S of Q4_K and Q5_K hold eight 6-bit scales and eight 6-bit mins:
 *
 *   byte     0 .. 3                   4 .. 7                   8 .. 11
 *   7 6      upper bits, scale 4..7   upper bits, min 4..7     lower nibble of min 4..7 (bits 7..4)
 *   5 .. 0   scale 0..3               min 0..3                 lower nibble of scale 4..7 (bits 3..0)
 */

/** Decodes the scales of the block at byte b: those of its eight groups, from number `group` on. */
function scaleGroups(bytes: Uint8Array, b: number, { scales, minima }: Codes, group: number): void {
  const d = half(bytes, b);
  const dmin = half(bytes, b + 2);
  for (let g = 0; g < 8; g++) {
    scales[group + g] = d * sixBitScale(bytes, b + 4, g);
    minima[group + g] = -dmin * sixBitMin(bytes, b + 4, g);
  }
}

function sixBitScale(bytes: Uint8Array, S: number, g: number): number {
  return g < 4 ? bytes[S + g]! & 63 : (bytes[S + g + 4]! & 15) | ((bytes[S + g - 4]! >> 6) << 4);
}

function sixBitMin(bytes: Uint8Array, S: number, g: number): number {
  return g < 4 ? bytes[S + g + 4]! & 63 : (bytes[S + g + 4]! >> 4) | ((bytes[S + g]! >> 6) << 4);
}
