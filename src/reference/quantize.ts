/**
 * Numbers to blocks in plain TypeScript, to the same bits as the native code.
 *
 * It follows ggml's reference in binary32, where every operation rounds on its own, so `Math.fround` is around each. Where
 * the inverse of a scale is infinite, that reference converts a NaN, or a number that does not fit in 32 bits. As on x86,
 * this gives 0 in the last byte.
 */
import type { OwnBytes, Returned } from "../base/options";
import { plain } from "../base/typed-arrays";
import { checkPlainQuantize, notFinite, type PlainQuantizeOptions } from "../quantize/request";
import { roundToBF16, roundToF16 } from "./rounding";

/** A type that the reference makes blocks of: those that ggml rounds to without a search. */
export type QuantizableType = "F32" | "F16" | "BF16" | "Q8_0" | "Q4_0" | "Q4_1" | "Q5_0" | "Q5_1";

/** Writes the block of the 32 numbers from `x[at]` on to `out`, from byte `to` on. */
type Encoder = (x: Float32Array, at: number, out: DataView, to: number) => void;

const COUNT = 32;
const codes = new Uint8Array(COUNT);
const number = new Float32Array(1);
const bits = new Uint16Array(1);

/** Writes a number as binary16. */
function putHalf(out: DataView, to: number, value: number): void {
  number[0] = value;
  roundToF16(number, 1, bits, 0);
  out.setUint16(to, bits[0]!, true);
}

function inverse(d: number): number {
  return d === 0 ? 0 : Math.fround(1 / d);
}

/** The whole part, in 32 bits; 0 where there is none. */
function whole(x: number): number {
  return Math.abs(x) < 2 ** 31 ? Math.trunc(x) : 0;
}

/** The first number with the greatest magnitude. */
function greatest(x: Float32Array, at: number): number {
  let most = 0;
  for (let j = 0; j < COUNT; j++) if (Math.abs(x[at + j]!) > Math.abs(most)) most = x[at + j]!;
  return most;
}

const FLOAT32_MAX = 2 ** 128 - 2 ** 104;

function rangeOf(x: Float32Array, at: number): { min: number; max: number } {
  let [min, max] = [FLOAT32_MAX, -FLOAT32_MAX];
  for (let j = 0; j < COUNT; j++) {
    const value = x[at + j]!;
    if (value < min) min = value;
    if (value > max) max = value;
  }
  return { min, max };
}

function putNibbles(out: DataView, to: number): void {
  for (let j = 0; j < 16; j++) out.setUint8(to + j, (codes[j]! & 15) | ((codes[j + 16]! & 15) << 4));
}

function putFifthBits(out: DataView, to: number): void {
  let word = 0;
  for (let j = 0; j < COUNT; j++) word |= ((codes[j]! >> 4) & 1) << j;
  out.setUint32(to, word, true);
}

/** Writes {@link codes}: first the fifth bits, where they have five, then the low four. */
function putCodes(out: DataView, to: number, bits: CodeBits): void {
  if (bits === 5) putFifthBits(out, to);
  putNibbles(out, bits === 5 ? to + 4 : to);
}

type CodeBits = 4 | 5;

/** d = the number of greatest magnitude / -middle; q = x / d + middle, to the nearest. */
const centered =
  (bits: CodeBits): Encoder =>
  (x, at, out, to) => {
    const middle = 2 ** (bits - 1);
    const d = Math.fround(greatest(x, at) / -middle);
    const id = inverse(d);
    putHalf(out, to, d);
    for (let j = 0; j < COUNT; j++) {
      const scaled = Math.fround(x[at + j]! * id);
      codes[j] = Math.min(whole(Math.fround(scaled + (middle + 0.5))), 2 ** bits - 1);
    }
    putCodes(out, to + 2, bits);
  };

/** m = min, d = (max - min) / the highest code; q = (x - m) / d, to the nearest. */
const fromMinimum =
  (bits: CodeBits): Encoder =>
  (x, at, out, to) => {
    const highest = 2 ** bits - 1;
    const { min, max } = rangeOf(x, at);
    const d = Math.fround(Math.fround(max - min) / highest);
    const id = inverse(d);
    putHalf(out, to, d);
    putHalf(out, to + 2, min);
    for (let j = 0; j < COUNT; j++) {
      const scaled = Math.fround(Math.fround(x[at + j]! - min) * id);
      codes[j] = Math.min(whole(Math.fround(scaled + 0.5)), highest);
    }
    putCodes(out, to + 4, bits);
  };

type BlockType = Exclude<QuantizableType, "F32" | "F16" | "BF16">;

const encoders: Readonly<Record<BlockType, Encoder>> = {
  Q4_0: centered(4),
  Q4_1: fromMinimum(4),
  Q5_0: centered(5),
  Q5_1: fromMinimum(5),

  // d = the greatest magnitude / 127; q = x / d, to the nearest, halves away from zero
  Q8_0(x, at, out, to) {
    let amax = 0;
    for (let j = 0; j < COUNT; j++) amax = Math.max(amax, Math.abs(x[at + j]!));
    const d = Math.fround(amax / 127);
    const id = inverse(d);
    putHalf(out, to, d);
    for (let j = 0; j < COUNT; j++) {
      const scaled = Math.fround(x[at + j]! * id);
      out.setUint8(to + 2 + j, whole(Math.sign(scaled) * Math.floor(Math.abs(scaled) + 0.5)));
    }
  },
};

const TYPES: QuantizableType[] = ["F32", "F16", "BF16", ...(Object.keys(encoders) as BlockType[])];

/**
 * Turns numbers into blocks of `type`; arguments, result, bits and errors are those of `quantizeSync` of `gguf-native`.
 *
 * @param type one of F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0 and Q5_1
 * @param numbers whole blocks of numbers: a multiple of 32, except for F32, F16 and BF16
 * @returns the blocks, little-endian
 * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
 * @throws GgufError ERR_GGUF_UNSUPPORTED_TYPE for another type; ERR_GGUF_RANGE for numbers that are not whole blocks, or
 *   not finite where blocks cannot hold these (then nothing is written), or an `out` of another length
 */
export function quantizeSync<A extends Uint8Array = OwnBytes>(
  type: QuantizableType,
  numbers: Float32Array,
  options?: PlainQuantizeOptions<A>,
): Returned<A> {
  const request = checkPlainQuantize(TYPES, type, numbers, options);
  const values = plain(request.numbers);
  const out = plain(request.out);
  const view = new DataView(out.buffer, out.byteOffset, out.byteLength);
  if (type === "F32") {
    const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
    for (let i = 0; i < words.length; i++) view.setUint32(4 * i, words[i]!, true);
  } else if (type === "F16" || type === "BF16") {
    const halves = new Uint16Array(values.length);
    const round = type === "F16" ? roundToF16 : roundToBF16;
    round(values, values.length, halves, 0);
    for (let i = 0; i < halves.length; i++) view.setUint16(2 * i, halves[i]!, true);
  } else {
    const bad = values.findIndex((value) => !Number.isFinite(value));
    if (bad !== -1) throw notFinite(type, values, bad, values.length);
    const encode = encoders[type];
    const { typeSize } = request.info;
    for (let at = 0, to = 0; at < values.length; at += COUNT, to += typeSize) encode(values, at, view, to);
  }
  return request.out as Returned<A>;
}
