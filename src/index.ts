/**
 * `gguf-native`: the weights of a GGUF model in Node.js.
 *
 * Open a file with {@link openSync} or {@link open}, look at its `metadata` and `tensors`, and turn a tensor into
 * numbers with {@link GgufTensor.dequantizeSync} or {@link GgufTensor.dequantize}.
 *
 * @module gguf-native
 */
export { type CpuInfo, cpu } from "./cpu";
export { dequantize, dequantizeSync } from "./dequantize";
export { GgufError, type GgufErrorCode } from "./errors";
export { GgufFile, type OpenOptions, open, openSync, type ParseOptions, parse } from "./file";
export { type GgufFileName, parseFileName } from "./file-name";
export { allocate, trim } from "./memory";
export {
  GgufMetadata,
  type GgufTypeName,
  type GgufValue,
  type GgufValueType,
  type NumericArray,
} from "./metadata";
export type { Architecture, ArchitectureKey, KeyOf, KnownKey, KnownValue } from "./metadata-keys";
export type { GgufModel } from "./model";
export type { AsyncOptions, Dequantized, DequantizeOptions, DType, OutArray } from "./options";
export { openRemote, RemoteGgufFile, type RemoteOptions } from "./remote/file";
export { type FetchOptions, RemoteGgufTensor } from "./remote/tensor";
export type { ShardNumber } from "./splits";
export { GgufTensor, type RowsOptions } from "./tensor";
export type { GgufTensorInfo } from "./tensor-info";
export { type GgmlType, type GgmlTypeInfo, ggmlTypes } from "./types";
export type { Chunks, TensorBytes, TensorData } from "./writer/data";
export type { WriteOptions } from "./writer/output-file";
export {
  type DeclaredChange,
  type MetadataChange,
  type SetMetadataOptions,
  type SetMetadataResult,
  setMetadata,
  type TextChange,
} from "./writer/set-metadata";
export { mergeModel, type SplitOptions, splitModel } from "./writer/split-model";
export { parseMetadataValue } from "./writer/text";
export type { ArrayInputType, GgufInput, GgufInputType } from "./writer/values";
export { GgufWriter, type GgufWriterOptions } from "./writer/writer";
