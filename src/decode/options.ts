/** Options of dequantization and their checks, shared by the native path and the reference. */
import { constants } from "node:buffer";
import { types } from "node:util";
import { errorAbout, GgufError, type GgufErrorSubject, invalidArgType, invalidArgValue } from "../errors";
import { type GgmlType, type GgmlTypeInfo, ggmlTypes, isGgmlType } from "../types";

/** What weights are written as: binary32, or the bits of a binary16 or bfloat16. */
export type DType = "f32" | "f16" | "bf16";

/** `Float16Array`, where the TypeScript library in use declares it. */
export type HalfArray = typeof globalThis extends { Float16Array: { prototype: infer A } } ? A : never;

interface ResultArrays {
  f32: Float32Array;
  f16: Uint16Array;
  bf16: Uint16Array;
}
interface OutArrays {
  f32: Float32Array;
  f16: Uint16Array | HalfArray;
  bf16: Uint16Array;
}

/**
 * The array that is made for weights of a {@link DType} where none is given: `Float32Array` for f32, `Uint16Array` of
 * bits for f16 and bf16.
 */
export type Dequantized<D extends DType = DType> = ResultArrays[D];

/**
 * An output array: `Float32Array` for f32, `Uint16Array` of bits for f16 and bf16; for f16 also `Float16Array`, where
 * the runtime has it.
 */
export type OutArray<D extends DType = DType> = OutArrays[D];

/** What part of a tensor to dequantize, and into what. */
export interface DequantizeOptions<D extends DType = DType, A extends OutArray<D> = OutArray<D>> {
  /** Default `"f32"`. `"f16"` and `"bf16"` are that result rounded to nearest even, as bits. */
  dtype?: D | undefined;
  /** First element, a multiple of the type's block size; default 0. */
  start?: number | undefined;
  /** One past the last element, a multiple of the type's block size; default the end of the tensor. */
  end?: number | undefined;
  /** Filled and returned; exactly `end - start` long. May be backed by a SharedArrayBuffer. */
  out?: A | undefined;
}

/** Options of `rows` and `rowsSync`. */
export interface RowsOptions<D extends DType = DType, A extends OutArray<D> = OutArray<D>> {
  /** Default `"f32"`. */
  dtype?: D | undefined;
  /** Filled and returned; exactly `indexes.length * shape[0]` long. May be backed by a SharedArrayBuffer. */
  out?: A | undefined;
}

/** What part of a tensor's stored bytes to read. */
export interface ReadOptions {
  /** First element, a multiple of the type's block size; default 0. */
  start?: number | undefined;
  /** One past the last element, a multiple of the type's block size; default the end of the tensor. */
  end?: number | undefined;
  /** Aborting makes the promise reject with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** What asynchronous work takes in addition. */
export interface AsyncOptions {
  /** Aborting makes the promise reject with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Called now and then on the main thread with the elements done so far and in all. */
  onProgress?: ((done: number, total: number) => void) | undefined;
}

/** A checked output. */
export interface Output {
  /** As the caller gave it: what is returned. */
  given: OutArray | undefined;
  /** What is written: the same array, or for a Float16Array the bits in the same memory. */
  out: Dequantized | undefined;
}

/** Checked options: a range of whole blocks and an output that fits it, if one was given. */
export interface Range extends Output, Span {
  dtype: DType;
}

function tooLarge(length: number, subject: GgufErrorSubject | undefined, cause?: unknown): GgufError {
  const detail = `${length} elements do not fit in one typed array: ask for less at a time with start and end`;
  return new GgufError("ERR_GGUF_RANGE", detail, { ...subject, cause });
}

/**
 * What to throw when making a result of `length` elements failed. The runtime has limits of its own (a RangeError),
 * which depend on its version and on the memory there is; what the addon says of a tensor's data lacks its name.
 */
export function explainFailure(error: unknown, length: number, subject?: GgufErrorSubject): unknown {
  if (error instanceof RangeError) return tooLarge(length, subject, error);
  return error instanceof GgufError && subject !== undefined ? errorAbout(error, subject) : error;
}

/** Bytes of one element of the output. */
export function dtypeBytes(dtype: DType): number {
  return dtype === "f32" ? 4 : 2;
}

/** Returns `options` as an object; throws ERR_INVALID_ARG_TYPE for anything else than an object or undefined. */
export function checkOptions<T extends object>(options: T | undefined): Partial<T> {
  if (options === undefined) return {};
  if (typeof options !== "object" || options === null)
    throw invalidArgType("options", "of type object", options);
  return options;
}

export function checkBoolean(name: string, value: unknown, whenAbsent: boolean): boolean {
  if (value === undefined) return whenAbsent;
  if (typeof value !== "boolean") throw invalidArgType(name, "of type boolean", value);
  return value;
}

export function checkSignal(signal: unknown): AbortSignal | undefined {
  if (signal === undefined) return undefined;
  if (
    typeof signal !== "object" ||
    signal === null ||
    !("throwIfAborted" in signal) ||
    !("addEventListener" in signal)
  ) {
    throw invalidArgType("options.signal", "an instance of AbortSignal", signal);
  }
  return signal as AbortSignal;
}

/**
 * `promise`, or a rejection with the signal's reason as soon as it is aborted, for work that cannot be stopped: what it
 * results in then goes to `discard`.
 */
export async function abortable<T>(
  promise: Promise<T>,
  signal: AbortSignal | undefined,
  discard: (result: T) => void,
): Promise<T> {
  if (signal === undefined) return promise;
  let abort: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
  try {
    const result = await Promise.race([promise, aborted]);
    if (!signal.aborted) return result;
    throw signal.reason;
  } catch (error) {
    if (signal.aborted) promise.then(discard, () => undefined);
    throw error;
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

export function checkProgress(onProgress: unknown): AsyncOptions["onProgress"] {
  if (onProgress === undefined) return undefined;
  if (typeof onProgress !== "function")
    throw invalidArgType("options.onProgress", "of type function", onProgress);
  return onProgress as AsyncOptions["onProgress"];
}

export function checkDType(dtype: unknown): DType {
  if (dtype === undefined) return "f32";
  if (dtype === "f32" || dtype === "f16" || dtype === "bf16") return dtype;
  if (typeof dtype !== "string") throw invalidArgType("options.dtype", "of type string", dtype);
  throw invalidArgValue("options.dtype", "must be one of: 'f32', 'f16', 'bf16'", dtype);
}

/** A new array for `length` elements. */
export function newOut(dtype: DType, length: number, subject?: GgufErrorSubject): Dequantized {
  try {
    return dtype === "f32" ? new Float32Array(length) : new Uint16Array(length);
  } catch (error) {
    throw explainFailure(error, length, subject);
  }
}

/** Checks that `out` is an array for `dtype` of exactly `length` elements. */
export function checkOut(out: unknown, dtype: DType, length: number, subject?: GgufErrorSubject): Output {
  if (out === undefined) {
    if (length * dtypeBytes(dtype) > constants.MAX_LENGTH) throw tooLarge(length, subject);
    return { given: undefined, out: undefined };
  }
  const isHalf = dtype === "f16" && isFloat16Array(out);
  if (!isHalf && !(dtype === "f32" ? types.isFloat32Array(out) : types.isUint16Array(out))) {
    const expected = dtype === "f32" ? "an instance of Float32Array" : "an instance of Uint16Array";
    const orHalf = dtype === "f16" && float16Array() !== undefined ? " or Float16Array" : "";
    throw invalidArgType("options.out", `${expected}${orHalf} for dtype '${dtype}'`, out);
  }
  const array = out as Dequantized;
  if (array.length !== length) {
    const detail = `options.out holds ${array.length} elements, the result has ${length}`;
    throw new GgufError("ERR_GGUF_RANGE", detail, subject);
  }
  return { given: array, out: isHalf ? bitsOf(array) : array };
}

/** The runtime's Float16Array: Node.js has it from version 24 on. */
function float16Array(): (abstract new () => unknown) | undefined {
  return (globalThis as { Float16Array?: abstract new () => unknown }).Float16Array;
}

function isFloat16Array(out: unknown): boolean {
  const Float16 = float16Array();
  return Float16 !== undefined && out instanceof Float16;
}

/** The 16-bit elements of `array` as bits, in the same memory. */
function bitsOf({ buffer, byteOffset, length }: ArrayBufferView & { length: number }): Uint16Array {
  return length === 0 ? new Uint16Array(0) : new Uint16Array(buffer, byteOffset, length);
}

/** Elements of a tensor: whole blocks. */
export interface Span {
  start: number;
  end: number;
}

/**
 * Checks start and end against `elementCount` elements in blocks of `blockSize`.
 * @throws TypeError (ERR_INVALID_ARG_TYPE), {@link GgufError} (ERR_GGUF_RANGE)
 */
export function checkSpan(
  options: { start?: number | undefined; end?: number | undefined },
  elementCount: number,
  blockSize: number,
  subject?: GgufErrorSubject,
): Span {
  const start = checkElement("start", options.start, 0, elementCount, blockSize, subject);
  const end = checkElement("end", options.end, elementCount, elementCount, blockSize, subject);
  if (start > end) {
    throw new GgufError("ERR_GGUF_RANGE", `options.start (${start}) is past options.end (${end})`, subject);
  }
  return { start, end };
}

/**
 * Checks dtype, start, end and out against `elementCount` elements in blocks of `blockSize`.
 * @throws TypeError (ERR_INVALID_ARG_TYPE), {@link GgufError} (ERR_GGUF_RANGE)
 */
export function checkRange(
  options: DequantizeOptions | undefined,
  elementCount: number,
  blockSize: number,
  subject?: GgufErrorSubject,
): Range {
  const given = checkOptions(options);
  const dtype = checkDType(given.dtype);
  const { start, end } = checkSpan(given, elementCount, blockSize, subject);
  return { dtype, start, end, ...checkOut(given.out, dtype, end - start, subject) };
}

function checkElement(
  name: string,
  value: unknown,
  whenAbsent: number,
  elementCount: number,
  blockSize: number,
  subject?: GgufErrorSubject,
): number {
  if (value === undefined) return whenAbsent;
  if (typeof value !== "number") throw invalidArgType(`options.${name}`, "of type number", value);
  if (!Number.isInteger(value) || value < 0 || value > elementCount) {
    const detail = `options.${name} must be a whole number from 0 to ${elementCount}, found ${value}`;
    throw new GgufError("ERR_GGUF_RANGE", detail, subject);
  }
  if (value % blockSize !== 0) {
    const detail = `options.${name} must be a multiple of the block size ${blockSize}, found ${value}`;
    throw new GgufError("ERR_GGUF_RANGE", detail, subject);
  }
  return value === 0 ? 0 : value; // -0 too
}

/** Checks the type name and the bytes of the free functions; returns the type's row and how many elements there are. */
export function checkBlocks(type: unknown, blocks: unknown): { info: GgmlTypeInfo; elementCount: number } {
  if (typeof type !== "string") throw invalidArgType("type", "of type string", type);
  if (!isGgmlType(type)) throw unsupportedType(type);
  if (!types.isUint8Array(blocks)) throw invalidArgType("blocks", "an instance of Uint8Array", blocks);
  const info = ggmlTypes[type];
  if (blocks.length % info.typeSize !== 0) {
    const detail = `${blocks.length} bytes are not a whole number of ${type} blocks of ${info.typeSize} bytes`;
    throw new GgufError("ERR_GGUF_RANGE", detail);
  }
  return { info, elementCount: (blocks.length / info.typeSize) * info.blockSize };
}

export function unsupportedType(type: GgmlType | (string & {}), subject?: GgufErrorSubject): GgufError {
  return new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", `cannot dequantize the tensor type ${type}`, subject);
}
