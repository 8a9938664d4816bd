/** Types with one scale per block of 32 to 128 weights: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1, Q1_0, Q2_0, PQ2_0. */
import { type CodeTable, half, word } from "./decoder";

export const simple = {
  // byte     0    2                18
  //          d    q[16]
  // bits     f16  hi: y[j+16], lo: y[j]
  //
  // y = (q - 8) * d
  Q4_0: {
    run: 32,
    decode(bytes, from, count, { levels, scales }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 18, y += 32) {
        scales[block] = half(bytes, b);
        for (let j = 0; j < 16; j++) {
          const q = bytes[b + 2 + j]!;
          levels[y + j] = (q & 15) - 8;
          levels[y + 16 + j] = (q >> 4) - 8;
        }
      }
    },
  },

  // byte     0    2    4                20
  //          d    m    q[16]
  // bits     f16  f16  hi: y[j+16], lo: y[j]
  //
  // y = q * d + m
  Q4_1: {
    run: 32,
    affine: true,
    decode(bytes, from, count, { levels, scales, minima }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 20, y += 32) {
        scales[block] = half(bytes, b);
        minima[block] = half(bytes, b + 2);
        for (let j = 0; j < 16; j++) {
          const q = bytes[b + 4 + j]!;
          levels[y + j] = q & 15;
          levels[y + 16 + j] = q >> 4;
        }
      }
    },
  },

  // byte     0    2                      6                22
  //          d    qh                     q[16]
  // bits     f16  bit k: 5th bit of y[k] hi: y[j+16], lo: y[j]
  //
  // y = ((q | bit << 4) - 16) * d
  Q5_0: {
    run: 32,
    decode(bytes, from, count, { levels, scales }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 22, y += 32) {
        scales[block] = half(bytes, b);
        const qh = word(bytes, b + 2);
        for (let j = 0; j < 16; j++) {
          const q = bytes[b + 6 + j]!;
          levels[y + j] = ((q & 15) | (((qh >> j) << 4) & 16)) - 16;
          levels[y + 16 + j] = ((q >> 4) | ((qh >> (j + 12)) & 16)) - 16;
        }
      }
    },
  },

  // byte     0    2    4                      8                24
  //          d    m    qh                     q[16]
  // bits     f16  f16  bit k: 5th bit of y[k] hi: y[j+16], lo: y[j]
  //
  // y = (q | bit << 4) * d + m
  Q5_1: {
    run: 32,
    affine: true,
    decode(bytes, from, count, { levels, scales, minima }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 24, y += 32) {
        scales[block] = half(bytes, b);
        minima[block] = half(bytes, b + 2);
        const qh = word(bytes, b + 4);
        for (let j = 0; j < 16; j++) {
          const q = bytes[b + 8 + j]!;
          levels[y + j] = (q & 15) | (((qh >> j) << 4) & 16);
          levels[y + 16 + j] = (q >> 4) | ((qh >> (j + 12)) & 16);
        }
      }
    },
  },

  // byte     0    2                34
  //          d    q[32]
  // bits     f16  i8
  //
  // y = q * d
  Q8_0: {
    run: 32,
    decode(bytes, from, count, { levels, scales }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 34, y += 32) {
        scales[block] = half(bytes, b);
        for (let j = 0; j < 32; j++) levels[y + j] = bytes[b + 2 + j]!;
      }
    },
  },

  // byte     0    2       4                36
  //          d    sum     q[32]
  // bits     f16  unused  i8
  //
  // y = q * d
  Q8_1: {
    run: 32,
    decode(bytes, from, count, { levels, scales }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 36, y += 32) {
        scales[block] = half(bytes, b);
        for (let j = 0; j < 32; j++) levels[y + j] = bytes[b + 4 + j]!;
      }
    },
  },

  // byte     0    2                18
  //          d    q[16]
  // bits     f16  1 each, bit k of byte j: y[8j+k]
  //
  // y = q ? d : -d
  Q1_0: {
    run: 32,
    decode(bytes, from, count, { levels, scales }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 18, y += 128) {
        scales.fill(half(bytes, b), block * 4, block * 4 + 4);
        for (let j = 0; j < 16; j++) {
          const q = bytes[b + 2 + j]!;
          for (let k = 0; k < 8; k++) levels[y + j * 8 + k] = ((q >> k) & 1) * 2 - 1;
        }
      }
    },
  },

  // byte     0    2                18
  //          d    q[16]
  // bits     f16  2 each, pair k of byte j: y[4j+k]
  //
  // y = (q - 1) * d
  Q2_0: {
    run: 32,
    decode(bytes, from, count, { levels, scales }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 18, y += 64) {
        scales.fill(half(bytes, b), block * 2, block * 2 + 2);
        bitPairs(bytes, b + 2, 16, levels, y);
      }
    },
  },

  // byte     0    2                34
  //          d    q[32]
  //
  // As Q2_0
  PQ2_0: {
    run: 32,
    decode(bytes, from, count, { levels, scales }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 34, y += 128) {
        scales.fill(half(bytes, b), block * 4, block * 4 + 4);
        bitPairs(bytes, b + 2, 32, levels, y);
      }
    },
  },
} satisfies CodeTable;

/** The levels of `count` bytes: pair k of byte j is that of weight 4j+k. */
function bitPairs(bytes: Uint8Array, from: number, count: number, levels: Int8Array, to: number): void {
  for (let j = 0, at = to; j < count; j++, at += 4) {
    const q = bytes[from + j]!;
    levels[at] = (q & 3) - 1;
    levels[at + 1] = ((q >> 2) & 3) - 1;
    levels[at + 2] = ((q >> 4) & 3) - 1;
    levels[at + 3] = (q >> 6) - 1;
  }
}
