/** What is asked of a product: options that were checked, for the addon and the reference alike. */
import { ASYNC_OPTIONS, checkOptions, checkThreads, type OptionNames } from "../base/arguments";
import { GgufError, type GgufErrorSubject, invalidArgType, invalidArgValue } from "../base/errors";
import type { AsyncOptions, BlockProductOptions, ProductOptions } from "../base/options";
import type { ElementRange } from "../base/ranges";
import { isFloat32Array, lengthOf, memoryAs, shareBuffer } from "../base/typed-arrays";
import type { GgmlTypeInfo } from "../base/types";
import { checkBlocks, checkElements, checkOut, checkOutLength } from "./request";

type AllOptions = ProductOptions & AsyncOptions;

const BLOCK_PRODUCT_OPTIONS: OptionNames<BlockProductOptions & AsyncOptions> = {
  out: true,
  ...{ activations: true, factor: true, bias: true, accumulate: true },
  ...ASYNC_OPTIONS,
  threads: true,
};
const PRODUCT_OPTIONS: OptionNames<ProductOptions & AsyncOptions> = {
  columns: true,
  start: true,
  end: true,
  ...BLOCK_PRODUCT_OPTIONS,
};

/** Checked arguments: rows from `start` to `end`, and how many numbers the result has. */
export interface ProductRequest extends ElementRange, Matrix {
  length: number;
  /** What products are written to; undefined for a new array. */
  out: Float32Array | undefined;
  /** What is done with products. */
  ending: Ending | undefined;
  /** Whether the vectors are rounded to 8 bits. */
  int8: boolean;
  /** How many threads may work; undefined where the addon chooses. */
  threads: number | undefined;
  /** The options of asynchronous work among them, as they were read. */
  asyncOptions: AsyncOptions;
}

/**
 * Checks `x` and the options of a product against a tensor.
 * @throws TypeError (ERR_INVALID_ARG_TYPE), {@link GgufError} (ERR_GGUF_RANGE)
 */
export function checkProduct(
  x: unknown,
  options: AllOptions | undefined,
  shape: readonly number[],
  rowCount: number,
  subject: GgufErrorSubject,
  kind?: "sync",
): ProductRequest {
  const given = checkOptions(options, PRODUCT_OPTIONS, [x], subject, kind);
  return checkGivenProduct(x, given, shape, rowCount, subject, writtenBy(given, kind));
}

/** What a call that blocks writes before it adds a bias. */
function writtenBy({ out }: AllOptions, kind: "sync" | undefined): readonly unknown[] | undefined {
  return kind === "sync" ? [out] : undefined;
}

/**
 * The same for options that were read already.
 * @param written what a call that blocks writes before it adds the bias; undefined for other calls
 * @throws as {@link checkProduct}
 */
export function checkGivenProduct(
  x: unknown,
  given: AllOptions,
  shape: readonly number[],
  rowCount: number,
  subject: GgufErrorSubject,
  written: readonly unknown[] | undefined,
): ProductRequest {
  const matrix =
    given.columns === undefined && shape.length < 4
      ? { columns: shape[0] ?? 1, rowCount }
      : matrixOf(matricesOf(shape), given, x, subject);
  const hint = (): string => fitting(matricesOf(shape), x);
  return checkAgainst(x, given, matrix, written, subject, hint);
}

/** What a product takes a tensor for. */
export interface Matrix {
  columns: number;
  rowCount: number;
}

/** A tensor as a matrix: so many of its first dimensions are columns. */
function matricesOf(shape: readonly number[]): readonly [Matrix, ...Matrix[]] {
  const product = (dims: readonly number[]): number => dims.reduce((all, dim) => all * dim, 1);
  const matrix = (count: number): Matrix => ({
    columns: product(shape.slice(0, count)),
    rowCount: product(shape.slice(count)),
  });
  return [matrix(1), ...shape.slice(1).map((_, i) => matrix(i + 2))];
}

function matrixOf(
  matrices: readonly [Matrix, ...Matrix[]],
  { columns }: ProductOptions,
  x: unknown,
  subject: GgufErrorSubject,
): Matrix {
  if (columns === undefined) {
    // Four dimensions are those of a convolution, whose vectors have all numbers of a patch.
    const [{ columns: first }, , patch] = matrices;
    if (matrices.length === 4 && patch !== undefined && patch.columns > first && fits(x, patch.columns)) {
      const detail = `x has ${lengthOf(x as Float32Array)} elements, which may be vectors of ${first} or of ${patch.columns}: give options.columns, ${first} or ${patch.columns}`;
      throw new GgufError("ERR_GGUF_RANGE", detail, subject);
    }
    return matrices[0];
  }
  if (typeof columns !== "number") throw invalidArgType("options.columns", "of type number", columns);
  const matrix = matrices.find((matrix) => matrix.columns === columns);
  if (matrix !== undefined) return matrix;
  const all = [...new Set(matrices.map(({ columns }) => columns))].join(", ");
  const detail = `options.columns must be a product of leading dimensions, one of ${all}; found ${columns}`;
  throw new GgufError("ERR_GGUF_RANGE", detail, subject);
}

/** Whether `x` has whole vectors of `columns` numbers, and not none. */
function fits(x: unknown, columns: number): boolean {
  return isFloat32Array(x) && lengthOf(x) > 0 && lengthOf(x) % columns === 0;
}

/** What to give as `options.columns` for this `x`. */
function fitting(matrices: readonly Matrix[], x: unknown): string {
  const possible = matrices.filter(({ columns }) => matrices.length > 2 && fits(x, columns));
  const values = [...new Set(possible.map(({ columns }) => columns))];
  return values.length === 0 ? "" : `; it has with options.columns ${values.join(" or ")}`;
}

function checkAgainst(
  x: unknown,
  given: AllOptions,
  { columns, rowCount }: Matrix,
  written: readonly unknown[] | undefined,
  subject?: GgufErrorSubject,
  hint = () => "",
): ProductRequest {
  if (!isFloat32Array(x)) throw invalidArgType("x", "an instance of Float32Array", x);
  const int8 = checkActivations(given.activations);
  const count = lengthOf(x);
  const vectorCount = count === 0 ? 0 : count / columns;
  if (!Number.isInteger(vectorCount)) {
    const detail = `x has ${count} elements, not a whole number of vectors of ${columns}${hint()}`;
    throw new GgufError("ERR_GGUF_RANGE", detail, subject);
  }
  const rows = checkElements(given, rowCount, 1, subject);
  // No row is needed for no vector: an empty row may have a number that only 64 bits hold.
  const { start, end } = vectorCount === 0 ? { start: 0, end: 0 } : rows;
  const length = vectorCount * (end - start);
  const out = checkOut(given.out, "f32", length, subject).out as Float32Array | undefined;
  const ending = checkEnding(given, out, end - start, written, subject);
  const threads = checkThreads(given.threads, subject);
  const target = ending?.sum === undefined ? out : undefined;
  // No object is spread: that takes V8 a microsecond, as long as a small product.
  return { columns, rowCount, start, end, length, out: target, ending, int8, threads, asyncOptions: given };
}

/** The checked options of what is done with products. */
export interface Ending {
  factor: number;
  bias: Float32Array | undefined;
  /** What products are added to. */
  sum: Float32Array | undefined;
}

/** Undefined where nothing is done with products. */
function checkEnding(
  { factor = 1, bias, accumulate = false }: AllOptions,
  out: Float32Array | undefined,
  rowCount: number,
  written: readonly unknown[] | undefined,
  subject?: GgufErrorSubject,
): Ending | undefined {
  if (typeof factor !== "number") throw invalidArgType("options.factor", "of type number", factor);
  if (typeof accumulate !== "boolean") {
    throw invalidArgType("options.accumulate", "of type boolean", accumulate);
  }
  if (accumulate && out === undefined) {
    throw new GgufError("ERR_GGUF_RANGE", "options.accumulate adds to options.out, which is not given", subject);
  }
  if (bias !== undefined) {
    if (!isFloat32Array(bias)) throw invalidArgType("options.bias", "an instance of Float32Array", bias);
    const found = lengthOf(bias);
    if (rowCount !== 0 && found !== rowCount) {
      const detail = `options.bias has ${found} elements, but ${rowCount} rows are multiplied`;
      throw new GgufError("ERR_GGUF_RANGE", detail, subject);
    }
  }
  if (factor === 1 && bias === undefined && !accumulate) return undefined;
  // A copy, if it may change before it is added.
  const isKept = bias === undefined || written?.every((array) => !shareBuffer(array, bias));
  return {
    factor,
    bias: isKept ? bias : memoryAs(Float32Array, bias).slice(),
    sum: accumulate ? out : undefined,
  };
}

/** The functions of gguf-native/network that products are ended by, of a backend. */
export interface EndingFunctions {
  scaleInto(x: Float32Array, factor: number): void;
  addInto(x: Float32Array, y: Float32Array): void;
}

/** Does with products what the options ask for; returns the result. */
export function endProduct(
  functions: EndingFunctions,
  { out, ending, length }: ProductRequest,
  products: Float32Array,
  subject?: GgufErrorSubject,
): Float32Array {
  const result = out ?? products;
  if (ending === undefined || length === 0) return ending?.sum ?? result;
  const { factor, bias, sum } = ending;
  checkOutLength(result, length, subject);
  if (factor !== 1) functions.scaleInto(result, factor);
  if (bias !== undefined) functions.addInto(result, bias);
  if (sum === undefined) return result;
  checkOutLength(sum, length, subject);
  functions.addInto(sum, result);
  return sum;
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
  kind?: "sync",
): { info: GgmlTypeInfo; bytes: Uint8Array; request: ProductRequest } {
  const { info, bytes, elementCount } = checkBlocks(type, blocks);
  if (typeof columns !== "number") throw invalidArgType("columns", "of type number", columns);
  if (!Number.isSafeInteger(columns) || columns < 1 || columns % info.blockSize !== 0) {
    const detail = `columns must be a positive multiple of the block size ${info.blockSize}, found ${columns}`;
    throw new GgufError("ERR_GGUF_RANGE", detail);
  }
  if (elementCount % columns !== 0) {
    const detail = `blocks of ${elementCount} elements are not a whole number of rows of ${columns}`;
    throw new GgufError("ERR_GGUF_RANGE", detail);
  }
  const given = checkOptions(options, BLOCK_PRODUCT_OPTIONS, [blocks, x], undefined, kind);
  const matrix = { columns, rowCount: elementCount / columns };
  return { info, bytes, request: checkAgainst(x, given, matrix, writtenBy(given, kind)) };
}
