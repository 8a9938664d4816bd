/** Searching a text by meaning: its passages, and those that are most similar to a query. */
import { matmulSync } from "gguf-native";
import type { Embedder, EmbedOptions } from "gguf-native/embeddings";
import { topK } from "gguf-native/network";

export interface Passage {
  text: string;
  /** The line of the text that it begins in, from 1 on. */
  line: number;
}

/** Passages have so many characters at most, some 100 to 200 tokens. */
const LONGEST = 600;

/**
 * Cuts a text to passages: its paragraphs, which blank lines divide. A longer one is cut after sentences, or after words if
 * there are none, or anywhere.
 */
export function passagesOf(text: string): Passage[] {
  const passages: Passage[] = [];
  let line = 1;
  // Every other part is what divides paragraphs.
  for (const [i, part] of text.split(/(\r?\n\s*\n)/).entries()) {
    if (i % 2 === 0) {
      for (const [piece] of part.matchAll(PIECE)) {
        const lead = piece.length - piece.trimStart().length;
        const passage = piece.trim();
        if (passage !== "") passages.push({ text: passage, line: line + linesIn(piece.slice(0, lead)) });
        line += linesIn(piece);
      }
    } else {
      line += linesIn(part);
    }
  }
  return passages;
}

/** All that is left if it is short; else up to the last end of a sentence, the last space, or the limit. */
const PIECE = new RegExp(
  [`[^]{1,${LONGEST}}$`, `[^]{1,${LONGEST}}[.!?:;](?=\\s)`, `[^]{1,${LONGEST}}(?=\\s)`, `[^]{1,${LONGEST}}`].join("|"),
  "gu", // no character is cut in two
);

function linesIn(text: string): number {
  return text.split("\n").length - 1;
}

export interface Found extends Passage {
  /** The cosine of the angle between the vectors of the passage and the query. */
  similarity: number;
}

/** Passages and their vectors. */
export class Index {
  readonly #embedder: Embedder;
  readonly #passages: readonly Passage[];
  /** The vectors, one after the other. */
  readonly #vectors: Float32Array;

  /** The vectors are zeros before {@link build} has computed them. */
  constructor(embedder: Embedder, passages: readonly Passage[]) {
    this.#embedder = embedder;
    this.#passages = passages;
    this.#vectors = new Float32Array(passages.length * embedder.dimensions);
  }

  /**
   * Computes the vectors.
   * @param prefix what the model wants before each passage, if anything
   */
  async build(prefix = "", options?: Pick<EmbedOptions, "signal" | "onProgress">): Promise<void> {
    const texts = this.#passages.map(({ text }) => prefix + text);
    const vectors = await this.#embedder.embed(texts, options);
    for (const [i, vector] of vectors.entries()) this.#vectors.set(vector, i * vector.length);
  }

  /** The passages that are most similar to a query, the most similar one first. */
  async search(query: string, count: number): Promise<Found[]> {
    const [vector] = (await this.#embedder.embed([query])) as [Float32Array];
    const similarities = matmulSync("F32", this.#vectors, vector.length, vector);
    const { indexes, values } = topK(similarities, Math.min(count, similarities.length));
    return Array.from(indexes, (at, i) => ({ ...this.#passages[at]!, similarity: values[i]! }));
  }
}
