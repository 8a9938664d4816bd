/** Vectors of texts: the tokenizer and the network together. */
import type { GgufFile } from "gguf-native";
import { Tokenizer } from "gguf-native/tokenizer";
import { Bert, type LoadOptions } from "./model";

export class Embedder {
  readonly #tokenizer: Tokenizer;
  readonly #bert: Bert;

  /**
   * @param file a model, which must stay open
   * @throws Error if this example does not support the network; GgufError if something is wrong with the file
   */
  constructor(file: GgufFile, options?: LoadOptions) {
    this.#bert = Bert.load(file, options);
    this.#tokenizer = new Tokenizer(file.metadata);
  }

  /** How many numbers a vector has. */
  get length(): number {
    return this.#bert.config.embeddingLength;
  }

  /** The vectors of texts. Of a text that is longer than the model's context, the beginning counts. */
  embed(texts: readonly string[]): Float32Array[] {
    return this.#bert.embed(texts.map((text) => this.#tokensOf(text)));
  }

  #tokensOf(text: string): Int32Array {
    const tokens = this.#tokenizer.encode(text);
    const { contextLength } = this.#bert.config;
    if (tokens.length <= contextLength) return tokens;
    const begin = tokens.slice(0, contextLength);
    begin[contextLength - 1] = tokens.at(-1)!; // what ends a text ends this one, too
    return begin;
  }
}
