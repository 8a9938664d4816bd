/** Random blocks of every type: any bits at all, or with scales as real models have them. */
import { type GgmlType, ggmlTypes } from "gguf-native/reference";
import type { Random } from "./random";

/** Bytes at which a block of the type holds binary16 scales and minimums. */
const HALF_FIELDS: Partial<Record<GgmlType, readonly number[]>> = {
  Q4_0: [0],
  Q4_1: [0, 2],
  Q5_0: [0],
  Q5_1: [0, 2],
  Q8_0: [0],
  Q8_1: [0, 2],
  Q2_K: [80, 82],
  Q3_K: [108],
  Q4_K: [0, 2],
  Q5_K: [0, 2],
  Q6_K: [208],
  IQ2_XXS: [0],
  IQ2_XS: [0],
  IQ3_XXS: [0],
  IQ1_S: [0],
  IQ4_NL: [0],
  IQ3_S: [0],
  IQ2_S: [0],
  IQ4_XS: [0],
  TQ1_0: [52],
  TQ2_0: [64],
  Q1_0: [0],
  Q2_0: [0],
};

/** `count` blocks of random bits: subnormal, infinite and NaN scales too. */
export function randomBlocks(type: GgmlType, count: number, random: Random): Uint8Array {
  return random.fill(new Uint8Array(count * ggmlTypes[type].typeSize));
}

/** `count` blocks with random quants and scales of a realistic size, so that every value is finite and small. */
export function gaussianBlocks(type: GgmlType, count: number, random: Random): Uint8Array {
  const { typeSize } = ggmlTypes[type];
  const bytes = randomBlocks(type, count, random);
  const view = new DataView(bytes.buffer);
  for (let at = 0; at < bytes.length; at += typeSize) {
    for (const field of HALF_FIELDS[type] ?? []) view.setUint16(at + field, smallHalf(random), true);
    if (type === "F32" || type === "Q8_K") view.setFloat32(at, random.gaussian() * 0.02, true);
    if (type === "F16") view.setUint16(at, smallHalf(random), true);
    if (type === "BF16")
      view.setUint16(at, (random.bits() & 0x807f) | (0x3c00 - 128 * random.below(8)), true);
    if (type === "F64") view.setFloat64(at, random.gaussian() * 0.02, true);
    if (type === "MXFP4") bytes[at] = 0x7a + random.below(4);
    if (type === "IQ1_M") setSplitHalf(bytes, at + 48, smallHalf(random));
  }
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
