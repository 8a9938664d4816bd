/** What is asked of a tensor: checked arguments of its methods, and where the bytes are that they need. */

import { checkOptions, checkSignal, type OptionNames } from "../base/arguments";
import type { GgufErrorSubject } from "../base/errors";
import type { DequantizeOptions, ProductOptions, ReadOptions, RowsOptions, ThreadOptions } from "../base/options";
import type { GgmlType, GgmlTypeInfo } from "../base/types";
import { checkSupported } from "../decode/kernels";
import { checkGivenProduct, checkProduct, type ProductRequest } from "../decode/product-request";
import { checkElements, checkRequest, DECODE_OPTIONS, type DecodeRequest, explainFailure } from "../decode/request";
import { checkStats, STATS_OPTIONS, type StatsOptions, type StatsRequest } from "../decode/statistics";
import { handleOf, type OpenFile } from "./handle";
import { checkRows, type RowRequest } from "./rows";

const READ_OPTIONS: OptionNames<ReadOptions> = { start: true, end: true, signal: true };

/** The facts of a tensor that a request is checked against. */
export interface TensorFacts {
  readonly name: string;
  readonly path: string | undefined;
  readonly type: GgmlType | `unknown(${number})`;
  readonly shape: readonly number[];
  readonly elementCount: number;
}

/** Bytes of a tensor; `first` counts from the tensor's first byte. */
export interface TensorExtent {
  first: number;
  byteLength: number;
}

/** The subject of errors about a tensor. */
export function subjectOf({ path, name }: TensorFacts): GgufErrorSubject {
  return { path, tensor: name };
}

/** The type's row of {@link ggmlTypes}; throws ERR_GGUF_UNSUPPORTED_TYPE if it has no kernel. */
export function knownType(tensor: TensorFacts): GgmlTypeInfo {
  return checkSupported(tensor.type, subjectOf(tensor));
}

/** Checks the options of `dequantize`; also throws ERR_GGUF_CLOSED. */
export function decodeRequest(
  tensor: TensorFacts,
  file: OpenFile,
  options: DequantizeOptions | undefined,
  kind?: "sync",
): DecodeRequest {
  const given = checkOptions(options, DECODE_OPTIONS, [], undefined, kind);
  handleOf(file);
  return checkRequest(given, tensor.elementCount, knownType(tensor).blockSize, subjectOf(tensor));
}

/** Checks the arguments of `matmul`; also throws ERR_GGUF_CLOSED. */
export function productRequest(
  tensor: TensorFacts,
  file: OpenFile,
  x: unknown,
  options: ProductOptions | undefined,
  kind?: "sync",
): ProductRequest {
  handleOf(file);
  knownType(tensor);
  return checkProduct(x, options, tensor.shape, rowCount(tensor), subjectOf(tensor), kind);
}

/** The same for options that were read already, of a call that blocks and writes all these arrays. */
export function givenProductRequest(
  tensor: TensorFacts,
  file: OpenFile,
  x: unknown,
  given: ProductOptions & ThreadOptions,
  written: readonly unknown[],
): ProductRequest {
  handleOf(file);
  knownType(tensor);
  return checkGivenProduct(x, given, tensor.shape, rowCount(tensor), subjectOf(tensor), written);
}

/** Those of the shape need no name: they may be a number that only 64 bits hold. */
export function namedColumns(tensor: TensorFacts, columns: number): number | undefined {
  return columns === tensor.shape[0] ? undefined : columns;
}

/** Checks the options of `stats`; also throws ERR_GGUF_CLOSED. */
export function statsRequest(
  tensor: TensorFacts,
  file: OpenFile,
  options: StatsOptions | undefined,
  kind?: "sync",
): StatsRequest {
  const given = checkOptions(options, STATS_OPTIONS, [], undefined, kind);
  handleOf(file);
  return checkStats(given, tensor.elementCount, knownType(tensor).blockSize, subjectOf(tensor));
}

/** Checks the options of `read`; also throws ERR_GGUF_CLOSED. */
export function readRequest(
  tensor: TensorFacts,
  file: OpenFile,
  options: ReadOptions | undefined,
): TensorExtent & Pick<ReadOptions, "signal"> {
  const { signal, ...given } = checkOptions(options, READ_OPTIONS);
  handleOf(file);
  const { blockSize } = knownType(tensor);
  const { start, end } = checkElements(given, tensor.elementCount, blockSize, subjectOf(tensor));
  return { ...extentOf(tensor, start, end), signal: checkSignal(signal) };
}

/** Checks the arguments of `rows`; also throws ERR_GGUF_CLOSED. */
export function rowRequest(
  tensor: TensorFacts,
  file: OpenFile,
  indexes: unknown,
  options: RowsOptions | undefined,
  kind?: "sync",
): RowRequest {
  const request = checkRows(indexes, options, rowCount(tensor), tensor.shape[0] ?? 1, subjectOf(tensor), kind);
  handleOf(file);
  knownType(tensor);
  return request;
}

/** The bytes of elements `start` to `end`, which are whole blocks. */
export function extentOf(tensor: TensorFacts, start: number, end: number): TensorExtent {
  const { blockSize, typeSize } = knownType(tensor);
  const first = (start / blockSize) * typeSize;
  return { first, byteLength: (end / blockSize) * typeSize - first };
}

/** The product of all dimensions but `shape[0]`. */
function rowCount({ shape }: TensorFacts): number {
  let product = 1;
  for (let i = 1; i < shape.length; i++) product *= shape[i] as number;
  return product;
}

/** Calls `make` for an array of `byteLength` bytes; throws ERR_GGUF_RANGE if it cannot be made. */
export function allocate<B extends Uint8Array>(
  tensor: TensorFacts,
  byteLength: number,
  make: (byteLength: number) => B,
): B {
  try {
    return make(byteLength);
  } catch (error) {
    throw explainFailure(error, byteLength, subjectOf(tensor));
  }
}
