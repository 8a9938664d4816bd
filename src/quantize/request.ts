/** What is asked to be quantized: arguments that were checked, for the addon and the reference alike. */
import { ASYNC_OPTIONS, checkOptions, checkThreads, type OptionNames } from "../base/arguments";
import { GgufError, invalidArgType, invalidArgValue } from "../base/errors";
import type { AsyncOptions } from "../base/options";
import { isFloat32Array, isUint8Array, lengthOf, plain } from "../base/typed-arrays";
import { type GgmlType, type GgmlTypeInfo, ggmlTypes, isGgmlType, meantType } from "../base/types";

/** A tensor type that {@link quantizeSync} makes blocks of: those that ggml can write from numbers. */
export type QuantizableType = Exclude<GgmlType, "F64" | "I8" | "I16" | "I32" | "I64" | "Q8_1" | "PQ2_0" | "PTQ1_0">;

/** What is known about the numbers, and where the blocks go. */
export interface QuantizeOptions<A extends Uint8Array = Uint8Array> {
  /** Length of a row, whole blocks; default: all numbers are one row. */
  columns?: number | undefined;
  /**
   * How much an error in each column matters: a weight for each of `columns`, finite and not negative. Types of 8 and more
   * bits and some others take no notice of it; the types of least bits need it.
   */
  importance?: Float32Array | undefined;
  /**
   * How blocks are searched for: `"ggml"`, the default, finds the bytes of ggml's reference; `"best"` searches wider, for Q4_0,
   * Q2_K to Q6_K, IQ4_NL and IQ4_XS, which takes up to about twenty times as long: no block has a greater weighted error than
   * ggml's. Other types have no wider search.
   */
  search?: "ggml" | "best" | undefined;
  /** Filled and returned; exactly as long as the blocks. It must not overlap the numbers. */
  out?: A | undefined;
}

/** How blocks are searched for: see {@link QuantizeOptions}. */
export type Search = NonNullable<QuantizeOptions["search"]>;
export const SEARCHES: readonly Search[] = ["ggml", "best"];

/** Options of the reference, which has types that need no search, and knows no importance. */
export type PlainQuantizeOptions<A extends Uint8Array = Uint8Array> = Pick<QuantizeOptions<A>, "out">;

const OUT: OptionNames<PlainQuantizeOptions> = { out: true };
const OPTIONS: OptionNames<QuantizeOptions & AsyncOptions> = {
  columns: true,
  importance: true,
  search: true,
  ...OUT,
  ...ASYNC_OPTIONS,
  threads: true,
};

/** A checked request of the addon. */
export interface QuantizeRequest {
  readonly info: GgmlTypeInfo;
  readonly byteLength: number;
  readonly columns: number;
  readonly importance: Float32Array | undefined;
  readonly out: Uint8Array | undefined;
  readonly threads: number | undefined;
  readonly best: boolean;
  /** The options of asynchronous work among them, as they were read. */
  readonly asyncOptions: AsyncOptions;
}

/** Types that numbers can be made blocks of, and whether they need importance. */
export type Encoders = ReadonlyMap<string, { needsImportance: boolean }>;

/** @throws TypeError, {@link GgufError} */
export function checkQuantize(
  encoders: Encoders,
  type: unknown,
  numbers: unknown,
  options: (QuantizeOptions & AsyncOptions) | undefined,
  kind?: "sync",
): QuantizeRequest {
  const { info, count, byteLength } = checkNumbers([...encoders.keys()], type, numbers);
  const given = checkOptions(options, OPTIONS, [numbers], undefined, kind);
  const best = checkSearch(given.search) === "best";
  const columns = checkColumns(given.columns, count, info.blockSize);
  const { needsImportance } = encoders.get(type as string) as { needsImportance: boolean };
  const importance = checkImportance(given.importance, columns);
  if (needsImportance && importance === undefined) {
    const detail = `blocks of the tensor type ${type} cannot be made without importance: with so few bits they would be useless`;
    throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail);
  }
  const out = checkOut(given.out, byteLength);
  return {
    info,
    byteLength,
    columns,
    importance,
    out,
    threads: checkThreads(given.threads),
    best,
    asyncOptions: given,
  };
}

/** @throws TypeError, {@link GgufError} */
export function checkPlainQuantize(
  types: readonly GgmlType[],
  type: unknown,
  numbers: unknown,
  options: PlainQuantizeOptions | undefined,
): { info: GgmlTypeInfo; numbers: Float32Array; out: Uint8Array } {
  const { info, byteLength } = checkNumbers(types, type, numbers);
  const out = checkOut(checkOptions(options, OUT, [numbers]).out, byteLength);
  return { info, numbers: numbers as Float32Array, out: out ?? new Uint8Array(byteLength) };
}

/** Checks that they are whole blocks of one of `types`. */
function checkNumbers(
  types: readonly string[],
  type: unknown,
  numbers: unknown,
): { info: GgmlTypeInfo; count: number; byteLength: number } {
  if (typeof type !== "string") throw invalidArgType("type", "of type string", type);
  if (!isGgmlType(type) || !types.includes(type)) {
    const detail = isGgmlType(type)
      ? `cannot make blocks of the tensor type ${type}, only of ${types.join(", ")}`
      : `cannot make blocks of the tensor type ${type}${meantType(type)}`;
    throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail);
  }
  if (!isFloat32Array(numbers)) throw invalidArgType("numbers", "an instance of Float32Array", numbers);
  const info = ggmlTypes[type];
  const count = lengthOf(numbers);
  if (count % info.blockSize !== 0) {
    const detail = `${count} numbers are not whole ${type} blocks, which have ${info.blockSize}`;
    throw new GgufError("ERR_GGUF_RANGE", detail);
  }
  return { info, count, byteLength: (count / info.blockSize) * info.typeSize };
}

/** What a block cannot hold: `numbers[at]`. */
export function notFinite(type: GgmlType, numbers: Float32Array, at: number, columns: number): GgufError {
  const place = `numbers[${at}] (row ${Math.floor(at / columns)}, column ${at % columns})`;
  const detail = `${place} is ${numbers[at]}, which ${type} blocks cannot hold`;
  return new GgufError("ERR_GGUF_RANGE", detail);
}

function checkColumns(columns: unknown, count: number, blockSize: number): number {
  if (columns === undefined) return count || blockSize;
  if (typeof columns !== "number") throw invalidArgType("options.columns", "of type number", columns);
  if (!Number.isSafeInteger(columns) || columns < 1 || columns % blockSize !== 0) {
    const detail = `options.columns must be a positive multiple of the block size ${blockSize}, found ${columns}`;
    throw new GgufError("ERR_GGUF_RANGE", detail);
  }
  if (count % columns !== 0) {
    throw new GgufError("ERR_GGUF_RANGE", `${count} numbers are not whole rows of ${columns} columns`);
  }
  return columns;
}

function checkImportance(importance: unknown, columns: number): Float32Array | undefined {
  if (importance === undefined) return undefined;
  if (!isFloat32Array(importance)) {
    throw invalidArgType("options.importance", "an instance of Float32Array", importance);
  }
  const found = lengthOf(importance);
  if (found !== columns) {
    const detail = `options.importance has ${found} weights, but a row has ${columns} columns`;
    throw new GgufError("ERR_GGUF_RANGE", detail);
  }
  const at = plain(importance).findIndex((weight) => !(weight >= 0 && weight < Number.POSITIVE_INFINITY));
  if (at !== -1) {
    const detail = `options.importance[${at}] must be finite and not negative, found ${importance[at]}`;
    throw new GgufError("ERR_GGUF_RANGE", detail);
  }
  return importance;
}

/** @throws TypeError */
export function checkSearch(search: unknown): Search {
  const found = SEARCHES.find((each) => each === (search ?? "ggml"));
  if (found !== undefined) return found;
  if (typeof search !== "string") throw invalidArgType("options.search", "of type string", search);
  const known = SEARCHES.map((each) => `'${each}'`).join(", ");
  throw invalidArgValue("options.search", `must be one of: ${known}`, search);
}

function checkOut(out: unknown, byteLength: number): Uint8Array | undefined {
  if (out === undefined) return undefined;
  if (!isUint8Array(out)) throw invalidArgType("options.out", "an instance of Uint8Array", out);
  const found = lengthOf(out);
  if (found !== byteLength) {
    const detail = `options.out has ${found} bytes, but the blocks have ${byteLength}`;
    throw new GgufError("ERR_GGUF_RANGE", detail);
  }
  return out;
}
