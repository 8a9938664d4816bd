/** F32 blocks are numbers already: they are copied. */
import { lengthOf, plain } from "../base/typed-arrays";

/** What views of files that may be mapped lie in: a file can become shorter, which only the addon notices. */
const mapped = new WeakSet<object>();

export function markMappedView<View extends Uint8Array>(view: View): View {
  mapped.add(plain(view).buffer);
  return view;
}

export function isMappedView(bytes: Uint8Array): boolean {
  return mapped.has(plain(bytes).buffer);
}

/** Copies `count` numbers, from byte `from` of `blocks` to number `to` of `out`. Only where numbers are little-endian. */
export function copyF32(blocks: Uint8Array, from: number, count: number, out: Float32Array, to: number): void {
  const { buffer, byteOffset } = plain(out);
  const target = new Uint8Array(buffer, byteOffset + 4 * to, 4 * count);
  target.set(count * 4 === lengthOf(blocks) ? blocks : plain(blocks).subarray(from, from + 4 * count));
}
