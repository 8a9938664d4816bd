/**
 * Converts text to tokens and back, with the vocabulary of the model's file: for the command line and the examples, and
 * not part of the package's interface, as it supports few of the vocabularies that there are. It knows two kinds of
 * vocabulary, which `tokenizer.ggml.model` names: `llama` (SentencePiece's pieces with scores) and `gpt2` (byte-level
 * BPE).
 *
 * Control tokens in texts are not known: `<|im_start|>` is read as ordinary text. User-defined tokens, such as Gemma's
 * `<b>` and runs of spaces and newlines, are found before anything else is done with a text.
 */

import { Decoder } from "../base/text-decoder";
import type { GgufMetadata } from "../file/metadata";
import { byteLevelEncoding } from "./byte-level";
import type { Encoding } from "./encoding";
import { sentencePieceEncoding } from "./sentence-piece";

/** Values of `tokenizer.ggml.token_type`. */
const CONTROL = 3;
const USER_DEFINED = 4;

/** The types of tokens without text: unknown and control. */
const TEXTLESS = new Set([2, CONTROL]);

/** Control tokens that end a text, whether the metadata says so or not: what llama.cpp knows by their names. */
const ENDS = new Set([
  ...["<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>"],
  ...["<end_of_turn>", "<end_of_utterance>"],
]);

export class Tokenizer {
  readonly #encoding: Encoding;
  readonly #pieces: readonly string[];
  readonly #types: ArrayLike<number | bigint>;
  readonly #begin: number | undefined;
  readonly #ends: ReadonlySet<number>;
  /** Tokens whose text is one token wherever it is, the longest first. */
  readonly #userDefined: readonly { id: number; text: string }[];

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
    const ends = ["eos", "eot", "eom"].map((name) => metadata.number(`tokenizer.ggml.${name}_token_id`));
    this.#ends = new Set([
      ...ends.filter((id) => id !== undefined),
      ...this.#ofType(CONTROL).flatMap(({ id, text }) => (ENDS.has(text) ? [id] : [])),
    ]);
    this.#userDefined = this.#ofType(USER_DEFINED)
      .filter(({ text }) => text !== "")
      .sort((a, b) => b.text.length - a.text.length);
  }

  /** The tokens of a text. If the model requires it, the token that marks the beginning comes first. */
  encode(text: string): number[] {
    let pieces: (string | number)[] = [text];
    for (const { id, text: part } of this.#userDefined) {
      if (!text.includes(part)) continue;
      pieces = pieces.flatMap((piece) => (typeof piece === "string" ? separated(piece, part, id) : [piece]));
    }
    const tokens = pieces.flatMap((piece) =>
      typeof piece === "string" ? this.#encoding.encode(piece) : [piece],
    );
    return this.#begin === undefined ? tokens : [this.#begin, ...tokens];
  }

  /** The tokens of a type of `tokenizer.ggml.token_type`. */
  #ofType(type: number): { id: number; text: string }[] {
    return this.#pieces.flatMap((text, id) => (Number(this.#types[id]) === type ? [{ id, text }] : []));
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
    const decoder = new Decoder();
    return (token) =>
      TEXTLESS.has(Number(this.#types[token]))
        ? ""
        : decoder.decode(this.#encoding.bytes(token), { stream: true });
  }
}

/** The pieces of a text between those that equal `part`, and `id` in place of these. */
function separated(text: string, part: string, id: number): (string | number)[] {
  return text.split(part).flatMap((piece, i) => [...(i === 0 ? [] : [id]), ...(piece === "" ? [] : [piece])]);
}
