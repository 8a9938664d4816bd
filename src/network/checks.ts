/** Checks of arguments of the functions between products. Where one takes options, lengths are checked after they were read. */
import { GgufError, invalidArgType, invalidArgValue } from "../base/errors";
import { isFloat32Array, lengthOf, overlapPartly } from "../base/typed-arrays";

export function outOfRange(detail: string): GgufError {
  return new GgufError("ERR_GGUF_RANGE", detail);
}

/** How many numbers an array has. */
export function floats(name: string, value: unknown): number {
  if (!isFloat32Array(value)) throw invalidArgType(name, "an instance of Float32Array", value);
  return lengthOf(value);
}

/** The same where it may be absent. */
export function floatsOrNone(name: string, value: unknown): number | undefined {
  return value === undefined ? undefined : floats(name, value);
}

/** A whole number. */
export function whole(name: string, value: unknown, least = 1, most = 2 ** 31 - 1): number {
  if (typeof value !== "number") throw invalidArgType(name, "of type number", value);
  if (!Number.isInteger(value) || value < least || value > most) {
    throw outOfRange(`${name} must be a whole number from ${least} to ${most}, found ${value}`);
  }
  return value + 0; // no -0
}

/** Any number. */
export function numeric(name: string, value: unknown): number {
  if (typeof value !== "number") throw invalidArgType(name, "of type number", value);
  return value;
}

/** A number that is finite, and above 0 in binary32. */
export function positive(name: string, value: unknown): number {
  const number = numeric(name, value);
  const rounded = Math.fround(number);
  if (!(rounded > 0 && rounded < Number.POSITIVE_INFINITY)) {
    throw outOfRange(`${name} must be a binary32 number above 0, found ${number}`);
  }
  return number;
}

export function oneOf<T extends string>(name: string, value: unknown, known: readonly T[]): T {
  if (typeof value !== "string") throw invalidArgType(name, "of type string", value);
  if (known.includes(value as T)) return value as T;
  throw invalidArgValue(name, `must be one of: ${known.map((each) => `'${each}'`).join(", ")}`, value);
}

/** How many vectors of `width` numbers an array of `length` has. */
export function vectorCount(name: string, length: number, width: number): number {
  if (length % width === 0) return length / width;
  throw outOfRange(`${name} has ${length} elements, not a whole number of vectors of ${width}`);
}

/** Checks that an array, if there is one, has the length that it must have. */
export function sameLength(name: string, found: number | undefined, length: number, of: string): void {
  if (found === undefined || found === length) return;
  throw outOfRange(`${name} has ${found} elements, but ${of} ${length}`);
}

/** The other arrays of a call, by their names. */
export type Inputs = Readonly<Record<string, Float32Array | undefined>>;

/** Checks that `array` has the same memory as each input, or none in common. */
export function checkOverlap(name: string, array: Float32Array, inputs: Inputs): void {
  for (const input in inputs) {
    const other = inputs[input];
    if (other === undefined || other === array || !overlapPartly(array, other)) continue;
    throw outOfRange(`${name} and ${input} overlap in memory, but are not the same`);
  }
}

/** `out`, checked, or a new array. */
export function resultArray(out: unknown, length: number, inputs: Inputs): Float32Array {
  if (out === undefined) return newFloats(length);
  const found = floats("options.out", out);
  sameLength("options.out", found, length, "the result has");
  checkOverlap("options.out", out as Float32Array, inputs);
  return out as Float32Array;
}

export function newFloats(length: number): Float32Array {
  try {
    return new Float32Array(length);
  } catch (cause) {
    const detail = `there is no memory for an array of ${length} elements`;
    throw new GgufError("ERR_GGUF_OUT_OF_MEMORY", detail, { cause });
  }
}
