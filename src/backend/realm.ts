/**
 * Values of another realm. A test runner such as Jest, and the pools of Vitest that use `node:vm`, evaluate this package
 * in a realm of their own, with its own `Float32Array`, `Array` and `Error`. The addon belongs to the realm of the
 * process. What it makes would be an instance of no class that the program knows.
 */
import { types } from "node:util";

type ArrayOnBuffer = new (buffer: ArrayBufferLike, byteOffset: number, length: number) => ArrayBufferView;

/** The typed arrays of this realm by the tag that those of every realm have. */
const arrays: Record<string, ArrayOnBuffer> = {
  ...{ Uint8Array, Int8Array, Uint16Array, Int16Array, Uint32Array, Int32Array },
  ...{ Float32Array, Float64Array, BigUint64Array, BigInt64Array },
};

/** Errors of the language that the addon, or a constructor that it calls, throws. */
const errors: Record<string, ErrorConstructor> = { RangeError, TypeError };

/** `value` as an instance of this realm's classes: a typed array over the same memory, or an array of such values. */
export function inThisRealm(value: unknown): unknown {
  if (Array.isArray(value)) return Array.from(value, inThisRealm);
  if (!ArrayBuffer.isView(value)) return value;
  const { buffer, byteOffset, length, [Symbol.toStringTag]: tag } = value as Uint8Array;
  const Own = arrays[tag];
  return Own === undefined ? value : new Own(buffer, byteOffset, length);
}

/** An error of another realm as one of this realm; everything else as it is. */
export function errorInThisRealm(error: unknown): unknown {
  if (error instanceof Error || !types.isNativeError(error)) return error;
  const { name, message } = error as Error;
  return new (errors[name] ?? Error)(message, { cause: error });
}
