/** Vectors that were made before, and those that are most similar to another one. */
import { readFileSync } from "node:fs";
import { extname } from "node:path";
import { dequantizeSync } from "../../index";
import { openSafetensors } from "../../safetensors/open";
import { type TextLines, VECTOR_FIELD } from "./text-lines";

/** A vector, and where it is. */
export interface Row {
  /** Of the line, or of the row of a matrix: from 1 on. */
  readonly line: number;
  readonly text?: string;
  readonly vector: ArrayLike<number>;
}

/** What was found: the larger the score, the better. */
export type Found = Omit<Row, "vector"> & { readonly score: number };

/** The `most` rows with the best scores, the first of equals first. */
export async function bestRows(
  batches: AsyncIterable<readonly Row[]> | Iterable<Iterable<Row>>,
  scoreOf: (vector: ArrayLike<number>) => number,
  most: number,
): Promise<Found[]> {
  const found: Found[] = [];
  for await (const batch of batches) {
    for (const { line, text, vector } of batch) {
      const score = scoreOf(vector);
      const last = found[most - 1];
      if (last !== undefined && score <= last.score) continue;
      const at = found.findIndex((each) => each.score < score);
      const row = { line, ...(text === undefined ? {} : { text }), score };
      found.splice(at < 0 ? found.length : at, 0, row);
      found.length = Math.min(found.length, most);
    }
  }
  return found;
}

/** The cosine of the angle between a vector and others; 0 where one of them is all zeros. */
export function cosineWith(query: Float32Array): (vector: ArrayLike<number>) => number {
  const length = Math.sqrt(dot(query, query));
  return (vector) => dot(query, vector) / (length * Math.sqrt(dot(vector, vector)) || 1);
}

function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i] as number) * (b[i] as number);
  return sum;
}

/** What the matrix is called in a .safetensors file. */
export const MATRIX = "embeddings";

/** A matrix of vectors, one after the other. */
interface Matrix {
  readonly dimensions: number;
  readonly numbers: Float32Array;
}

/** Whether the name of a file says that there is a matrix in it. */
export function isMatrixFile(path: string): boolean {
  return /^\.(npy|safetensors)$/i.test(extname(path));
}

/** @throws Error, GgufError for what is no such file */
export async function readMatrix(path: string): Promise<Matrix> {
  if (extname(path).toLowerCase() === ".npy") return npyMatrix(path);
  const model = await openSafetensors(path);
  const matrices = [...model.tensors.values()].filter(({ shape }) => shape.length === 2);
  const tensor = matrices.find(({ name }) => name === MATRIX) ?? matrices[0];
  try {
    if (tensor !== undefined && (tensor.name === MATRIX || matrices.length === 1))
      return { dimensions: tensor.shape[0] as number, numbers: await tensor.dequantize() };
  } finally {
    model.close();
  }
  throw new Error(`${path}: no matrix is called '${MATRIX}', and ${matrices.length} are there`);
}

const NPY = /^\x93NUMPY[\s\S]*'descr': '<f([24])', 'fortran_order': False, 'shape': \((\d+), (\d+)\)/;

function npyMatrix(path: string): Matrix {
  const bytes = readFileSync(path);
  const begin = bytes.toString("latin1", 0, 1024);
  const [, width, rows, columns] = NPY.exec(begin) ?? [];
  if (width === undefined) throw new Error(`${path}: no .npy file of a matrix of 32 or 16-bit floats in C order`);
  const headerBytes = bytes[6] === 1 ? 10 + bytes.readUInt16LE(8) : 12 + bytes.readUInt32LE(8);
  const expected = headerBytes + Number(rows) * Number(columns) * Number(width);
  if (bytes.length !== expected)
    throw new Error(`${path}: has ${bytes.length} bytes, and its header promises ${expected}`);
  const numbers = dequantizeSync(width === "4" ? "F32" : "F16", bytes.subarray(headerBytes));
  return { dimensions: Number(columns), numbers };
}

/** The rows of a matrix after the first `skip`. @throws Error for one with a number that is not finite */
export function* rowsOf({ dimensions, numbers }: Matrix, path: string, skip: number): Generator<Row, void> {
  for (let line = skip + 1; line * dimensions <= numbers.length; line++) {
    const vector = numbers.subarray((line - 1) * dimensions, line * dimensions);
    if (!vector.every(Number.isFinite)) throw new Error(`${path}: row ${line}: a number is not finite`);
    yield { line, vector };
  }
}

/** Lines of JSON that have vectors of one length. @throws Error that names the line */
export function* rowsOfLines(lines: TextLines, length: number, skip: number): Generator<Row, void> {
  for (const { line, text, embedding } of lines) {
    const isVector = Array.isArray(embedding) && embedding.every((each) => typeof each === "number");
    if (!isVector || embedding.length !== length)
      throw lines.error(line, `'${VECTOR_FIELD}' is no array of ${length} numbers, as that of the first line`);
    if (line > skip) yield { line, text, vector: embedding };
  }
}
