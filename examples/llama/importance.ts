/**
 * Importance matrices: how large the numbers are that each column of each matrix is multiplied with. Quantizing rounds the
 * columns with large ones more carefully.
 *
 * Of each vector x that a matrix is multiplied with, x[c]² is added to the sum of column c, and 1 to the count of the matrix.
 * The files are those of llama.cpp's `llama-imatrix`: for each matrix NAME the sums as the tensor NAME.in_sum2, and its
 * count as NAME.counts.
 */
import { GgufWriter } from "gguf-native";
import type { Llama } from "./model";

interface Sums {
  squares: Float64Array;
  count: number;
}

/** What is added up while a model reads texts. */
export class ImportanceMatrix {
  readonly #matrices = new Map<string, Sums>();

  /** Adds the vectors that a matrix is multiplied with, one after the other. */
  add(name: string, columns: number, vectors: Float32Array): void {
    // llama.cpp leaves out the matrix of the logits, whose importance says little about others.
    if (!name.startsWith("blk.")) return;
    const sums = this.#matrices.get(name) ?? { squares: new Float64Array(columns), count: 0 };
    this.#matrices.set(name, sums);
    const { squares } = sums;
    for (let start = 0; start < vectors.length; start += columns) {
      for (let c = 0; c < columns; c++) squares[c]! += vectors[start + c]! ** 2;
    }
    sums.count += vectors.length / columns;
  }

  /** Writes the file. `dataset`: the name of the text. */
  async write(path: string, dataset: string, chunks: number, chunkSize: number): Promise<void> {
    const writer = new GgufWriter()
      .set("general.type", "imatrix")
      .set("imatrix.datasets", [dataset])
      .set("imatrix.chunk_count", chunks, "uint32")
      .set("imatrix.chunk_size", chunkSize, "uint32");
    for (const [name, { squares, count }] of [...this.#matrices].sort(([a], [b]) => (a < b ? -1 : 1))) {
      writer.addTensor(`${name}.in_sum2`, "F32", [squares.length, 1], Float32Array.from(squares));
      writer.addTensor(`${name}.counts`, "F32", [1, 1], Float32Array.of(count));
    }
    await writer.write(path);
  }
}

/**
 * Has a model read a text in pieces of `context` tokens, each from its beginning. What is left at
 * the end is not read. The model must have been loaded with a function that adds to the matrix.
 *
 * @param begin the token that each piece begins with, in place of its own, if the model wants one
 * @returns the number of pieces
 * @throws RangeError for a text that is shorter than a piece
 */
export function readPieces(
  llama: Llama,
  tokens: readonly number[],
  begin: number | undefined,
  context: number,
): number {
  const pieces = Math.floor(tokens.length / context);
  if (pieces === 0)
    throw new RangeError(`the text has ${tokens.length} tokens, which is less than a piece of ${context}`);
  for (let piece = 0; piece < pieces; piece++) {
    const own = tokens.slice(piece * context, (piece + 1) * context);
    if (begin !== undefined) own[0] = begin;
    llama.forward(own, llama.createCache(context));
  }
  return pieces;
}
