/** Dequantization of block bytes from anywhere, and what every asynchronous dequantization shares. */
import { GgufError, type GgufErrorSubject } from "../errors";
import type { NativeDType, NativeJob, NativeOut } from "../native";
import { native } from "../native";
import { type GgmlType, type GgmlTypeInfo, ggmlTypes, isGgmlType } from "../types";
import {
  type AsyncOptions,
  checkBlocks,
  checkProgress,
  checkRange,
  checkSignal,
  type Dequantized,
  type DequantizeOptions,
  type DType,
  explainFailure,
  type OutArray,
  unsupportedType,
} from "./options";

const DTYPE_NUMBERS: Record<DType, NativeDType> = { f32: 0, f16: 1, bf16: 2 };

/** The numbers of the types that the addon has kernels for. */
const supported = new Set(native.formats().map(({ id }) => id));

/** The row of a tensor's type; throws ERR_GGUF_UNSUPPORTED_TYPE for one that is not known or has no kernel. */
export function checkSupported(
  type: GgmlType | `unknown(${number})`,
  subject?: GgufErrorSubject,
): GgmlTypeInfo {
  if (!isGgmlType(type)) {
    const detail = `the size of its type, ${type}, is not known, so that its data cannot be read`;
    throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail, subject);
  }
  const info = ggmlTypes[type];
  if (!supported.has(info.id)) throw unsupportedType(type, subject);
  return info;
}

export function dtypeNumber(dtype: DType): NativeDType {
  return DTYPE_NUMBERS[dtype];
}

/**
 * Turns blocks of `type` into numbers.
 *
 * @param type a tensor type
 * @param blocks whole blocks of that type, little-endian; any alignment
 * @returns elements `start` to `end`: a `Float32Array`, or a `Uint16Array` of bits for `f16` and `bf16`. Bit for bit
 *   what ggml computes, on every instruction set, but for the sign and payload of a NaN
 * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
 * @throws GgufError ERR_GGUF_RANGE where `blocks`, `start` or `end` are not whole blocks or `out` has another length;
 *   ERR_GGUF_UNSUPPORTED_TYPE for a type that cannot be turned into numbers
 */
export function dequantizeSync<D extends DType = "f32", A extends OutArray<D> = Dequantized<D>>(
  type: GgmlType,
  blocks: Uint8Array,
  options?: DequantizeOptions<D, A>,
): A;
export function dequantizeSync(type: GgmlType, blocks: Uint8Array, options?: DequantizeOptions): OutArray {
  const { info, elementCount } = checkBlocks(type, blocks);
  const { dtype, start, end, given, out } = checkRange(options, elementCount, info.blockSize);
  checkSupported(type);
  const result = attempt(
    () => native.dequantizeBlocks(info.id, blocks, DTYPE_NUMBERS[dtype], start, end, out),
    (error) => explainFailure(error, end - start),
  );
  return given ?? result;
}

/**
 * As {@link dequantizeSync}, off the main thread and on every core. Wrong arguments reject the promise. `blocks` must
 * stay as they are until it settles: memory that could go away is copied meanwhile, part by part, and the promise
 * rejects with ERR_GGUF_RANGE if it does.
 *
 * @throws the reason of `options.signal` once that is aborted
 */
export function dequantize<D extends DType = "f32", A extends OutArray<D> = Dequantized<D>>(
  type: GgmlType,
  blocks: Uint8Array,
  options?: DequantizeOptions<D, A> & AsyncOptions,
): Promise<A>;
export async function dequantize(
  type: GgmlType,
  blocks: Uint8Array,
  options?: DequantizeOptions & AsyncOptions,
): Promise<OutArray> {
  const { info, elementCount } = checkBlocks(type, blocks);
  const { dtype, start, end, given, out } = checkRange(options, elementCount, info.blockSize);
  checkSupported(type);
  const result = await runJob(
    options,
    (onProgress) =>
      native.dequantizeBlocksAsync(info.id, blocks, DTYPE_NUMBERS[dtype], start, end, out, onProgress, false),
    (error) => explainFailure(error, end - start),
  );
  return given ?? result;
}

/**
 * Runs a native job under a caller's signal and progress callback. The promise settles once no worker touches the
 * job's memory any more; an exception from the callback stops the job and becomes the rejection.
 */
export async function runJob(
  options: AsyncOptions | undefined,
  begin: (onProgress: AsyncOptions["onProgress"]) => { job: NativeJob; promise: Promise<NativeOut> },
  explain: (error: unknown) => unknown,
): Promise<NativeOut> {
  const signal = checkSignal(options?.signal);
  const onProgress = checkProgress(options?.onProgress);
  signal?.throwIfAborted();

  let failure: { error: unknown } | undefined;
  const report = (done: number, total: number): void => {
    if (failure !== undefined || signal?.aborted) return;
    try {
      onProgress?.(done, total);
    } catch (error) {
      failure = { error };
      native.cancel(job);
    }
  };
  const { job, promise } = attempt(() => begin(onProgress && report), explain);
  const cancel = (): void => native.cancel(job);
  signal?.addEventListener("abort", cancel, { once: true });
  try {
    const result = await promise;
    if (failure === undefined) {
      signal?.throwIfAborted();
      return result;
    }
  } catch (error) {
    if (failure === undefined) {
      signal?.throwIfAborted();
      throw explain(error);
    }
  } finally {
    signal?.removeEventListener("abort", cancel);
  }
  throw failure.error;
}

/** Runs `run`; throws what `explain` makes of an error. */
export function attempt<T>(run: () => T, explain: (error: unknown) => unknown): T {
  try {
    return run();
  } catch (error) {
    throw explain(error);
  }
}
