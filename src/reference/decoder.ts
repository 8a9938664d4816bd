/**
 * The common part of the decoders: their signature, the binary16 table, and why none of them calls
 * Math.fround.
 *
 * The rule is binary32 arithmetic, each operation rounded on its own. JavaScript computes in binary64 and a
 * store into a Float32Array rounds to binary32, so an expression gives the same bits as long as
 *
 *   1. every value before the last operation is exact in binary32, and
 *   2. the last operation is exact in binary64, so that the store is the only rounding.
 *
 * Most types have one binary16 scale d: 11 significant bits, from 2^-24 to 2^16. (1) Scales of up to 8 bits
 * make that 19, the quants or levels of up to 6 bits (7 with scales of 6) make it 24. (2) A sum has to span
 * at most 53 bits: in Q5_K, the widest, d * scale * quant - dmin * min is a multiple of 2^-24 below 2^28. If
 * d is a binary32 (Q8_K) or a power of two (MXFP4), it is multiplied only once, by up to 8 bits. Values
 * beyond the range of binary32 become infinite, and those below it subnormal, by the same single rounding.
 *
 * Two conversions do not follow these rules: I64 needs care because a number cannot hold it (integers.ts),
 * and the 16-bit outputs, defined as the binary32 result rounded once more, are made from the stored floats
 * (rounding.ts). A new decoder that breaks one of the two rules must wrap each inexact intermediate value in
 * Math.fround.
 *
 * The payload and sign of a NaN are not part of any result: they may differ between runtimes and instruction
 * sets.
 */
import type { GgmlType, GgmlTypeInfo } from "../base/types";

/** Decodes `count` blocks, which start at byte `from` of `bytes`, into `out` from element `to` on. */
export type Decoder = (bytes: Uint8Array, from: number, count: number, out: Float32Array, to: number) => void;

/** The decoders of one family of types whose blocks are numbers. */
export type DecoderTable = Partial<Record<GgmlType, Decoder>>;

/** Quantized weights: a level for each, an integer, and for each run of them a scale and maybe a minimum. */
export interface Codes {
  levels: Int8Array;
  scales: Float32Array;
  minima: Float32Array;
}

/** How a quantized type stores its weights: weight = scale * level, or scale * level + minimum. */
export interface CodeDecoder {
  /** How many weights share a scale. */
  run: 16 | 32;
  /** Whether there are minima. */
  affine?: true;
  /** Decodes `count` blocks, which start at byte `from` of `bytes`. */
  decode(bytes: Uint8Array, from: number, count: number, codes: Codes): void;
}

/** The decoders of one family of quantized types. */
export type CodeTable = Partial<Record<GgmlType, CodeDecoder>>;

/** Memory for `count` weights. */
export function newCodes(decoder: CodeDecoder, count: number): Codes {
  const runs = count / decoder.run;
  return {
    levels: new Int8Array(count),
    scales: new Float32Array(runs),
    minima: new Float32Array(decoder.affine ? runs : 0),
  };
}

/** How many weights are decoded at a time: a multiple of every block size. */
const PIECE = 1024;

/** The decoder to numbers. */
export function numbersOf(decoder: CodeDecoder, { blockSize, typeSize }: GgmlTypeInfo): Decoder {
  const { run, affine } = decoder;
  let codes: Codes | undefined;
  return (bytes, from, count, out, to) => {
    codes ??= newCodes(decoder, PIECE);
    const { levels, scales, minima } = codes;
    for (let blocks = 0; blocks < count; ) {
      const n = Math.min(PIECE / blockSize, count - blocks);
      decoder.decode(bytes, from + blocks * typeSize, n, codes);
      const start = to + blocks * blockSize;
      for (let first = 0, r = 0; first < n * blockSize; first += run, r++) {
        const scale = scales[r]!;
        if (affine) {
          const minimum = minima[r]!;
          for (let i = first; i < first + run; i++) out[start + i] = scale * levels[i]! + minimum;
        } else {
          for (let i = first; i < first + run; i++) out[start + i] = scale * levels[i]!;
        }
      }
      blocks += n;
    }
  };
}

/** Whether this machine stores the last byte of a number first. */
export const littleEndianHost = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

/** Binary16 bits to value: sign, 5 bits of exponent (bias 15), 10 bits of fraction. */
function halfValue(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1024 + fraction) * 2 ** (exponent - 25);
}

/** The value of every binary16; the index is its bits. */
export const halves: Float32Array = Float32Array.from({ length: 65536 }, (_, bits) => halfValue(bits));

/** The little-endian binary16 at byte `at`. */
export function half(bytes: Uint8Array, at: number): number {
  return halves[bytes[at]! | (bytes[at + 1]! << 8)]!;
}

/** The little-endian u32 at byte `at`, as a signed integer: only its bits matter. */
export function word(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
}
