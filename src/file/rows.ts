/** Checks the arguments of `rows` and `rowsSync`. */
import { ASYNC_OPTIONS, checkOptions, type OptionNames } from "../base/arguments";
import { GgufError, type GgufErrorSubject, invalidArgType } from "../base/errors";
import type { AsyncOptions, DType, RowsOptions } from "../base/options";
import { isTypedArray, lengthOf } from "../base/typed-arrays";
import { checkDType, checkOut, type OutputArray } from "../decode/request";

const ROWS_OPTIONS: OptionNames<RowsOptions & AsyncOptions> = {
  dtype: true,
  out: true,
  ...ASYNC_OPTIONS,
};

/** Checked arguments. */
export interface RowRequest extends OutputArray {
  dtype: DType;
  /** The first `count` elements are the row numbers. Call {@link giveBackRows} after they have been read. */
  rows: Float64Array;
  count: number;
  /** Elements of the result. */
  length: number;
  /** The options of asynchronous work among them, as they were read. */
  asyncOptions: AsyncOptions;
}

/** The maximum number of rows in one call: their indexes alone take 2 GiB. */
const MAX_ROWS = 2 ** 28;

/**
 * Row numbers are passed in one reused array, because making one costs as much as decoding a row. A call
 * takes the array before it reads the caller's `indexes`, since a getter there may start another call, and
 * puts it back when the row numbers have been read.
 */
const SPARE_ROWS = 1024;
let spareRows: Float64Array | undefined;

function takeRows(count: number): Float64Array {
  if (count > SPARE_ROWS) return new Float64Array(count);
  const rows = spareRows ?? new Float64Array(SPARE_ROWS);
  spareRows = undefined;
  return rows;
}

/** Puts the row numbers of a request back for the next call. */
export function giveBackRows(rows: Float64Array): void {
  if (rows.length === SPARE_ROWS) spareRows = rows;
}

/**
 * Checks the arguments for a tensor of `rowCount` rows of `rowLength` elements.
 * @throws TypeError (ERR_INVALID_ARG_TYPE), {@link GgufError} (ERR_GGUF_RANGE)
 */
export function checkRows(
  indexes: unknown,
  options: (RowsOptions & AsyncOptions) | undefined,
  rowCount: number,
  rowLength: number,
  subject: GgufErrorSubject,
  kind?: "sync",
): RowRequest {
  const { rows, count } = checkIndexes(indexes, rowCount, subject);
  const given = checkOptions(options, ROWS_OPTIONS, [], subject, kind);
  const dtype = checkDType(given.dtype);
  const length = count * rowLength;
  const { given: array, out } = checkOut(given.out, dtype, length, subject);
  return { rows, count, dtype, length, given: array, out, asyncOptions: given };
}

function checkIndexes(
  indexes: unknown,
  rowCount: number,
  subject: GgufErrorSubject,
): Pick<RowRequest, "rows" | "count"> {
  if (typeof indexes !== "object" || indexes === null || !("length" in indexes)) {
    throw invalidArgType("indexes", "an array or a typed array", indexes);
  }
  const length = isTypedArray(indexes) ? lengthOf(indexes) : indexes.length;
  if (typeof length !== "number") throw invalidArgType("indexes.length", "of type number", length);
  if (!Number.isInteger(length) || length < 0 || length > MAX_ROWS) {
    const detail = `indexes.length must be a whole number up to ${MAX_ROWS}, found ${length}`;
    throw new GgufError("ERR_GGUF_RANGE", detail, subject);
  }
  const rows = takeRows(length);
  for (let i = 0; i < length; i++) {
    const row = (indexes as ArrayLike<unknown>)[i];
    if (typeof row !== "number") throw invalidArgType(`indexes[${i}]`, "of type number", row);
    if (!Number.isInteger(row) || row < 0 || row >= rowCount) {
      const rule = rowCount === 0 ? "the tensor has no rows" : `rows are whole numbers from 0 to ${rowCount - 1}`;
      throw new GgufError("ERR_GGUF_RANGE", `indexes[${i}] is ${row}, ${rule}`, subject);
    }
    rows[i] = row;
  }
  return { rows, count: length };
}
