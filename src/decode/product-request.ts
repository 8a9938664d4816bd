/** What is asked of a product: options that were checked, for the addon and the reference alike. */
import { ASYNC_OPTIONS, checkOptions, checkThreads, type OptionNames } from "../base/arguments";
import { GgufError, type GgufErrorSubject, invalidArgType, invalidArgValue } from "../base/errors";
import type { AsyncOptions, BlockProductOptions, ProductOptions } from "../base/options";
import type { ElementRange } from "../base/ranges";
import { isFloat32Array, lengthOf } from "../base/typed-arrays";
import type { GgmlTypeInfo } from "../base/types";
import { checkBlocks, checkElements, checkOut } from "./request";

type AllOptions = ProductOptions & AsyncOptions;

const BLOCK_PRODUCT_OPTIONS: OptionNames<BlockProductOptions & AsyncOptions> = {
  out: true,
  activations: true,
  ...ASYNC_OPTIONS,
};
const PRODUCT_OPTIONS: OptionNames<ProductOptions & AsyncOptions> = {
  start: true,
  end: true,
  ...BLOCK_PRODUCT_OPTIONS,
};

/** Checked arguments: rows from `start` to `end`, and how many numbers the result has. */
export interface ProductRequest extends ElementRange {
  length: number;
  out: Float32Array | undefined;
  /** Whether the vectors are rounded to 8 bits. */
  int8: boolean;
  /** How many threads may work; undefined where the addon chooses. */
  threads: number | undefined;
}

/**
 * Checks `x` and the options of a product against a matrix of `rowCount` rows of `columns` numbers.
 * @throws TypeError (ERR_INVALID_ARG_TYPE), {@link GgufError} (ERR_GGUF_RANGE)
 */
export function checkProduct(
  x: unknown,
  options: AllOptions | undefined,
  columns: number,
  rowCount: number,
  subject: GgufErrorSubject,
): ProductRequest {
  return checkAgainst(x, checkOptions(options, PRODUCT_OPTIONS), columns, rowCount, subject);
}

function checkAgainst(
  x: unknown,
  given: AllOptions,
  columns: number,
  rowCount: number,
  subject?: GgufErrorSubject,
): ProductRequest {
  if (!isFloat32Array(x)) throw invalidArgType("x", "an instance of Float32Array", x);
  const int8 = checkActivations(given.activations);
  const count = lengthOf(x);
  const vectorCount = count === 0 ? 0 : count / columns;
  if (!Number.isInteger(vectorCount)) {
    const detail = `x has ${count} elements, not a whole number of vectors of ${columns}`;
    throw new GgufError("ERR_GGUF_RANGE", detail, subject);
  }
  const rows = checkElements(given, rowCount, 1, subject);
  // No row is needed for no vector: an empty row may have a number that only 64 bits hold.
  const { start, end } = vectorCount === 0 ? { start: 0, end: 0 } : rows;
  const length = vectorCount * (end - start);
  const { out } = checkOut(given.out, "f32", length, subject);
  const threads = checkThreads(given.threads, subject);
  return { start, end, length, out: out as Float32Array | undefined, int8, threads };
}

/** Whether they are `"int8"`. */
function checkActivations(activations: unknown): boolean {
  if (activations === undefined || activations === "f32") return false;
  if (activations === "int8") return true;
  if (typeof activations !== "string") {
    throw invalidArgType("options.activations", "of type string", activations);
  }
  throw invalidArgValue("options.activations", "must be one of: 'f32', 'int8'", activations);
}

/** Checks a matrix of block bytes and what it is multiplied with: the arguments of the free functions. */
export function checkBlockProduct(
  type: unknown,
  blocks: unknown,
  columns: unknown,
  x: unknown,
  options: AllOptions | undefined,
): ProductRequest & { info: GgmlTypeInfo } {
  const { info, elementCount } = checkBlocks(type, blocks);
  if (typeof columns !== "number") throw invalidArgType("columns", "of type number", columns);
  if (!Number.isSafeInteger(columns) || columns < 1 || columns % info.blockSize !== 0) {
    const detail = `columns must be a positive multiple of the block size ${info.blockSize}, found ${columns}`;
    throw new GgufError("ERR_GGUF_RANGE", detail);
  }
  if (elementCount % columns !== 0) {
    const detail = `blocks of ${elementCount} elements are not a whole number of rows of ${columns}`;
    throw new GgufError("ERR_GGUF_RANGE", detail);
  }
  const given = checkOptions(options, BLOCK_PRODUCT_OPTIONS);
  return { info, ...checkAgainst(x, given, columns, elementCount / columns) };
}
