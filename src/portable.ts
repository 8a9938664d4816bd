/** What `gguf-native` and `gguf-native/wasm` both have: all that needs no file system. */

export { GgufError, type GgufErrorCode } from "./base/errors";
export type {
  GgufTypeName,
  GgufValue,
  GgufValueType,
  NumericArray,
  OwnNumericArray,
} from "./base/metadata-values";
export type {
  ActivationOptions,
  Activations,
  AsyncOptions,
  BlockArray,
  BlockProductOptions,
  Dequantized,
  DequantizeOptions,
  DType,
  OutArray,
  ProductOptions,
  ProductResultOptions,
  ReadOptions,
  RowsOptions,
  ThreadOptions,
} from "./base/options";
export { type GgmlType, type GgmlTypeInfo, ggmlTypes, isGgmlType } from "./base/types";
export { type CpuInfo, cpu } from "./decode/cpu";
export { dequantize, dequantizeSync } from "./decode/dequantize";
export { allocate, allocateArray, releaseMemory, trim } from "./decode/memory";
export { matmul, matmulSync } from "./decode/products";
export type { StatsOptions, TensorStats } from "./decode/statistics";
export type { TensorComparison } from "./file/comparison";
export { type GgufFileName, parseFileName } from "./file/file-name";
export { type Loaded, type LoadOptions, loadAll } from "./file/load-all";
export { GgufMetadata } from "./file/metadata";
export type { Architecture, ArchitectureKey, KeyOf, KnownKey, KnownValue } from "./file/metadata-keys";
export type { GgufModel } from "./file/model";
export type { GgufModelTensor } from "./file/model-tensor";
export { GgufFile, type ParseOptions, parse } from "./file/parse";
export { type MatmulAllOptions, type MatrixRows, matmulAllSync } from "./file/products-together";
export { openRemote, RemoteGgufFile, type RemoteOptions } from "./file/remote-file";
export { RemoteGgufTensor } from "./file/remote-tensor";
export type { ShardNumber } from "./file/shard-names";
export { GgufTensor } from "./file/tensor";
export type { WarmOptions } from "./file/warm";
export { quantize, quantizeSync } from "./quantize/quantize";
export type { QuantizableType, QuantizeOptions } from "./quantize/request";
export type { SafetensorsDtype } from "./safetensors/dtypes";
export { SafetensorsFile, SafetensorsTensor } from "./safetensors/model";
export type { SafetensorsOptions } from "./safetensors/open-place";
