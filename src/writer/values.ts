/** Metadata values on their way into a file: which type each is declared as, whether it fits, and its bytes. */
import { GgufError, invalidArgType, invalidArgValue } from "../base/errors";
import { type GgufTypeName, type GgufValueType, type NumericArray, SIZES, TYPE_NAMES } from "../base/metadata-values";
import { isTypedArray, isUint8Array, lengthOf, plain } from "../base/typed-arrays";
import { elementTypeOfArray } from "../file/metadata";
import { knownKeyType } from "../file/metadata-keys";
import { type ValuePlace, valueParts } from "../file/value-parts";
import { HeaderBytes, type HeaderFormat } from "../layout/header-bytes";

/**
 * A metadata value to be written: what `GgufMetadata.get` returns, and more: arrays of numbers as plain arrays, strings
 * as bytes where they are not UTF-8 (declare these as strings: alone, a `Uint8Array` is an array of numbers).
 */
export type GgufInput =
  | number
  | bigint
  | boolean
  | string
  | NumericArray
  | readonly number[]
  | readonly bigint[]
  | readonly boolean[]
  | readonly (string | Uint8Array)[]
  | readonly GgufInput[];

/** An array and the type of its elements. */
export interface ArrayInputType {
  /** That it is one. */
  type: "array";
  /** The type of each element. */
  elementType: GgufTypeName;
}

/**
 * What a value is declared as: the name of a type; of an array `"int32[]"`, or `{ type: "array", elementType }`, which
 * is what `GgufMetadata.typeOf` returns.
 */
export type GgufInputType = GgufTypeName | `${GgufTypeName}[]` | GgufValueType | ArrayInputType;

/** A declared type; an element type for arrays only. */
export type DeclaredType = { type: Exclude<GgufTypeName, "array"> } | { type: "array"; elementType: GgufTypeName };

const MAX_KEY_BYTES = 65_535;

const EMPTY = { type: "array", elementType: "string" } as const;

/** How deep arrays may lie in arrays, as for reading. */
const MAX_DEPTH = 64;

/** Whole numbers: bytes, and the range. */
const INTEGERS = {
  uint8: { size: 1, min: 0n, max: 2n ** 8n - 1n },
  int8: { size: 1, min: -(2n ** 7n), max: 2n ** 7n - 1n },
  uint16: { size: 2, min: 0n, max: 2n ** 16n - 1n },
  int16: { size: 2, min: -(2n ** 15n), max: 2n ** 15n - 1n },
  uint32: { size: 4, min: 0n, max: 2n ** 32n - 1n },
  int32: { size: 4, min: -(2n ** 31n), max: 2n ** 31n - 1n },
  uint64: { size: 8, min: 0n, max: 2n ** 64n - 1n },
  int64: { size: 8, min: -(2n ** 63n), max: 2n ** 63n - 1n },
} as const;
type IntegerType = keyof typeof INTEGERS;

/** Checks a key; throws ERR_GGUF_INVALID for one that no reader takes. */
export function checkKey(key: unknown): asserts key is string {
  if (typeof key !== "string") throw invalidArgType("key", "of type string", key);
  checkText("key", key);
  const bytes = Buffer.byteLength(key);
  if (bytes === 0) throw new GgufError("ERR_GGUF_INVALID", "a metadata key must not be empty");
  if (bytes > MAX_KEY_BYTES) {
    const detail = `a metadata key has ${bytes} bytes; ${MAX_KEY_BYTES} are allowed`;
    throw new GgufError("ERR_GGUF_INVALID", detail);
  }
}

/** Refuses text that cannot be written as UTF-8. */
export function checkText(name: string, text: string): void {
  if (/\p{Surrogate}/u.test(text)) {
    throw invalidArgValue(name, "must not hold half a surrogate pair, which UTF-8 does not have", text);
  }
}

/** A declared type, checked; undefined where none was given. */
export function checkType(type: GgufInputType | undefined): DeclaredType | undefined {
  if (type === undefined) return undefined;
  const unknown = invalidArgValue("type", `must be one of: ${TYPE_NAMES.join(", ")}; of an array, that and []`, type);
  if (typeof type === "string") {
    const element = /^(.*)\[\]$/.exec(type)?.[1];
    if (element !== undefined) return checkType({ type: "array", elementType: element as GgufTypeName });
    if (!isTypeName(type)) throw unknown;
    if (type === "array") {
      throw invalidArgValue("type", "must say what an array is of, such as 'int32[]'", type);
    }
    return { type };
  }
  if (typeof type !== "object" || type === null) {
    throw invalidArgType("type", "of type string or an object as of typeOf()", type);
  }
  if (type.type !== "array") return checkType(type.type);
  if (!isTypeName(type.elementType)) throw unknown;
  return { type: "array", elementType: type.elementType };
}

function isTypeName(name: unknown): name is GgufTypeName {
  return (TYPE_NAMES as readonly unknown[]).includes(name);
}

/** What the list of known keys declares `key` as: of an array or of a single value, as `isArray` says. */
export function knownType(key: string, isArray: boolean): DeclaredType | undefined {
  const known = knownKeyType(key)?.split("|");
  const fitting = known?.find((type) => type.endsWith("[]") === isArray) ?? known?.[0];
  return checkType(fitting as GgufInputType | undefined);
}

/** The type that fits a value of which nothing else is known. */
function inferType(key: string, value: unknown): DeclaredType {
  if (typeof value === "object" && value !== null && isArray(value)) {
    return { type: "array", elementType: inferElementType(key, value) };
  }
  const type = scalarType(value);
  if (type === undefined) {
    throw invalidArgType("value", "a number, bigint, boolean, string, array or typed array", value);
  }
  return { type };
}

function scalarType(value: unknown): Exclude<GgufTypeName, "array"> | undefined {
  switch (typeof value) {
    case "string":
      return "string";
    case "boolean":
      return "bool";
    case "bigint":
      return value < 0n ? "int64" : "uint64";
    case "number":
      if (!Number.isSafeInteger(value)) return floatType([value]);
      return integerType(value, value, ["uint32", "int32", "uint64", "int64"]);
  }
  return undefined;
}

function inferElementType(key: string, array: Elements): GgufTypeName {
  if (!Array.isArray(array)) return elementTypeOfArray(array as NumericArray);
  if (array.length === 0) {
    throw wrongType(key, "an empty array needs a declared type, such as 'string[]'");
  }
  if (array.every((element) => typeof element === "number")) {
    const numbers: number[] = array;
    if (!numbers.every(Number.isSafeInteger)) return floatType(numbers);
    const [min, max] = numbers.reduce(([a, b], n) => [Math.min(a, n), Math.max(b, n)], [0, 0]);
    return integerType(min, max, ["int32", "uint32", "int64"]);
  }
  if (array.every((element) => typeof element === "bigint" || Number.isSafeInteger(element))) {
    return array.some((element) => element < 0) ? "int64" : "uint64";
  }
  const first = array[0];
  const type = typeof first === "object" && first !== null && isArray(first) ? "array" : scalarType(first);
  if (type === undefined) throw wrongType(key, `an element of an array cannot be ${describe(first)}`);
  return type;
}

/**
 * 32 bits, which is what GGUF files have for fractions; 64 for whole numbers beyond 2^53, which may be meant to the
 * last digit. (Fractions all fit in 32 bits: from 2^53 on, every number is whole.)
 */
function floatType(values: readonly number[]): "float32" | "float64" {
  const isHuge = (value: number): boolean => Number.isInteger(value) && !Number.isSafeInteger(value);
  return values.some(isHuge) ? "float64" : "float32";
}

function fitsFloat32(value: number): boolean {
  return !Number.isFinite(value) || Number.isFinite(Math.fround(value));
}

function integerType<T extends IntegerType>(min: number, max: number, candidates: readonly T[]): T {
  return candidates.find((type) => INTEGERS[type].min <= min && max <= INTEGERS[type].max) as T;
}

type Elements = readonly unknown[] | NumericArray;

function isArray(value: object): value is Elements {
  return Array.isArray(value) || elementTypeOfArray(value as NumericArray) !== undefined;
}

/** How many elements there are, whatever a `length` that a subclass of a typed array has says. */
function countOf(array: Elements): number {
  return isTypedArray(array) ? lengthOf(array) : array.length;
}

/**
 * The bytes of an entry of another file, in `format`.
 * @param key its bytes, which may be no text
 */
export function copyEntry(format: HeaderFormat, key: Uint8Array, place: ValuePlace): Uint8Array {
  const out = new HeaderBytes(format).string(key).int(4, TYPE_NAMES.indexOf(place.type.type));
  for (const part of valueParts(place)) {
    if (part.kind === "array") out.int(4, TYPE_NAMES.indexOf(part.elementType)).count(part.length);
    else if (part.kind === "numbers") out.numbers(SIZES[part.type], part.bytes);
    else if (part.kind === "strings") {
      const { bytes, starts, ends, count } = part;
      for (let i = 0; i < count; i++) out.string(bytes.subarray(starts[i], ends[i]));
    } else if (part.kind === "text") {
      if (part.at === 0) out.count(part.length);
      out.raw(part.bytes);
    }
  }
  return out.bytes;
}

/**
 * The bytes of one entry: key, type, value.
 *
 * @param type what the value is declared as; where that is undefined, what is known of the key, or else of the value
 * @throws TypeError for what is no metadata value; GgufError ERR_GGUF_METADATA_TYPE for a value of another type than the
 *   one declared, ERR_GGUF_METADATA_RANGE for a number that does not fit it, ERR_GGUF_INVALID for the key
 */
export function encodeEntry(
  format: HeaderFormat,
  key: string,
  value: GgufInput,
  type: DeclaredType | undefined,
): Uint8Array {
  checkKey(key);
  const declared = type ?? knownType(key, isArrayValue(value)) ?? inferType(key, value);
  const out = new HeaderBytes(format).string(key).int(4, TYPE_NAMES.indexOf(declared.type));
  if (declared.type === "array") encodeArray(out, key, value, declared.elementType, 1);
  else encodeScalar(out, key, value, declared.type);
  return out.bytes;
}

/** Whether a value that is not declared as a string is an array. */
export function isArrayValue(value: unknown): boolean {
  return typeof value === "object" && value !== null && isArray(value);
}

function encodeArray(out: HeaderBytes, key: string, value: unknown, element: GgufTypeName, depth: number): void {
  if (typeof value !== "object" || value === null || !isArray(value)) {
    throw wrongType(key, `it is declared as an array of ${element}, but the value is ${describe(value)}`);
  }
  if (depth > MAX_DEPTH) {
    throw new GgufError("ERR_GGUF_INVALID", `metadata key '${key}': arrays are nested ${MAX_DEPTH} deep at most`);
  }
  const count = countOf(value);
  out.int(4, TYPE_NAMES.indexOf(element)).count(count);
  for (let i = 0; i < count; i++) {
    if (element === "array") {
      // An empty array that was read has lost its type, unless it is a typed array; any will do.
      const array: unknown = value[i];
      const isEmpty = Array.isArray(array) && array.length === 0;
      const inner = isEmpty ? EMPTY : inferType(key, array);
      if (inner.type !== "array") throw wrongType(key, `element ${i} is ${describe(array)}, not an array`);
      encodeArray(out, key, array, inner.elementType, depth + 1);
    } else {
      encodeScalar(out, key, value[i], element);
    }
  }
}

function encodeScalar(out: HeaderBytes, key: string, value: unknown, type: Exclude<GgufTypeName, "array">): void {
  const mismatch = (): GgufError => wrongType(key, `it is declared as ${type}, but the value is ${describe(value)}`);
  if (type === "string") {
    if (typeof value === "string") checkText("value", value);
    else if (!isUint8Array(value)) throw mismatch();
    out.string(typeof value === "string" ? value : plain(value));
  } else if (type === "bool") {
    if (typeof value !== "boolean") throw mismatch();
    out.int(1, Number(value));
  } else if (type === "float32" || type === "float64") {
    if (typeof value !== "number") throw mismatch();
    if (type === "float32" && !fitsFloat32(value)) throw outOfRange(key, value, type);
    out[type](value);
  } else {
    if (typeof value === "number") {
      if (!Number.isInteger(value)) throw mismatch();
    } else if (typeof value !== "bigint") {
      throw mismatch();
    }
    const { size, min, max } = INTEGERS[type];
    if (value < min || value > max) throw outOfRange(key, value, type);
    if (size === 8) out.int64(BigInt(value));
    else out.int(size, Number(value));
  }
}

function wrongType(key: string, detail: string): GgufError {
  return new GgufError("ERR_GGUF_METADATA_TYPE", `metadata key '${key}': ${detail}`);
}

function outOfRange(key: string, value: number | bigint, type: string): GgufError {
  return new GgufError("ERR_GGUF_METADATA_RANGE", `metadata key '${key}': ${value} does not fit in a ${type}`);
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === "object") return isArray(value) ? `an array of ${countOf(value)}` : "an object";
  if (typeof value === "string") return "a string";
  return typeof value === "number" || typeof value === "bigint" || typeof value === "boolean"
    ? `${typeof value} ${value}`
    : `a ${typeof value}`;
}
