/**
 * `gguf-native`: the weights of a GGUF model in Node.js.
 *
 * Open a file with {@link openSync} or {@link open}, look at its `metadata` and `tensors`, and turn a tensor into
 * numbers with {@link GgufTensor.dequantizeSync} or {@link GgufTensor.dequantize}, or multiply it with
 * {@link GgufTensor.matmulSync}.
 *
 * @module gguf-native
 */
import "./bundled"; // before all else

export { type CpuInfo, cpu } from "./decode/cpu";
export { dequantize, dequantizeSync } from "./decode/dequantize";
export { allocate, trim } from "./decode/memory";
export type {
  AsyncOptions,
  BlockProductOptions,
  Dequantized,
  DequantizeOptions,
  DType,
  ExactOptions,
  OutArray,
  OwnBytes,
  ProductOptions,
  ReadOptions,
  Returned,
  RowsOptions,
  ThreadOptions,
} from "./decode/options";
export { matmulSync } from "./decode/products";
export type { StatsOptions, TensorStats } from "./decode/statistics";
export { GgufError, type GgufErrorCode } from "./errors";
export type { TensorComparison } from "./file/comparison";
export { type GgufFileName, parseFileName } from "./file/file-name";
export { type Loaded, type LoadOptions, loadAll } from "./file/load-all";
export { GgufMetadata } from "./file/metadata";
export type { Architecture, ArchitectureKey, KeyOf, KnownKey, KnownValue } from "./file/metadata-keys";
export type {
  GgufTypeName,
  GgufValue,
  GgufValueType,
  NumericArray,
  OwnNumericArray,
} from "./file/metadata-values";
export type { GgufModel } from "./file/model";
export type { GgufModelTensor } from "./file/model-tensor";
export { type OpenOptions, open, openSync } from "./file/open";
export { GgufFile, type ParseOptions, parse } from "./file/parse";
export { openRemote, RemoteGgufFile, type RemoteOptions } from "./file/remote-file";
export { RemoteGgufTensor } from "./file/remote-tensor";
export type { ShardNumber } from "./file/splits";
export { GgufTensor } from "./file/tensor";
export { quantizeSync } from "./quantize/quantize";
export type { QuantizableType, QuantizeOptions } from "./quantize/request";
export { type GgmlType, type GgmlTypeInfo, ggmlTypes, isGgmlType } from "./types";
export type { Chunks, TensorBytes, TensorData } from "./writer/data";
export { type Recovery, recover } from "./writer/recover";
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
export type { WriteOptions } from "./writer/write-options";
export { GgufWriter, type GgufWriterOptions } from "./writer/writer";
