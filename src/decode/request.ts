/**
 * Decode requests: the checked options, for both the addon and the reference, and the errors for results that
 * cannot be made.
 */
import { ASYNC_OPTIONS, type OptionNames } from "../base/arguments";
import { errorAbout, GgufError, type GgufErrorSubject, invalidArgType, invalidArgValue } from "../base/errors";
import type { AsyncOptions, Dequantized, DequantizeOptions, DType, OutArray } from "../base/options";
import type { ElementRange } from "../base/ranges";
import { isTypedArray, isUint8Array, lengthOf, longestArray, memoryAs, typedArrayName } from "../base/typed-arrays";
import { type GgmlType, type GgmlTypeInfo, ggmlTypes, isGgmlType, meantType } from "../base/types";

/** Of everything that turns weights into numbers. */
export const DECODE_OPTIONS: OptionNames<DequantizeOptions & AsyncOptions> = {
  dtype: true,
  start: true,
  end: true,
  out: true,
  ...ASYNC_OPTIONS,
};

/** A checked output. */
export interface OutputArray {
  /** As the caller passed it; it is returned. */
  given: OutArray | undefined;
  /** The array to write: the same array, or for a Float16Array its bits in the same memory. */
  out: Float32Array | Uint16Array | undefined;
}

/** The checked request: whole blocks, and an output of the right size if one was given. */
export interface DecodeRequest extends OutputArray, ElementRange {
  dtype: DType;
  /** The options of asynchronous work among them, as they were read. */
  asyncOptions: AsyncOptions;
}

/** Bytes of one element of the output. */
export function dtypeBytes(dtype: DType): number {
  return dtype === "f32" ? 4 : 2;
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

/** Checks that `out` is an array for `dtype` with exactly `length` elements. */
export function checkOut(out: unknown, dtype: DType, length: number, subject?: GgufErrorSubject): OutputArray {
  if (out === undefined) {
    if (length > longestArray) throw tooLarge(length, subject);
    return { given: undefined, out: undefined };
  }
  const isHalf = dtype === "f16" && isFloat16Array(out);
  const expected = dtype === "f32" ? "Float32Array" : "Uint16Array";
  if (!isHalf && typedArrayName(out) !== expected) {
    const orHalf = dtype === "f16" && float16Array() !== undefined ? " or Float16Array" : "";
    throw invalidArgType("options.out", `an instance of ${expected}${orHalf} for dtype '${dtype}'`, out);
  }
  const given = out as Float32Array | Uint16Array;
  const array = isHalf ? bitsOf(given) : given;
  const found = lengthOf(array);
  if (found !== length) {
    const detail = `options.out has ${found} elements, but the result has ${length}`;
    throw new GgufError("ERR_GGUF_RANGE", detail, subject);
  }
  return { given, out: array };
}

/** Throws unless `out`, which work is writing to, still has `length` elements. */
export function checkOutLength(out: ArrayBufferView, length: number, subject?: GgufErrorSubject): void {
  if (lengthOf(out) === length) return;
  const detail = "out was detached, moved or resized while the work was going on";
  throw new GgufError("ERR_GGUF_RANGE", detail, subject);
}

/** The runtime's Float16Array, which Node.js has from version 24 on. */
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

/**
 * Checks start and end for `elementCount` elements in blocks of `blockSize`.
 * @throws TypeError (ERR_INVALID_ARG_TYPE), {@link GgufError} (ERR_GGUF_RANGE)
 */
export function checkElements(
  options: { start?: number | undefined; end?: number | undefined },
  elementCount: number,
  blockSize: number,
  subject?: GgufErrorSubject,
): ElementRange {
  const start = checkElement("start", options.start, 0, elementCount, blockSize, subject);
  const end = checkElement("end", options.end, elementCount, elementCount, blockSize, subject);
  if (start > end) {
    throw new GgufError("ERR_GGUF_RANGE", `options.start (${start}) is past options.end (${end})`, subject);
  }
  return { start, end };
}

/**
 * Checks dtype, start, end and out for `elementCount` elements in blocks of `blockSize`.
 * @param given what {@link checkOptions} returned
 * @throws TypeError (ERR_INVALID_ARG_TYPE), {@link GgufError} (ERR_GGUF_RANGE)
 */
export function checkRequest(
  given: DequantizeOptions & AsyncOptions,
  elementCount: number,
  blockSize: number,
  subject?: GgufErrorSubject,
): DecodeRequest {
  const dtype = checkDType(given.dtype);
  const { start, end } = checkElements(given, elementCount, blockSize, subject);
  return { dtype, start, end, asyncOptions: given, ...checkOut(given.out, dtype, end - start, subject) };
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

/** The type's row, the bytes of the blocks, and how many numbers these have. */
interface CheckedBlocks {
  info: GgmlTypeInfo;
  bytes: Uint8Array;
  elementCount: number;
}

/** Checks the type name and the blocks of the free functions. */
export function checkBlocks(type: unknown, blocks: unknown): CheckedBlocks {
  if (typeof type !== "string") throw invalidArgType("type", "of type string", type);
  if (!isGgmlType(type)) throw unsupportedType(type);
  if (!isTypedArray(blocks)) throw invalidArgType("blocks", "a typed array", blocks);
  const info = ggmlTypes[type];
  const bytes = isUint8Array(blocks) ? blocks : memoryAs(Uint8Array, blocks);
  const byteLength = lengthOf(bytes);
  if (byteLength % info.typeSize !== 0) {
    const detail = `${byteLength} bytes are not a whole number of ${type} blocks of ${info.typeSize} bytes`;
    throw new GgufError("ERR_GGUF_RANGE", detail);
  }
  return { info, bytes, elementCount: (byteLength / info.typeSize) * info.blockSize };
}

export function unsupportedType(type: GgmlType | (string & {}), subject?: GgufErrorSubject): GgufError {
  const meant = isGgmlType(type) ? "" : meantType(type);
  const detail = `cannot dequantize the tensor type ${type}${meant}`;
  return new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail, subject);
}

/** `length` elements are more than any array of this runtime has, or more than there is memory for. */
function tooLarge(length: number, subject: GgufErrorSubject | undefined, cause?: unknown): GgufError {
  const never = length > longestArray;
  const detail = never
    ? `${length} elements do not fit in one typed array`
    : `there is no memory for an array of ${length} elements`;
  const code = never ? "ERR_GGUF_RANGE" : "ERR_GGUF_OUT_OF_MEMORY";
  return new GgufError(code, `${detail}: ask for less at a time with start and end`, { ...subject, cause });
}

/**
 * The error to throw if a result of `length` elements could not be made. A RangeError comes from the limits
 * of the runtime, which depend on its version and on the available memory. Errors of the addon about a tensor
 * lack its name.
 */
export function explainFailure(error: unknown, length: number, subject?: GgufErrorSubject): unknown {
  if (error instanceof RangeError) return tooLarge(length, subject, error);
  return error instanceof GgufError && subject !== undefined ? errorAbout(error, subject) : error;
}
