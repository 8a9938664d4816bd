/** The metadata of a GGUF file: a read-only map that decodes a value when it is asked for. */
import { type NativeKeys, native } from "../backend/native";
import { joinBytes, textOf } from "../base/bytes";
import { GgufError, type GgufErrorCode, invalidArgType } from "../base/errors";
import { type Inspect, inspectCustom } from "../base/inspect";
import {
  ARRAY_CLASSES,
  type GgufTypeName,
  type GgufValue,
  type GgufValueType,
  type NumericArray,
  type OwnNumericArray,
  TYPE_NAMES,
} from "../base/metadata-values";
import type { OwnBytes } from "../base/options";
import { typedArrayName } from "../base/typed-arrays";
import { checkOpenFile, handleOf, type OpenFile } from "./handle";
import { KEYS, NameList } from "./listing";
import type { ArchitectureKey, KeyOf, KnownKey } from "./metadata-keys";
import type { Iterators } from "./tensor-map";
import { numbersOf, type ValuePart, type ValuePlace, valueParts } from "./value-parts";

/** Arrays longer than this are summarised by {@link GgufMetadata.toJSON}. */
const LONG_ARRAY = 64;

/** Strings and numbers that are kept. */
const MOST_KEPT = 4096;

/** Keys that `console.log` shows, and those that one object may have. */
const MOST_SHOWN = 1000;
const MOST_IN_OBJECT = 2 ** 20;

/** Where the value of `key` is, to be read in parts; undefined where there is no such key. */
export let valueAt: (metadata: GgufMetadata, key: string) => ValuePlace | undefined;

/**
 * The metadata of a file, in file order. Values are decoded on request; strings and numbers of recent calls are kept.
 * Every call decodes an array again, so the caller may change it, and should keep it to use it again.
 *
 * After the file is closed everything here throws `ERR_GGUF_CLOSED`.
 */
export class GgufMetadata implements ReadonlyMap<string, GgufValue> {
  readonly #file: OpenFile;
  readonly #list: NameList<NativeKeys>;
  readonly #scalars = new Map<number, string | number | bigint | boolean>();

  static {
    valueAt = (metadata, key) => {
      const position = metadata.#find(key);
      return position === undefined ? undefined : metadata.#place(position);
    };
  }

  private constructor(file: OpenFile) {
    checkOpenFile(file, "metadata come with an open file");
    this.#file = file;
    this.#list = new NameList([file], KEYS);
  }

  /** @internal */
  static of(file: OpenFile): GgufMetadata {
    return new GgufMetadata(file);
  }

  /** How many keys there are. */
  get size(): number {
    handleOf(this.#file);
    return this.#list.size;
  }

  /** Whether there is such a key. Decodes nothing. */
  has(key: string): boolean {
    return this.#find(key) !== undefined;
  }

  /**
   * Decodes the value of `key`, whatever its type in the file; undefined if there is no such key. A file may have a
   * value of any type for any key, even if the specification fixes the type. {@link string}, {@link number}, {@link
   * boolean}, {@link strings} and {@link numbers} check the type.
   */
  get(key: KnownKey | (string & {})): GgufValue | undefined {
    const position = this.#find(key);
    return position === undefined ? undefined : this.#value(position);
  }

  /** The keys. Decodes nothing. */
  keys(): Iterators<GgufValue>["keys"] {
    return this.#list.names();
  }

  /** The values; each is decoded when its turn comes. */
  values(): Iterators<GgufValue>["values"] {
    return this.#list.each((_key, position) => this.#value(position));
  }

  /** Keys with their values; each is decoded when its turn comes. */
  entries(): Iterators<GgufValue>["entries"] {
    return this.#list.each((key, position) => [key, this.#value(position)]);
  }

  /** As {@link entries}. */
  [Symbol.iterator](): Iterators<GgufValue>["entries"] {
    return this.entries();
  }

  /** Calls `callback` with every value, decoded, and its key. */
  forEach(
    callback: (value: GgufValue, key: string, map: ReadonlyMap<string, GgufValue>) => void,
    thisArg?: unknown,
  ): void {
    if (typeof callback !== "function") throw invalidArgType("callback", "of type function", callback);
    for (const [key, value] of this.entries()) callback.call(thisArg, value, key, this);
  }

  /** The declared type: `{ type: "uint32" }`, or `{ type: "array", elementType: "string", length: 32000 }`. */
  typeOf(key: string): GgufValueType | undefined {
    const position = this.#find(key);
    return position === undefined ? undefined : this.#type(position);
  }

  /**
   * The raw bytes of a string, or of each string of an array of strings, for text that is not UTF-8 (vocabularies
   * hold partial code points); undefined where the key is absent.
   * @throws GgufError ERR_GGUF_METADATA_TYPE for a value of another type
   */
  bytes(key: string): OwnBytes | OwnBytes[] | undefined {
    const position = this.#find(key);
    if (position === undefined) return undefined;
    const bytes = native.valueBytes(handleOf(this.#file), position);
    if (bytes === undefined) throw this.#wrongType(key, position, "a string or an array of strings");
    return bytes;
  }

  /**
   * The bytes of a key in the file; undefined where there is no such key. They are the key in UTF-8, unless they are not
   * UTF-8 (the key has U+FFFD for these), or the key was changed to be unique.
   */
  keyBytes(key: string): OwnBytes | undefined {
    const position = this.#find(key);
    return position === undefined ? undefined : native.keyBytes(handleOf(this.#file), position);
  }

  /**
   * The string at `key`; undefined where the key is absent. Bytes that are not UTF-8 become U+FFFD.
   * @throws GgufError ERR_GGUF_METADATA_TYPE for a value of another type
   */
  string(key: KeyOf<string>): string | undefined {
    return this.#string(key);
  }

  /**
   * The number at `key`, of any integer or float type; undefined where the key is absent.
   * @throws GgufError ERR_GGUF_METADATA_TYPE for a value of another type, ERR_GGUF_METADATA_RANGE for a 64-bit
   *   integer beyond 2^53 (use {@link get}, which gives a bigint)
   */
  number(key: KeyOf<number>): number | undefined {
    const value = this.#typed(key, "a number", (type) => isNumberType(type.type)) as number | bigint | undefined;
    if (typeof value !== "bigint") return value;
    if (value > 2n ** 53n || value < -(2n ** 53n)) {
      throw this.#error("ERR_GGUF_METADATA_RANGE", `metadata key '${key}' is ${value}, beyond 2^53: use get()`);
    }
    return Number(value);
  }

  /**
   * The boolean at `key`; undefined where the key is absent.
   * @throws GgufError ERR_GGUF_METADATA_TYPE for a value of another type
   */
  boolean(key: KeyOf<boolean>): boolean | undefined {
    return this.#typed(key, "a bool", (type) => type.type === "bool") as boolean | undefined;
  }

  /**
   * The array of strings at `key`; undefined where the key is absent.
   * @throws GgufError ERR_GGUF_METADATA_TYPE for a value of another type
   */
  strings(key: KeyOf<string[]>): string[] | undefined {
    const accepts = (type: GgufValueType) => type.type === "array" && type.elementType === "string";
    return this.#typed(key, "an array of strings", accepts) as string[] | undefined;
  }

  /**
   * The array of numbers at `key`, as the typed array of its element type; undefined where the key is absent.
   * @throws GgufError ERR_GGUF_METADATA_TYPE for a value of another type
   */
  numbers(key: KeyOf<OwnNumericArray>): OwnNumericArray | undefined {
    const accepts = (type: GgufValueType) => type.type === "array" && isNumberType(type.elementType);
    return this.#typed(key, "an array of numbers", accepts) as OwnNumericArray | undefined;
  }

  /** `general.architecture`, such as `"llama"`: the prefix of the keys that describe the network. */
  get architecture(): string | undefined {
    return this.#architecture();
  }

  /**
   * The number at `key` of the model's architecture: `arch("context_length")` is `number("llama.context_length")` in a
   * llama. Undefined where the key, or `general.architecture`, is absent.
   *
   * Some keys, such as `attention.head_count_kv`, are one number in most models and an array, of one number for each
   * layer, in others: for an array this throws, and `numbers(`${metadata.architecture}.${key}`)` reads it.
   * @throws GgufError ERR_GGUF_METADATA_TYPE for a value of another type than a number, an array too;
   *   ERR_GGUF_METADATA_RANGE as {@link number}
   */
  arch(key: ArchitectureKey | (string & {})): number | undefined {
    checkKey(key);
    const architecture = this.#architecture();
    return architecture === undefined ? undefined : this.number(`${architecture}.${key}`);
  }

  /**
   * A plain object for `JSON.stringify`: arrays of more than 64 elements as `{ type, elementType, length }`, shorter
   * ones as arrays; 64-bit integers, and floats that JSON has no number for (NaN, infinities), as strings.
   * @throws GgufError ERR_GGUF_RANGE where there are more than 2^20 keys, which are too many for one object
   */
  toJSON(): Record<string, unknown> {
    const { size } = this;
    if (size <= MOST_IN_OBJECT) return this.#plain(size);
    throw this.#error("ERR_GGUF_RANGE", `${size} metadata keys do not fit in one object: use entries()`);
  }

  /** The first keys as a plain object. */
  #plain(count: number): Record<string, unknown> {
    const plain: [key: string, value: unknown][] = [];
    for (const key of this.keys()) {
      const position = plain.length;
      if (position === count) break;
      const type = this.#type(position);
      const value =
        type.type !== "array"
          ? toPlain(this.#value(position) as Scalar)
          : // Decodes nothing of long arrays, nor of those inside arrays.
            type.length > LONG_ARRAY
            ? type
            : plainArray(valueParts(this.#place(position)));
      plain.push([key, value]);
    }
    // This defines properties, so that a key such as "__proto__" is plain data.
    return Object.fromEntries(plain);
  }

  /** @internal */
  [inspectCustom](depth: number, options: object, inspect: Inspect): string {
    if (depth < 0 || this.#file.closed) return `[${GgufMetadata.name}]`;
    const { size } = this;
    const more = size > MOST_SHOWN ? ` and ${size - MOST_SHOWN} more` : "";
    return `${GgufMetadata.name}(${size}) ${inspect(this.#plain(MOST_SHOWN), options)}${more}`;
  }

  #find(key: string): number | undefined {
    checkKey(key);
    return this.#list.find(key);
  }

  #type(position: number): GgufValueType {
    const { columns, first } = this.#list.page(position);
    const { types, elementTypes, lengths } = columns;
    const type = TYPE_NAMES[types[position - first] as number] as GgufTypeName;
    if (type !== "array") return { type };
    const elementType = TYPE_NAMES[elementTypes[position - first] as number] as GgufTypeName;
    return { type, elementType, length: lengths[position - first] as number };
  }

  #place(position: number): ValuePlace {
    const { columns, first } = this.#list.page(position);
    const { begins, ends } = columns;
    const byteLength = (ends[position - first] as number) - (begins[position - first] as number);
    return { file: this.#file, position, type: this.#type(position), byteLength };
  }

  #value(position: number): GgufValue {
    const handle = handleOf(this.#file);
    const known = this.#scalars.get(position);
    if (known !== undefined) return known;
    const value = native.value(handle, position);
    if (typeof value === "object") return value;
    if (this.#scalars.size === MOST_KEPT) this.#scalars.clear();
    this.#scalars.set(position, value);
    return value;
  }

  #typed(key: string, expected: string, accepts: (type: GgufValueType) => boolean): GgufValue | undefined {
    const position = this.#find(key);
    if (position === undefined) return undefined;
    if (!accepts(this.#type(position))) throw this.#wrongType(key, position, expected);
    return this.#value(position);
  }

  #string(key: string): string | undefined {
    return this.#typed(key, "a string", (type) => type.type === "string") as string | undefined;
  }

  #architecture(): string | undefined {
    return this.#string("general.architecture");
  }

  #wrongType(key: string, position: number, expected: string): GgufError {
    const type = this.#type(position);
    const found = type.type === "array" ? `an array of ${type.length} ${type.elementType}` : type.type;
    return this.#error("ERR_GGUF_METADATA_TYPE", `metadata key '${key}' is ${found}, not ${expected}`);
  }

  #error(code: GgufErrorCode, detail: string): GgufError {
    return new GgufError(code, detail, { path: this.#file.path });
  }
}

function checkKey(key: unknown): void {
  if (typeof key !== "string") throw invalidArgType("key", "of type string", key);
}

function isNumberType(type: GgufTypeName): boolean {
  return type !== "string" && type !== "bool" && type !== "array";
}

type Scalar = number | bigint | boolean | string;

/** A value as JSON has it. */
function toPlain(value: Scalar): unknown {
  if (typeof value === "bigint") return String(value);
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
}

/** An array as JSON has it, with the long ones inside it summarised. */
function plainArray(parts: Iterable<ValuePart>): unknown {
  const root: unknown[] = [];
  /** The arrays that have begun; undefined for one that is summarised, and for what is inside it. */
  const arrays: (unknown[] | undefined)[] = [root];
  let pieces: Uint8Array[] = [];
  for (const part of parts) {
    const array = arrays.at(-1);
    if (part.kind === "end") arrays.pop();
    else if (part.kind === "array") {
      const { elementType, length } = part;
      const inner = array === undefined || length > LONG_ARRAY ? undefined : [];
      array?.push(inner ?? { type: "array", elementType, length });
      arrays.push(inner);
    } else if (array === undefined) {
    } else if (part.kind === "numbers") {
      const numbers = Array.from<number | bigint>(numbersOf(part.type, part.bytes));
      array.push(...numbers.map((value) => (part.type === "bool" ? value !== 0 : toPlain(value))));
    } else if (part.kind === "strings") {
      for (let i = 0; i < part.count; i++) array.push(textOf(part.bytes.subarray(part.starts[i], part.ends[i])));
    } else {
      pieces.push(part.bytes.slice());
      if (part.at + part.bytes.length < part.length) continue;
      array.push(textOf(joinBytes(pieces)));
      pieces = [];
    }
  }
  return root[0];
}

/** The element type that matches a typed array; undefined for another kind of array. @internal */
export function elementTypeOfArray(array: NumericArray): GgufTypeName {
  // By the tag, which cannot be forged as a constructor's name can.
  const name = typedArrayName(array) ?? "";
  return TYPE_NAMES.find((type) => ARRAY_CLASSES[type]?.name === name) as GgufTypeName;
}
