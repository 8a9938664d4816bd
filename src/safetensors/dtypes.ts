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
  | "F8_E8M0"
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
  /** Bytes of a number in the file. */
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
  const sign = (byte & 0x80) << 8;
  const magnitude = byte & 0x7f;
  if (magnitude === 0x7f) return sign | 0x7e00;
  if (magnitude >= 8) return sign | ((magnitude << 7) + (8 << 10));
  if (magnitude === 0) return sign;
  // Subnormal: magnitude * 2^-9. With the highest bit as the one before the point, a normal number of binary16.
  const exponent = 31 - Math.clz32(magnitude);
  return sign | ((exponent + 6) << 10) | ((magnitude << (10 - exponent)) & 0x3ff);
}

/** A power of two, from 2^-127, which bfloat16 has as a subnormal number; 255 is NaN. */
function e8m0AsBf16(byte: number): number {
  if (byte === 0) return 0x40;
  return byte === 255 ? 0x7fc0 : byte << 7;
}

/** Every type by its name. What has no numbers of whole bytes (F4, F6) and complex numbers are missing. */
export const DTYPES: Readonly<Record<SafetensorsDtype, DtypeInfo>> = {
  F64: { bytes: 8, type: "F64" },
  F32: { bytes: 4, type: "F32" },
  F16: { bytes: 2, type: "F16" },
  BF16: { bytes: 2, type: "BF16" },
  F8_E4M3: { bytes: 1, type: "F16", widen: byTable(e4m3AsF16) },
  F8_E5M2: { bytes: 1, type: "F16", widen: byTable((byte) => byte << 8) },
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
