/** Blocks as a big-endian file holds them. */
import { type GgmlType, ggmlTypes } from "gguf-native/reference";

/**
 * The fields of a block: a count and B for bytes, H, W or D for numbers of 2, 4 or 8 bytes. A field of the format is a
 * word here: `H 16H` is a scale and sixteen other numbers. This is what formats.def has as well, written down again to
 * be compared with.
 */
const FIELDS: Record<GgmlType, string> = {
  F32: "W",
  F16: "H",
  Q4_0: "H 16B",
  Q4_1: "H H 16B",
  Q5_0: "H W 16B",
  Q5_1: "H H W 16B",
  Q8_0: "H 32B",
  Q8_1: "H H 32B",
  Q2_K: "16B 64B H H",
  Q3_K: "32B 64B 12B H",
  Q4_K: "H H 12B 128B",
  Q5_K: "H H 12B 32B 128B",
  Q6_K: "128B 64B 16B H",
  Q8_K: "W 256B 16H",
  IQ2_XXS: "H 16W",
  IQ2_XS: "H 32H 8B",
  IQ3_XXS: "H 64B 8W",
  IQ1_S: "H 32B 8H",
  IQ4_NL: "H 16B",
  IQ3_S: "H 64B 8B 32B 4B",
  IQ2_S: "H 32B 32B 8B 8B",
  IQ4_XS: "H H 4B 128B",
  I8: "B",
  I16: "H",
  I32: "W",
  I64: "D",
  F64: "D",
  IQ1_M: "32B 16B 4H",
  BF16: "H",
  TQ1_0: "48B 4B H",
  TQ2_0: "64B H",
  MXFP4: "B 16B",
  NVFP4: "4B 32B",
  Q1_0: "H 16B",
  Q2_0: "H 16B",
  PQ2_0: "H 32B",
  PTQ1_0: "24B 2B H",
};

/** The bytes at which a block has a single number of two bytes: in almost every format, its scales and minima. */
export function halfFields(type: GgmlType): number[] {
  const starts: number[] = [];
  let at = 0;
  for (const { text, width, count } of fieldsOf(type)) {
    if (text === "H") starts.push(at);
    at += width * count;
  }
  return starts;
}

/** Whether a block is the same in both byte orders. */
export function isOnlyBytes(type: GgmlType): boolean {
  return fieldsOf(type).every(({ width }) => width === 1);
}

function fieldsOf(type: GgmlType): { text: string; width: number; count: number }[] {
  return FIELDS[type].split(" ").map((text) => ({
    text,
    width: { B: 1, H: 2, W: 4, D: 8 }[text.at(-1) as "B" | "H" | "W" | "D"],
    count: Number(text.slice(0, -1) || 1),
  }));
}

/** For each byte of a block, the place of the byte that belongs there in the other byte order. */
function swappedPlaces(type: GgmlType): number[] {
  const places: number[] = [];
  for (const { width, count } of fieldsOf(type)) {
    for (let i = 0; i < count; i++) {
      const start = places.length;
      for (let byte = 0; byte < width; byte++) places.push(start + width - 1 - byte);
    }
  }
  return places;
}

/** The same blocks in the other byte order. */
export function swapBlocks(type: GgmlType, blocks: Uint8Array): Uint8Array {
  const { typeSize } = ggmlTypes[type];
  const places = swappedPlaces(type);
  if (places.length !== typeSize) throw new Error(`the fields of ${type} make ${places.length} bytes`);
  return Uint8Array.from(blocks, (_, i) => blocks[i - (i % typeSize) + places[i % typeSize]!]!);
}
