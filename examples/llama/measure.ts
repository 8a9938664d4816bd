/** What a model says of a text: how well it predicts it, and how important the columns of its matrices are there. */
import { GgufWriter } from "gguf-native";
import { logSumExp } from "gguf-native/network";
import type { Llama } from "./model";

/** A text in pieces of `length` tokens, without the rest; each begins with `begin` in place of its own token, if that is given. */
function piecesOf(tokens: readonly number[], length: number, least: number, begin?: number): number[][] {
  const count = Math.floor(tokens.length / length);
  if (count < least) {
    const wanted = least === 1 ? "a piece" : "two pieces";
    throw new RangeError(`the text has ${tokens.length} tokens, which is less than ${wanted} of ${length}`);
  }
  return Array.from({ length: count }, (_, piece) => {
    const own = tokens.slice(piece * length, (piece + 1) * length);
    return begin === undefined ? own : [begin, ...own.slice(1)];
  });
}

/**
 * Perplexity: e to the mean of -ln(probability) of the tokens that are predicted. Every token but the first is, from all before
 * it; or, of pieces of `context` tokens, those of the second half, as `llama-perplexity -c` does it.
 *
 * @throws RangeError for fewer than two pieces, or than two tokens
 */
export function perplexity(
  llama: Llama,
  tokens: readonly number[],
  { context, begin }: { context?: number | undefined; begin?: number | undefined } = {},
): { perplexity: number; count: number } {
  const length = context ?? tokens.length;
  if (length < 2) throw new RangeError("a perplexity needs two tokens at least");
  const first = context === undefined ? 0 : Math.floor(length / 2);
  let sum = 0;
  let count = 0;
  for (const own of piecesOf(tokens, length, context === undefined ? 1 : 2, begin)) {
    // Nothing is predicted after the last token.
    llama.forwardEach(own.slice(0, -1), llama.createCache(length), first, (place, logits) => {
      sum += logSumExp(logits) - logits[own[place + 1]!]!;
      count++;
    });
  }
  return { perplexity: Math.exp(sum / count), count };
}

/**
 * An importance matrix: how large the numbers are that each column of each matrix is multiplied with. Quantizing rounds the
 * columns with large ones more carefully. Of each vector x, x[c]² is added to the sum of column c, and 1 to the count of the
 * matrix, or of the expert. The files are those of llama.cpp's `llama-imatrix`: the tensors NAME.in_sum2 and NAME.counts.
 */
export class ImportanceMatrix {
  readonly #matrices = new Map<string, { squares: Float64Array; counts: Float32Array }>();

  /** An observer of a model. */
  readonly add = (name: string, columns: number, vectors: Float32Array, expert = 0, experts = 1): void => {
    // llama.cpp leaves out the matrix of the logits, whose importance says little about others.
    if (!name.startsWith("blk.")) return;
    const found = this.#matrices.get(name);
    const sums = found ?? { squares: new Float64Array(columns * experts), counts: new Float32Array(experts) };
    this.#matrices.set(name, sums);
    const squares = sums.squares.subarray(expert * columns, (expert + 1) * columns);
    for (let start = 0; start < vectors.length; start += columns) {
      for (let c = 0; c < columns; c++) squares[c]! += vectors[start + c]! ** 2;
    }
    sums.counts[expert]! += vectors.length / columns;
  };

  /** Writes the file. `dataset`: the name of the text. */
  async write(path: string, dataset: string, chunks: number, chunkSize: number): Promise<void> {
    const writer = new GgufWriter()
      .set("general.type", "imatrix")
      .set("imatrix.datasets", [dataset])
      .set("imatrix.chunk_count", chunks, "uint32")
      .set("imatrix.chunk_size", chunkSize, "uint32");
    for (const [name, { squares, counts }] of [...this.#matrices].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const shape = [squares.length / counts.length, counts.length];
      writer.addTensor(`${name}.in_sum2`, "F32", shape, Float32Array.from(squares));
      writer.addTensor(`${name}.counts`, "F32", [1, counts.length], counts);
    }
    await writer.write(path);
  }
}

/** Has a model read a text in pieces of `context` tokens, each from its beginning, and returns their number. */
export function readPieces(
  llama: Llama,
  tokens: readonly number[],
  begin: number | undefined,
  context: number,
): number {
  const pieces = piecesOf(tokens, context, 1, begin);
  for (const own of pieces) llama.forward(own, llama.createCache(context));
  return pieces.length;
}
