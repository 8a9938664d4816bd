/**
 * The tensor types of ggml: names, numbers, block sizes. Plain data, which the reference decoders also use.
 */
import { foreignType } from "./foreign-types";
import { closest } from "./suggest";

/** How a tensor type is stored. */
export interface GgmlTypeInfo {
  /** The number in the file. */
  readonly id: number;
  /** Weights per block. */
  readonly blockSize: number;
  /** Bytes per block. */
  readonly typeSize: number;
}

/** The name of a tensor type, such as `"Q4_K"`. */
export type GgmlType =
  | "F32"
  | "F16"
  | "Q4_0"
  | "Q4_1"
  | "Q5_0"
  | "Q5_1"
  | "Q8_0"
  | "Q8_1"
  | "Q2_K"
  | "Q3_K"
  | "Q4_K"
  | "Q5_K"
  | "Q6_K"
  | "Q8_K"
  | "IQ2_XXS"
  | "IQ2_XS"
  | "IQ3_XXS"
  | "IQ1_S"
  | "IQ4_NL"
  | "IQ3_S"
  | "IQ2_S"
  | "IQ4_XS"
  | "I8"
  | "I16"
  | "I32"
  | "I64"
  | "F64"
  | "IQ1_M"
  | "BF16"
  | "TQ1_0"
  | "TQ2_0"
  | "MXFP4"
  | "NVFP4"
  | "Q1_0"
  | "Q2_0"
  | "PQ2_0"
  | "PTQ1_0";

function info(id: number, blockSize: number, typeSize: number): GgmlTypeInfo {
  return Object.freeze({ id, blockSize, typeSize });
}

/**
 * Every known tensor type, in the order of their numbers. 4, 5, 31 to 33 and 36 to 38 were removed from ggml; PQ2_0 and
 * PTQ1_0 are of PrismML's fork of llama.cpp.
 * A tensor with such a number, or with a number that is newer than this table, has the type
 * `unknown(NUMBER)`.
 */
export const ggmlTypes: Readonly<Record<GgmlType, GgmlTypeInfo>> = Object.freeze({
  F32: info(0, 1, 4),
  F16: info(1, 1, 2),
  Q4_0: info(2, 32, 18),
  Q4_1: info(3, 32, 20),
  Q5_0: info(6, 32, 22),
  Q5_1: info(7, 32, 24),
  Q8_0: info(8, 32, 34),
  Q8_1: info(9, 32, 36),
  Q2_K: info(10, 256, 84),
  Q3_K: info(11, 256, 110),
  Q4_K: info(12, 256, 144),
  Q5_K: info(13, 256, 176),
  Q6_K: info(14, 256, 210),
  Q8_K: info(15, 256, 292),
  IQ2_XXS: info(16, 256, 66),
  IQ2_XS: info(17, 256, 74),
  IQ3_XXS: info(18, 256, 98),
  IQ1_S: info(19, 256, 50),
  IQ4_NL: info(20, 32, 18),
  IQ3_S: info(21, 256, 110),
  IQ2_S: info(22, 256, 82),
  IQ4_XS: info(23, 256, 136),
  I8: info(24, 1, 1),
  I16: info(25, 1, 2),
  I32: info(26, 1, 4),
  I64: info(27, 1, 8),
  F64: info(28, 1, 8),
  IQ1_M: info(29, 256, 56),
  BF16: info(30, 1, 2),
  TQ1_0: info(34, 256, 54),
  TQ2_0: info(35, 256, 66),
  MXFP4: info(39, 32, 17),
  NVFP4: info(40, 64, 36),
  Q1_0: info(41, 128, 18),
  Q2_0: info(42, 64, 18),
  PQ2_0: info(142, 128, 34),
  PTQ1_0: info(143, 128, 28),
});

/** The longest name of a tensor that ggml reads, in bytes. Files with longer ones are read here, and not written. */
export const MAX_TENSOR_NAME_BYTES = 63;

const typeNames: (GgmlType | undefined)[] = [];
for (const [name, { id }] of Object.entries(ggmlTypes)) typeNames[id] = name as GgmlType;

/** The name of type number `id`, or `unknown(id)` if the number is unknown. */
export function typeName(id: number): GgmlType | `unknown(${number})` {
  return typeNames[id] ?? `unknown(${id})`;
}

/** The end of a sentence about `name`, which is no tensor type: "; did you mean Q4_K?", whose it is, or nothing. */
export function meantType(name: string): string {
  const foreign = foreignType(name);
  if (foreign !== undefined) return `; it is ${foreign}`;
  const meant = closest(name, Object.keys(ggmlTypes));
  return meant === undefined ? "" : `; did you mean ${meant}?`;
}

/** Whether `name` is a tensor type of {@link ggmlTypes}. */
export function isGgmlType(name: string): name is GgmlType {
  return Object.hasOwn(ggmlTypes, name);
}
