/** Types that store one plain number per weight: F32, F16, BF16, F64. */
import { copyF32 } from "../decode/copy";
import { type DecoderTable, halves, littleEndianHost } from "./decoder";

export const floats = {
  // byte     0 .. 3
  //          f32          y = f32
  F32(bytes, from, count, out, to) {
    if (littleEndianHost) {
      copyF32(bytes, from, count, out, to);
      return;
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset + from, count * 4);
    for (let i = 0; i < count; i++) out[to + i] = view.getFloat32(i * 4, true);
  },

  // byte     0 .. 1
  //          f16          y = f16
  F16(bytes, from, count, out, to) {
    const view = new DataView(bytes.buffer, bytes.byteOffset + from, count * 2);
    for (let i = 0; i < count; i++) out[to + i] = halves[view.getUint16(i * 2, true)]!;
  },

  // byte     0 .. 1
  //          bf16         y = the binary32 whose upper 16 bits these are
  BF16(bytes, from, count, out, to) {
    const view = new DataView(bytes.buffer, bytes.byteOffset + from, count * 2);
    const bits = new Uint32Array(out.buffer, out.byteOffset + to * 4, count);
    for (let i = 0; i < count; i++) bits[i] = view.getUint16(i * 2, true) << 16;
  },

  // byte     0 .. 7
  //          f64          y = f64, rounded
  F64(bytes, from, count, out, to) {
    const view = new DataView(bytes.buffer, bytes.byteOffset + from, count * 8);
    for (let i = 0; i < count; i++) out[to + i] = view.getFloat64(i * 8, true);
  },
} satisfies DecoderTable;
