/**
 * `gguf-native`: the weights of a GGUF model in Node.js.
 *
 * Open a file with {@link openSync} or {@link open}, look at its `metadata` and `tensors`, and turn a tensor into
 * numbers with {@link GgufTensor.dequantizeSync} or {@link GgufTensor.dequantize}.
 */
export { type CpuInfo, cpu } from "./cpu";
export { dequantize, dequantizeSync } from "./dequantize";
export { GgufError, type GgufErrorCode } from "./errors";
export { GgufFile, type OpenOptions, open, openSync, type ParseOptions, parse } from "./file";
export { allocate, trim } from "./memory";
export {
  GgufMetadata,
  type GgufTypeName,
  type GgufValue,
  type GgufValueType,
  type NumericArray,
} from "./metadata";
export type { AsyncOptions, Dequantized, DequantizeOptions, DType, OutArray } from "./options";
export { GgufTensor, type RowsOptions } from "./tensor";
export { type GgmlType, type GgmlTypeInfo, ggmlTypes } from "./types";
