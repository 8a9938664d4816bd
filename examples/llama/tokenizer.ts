/**
 * Text to tokens and back, by the vocabulary that is in the model's file. Two kinds of vocabulary are known, which
 * `tokenizer.ggml.model` tells apart: `llama` (SentencePiece's pieces with scores) and `gpt2` (byte-level BPE).
 *
 * Not supported: other kinds; prompts with control tokens such as `<|im_start|>`, which are read as ordinary text.
 */
import type { GgufMetadata } from "gguf-native";
import type { Encoding } from "./encoding";
import { byteLevelEncoding } from "./tokenizer-gpt2";
import { sentencePieceEncoding } from "./tokenizer-spm";

/** `tokenizer.ggml.token_type` of tokens that stand for no text: unknown and control. */
const TEXTLESS = new Set([2, 3]);

export class Tokenizer {
  readonly #encoding: Encoding;
  readonly #types: ArrayLike<number | bigint>;
  readonly #begin: number | undefined;
  readonly #ends: ReadonlySet<number>;

  /** @throws Error for a vocabulary of a kind that is not known here */
  constructor(metadata: GgufMetadata) {
    const model = metadata.string("tokenizer.ggml.model");
    const tokens = metadata.strings("tokenizer.ggml.tokens");
    if (tokens === undefined) throw new Error("the file holds no vocabulary");
    const vocabulary = { metadata, tokens, ids: new Map(tokens.map((text, id) => [text, id])) };
    if (model === "llama") this.#encoding = sentencePieceEncoding(vocabulary);
    else if (model === "gpt2") this.#encoding = byteLevelEncoding(vocabulary);
    else throw new Error(`this example knows vocabularies of the kinds llama and gpt2, not ${model}`);

    this.#types = metadata.numbers("tokenizer.ggml.token_type") ?? [];
    const addsBegin = metadata.boolean("tokenizer.ggml.add_bos_token") ?? model === "llama";
    this.#begin = addsBegin ? metadata.number("tokenizer.ggml.bos_token_id") : undefined;
    const ends = ["eos", "eot"].map((name) => metadata.number(`tokenizer.ggml.${name}_token_id`));
    this.#ends = new Set(ends.filter((id) => id !== undefined));
  }

  /** The tokens of a text, after the one that begins a text where the model wants that. */
  encode(text: string): number[] {
    const tokens = this.#encoding.encode(text);
    return this.#begin === undefined ? tokens : [this.#begin, ...tokens];
  }

  /** Whether a model that chose `token` means to say no more. */
  isEnd(token: number): boolean {
    return this.#ends.has(token);
  }

  /** A function that turns one token after the other into text; characters appear once they are complete. */
  decoder(): (token: number) => string {
    const decoder = new TextDecoder();
    return (token) =>
      TEXTLESS.has(Number(this.#types[token]))
        ? ""
        : decoder.decode(this.#encoding.bytes(token), { stream: true });
  }
}
