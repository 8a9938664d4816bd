/**
 * Super-blocks of 256 weights in 8 groups of 32, whose quants are indexes of codebook rows of eight or four weights:
 * IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS, IQ3_S, IQ1_S, IQ1_M.
 */
import { iq1s, iq2s, iq2xs, iq2xxs, iq3s, iq3xxs } from "./codebook-tables";
import { type CodeTable, half, halves, word } from "./decoder";

export const codebooks = {
  // byte     0    2               66
  //          d    8 groups of 8 bytes
  // bits     f16  row[4]   8 each
  //               a word   4: scale, 4 x 7: signs (the first in bits 0 to 6)
  //
  // y = d * (0.5 + scale) / 4 * row, with signs
  IQ2_XXS: {
    run: 32,
    decode(bytes, from, count, { levels, scales }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 66) {
        const d = half(bytes, b);
        for (let group = b + 2; group < b + 66; group += 8) {
          const info = word(bytes, group + 4);
          scales[y / 32] = d * (0.5 + (info >>> 28)) * 0.25;
          for (let l = 0; l < 4; l++, y += 8) {
            signedRow(iq2xxs, bytes[group + l]! * 8, evenSigns(info >>> (7 * l)), levels, y);
          }
        }
      }
    },
  },

  // byte     0    2                   66               74
  //          d    32 numbers          scale[8]
  // bits     f16  0 to 8: row         hi: rows 2 and 3 of the group
  //               9 to 15: signs      lo: rows 0 and 1
  //
  // y = d * (0.5 + scale) / 4 * row, with signs
  IQ2_XS: {
    run: 16,
    decode(bytes, from, count, { levels, scales }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 74) {
        const d = half(bytes, b);
        for (let i = 0; i < 32; i++, y += 8) {
          const row = bytes[b + 2 + 2 * i]! | (bytes[b + 3 + 2 * i]! << 8);
          if (i % 2 === 0) scales[y / 16] = d * (0.5 + pairScale(bytes[b + 66 + (i >> 2)]!, i)) * 0.25;
          signedRow(iq2xs, (row & 511) * 8, evenSigns(row >> 9), levels, y);
        }
      }
    },
  },

  // byte     0    2         34          66                 74              82
  //          d    row[32]   signs[32]   qh[8]              scale[8]
  // bits     f16  8 each    1 each      2 each: the upper  hi: rows 2 and 3 of the group
  //                                     bits of the rows   lo: rows 0 and 1
  //
  // y = d * (0.5 + scale) / 4 * row, with signs
  IQ2_S: {
    run: 16,
    decode(bytes, from, count, { levels, scales }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 82) {
        const d = half(bytes, b);
        for (let i = 0; i < 32; i++, y += 8) {
          const upper = (bytes[b + 66 + (i >> 2)]! >> (2 * (i & 3))) & 3;
          const row = bytes[b + 2 + i]! | (upper << 8);
          if (i % 2 === 0) scales[y / 16] = d * (0.5 + pairScale(bytes[b + 74 + (i >> 2)]!, i)) * 0.25;
          signedRow(iq2s, row * 8, bytes[b + 34 + i]!, levels, y);
        }
      }
    },
  },

  // byte     0    2         66              98
  //          d    row[64]   8 words
  // bits     f16  8 each    4: scale, 4 x 7: signs (the first in bits 0 to 6)
  //
  // y = d * (0.5 + scale) / 2 * row, with signs
  IQ3_XXS: {
    run: 32,
    decode(bytes, from, count, { levels, scales }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 98) {
        const d = half(bytes, b);
        for (let g = 0; g < 8; g++) {
          const info = word(bytes, b + 66 + g * 4);
          scales[y / 32] = d * (0.5 + (info >>> 28)) * 0.5;
          for (let l = 0; l < 4; l++, y += 8) {
            const rows = b + 2 + g * 8 + l * 2;
            const signs = evenSigns(info >>> (7 * l));
            signedRowPair(iq3xxs, bytes[rows]! * 4, bytes[rows + 1]! * 4, signs, levels, y);
          }
        }
      }
    },
  },

  // byte     0    2         66                   74          106          110
  //          d    row[64]   qh[8]                signs[32]   scale[4]
  // bits     f16  8 each    1 each: the upper    1 each      hi: odd group
  //                         bits of the rows                 lo: even group
  //
  // y = d * (1 + 2 * scale) * row, with signs
  IQ3_S: {
    run: 32,
    decode(bytes, from, count, { levels, scales }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 110) {
        const d = half(bytes, b);
        for (let g = 0; g < 8; g++) {
          const upper = bytes[b + 66 + g]!;
          scales[y / 32] = d * (1 + 2 * ((bytes[b + 106 + (g >> 1)]! >> ((g & 1) << 2)) & 15));
          for (let l = 0; l < 4; l++, y += 8) {
            const rows = b + 2 + g * 8 + l * 2;
            const first = bytes[rows]! | ((upper << (8 - 2 * l)) & 256);
            const second = bytes[rows + 1]! | ((upper << (7 - 2 * l)) & 256);
            signedRowPair(iq3s, first * 4, second * 4, bytes[b + 74 + g * 4 + l]!, levels, y);
          }
        }
      }
    },
  },

  // byte     0    2         34                                  50
  //          d    row[32]   8 numbers
  // bits     f16  8 each    15: shift down instead of up
  //                         12 to 14: scale
  //                         4 x 3: the upper bits of the rows (the first in bits 0 to 2)
  //
  // y = d * (2 * scale + 1) / 8 * (8 * row +- 1)
  IQ1_S: {
    run: 32,
    decode(bytes, from, count, { levels, scales }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 50) {
        const d = half(bytes, b);
        for (let g = 0; g < 8; g++) {
          const info = bytes[b + 34 + g * 2]! | (bytes[b + 35 + g * 2]! << 8);
          scales[y / 32] = d * (2 * ((info >> 12) & 7) + 1) * 0.125;
          const shift = info & 0x8000 ? -1 : 1;
          for (let l = 0; l < 4; l++, y += 8) {
            const row = bytes[b + 2 + g * 4 + l]! | (((info >> (3 * l)) & 7) << 8);
            shiftedRow(iq1s, row * 8, shift, levels, y);
          }
        }
      }
    },
  },

  // byte     0         32                            48                            56
  //          row[32]   qh[16]                        S[4]: u16
  // bits     8 each    a nibble for each row:        12 to 15: a nibble of d, the lowest in S[0]
  //                    3: shift down instead of up   4 x 3: scales of two groups,
  //                    0 to 2: upper bits of row     rows 0 and 1, then 2 and 3
  //
  // y = d * (2 * scale + 1) / 8 * (8 * row +- 1)
  IQ1_M: {
    run: 16,
    decode(bytes, from, count, { levels, scales }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 56) {
        const S = b + 48;
        const low = (bytes[S + 1]! >> 4) | (bytes[S + 3]! & 0xf0);
        const high = (bytes[S + 5]! >> 4) | (bytes[S + 7]! & 0xf0);
        const d = halves[low | (high << 8)]!;
        for (let i = 0; i < 32; i++, y += 8) {
          const packed = bytes[S + 2 * (i >> 3)]! | (bytes[S + 1 + 2 * (i >> 3)]! << 8);
          if (i % 2 === 0) scales[y / 16] = d * (2 * ((packed >> (3 * ((i >> 1) & 3))) & 7) + 1) * 0.125;
          const nibble = bytes[b + 32 + (i >> 1)]! >> ((i & 1) << 2);
          const row = bytes[b + i]! | ((nibble & 7) << 8);
          shiftedRow(iq1s, row * 8, nibble & 8 ? -1 : 1, levels, y);
        }
      }
    },
  },
} satisfies CodeTable;

/** The scale of row i of a block: two rows have one scale, and the two scales of a group share a byte. */
function pairScale(byte: number, i: number): number {
  return (byte >> ((i & 2) << 1)) & 15;
}

/** Eight signs from the lowest seven bits of `bits`: the eighth makes the number of minus signs even. */
export function evenSigns(bits: number): number {
  const seven = bits & 127;
  const folded = seven ^ (seven >> 4);
  return seven | (((0x6996 >> (folded & 15)) & 1) << 7);
}

/** 1 or -1 for each of the eight bits of a byte of signs, at 8 * byte. */
const SIGNS = Int8Array.from({ length: 2048 }, (_, i) => ((i >> 3) & (1 << (i & 7)) ? -1 : 1));

function signedRow(table: Float32Array, row: number, signs: number, levels: Int8Array, to: number): void {
  const sign = signs * 8;
  for (let k = 0; k < 8; k++) levels[to + k] = table[row + k]! * SIGNS[sign + k]!;
}

function signedRowPair(
  table: Float32Array,
  first: number,
  second: number,
  signs: number,
  levels: Int8Array,
  to: number,
): void {
  const sign = signs * 8;
  for (let k = 0; k < 4; k++) {
    levels[to + k] = table[first + k]! * SIGNS[sign + k]!;
    levels[to + 4 + k] = table[second + k]! * SIGNS[sign + 4 + k]!;
  }
}

function shiftedRow(table: Float32Array, row: number, shift: number, levels: Int8Array, to: number): void {
  for (let k = 0; k < 8; k++) levels[to + k] = 8 * table[row + k]! + shift;
}
