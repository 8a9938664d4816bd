/** What is asked of a product: options that were checked, for the addon and the reference alike. */
import { checkBoolean, checkOptions, type OptionNames } from "../arguments";
import { GgufError, type GgufErrorSubject, invalidArgType } from "../errors";
import { isFloat32Array } from "../typed-arrays";
import type { GgmlTypeInfo } from "../types";
import type { AsyncOptions, BlockProductOptions, ProductOptions, ThreadOptions } from "./options";
import { checkBlocks, checkElements, checkOut, type ElementRange } from "./request";

const BLOCK_PRODUCT_OPTIONS: OptionNames<BlockProductOptions> = { out: true, exact: true, threads: true };

const PRODUCT_OPTIONS: OptionNames<ProductOptions & ThreadOptions & AsyncOptions> = {
  start: true,
  end: true,
  out: true,
  exact: true,
  threads: true,
  signal: true,
  onProgress: true,
};

/** Checked arguments: rows from `start` to `end`, and how many numbers the result has. */
export interface ProductRequest extends ElementRange {
  length: number;
  out: Float32Array | undefined;
  exact: boolean;
}

/**
 * Checks `x`, start, end, out and exact against a matrix of `rowCount` rows of `columns` numbers.
 * @throws TypeError (ERR_INVALID_ARG_TYPE), {@link GgufError} (ERR_GGUF_RANGE)
 */
export function checkProduct(
  x: unknown,
  options: ProductOptions | undefined,
  columns: number,
  rowCount: number,
  subject?: GgufErrorSubject,
): ProductRequest {
  if (!isFloat32Array(x)) throw invalidArgType("x", "an instance of Float32Array", x);
  const given = checkOptions(options, PRODUCT_OPTIONS);
  const exact = checkBoolean("options.exact", given.exact, true);
  const vectorCount = x.length === 0 ? 0 : x.length / columns;
  if (!Number.isInteger(vectorCount)) {
    const detail = `x has ${x.length} elements, not a whole number of vectors of ${columns}`;
    throw new GgufError("ERR_GGUF_RANGE", detail, subject);
  }
  const { start, end } = checkElements(given, rowCount, 1, subject);
  const length = vectorCount * (end - start);
  const { out } = checkOut(given.out, "f32", length, subject);
  return { start, end, length, out: out as Float32Array | undefined, exact };
}

/** How many threads may work; undefined where the addon chooses. */
export function checkThreads(threads: unknown, subject?: GgufErrorSubject): number | undefined {
  if (threads === undefined) return undefined;
  if (typeof threads !== "number") throw invalidArgType("options.threads", "of type number", threads);
  if (!Number.isSafeInteger(threads) || threads < 1) {
    const detail = `options.threads must be a positive whole number, found ${threads}`;
    throw new GgufError("ERR_GGUF_RANGE", detail, subject);
  }
  return threads;
}

/** Checks a matrix of block bytes and what it is multiplied with: the arguments of the free functions. */
export function checkBlockProduct(
  type: unknown,
  blocks: unknown,
  columns: unknown,
  x: unknown,
  options: BlockProductOptions | undefined,
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
  const { out, exact } = checkOptions(options, BLOCK_PRODUCT_OPTIONS);
  return { info, ...checkProduct(x, { out, exact }, columns, elementCount / columns) };
}
