/**
 * Block bytes as models have them: weights of a normal distribution, quantized.
 *
 * Repeated or constant blocks flatter code that branches on weights, because processors learn the branches; so every
 * byte here is drawn separately and no block appears twice. Each kind of field is drawn from a table of 65,536 entries, made
 * by quantizing normal weights, at random:
 *
 * - codes that stand for levels (Q4_0, Q6_K's upper bits, IQ4_NL, MXFP4 ...): normal weights rounded to the nearest
 *   level, with as many standard deviations between the outermost levels as a block of that size has on average;
 * - scales: what blocks of that size give, for weights of standard deviation 0.02;
 * - everything else is uniform: rows of codebooks, signs, the low bits of codes of five and six bits, the packed
 *   scales within a block.
 *
 * These are not quantized weights: fields are drawn independently, and the standard deviation of what comes out is half
 * to three times that of the weights. What counts is that decoders take as long. Beside normal weights that ggml's own
 * quantizer had packed, ggml and the native kernels took the same time within a few percent for most types; only ggml's
 * branching decoders of IQ2_XXS, IQ2_XS, IQ2_S and IQ3_S were up to 40 % faster on these blocks, and Q2_0 by 9 %, so
 * that comparisons with ggml are to its advantage there.
 */
import { type GgmlType, ggmlTypes } from "gguf-native/reference";
import { Random } from "../test/support/random";

/** Standard deviation of the weights, as in the linear layers of a language model. */
const DEVIATION = 0.02;
const ENTRIES = 65536;

/** Bytes `at` to `at + count` of a block are drawn from `table`, an entry at a time. */
interface Field {
  at: number;
  count: number;
  table: Uint8Array | Uint16Array | Uint32Array;
}

type Draw = () => number;
const random = new Random(1);
const gaussian: Draw = () => random.gaussian();

const bytes = (make: Draw) => Uint8Array.from({ length: ENTRIES }, make);
const halves = (make: Draw) => Uint16Array.from({ length: ENTRIES }, () => toHalf(make()));
const singles = (make: Draw) => new Uint32Array(Float32Array.from({ length: ENTRIES }, make).buffer);

/** Binary16 bits of a number of ordinary size. */
function toHalf(value: number): number {
  const sign = value < 0 ? 0x8000 : 0;
  const magnitude = Math.abs(value);
  if (magnitude < 2 ** -14) return sign | Math.round(magnitude * 2 ** 24);
  const exponent = Math.floor(Math.log2(magnitude));
  return sign | (((exponent + 15) << 10) + Math.round((magnitude / 2 ** exponent - 1) * 1024));
}

/** The largest magnitude among `count` normal weights. */
function largest(count: number): number {
  let max = 0;
  for (let i = 0; i < count; i++) max = Math.max(max, Math.abs(random.gaussian()));
  return max;
}

/** The scale of a block of `count` weights with levels up to `top`, of either sign if `signed`. */
function scales(count: number, top: number, signed = false): Uint16Array {
  const pool = Array.from({ length: 1024 }, () => (largest(count) * DEVIATION) / top);
  return halves(() => pool[random.below(1024)]! * (signed && random.bits() & 1 ? -1 : 1));
}

/** A normal weight as one of `count` equidistant codes; the outermost are `reach` standard deviations from the mean. */
function code(count: number, reach: number): Draw {
  const top = count - 1;
  return () => Math.min(top, Math.max(0, Math.round((gaussian() / reach + 1) * (top / 2))));
}

/** A normal weight as the number of the nearest of `levels`; the largest is `reach` standard deviations. */
function nearest(levels: readonly number[], reach: number): Draw {
  const unit = Math.max(...levels.map(Math.abs)) / reach;
  return () => {
    const value = gaussian() * unit;
    const distances = levels.map((level) => Math.abs(level - value));
    return distances.indexOf(Math.min(...distances));
  };
}

const nibbles = (draw: Draw) => bytes(() => draw() | (draw() << 4));
const pairs = (draw: Draw) => bytes(() => draw() | (draw() << 2) | (draw() << 4) | (draw() << 6));
const int8 = (reach: number) =>
  bytes(() => Math.max(-127, Math.min(127, Math.round((gaussian() * 127) / reach))));

/** Five ternary digits to a byte, as the first fractional digits of byte / 256 in base 3. */
function trits(digitCount: number): Uint8Array {
  const draw = code(3, 1.5);
  return bytes(() => {
    let value = 0;
    for (let i = 0; i < digitCount; i++) value = value * 3 + draw();
    for (let i = digitCount; i < 5; i++) value *= 3;
    return Math.ceil((value * 256) / 243);
  });
}

// Of 32 normal weights the largest is 2.4 standard deviations from the mean on average, of 16 it is 2.1, of 256 3.
const REACH_16 = 2.1;
const REACH_32 = 2.4;
const REACH_256 = 3;
const NL_LEVELS = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
const FP4_LEVELS = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

const field = (at: number, count: number, table: Field["table"]): Field => ({ at, count, table });
const half = (at: number, table: Uint16Array): Field => field(at, 2, table);

/** The types that models store no weights in. */
type NotWeights = "Q8_1" | "I8" | "I16" | "I32" | "I64" | "F64";

/** What in a block is not uniform, by type. */
const LAYOUTS: Record<Exclude<GgmlType, NotWeights>, () => Field[]> = {
  F32: () => [
    field(
      0,
      4,
      singles(() => gaussian() * DEVIATION),
    ),
  ],
  F16: () => [
    half(
      0,
      halves(() => gaussian() * DEVIATION),
    ),
  ],
  BF16: () => [
    half(
      0,
      Uint16Array.from(
        singles(() => gaussian() * DEVIATION),
        (bits) => bits >>> 16,
      ),
    ),
  ],
  Q4_0: () => [half(0, scales(32, 8, true)), field(2, 16, nibbles(code(16, REACH_32)))],
  Q4_1: () => [
    half(0, scales(32, 7.5)),
    half(
      2,
      halves(() => -largest(32) * DEVIATION),
    ),
    field(4, 16, nibbles(code(16, REACH_32))),
  ],
  Q5_0: () => [half(0, scales(32, 16, true))],
  Q5_1: () => [
    half(0, scales(32, 15.5)),
    half(
      2,
      halves(() => -largest(32) * DEVIATION),
    ),
  ],
  Q8_0: () => [half(0, scales(32, 127)), field(2, 32, int8(REACH_32))],
  Q2_K: () => [
    field(16, 64, pairs(code(4, REACH_16))),
    half(80, scales(16, 1.5 * 15)),
    half(82, scales(16, 15)),
  ],
  Q3_K: () => [field(32, 64, pairs(code(4, REACH_16))), half(108, scales(16, 4 * 32, true))],
  Q4_K: () => [
    half(0, scales(32, 7.5 * 63)),
    half(2, scales(32, 63)),
    field(16, 128, nibbles(code(16, REACH_32))),
  ],
  Q5_K: () => [half(0, scales(32, 15.5 * 63)), half(2, scales(32, 63))],
  Q6_K: () => [
    field(128, 64, pairs(code(4, REACH_16))),
    field(192, 16, int8(1.5)),
    half(208, scales(16, 32 * 127, true)),
  ],
  Q8_K: () => [
    field(
      0,
      4,
      singles(() => (largest(256) * DEVIATION) / 127),
    ),
    field(4, 256, int8(REACH_256)),
  ],
  IQ2_XXS: () => [half(0, scales(32, 43 * 4))],
  IQ2_XS: () => [half(0, scales(16, 43 * 4))],
  IQ2_S: () => [half(0, scales(16, 43 * 4))],
  IQ3_XXS: () => [half(0, scales(32, 62 * 8))],
  IQ3_S: () => [half(0, scales(32, 15 * 31, true))],
  IQ1_S: () => [half(0, scales(32, 15))],
  IQ1_M: () => [...splitHalf(48, scales(16, 15))],
  IQ4_NL: () => [half(0, scales(32, 127, true)), field(2, 16, nibbles(nearest(NL_LEVELS, REACH_32)))],
  IQ4_XS: () => [half(0, scales(32, 127 * 32, true)), field(8, 128, nibbles(nearest(NL_LEVELS, REACH_32)))],
  TQ1_0: () => [field(0, 48, trits(5)), field(48, 4, trits(4)), half(52, scales(256, 1))],
  TQ2_0: () => [field(0, 64, pairs(code(3, 1.5))), half(64, scales(256, 1))],
  MXFP4: () => [
    field(
      0,
      1,
      bytes(() => 121 + random.below(2)),
    ),
    field(1, 16, nibbles(nearest(FP4_LEVELS, REACH_32))),
  ],
  NVFP4: () => [
    field(
      0,
      4,
      bytes(() => 0x08 + random.below(8)),
    ),
    field(4, 32, nibbles(nearest(FP4_LEVELS, REACH_16))),
  ],
  Q1_0: () => [
    half(
      0,
      halves(() => 0.8 * DEVIATION * (1 + 0.05 * gaussian())),
    ),
  ],
  Q2_0: () => [half(0, scales(64, 1)), field(2, 16, pairs(code(4, 2)))],
};

/** IQ1_M has a digit of its scale on top of each of four 16-bit words: one scale for all blocks. */
function splitHalf(at: number, table: Uint16Array): Field[] {
  return [1, 3, 5, 7].map((offset, digit) =>
    field(
      at + offset,
      1,
      bytes(() => random.below(16) | (((table[0]! >> (4 * digit)) & 15) << 4)),
    ),
  );
}

/** The types that weights are stored in. */
export const WEIGHT_TYPES = Object.keys(LAYOUTS) as GgmlType[];

const layouts = new Map<GgmlType, Field[]>();

/** Blocks of `elements` weights, the same in every run. */
export function gaussianBlocks(type: GgmlType, elements: number): Uint8Array {
  const { blockSize, typeSize } = ggmlTypes[type];
  const fields = layouts.get(type) ?? (LAYOUTS as Partial<Record<GgmlType, () => Field[]>>)[type]?.();
  if (fields === undefined) throw new Error(`no weights are made of type ${type}`);
  layouts.set(type, fields);
  const result = new Uint8Array((elements / blockSize) * typeSize);
  const draws = new Random(2);
  fillUniform(result, draws);
  for (const { at, count, table } of fields) fillField(result, typeSize, at, count, table, draws);
  return result;
}

function fillUniform(target: Uint8Array, draws: Random): void {
  const words = new Uint32Array(target.buffer, 0, target.length >> 2);
  for (let i = 0; i < words.length; i++) words[i] = draws.bits();
  for (let i = words.length * 4; i < target.length; i++) target[i] = draws.bits();
}

function fillField(
  target: Uint8Array,
  stride: number,
  at: number,
  count: number,
  table: Field["table"],
  draws: Random,
): void {
  const width = table.BYTES_PER_ELEMENT;
  for (let block = at; block < target.length; block += stride) {
    for (let i = block; i < block + count; i += width) {
      const value = table[draws.bits() >>> 16]!;
      target[i] = value;
      for (let byte = 1; byte < width; byte++) target[i + byte] = value >>> (8 * byte);
    }
  }
}
