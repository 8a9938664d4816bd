/** Types that store one integer per weight: I8, I16, I32, I64. A store into `out` rounds to nearest even. */
import type { DecoderTable } from "./decoder";

export const integers = {
  // byte     0
  //          i8           y = i8
  I8(bytes, from, count, out, to) {
    for (let i = 0; i < count; i++) out[to + i] = (bytes[from + i]! << 24) >> 24;
  },

  // byte     0 .. 1
  //          i16          y = i16
  I16(bytes, from, count, out, to) {
    const view = new DataView(bytes.buffer, bytes.byteOffset + from, count * 2);
    for (let i = 0; i < count; i++) out[to + i] = view.getInt16(i * 2, true);
  },

  // byte     0 .. 3
  //          i32          y = i32, rounded
  I32(bytes, from, count, out, to) {
    const view = new DataView(bytes.buffer, bytes.byteOffset + from, count * 4);
    for (let i = 0; i < count; i++) out[to + i] = view.getInt32(i * 4, true);
  },

  // byte     0 .. 7
  //          i64          y = i64, rounded
  //
  // Beyond 2^53 a number cannot hold every integer: making one rounds, and the store would round a second
  // time. So the low 11 bits are first cleared, and bit 11 is set if any of them was set ("round to odd").
  // The result has at most 53 bits and is exact. Since binary32 drops at least 30 bits of such a number, the
  // result is on the same side of every halfway point.
  I64(bytes, from, count, out, to) {
    const view = new DataView(bytes.buffer, bytes.byteOffset + from, count * 8);
    for (let i = 0; i < count; i++) {
      let low = view.getInt32(i * 8, true);
      const high = view.getInt32(i * 8 + 4, true);
      if (high < -0x200000 || high >= 0x200000) low = (low | ((low & 0x7ff) + 0x7ff)) & ~0x7ff;
      out[to + i] = high * 0x100000000 + (low >>> 0);
    }
  },
} satisfies DecoderTable;
