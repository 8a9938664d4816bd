/** Blocks of 128 or 256 weights that are each -d, 0 or d: TQ1_0, TQ2_0, PTQ1_0. */
import { type CodeTable, half } from "./decoder";

export const ternary = {
  // byte     0           32          48        52      54
  //          q[32]       q[16]       q[4]      d
  //          5 trits     5 trits     4 trits   f16
  //
  // The trits of a byte are the digits of a fraction in base 3, which is rounded up to a multiple of 1/256:
  // digit n of v is ((v * 3^n mod 256) * 3) >> 8. The weights are digit 0 of the first 32 bytes, then their
  // digit 1 ...; then those of the next 16 bytes, then those of the last 4. y = (digit - 1) * d
  TQ1_0: {
    run: 32,
    decode(bytes, from, count, { levels, scales }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 54, y += 256) {
        scales.fill(half(bytes, b + 52), block * 8, block * 8 + 8);
        digits(bytes, b, 32, 5, levels, y);
        digits(bytes, b + 32, 16, 5, levels, y + 160);
        digits(bytes, b + 48, 4, 4, levels, y + 240);
      }
    },
  },

  // byte     0             64    66
  //          q[64]         d
  // bits     2 each        f16
  //
  // For half n of 32 bytes, bit pair l and m < 32: y[128n+32l+m] = (((q[32n+m] >> 2l) & 3) - 1) * d
  TQ2_0: {
    run: 32,
    decode(bytes, from, count, { levels, scales }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 66, y += 256) {
        scales.fill(half(bytes, b + 64), block * 8, block * 8 + 8);
        for (let n = 0; n < 2; n++) {
          const at = y + n * 128;
          for (let m = 0; m < 32; m++) {
            const q = bytes[b + n * 32 + m]!;
            levels[at + m] = (q & 3) - 1;
            levels[at + 32 + m] = ((q >> 2) & 3) - 1;
            levels[at + 64 + m] = ((q >> 4) & 3) - 1;
            levels[at + 96 + m] = (q >> 6) - 1;
          }
        }
      }
    },
  },

  // byte     0           16          24        26      28
  //          q[16]       q[8]        q[2]      d
  //          5 trits     5 trits     4 trits   f16
  //
  // As TQ1_0
  PTQ1_0: {
    run: 32,
    decode(bytes, from, count, { levels, scales }) {
      for (let block = 0, b = from, y = 0; block < count; block++, b += 28, y += 128) {
        scales.fill(half(bytes, b + 26), block * 4, block * 4 + 4);
        digits(bytes, b, 16, 5, levels, y);
        digits(bytes, b + 16, 8, 5, levels, y + 80);
        digits(bytes, b + 24, 2, 4, levels, y + 120);
      }
    },
  },
} satisfies CodeTable;

/** Writes digit 0 of `count` bytes, then their digit 1, and so on up to `places` digits. */
function digits(bytes: Uint8Array, from: number, count: number, places: number, levels: Int8Array, to: number): void {
  for (let n = 0, power = 1, y = to; n < places; n++, power *= 3, y += count) {
    for (let m = 0; m < count; m++) {
      levels[y + m] = ((((bytes[from + m]! * power) & 255) * 3) >> 8) - 1;
    }
  }
}
