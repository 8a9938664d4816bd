/** A model with its tokenizer: from texts to their vectors, on the thread that calls. */
import { GgufError } from "../base/errors";
import type { GgufFile } from "../file/parse";
import { type EncodeOptions, Tokenizer } from "../tokenizer/tokenizer";
import type { Facts, Item, Result } from "./job";
import { cut, Network, type NetworkOptions, type Tokens } from "./network";

/** Many times as many letters as tokens usually have. */
const LETTERS_OF_TOKEN = 32;

export class Engine {
  readonly facts: Facts;
  readonly #network: Network;
  readonly #tokenizer: Tokenizer;
  /** Whether a text gets the token that ends it, whatever the vocabulary's own rule is. */
  readonly #eos: true | undefined;
  /** What stands between a query and a text, besides the token that ends the query: XLM-RoBERTa has that one twice. */
  readonly #between: readonly number[];

  /**
   * @param file a model, which must stay open
   * @throws GgufError if it is not known, or something is wrong with it
   */
  constructor(file: GgufFile, options: NetworkOptions, prompts: Facts["prompts"] = {}) {
    this.#network = new Network(file, options);
    this.#tokenizer = new Tokenizer(file.metadata, { normalization: "model" });
    const { dimensions, maxTokens, hasScores, pooling } = this.#network;
    // Its vector is that of the text.
    const hasEnd = file.metadata.number("tokenizer.ggml.eos_token_id") !== undefined;
    this.#eos = (pooling === "last" && hasEnd) || undefined;
    const isTwice = file.metadata.string("tokenizer.ggml.model") === "t5";
    this.#between = isTwice ? [...this.#tokenizer.encode("", { bos: false, eos: true })] : [];
    const path = file.paths[0];
    this.facts = { path, dimensions, maxTokens, hasScores, hasVectors: pooling !== "rank", prompts };
  }

  /**
   * The vectors, or numbers, of texts. Gives way after each product.
   * @param atOnce with so many tokens, of one text or several, no further one is taken: enough to use each weight often
   */
  *run(items: readonly Item[], atOnce: number): Generator<void, Result[]> {
    const results: Result[] = [];
    for (let next = 0; next < items.length; ) {
      const places: number[] = [];
      const texts: Tokens[] = [];
      const { isScored } = items[next] as Item;
      for (let count = 0; count < atOnce && items[next]?.isScored === isScored; next++) {
        try {
          const tokens = this.#tokensOf(items[next] as Item);
          places.push(next);
          texts.push(tokens);
          count += tokens.ids.length;
        } catch (error) {
          results[next] = error as Error;
        }
        yield;
      }
      if (texts.length === 0) continue;
      const vectors = yield* this.#network.run(texts, isScored);
      for (const [i, vector] of vectors.entries()) {
        const place = places[i] as number;
        const { dimensions, isNormalized } = items[place] as Item;
        results[place] = isScored ? vector : cut(vector, dimensions, isNormalized);
      }
    }
    return results;
  }

  /** Of a text that is longer than the model's context, the beginning counts, with the token that ends it. */
  #tokensOf({ text, query }: Item): Tokens {
    const { maxTokens } = this.#network;
    const eos = this.#eos;
    if (query === undefined) {
      const ids = this.#encode(text, maxTokens, { eos });
      if (ids.length > 0) return { ids, second: ids.length };
      const detail = "a text has no tokens, and so no vector: the vocabulary has no token for the ends of texts";
      throw new GgufError("ERR_GGUF_RANGE", detail, { path: this.facts.path });
    }
    const first = [
      ...this.#encode(query, Math.max(1, (maxTokens - this.#between.length) >> 1), { eos }),
      ...this.#between,
    ];
    const second = this.#encode(text, Math.max(0, maxTokens - first.length), { bos: false, eos });
    return { ids: Int32Array.from([...first, ...second]), second: first.length };
  }

  /** Of a long text, only the part that counts is looked at: a list of all its tokens may take more memory than there is. */
  #encode(text: string, most: number, options: EncodeOptions): Int32Array {
    for (let letters = LETTERS_OF_TOKEN * Math.max(most, 1); ; letters *= 2) {
      // As models were trained: names such as [SEP] in a text are these tokens.
      const ids = this.#tokenizer.encode(text.slice(0, letters), { special: true, ...options });
      if (ids.length <= most && letters < text.length) continue;
      if (ids.length <= most) return ids;
      const begin = ids.slice(0, most);
      if (most > 0) begin[most - 1] = ids.at(-1) as number;
      return begin;
    }
  }
}
