/** Random blocks of every type: any bits at all, or with scales as real models have them. */
import { type GgmlType, ggmlTypes } from "gguf-native/reference";
import { halfFields } from "./byte-order";
import { Random } from "./random";

/** Types with a number of two bytes in a block that is not a binary16 scale. */
const NOT_HALVES: readonly GgmlType[] = ["BF16", "I16"];

/** `count` blocks of random bits: subnormal, infinite and NaN scales too. */
export function randomBlocks(type: GgmlType, count: number, random: Random): Uint8Array {
  return random.fill(new Uint8Array(count * ggmlTypes[type].typeSize));
}

/** `count` blocks with random quants and scales of a realistic size, so that every value is finite and small. */
export function gaussianBlocks(type: GgmlType, count: number, random: Random): Uint8Array {
  const { typeSize } = ggmlTypes[type];
  const bytes = randomBlocks(type, count, random);
  const view = new DataView(bytes.buffer);
  const scales = NOT_HALVES.includes(type) ? [] : halfFields(type);
  for (let at = 0; at < bytes.length; at += typeSize) {
    for (const scale of scales) view.setUint16(at + scale, smallHalf(random), true);
    if (type === "F32" || type === "Q8_K") view.setFloat32(at, random.gaussian() * 0.02, true);
    if (type === "BF16") view.setUint16(at, (random.bits() & 0x807f) | (0x3c00 - 128 * random.below(8)), true);
    if (type === "F64") view.setFloat64(at, random.gaussian() * 0.02, true);
    if (type === "MXFP4") bytes[at] = 0x7a + random.below(4);
    if (type === "IQ1_M") setSplitHalf(bytes, at + 48, smallHalf(random));
  }
  return bytes;
}

/** Many of these, quickly: 4096 of them, again and again. */
export function manyBlocks(type: GgmlType, count: number): Uint8Array {
  const { typeSize } = ggmlTypes[type];
  const some = gaussianBlocks(type, Math.min(count, 4096), new Random(17));
  const bytes = new Uint8Array(count * typeSize);
  for (let at = 0; at < bytes.length; at += some.length) bytes.set(some.subarray(0, bytes.length - at), at);
  return bytes;
}

/** Binary16 bits of either sign between 2^-11 and 2^-6. */
function smallHalf(random: Random): number {
  return (random.bits() & 0x83ff) | ((4 + random.below(5)) << 10);
}

/** IQ1_M keeps the four nibbles of its scale in the top nibbles of four u16. */
function setSplitHalf(bytes: Uint8Array, at: number, half: number): void {
  for (let i = 0; i < 4; i++) {
    bytes[at + 2 * i + 1] = (bytes[at + 2 * i + 1]! & 15) | (((half >> (4 * i)) & 15) << 4);
  }
}
