/** F32 blocks are numbers already: they are copied. */
import { lengthOf, plain } from "../base/typed-arrays";

/** Copies `count` numbers, from byte `from` of `blocks` to number `to` of `out`. Only where numbers are little-endian. */
export function copyF32(
  blocks: Uint8Array,
  from: number,
  count: number,
  out: Float32Array,
  to: number,
): void {
  const { buffer, byteOffset } = plain(out);
  const target = new Uint8Array(buffer, byteOffset + 4 * to, 4 * count);
  target.set(count * 4 === lengthOf(blocks) ? blocks : plain(blocks).subarray(from, from + 4 * count));
}
