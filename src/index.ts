/**
 * `gguf-native`: the weights of a GGUF model in Node.js.
 *
 * Open a file with {@link openSync} or {@link open}, look at its `metadata` and `tensors`, and turn a tensor into
 * numbers with {@link GgufTensor.dequantizeSync} or {@link GgufTensor.dequantize}, or multiply it with
 * {@link GgufTensor.matmulSync}.
 *
 * @module gguf-native
 */
import "./backend/bundled"; // before all else

export { type ConvertLoraOptions, convertLora } from "./convert/convert-lora";
export { type ConvertModelOptions, convertModel } from "./convert/convert-model";
export { type OpenOptions, openSync } from "./file/open";
export { type OpenAnywhereOptions, open } from "./open";
export * from "./portable";
export type { SizeChoice, SizedTypes } from "./quantize-model/fit-size";
export { type MergeLoraOptions, mergeLora } from "./quantize-model/merge-lora";
export {
  type QuantizationError,
  type QuantizedTensor,
  type QuantizeModelOptions,
  type QuantizeReport,
  quantizeModel,
} from "./quantize-model/quantize-model";
export { openSafetensors } from "./safetensors/open";
export type { TensorBytes, TensorData } from "./writer/data";
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
export { GgufWriter, type GgufWriterFromOptions, type GgufWriterOptions } from "./writer/writer";
