/** Products of several matrices with the same vectors. */
import { native } from "../backend/native";
import { checkOptions, type OptionNames } from "../base/arguments";
import { GgufError, invalidArgType } from "../base/errors";
import type { ActivationOptions, Dequantized, ProductOptions, ThreadOptions } from "../base/options";
import { findOverlap } from "../base/typed-arrays";
import { attempt } from "../decode/jobs";
import { endProduct, type ProductRequest } from "../decode/product-request";
import { explainFailure, newOut } from "../decode/request";
import { handleOf, type OpenFile } from "./handle";
import { placeOf } from "./model-tensor";
import { GgufTensor } from "./tensor";
import { givenProductRequest, namedColumns, subjectOf } from "./tensor-requests";

/** Rows of a matrix, such as those of one expert, and what becomes of their products. */
export interface MatrixRows extends Pick<ProductOptions, "columns" | "start" | "end" | "factor" | "bias"> {
  /** The matrix, of a local file. */
  tensor: GgufTensor;
}

/** Options of {@link matmulAllSync}. */
export interface MatmulAllOptions extends ActivationOptions, ThreadOptions {
  /** Filled and returned: an array for each matrix, n times its rows long. They may overlap `x`, but not each other. */
  outs?: readonly Float32Array[] | undefined;
}

const OPTIONS: OptionNames<MatmulAllOptions> = { outs: true, activations: true, threads: true };
const ROWS: OptionNames<MatrixRows> = {
  ...{ tensor: true, columns: true, start: true, end: true, factor: true, bias: true },
};

/**
 * Multiplies several matrices, or rows of them, with the same vectors: query, key and value; gate and up; the experts that a
 * token has chosen. The bits are those of {@link GgufTensor.matmulSync} for each, but vectors are packed once for each
 * type of weights, and threads are woken once. Blocks the calling thread.
 *
 * @param rows tensors, or `{ tensor, start, end }` for some of their rows; of any types and files
 * @param x n vectors, one after the other, of as many numbers as the rows have; outputs may overlap it
 * @returns for each of `rows`, n times as many numbers as it has rows
 * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
 * @throws GgufError as {@link GgufTensor.matmulSync}, ERR_GGUF_RANGE also where there are not as many `outs` as `rows`, or
 *   two of them overlap. Nothing is written then
 */
export function matmulAllSync(
  rows: readonly (GgufTensor | MatrixRows)[],
  x: Float32Array,
  options?: MatmulAllOptions,
): Dequantized<"f32">[] {
  if (!Array.isArray(rows)) throw invalidArgType("rows", "an instance of Array", rows);
  const { outs, activations, threads } = checkOptions(options, OPTIONS, [x]);
  const arrays = checkOuts(outs, rows.length);
  const parts = Array.from(rows, checkRows).map(({ tensor, columns, start, end, factor, bias }, i): Part => {
    const { file, position } = placeOf(tensor);
    const its = { columns, start, end, factor, bias, out: arrays?.[i], activations, threads };
    return { tensor, file, position, request: givenProductRequest(tensor, file, x, its, arrays ?? []) };
  });
  const overlap = arrays && findOverlap(arrays);
  if (overlap !== undefined) {
    const [a, b] = overlap;
    throw new GgufError("ERR_GGUF_RANGE", `options.outs[${a}] and options.outs[${b}] overlap in memory`);
  }
  const results = parts.map(
    ({ tensor, request: { out, length } }) => out ?? (newOut("f32", length, subjectOf(tensor)) as Float32Array),
  );
  const products = parts.map(({ tensor, file, position, request }, i) => {
    const { columns, start, end, int8 } = request;
    const out = results[i] as Float32Array;
    return [handleOf(file), position, namedColumns(tensor, columns), x, start, end, out, int8] as const;
  });
  attempt(
    () => native.matmulAll(products, parts[0]?.request.threads),
    (error) => explainFailure(error, x.length),
  );
  return parts.map(({ tensor, request }, i) =>
    endProduct(native, request, results[i] as Float32Array, subjectOf(tensor)),
  ) as Dequantized<"f32">[];
}

/** A checked product of one of the matrices. */
interface Part {
  tensor: GgufTensor;
  file: OpenFile;
  position: number;
  request: ProductRequest;
}

function checkRows(given: unknown, i: number): MatrixRows {
  if (given instanceof GgufTensor) return { tensor: given };
  const name = `rows[${i}]`;
  if (typeof given !== "object" || given === null) {
    throw invalidArgType(name, "a GgufTensor of a local file, or an object with one as its tensor", given);
  }
  const rows = checkOptions(given as MatrixRows, ROWS);
  if (rows.tensor instanceof GgufTensor) return rows as MatrixRows;
  throw invalidArgType(`${name}.tensor`, "a GgufTensor of a local file", rows.tensor);
}

function checkOuts(outs: unknown, count: number): Float32Array[] | undefined {
  if (outs === undefined) return undefined;
  if (!Array.isArray(outs)) throw invalidArgType("options.outs", "an instance of Array", outs);
  const arrays: Float32Array[] = Array.from(outs);
  if (arrays.length !== count) {
    const detail = `options.outs has ${arrays.length} arrays, but ${count} matrices are multiplied`;
    throw new GgufError("ERR_GGUF_RANGE", detail);
  }
  return arrays;
}
