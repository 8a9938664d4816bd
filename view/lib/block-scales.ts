/** The scales that stand in blocks: what the codes of a block are multiplied with, and the minimum that goes with it. */
import { type GgmlType, ggmlTypes } from "#dist/base/types";
import { newCodes } from "#dist/reference/decoder";
import { codeDecoders } from "#dist/reference/decoders";

/** What stands in one block. */
export interface BlockScale {
  /** One number; as many as there are for types whose groups have a full scale each. */
  readonly scales: readonly number[];
  /** That of types which have one. */
  readonly minimum?: number;
}

/** What stands in the block of a weight. */
export interface BlockView {
  /** Blocks of the tensor before it. */
  readonly number: number;
  /** Weights of the block before this one. */
  readonly position: number;
  readonly size: number;
  readonly scales: readonly number[];
  readonly minimum?: number;
  /** What the weight's own code is multiplied with, and what is added then: value = scale * code + minimum. */
  readonly run: { readonly scale: number; readonly minimum?: number; readonly size: number } | null;
  /** Of every weight of the block; none in files whose bytes are in the other order. */
  readonly codes: Int8Array;
}

/** Turns blocks into numbers. */
export type Decode = (type: GgmlType, blocks: Uint8Array) => Float32Array;

/** Where the scale of a type stands in its block, and the minimum, as binary16 unless said otherwise. */
interface Place {
  readonly scale: number;
  readonly minimum?: number;
  readonly type?: "F32";
}

const PLACES: Partial<Record<GgmlType, Place>> = {
  Q4_0: { scale: 0 },
  Q4_1: { scale: 0, minimum: 2 },
  Q5_0: { scale: 0 },
  Q5_1: { scale: 0, minimum: 2 },
  Q8_0: { scale: 0 },
  Q8_1: { scale: 0 },
  Q2_K: { scale: 80, minimum: 82 },
  Q3_K: { scale: 108 },
  Q4_K: { scale: 0, minimum: 2 },
  Q5_K: { scale: 0, minimum: 2 },
  Q6_K: { scale: 208 },
  Q8_K: { scale: 0, type: "F32" },
  IQ2_XXS: { scale: 0 },
  IQ2_XS: { scale: 0 },
  IQ2_S: { scale: 0 },
  IQ3_XXS: { scale: 0 },
  IQ3_S: { scale: 0 },
  IQ1_S: { scale: 0 },
  IQ4_NL: { scale: 0 },
  IQ4_XS: { scale: 0 },
  TQ1_0: { scale: 52 },
  TQ2_0: { scale: 64 },
  Q1_0: { scale: 0 },
  Q2_0: { scale: 0 },
  PQ2_0: { scale: 0 },
  PTQ1_0: { scale: 26 },
};

/** Types with scales of a single byte: how many. Codes of 2 stand for the scale itself. */
const BYTE_SCALES: Partial<Record<GgmlType, number>> = { MXFP4: 1, NVFP4: 4 };

/** Whether blocks of a type have scales that can be shown. */
export function hasScales(type: string): type is GgmlType {
  return type === "IQ1_M" || Object.hasOwn(PLACES, type) || Object.hasOwn(BYTE_SCALES, type);
}

/** The scales of whole blocks, which are in the byte order of their file. */
export function blockScales(
  type: GgmlType,
  blocks: Uint8Array,
  byteOrder: "little" | "big",
  decode: Decode,
): BlockScale[] {
  const { typeSize, blockSize } = ggmlTypes[type];
  const count = blocks.length / typeSize;
  const number = (at: number, as: "F16" | "F32" = "F16"): number => {
    const bytes = blocks.slice(at, at + ggmlTypes[as].typeSize);
    return decode(as, byteOrder === "big" ? bytes.reverse() : bytes)[0] as number;
  };
  return Array.from({ length: count }, (_, i): BlockScale => {
    const begin = i * typeSize;
    const bytes = BYTE_SCALES[type];
    if (bytes !== undefined) {
      const block = new Uint8Array(typeSize).fill(0x22);
      block.set(blocks.subarray(begin, begin + bytes));
      const values = decode(type, block);
      return { scales: Array.from({ length: bytes }, (_, s) => values[(s * blockSize) / bytes] as number) };
    }
    if (type === "IQ1_M") return { scales: [spreadScale(blocks.subarray(begin), byteOrder, decode)] };
    const { scale, minimum, type: as } = PLACES[type] as Place;
    return {
      scales: [number(begin + scale, as)],
      ...(minimum === undefined ? {} : { minimum: number(begin + minimum) }),
    };
  });
}

/** The scale of IQ1_M: four bits of each of the last four 16-bit numbers of the block. */
function spreadScale(block: Uint8Array, byteOrder: "little" | "big", decode: Decode): number {
  const view = new DataView(block.buffer, block.byteOffset + 48, 8);
  let bits = 0;
  for (let i = 0; i < 4; i++) bits |= (view.getUint16(2 * i, byteOrder === "little") >> 12) << (4 * i);
  return decode("F16", Uint8Array.of(bits & 255, bits >> 8))[0] as number;
}

/** What stands in one block, and what of it the weight at `position` is made of. */
export function blockView(
  type: GgmlType,
  block: Uint8Array,
  position: number,
  byteOrder: "little" | "big",
  decode: Decode,
): Omit<BlockView, "number"> {
  const size = ggmlTypes[type].blockSize;
  const [scales] = blockScales(type, block, byteOrder, decode) as [BlockScale];
  const decoder = codeDecoders[type];
  if (decoder === undefined || byteOrder === "big") {
    return { position, size, ...scales, run: null, codes: new Int8Array(0) };
  }
  const codes = newCodes(decoder, size);
  decoder.decode(block, 0, 1, codes);
  const number = Math.floor(position / decoder.run);
  const minimum = codes.minima[number];
  const run = {
    scale: codes.scales[number] as number,
    ...(minimum === undefined ? {} : { minimum }),
    size: decoder.run,
  };
  return { position, size, ...scales, run, codes: codes.levels };
}
