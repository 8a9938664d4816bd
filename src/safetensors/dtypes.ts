/** The types of safetensors, and the types of ggml that hold the same numbers. */
import { GgufError } from "../base/errors";
import type { GgmlType } from "../base/types";

/** The name of a type of safetensors that can be read. */
export type SafetensorsDtype =
  | "F64"
  | "F32"
  | "F16"
  | "BF16"
  | "F8_E4M3"
  | "F8_E5M2"
  | "F8_E4M3FNUZ"
  | "F8_E5M2FNUZ"
  | "F8_E8M0"
  | "F4"
  | "I64"
  | "I32"
  | "I16"
  | "I8"
  | "U64"
  | "U32"
  | "U16"
  | "U8"
  | "BOOL";

/** How the numbers of a type are stored, and shown. */
export interface DtypeInfo {
  /** Bytes of a number in the file; a half where two are in a byte. */
  readonly bytes: number;
  /** What holds every number of it exactly: the type that tensors have in the model. */
  readonly type: GgmlType;
  /**
   * Makes numbers of `type` of what is stored, where that differs: `bytes` has the stored numbers in its last part, and all
   * of it is filled.
   */
  readonly widen?: (bytes: Uint8Array) => void;
}

/** Numbers of one byte become those of a table, which have two. */
function byTable(bits: (byte: number) => number): (bytes: Uint8Array) => void {
  const table = Uint16Array.from({ length: 256 }, (_, byte) => bits(byte));
  return (bytes) => {
    const count = bytes.length / 2;
    for (let i = 0; i < count; i++) {
      const value = table[bytes[count + i] as number] as number;
      bytes[2 * i] = value & 0xff;
      bytes[2 * i + 1] = value >> 8;
    }
  };
}

/** Unsigned numbers of `size` bytes become signed ones of twice as many. */
function unsigned(size: number): (bytes: Uint8Array) => void {
  return (bytes) => {
    for (let to = 0, from = bytes.length / 2; to < bytes.length; to += 2 * size, from += size) {
      bytes.copyWithin(to, from, from + size);
      bytes.fill(0, to + size, to + 2 * size);
    }
  };
}

function checkSign(bytes: Uint8Array): void {
  for (let at = 7; at < bytes.length; at += 8) {
    if ((bytes[at] as number) < 0x80) continue;
    throw new GgufError("ERR_GGUF_RANGE", "a number of type U64 is 2^63 or more, which I64 cannot hold");
  }
}

/** Sign, four bits of exponent with bias 7, three of mantissa; no infinities, and NaN where all bits but the sign are set. */
function e4m3AsF16(byte: number): number {
  return (byte & 0x7f) === 0x7f ? ((byte & 0x80) << 8) | 0x7e00 : e4m3WithBias(byte, 7);
}

function e4m3WithBias(byte: number, bias: number): number {
  const sign = (byte & 0x80) << 8;
  const magnitude = byte & 0x7f;
  if (magnitude >= 8) return sign | ((magnitude << 7) + ((15 - bias) << 10));
  if (magnitude === 0) return sign;
  // Subnormal. With the highest bit as the one before the point, a normal number of binary16.
  const exponent = 31 - Math.clz32(magnitude);
  return sign | ((exponent + 13 - bias) << 10) | ((magnitude << (10 - exponent)) & 0x3ff);
}

/** Half of what binary16 has for these bits, of which the last eight are 0; its infinities and NaN are numbers here. */
function halfOf(bits: number): number {
  const magnitude = bits & 0x7fff;
  return (bits & 0x8000) | (magnitude < 0x800 ? magnitude >> 1 : magnitude - 0x400);
}

/** The only NaN of types without infinities and without a negative zero, whose place it has. */
const unsignedZero =
  (bits: (byte: number) => number) =>
  (byte: number): number =>
    byte === 0x80 ? 0x7e00 : bits(byte);

/** The upper byte in binary16 of the numbers that F4 has without their sign; the lower one is 0. @internal */
export const F4_UPPER: readonly number[] = [0, 0x38, 0x3c, 0x3e, 0x40, 0x42, 0x44, 0x46];

/** Two numbers of a byte, the one in its lower half first. */
function f4AsF16(bytes: Uint8Array): void {
  const count = bytes.length / 4;
  for (let i = 0; i < count; i++) {
    const byte = bytes[3 * count + i] as number;
    for (const [half, code] of [byte & 15, byte >> 4].entries()) {
      bytes[4 * i + 2 * half] = 0;
      bytes[4 * i + 2 * half + 1] = ((code & 8) << 4) | (F4_UPPER[code & 7] as number);
    }
  }
}

/** A power of two, from 2^-127, which bfloat16 has as a subnormal number; 255 is NaN. */
function e8m0AsBf16(byte: number): number {
  if (byte === 0) return 0x40;
  return byte === 255 ? 0x7fc0 : byte << 7;
}

/** What the types are that are not read. */
export const OTHER_DTYPES: Readonly<Record<string, string>> = {
  F6_E2M3: "numbers of 6 bits, for which ggml has no type",
  F6_E3M2: "numbers of 6 bits, for which ggml has no type",
  C64: "complex numbers",
};

/** Every type by its name that is read. */
export const DTYPES: Readonly<Record<SafetensorsDtype, DtypeInfo>> = {
  F64: { bytes: 8, type: "F64" },
  F32: { bytes: 4, type: "F32" },
  F16: { bytes: 2, type: "F16" },
  BF16: { bytes: 2, type: "BF16" },
  F8_E4M3: { bytes: 1, type: "F16", widen: byTable(e4m3AsF16) },
  F8_E5M2: { bytes: 1, type: "F16", widen: byTable((byte) => byte << 8) },
  F8_E4M3FNUZ: { bytes: 1, type: "F16", widen: byTable(unsignedZero((byte) => e4m3WithBias(byte, 8))) },
  F8_E5M2FNUZ: { bytes: 1, type: "F16", widen: byTable(unsignedZero((byte) => halfOf(byte << 8))) },
  F4: { bytes: 0.5, type: "F16", widen: f4AsF16 },
  F8_E8M0: { bytes: 1, type: "BF16", widen: byTable(e8m0AsBf16) },
  I64: { bytes: 8, type: "I64" },
  I32: { bytes: 4, type: "I32" },
  I16: { bytes: 2, type: "I16" },
  I8: { bytes: 1, type: "I8" },
  U64: { bytes: 8, type: "I64", widen: checkSign },
  U32: { bytes: 4, type: "I64", widen: unsigned(4) },
  U16: { bytes: 2, type: "I32", widen: unsigned(2) },
  U8: { bytes: 1, type: "I16", widen: unsigned(1) },
  BOOL: { bytes: 1, type: "I8" },
};

export function isDtype(name: string): name is SafetensorsDtype {
  return Object.hasOwn(DTYPES, name);
}
