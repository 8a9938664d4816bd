/**
 * Converts text to tokens and back, with the vocabulary of the model's file: for the command line and the examples, and
 * not part of the package's interface, as it supports few of the vocabularies that there are. It knows two kinds of
 * vocabulary, which `tokenizer.ggml.model` names: `llama` (SentencePiece's pieces with scores) and `gpt2` (byte-level
 * BPE).
 *
 * It does not know control tokens in texts: `<|im_start|>` is read as ordinary text.
 */
import type { GgufMetadata } from "../file/metadata";
import { byteLevelEncoding } from "./byte-level";
import type { Encoding } from "./encoding";
import { sentencePieceEncoding } from "./sentence-piece";

/** The values of `tokenizer.ggml.token_type` for tokens without text: unknown and control. */
const TEXTLESS = new Set([2, 3]);

export class Tokenizer {
  readonly #encoding: Encoding;
  readonly #pieces: readonly string[];
  readonly #types: ArrayLike<number | bigint>;
  readonly #begin: number | undefined;
  readonly #ends: ReadonlySet<number>;

  /** @throws Error for a vocabulary of another kind, or one that lacks a part */
  constructor(metadata: GgufMetadata) {
    const model = metadata.string("tokenizer.ggml.model");
    const tokens = metadata.strings("tokenizer.ggml.tokens");
    if (tokens === undefined) throw new Error("the file has no vocabulary");
    this.#pieces = tokens;
    const vocabulary = { metadata, tokens, ids: new Map(tokens.map((text, id) => [text, id])) };
    if (model === "llama") this.#encoding = sentencePieceEncoding(vocabulary);
    else if (model === "gpt2") this.#encoding = byteLevelEncoding(vocabulary);
    else throw new Error(`only vocabularies of the kinds llama and gpt2 are supported, not ${model}`);

    this.#types = metadata.numbers("tokenizer.ggml.token_type") ?? [];
    const addsBegin = metadata.boolean("tokenizer.ggml.add_bos_token") ?? model === "llama";
    this.#begin = addsBegin ? metadata.number("tokenizer.ggml.bos_token_id") : undefined;
    const ends = ["eos", "eot"].map((name) => metadata.number(`tokenizer.ggml.${name}_token_id`));
    this.#ends = new Set(ends.filter((id) => id !== undefined));
  }

  /** The tokens of a text. If the model requires it, the token that marks the beginning comes first. */
  encode(text: string): number[] {
    const tokens = this.#encoding.encode(text);
    return this.#begin === undefined ? tokens : [this.#begin, ...tokens];
  }

  /** Whether `token` marks the end of the text. */
  isEnd(token: number): boolean {
    return this.#ends.has(token);
  }

  /** What stands for `token` in the vocabulary; "" where there is no such token. */
  piece(token: number): string {
    return this.#pieces[token] ?? "";
  }

  /** A function that converts one token after the other to text. It returns characters once they are complete. */
  decoder(): (token: number) => string {
    const decoder = new TextDecoder();
    return (token) =>
      TEXTLESS.has(Number(this.#types[token]))
        ? ""
        : decoder.decode(this.#encoding.bytes(token), { stream: true });
  }
}
