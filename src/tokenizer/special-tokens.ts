/** Special tokens: what they are called, the keys of the metadata that have their numbers; types of tokens. */

/** Those that transformers knows, which calls them `bos_token` and so on. */
export const SPECIAL_TOKENS: readonly string[] = ["bos", "eos", "unk", "sep", "pad", "cls", "mask"];

/** Those that keys call otherwise. */
const NAMES: ReadonlyMap<string, string> = new Map([
  ["unk", "unknown"],
  ["sep", "seperator"], // misspelt in every file
  ["pad", "padding"],
]);

/** The key of a token by its short name, such as `bos`, `unk` or `fim_pre`. */
export function tokenIdKey(name: string): string {
  return `tokenizer.ggml.${NAMES.get(name) ?? name}_token_id`;
}

/** The numbers that tokens have where the metadata does not say, by the kind of the vocabulary. */
const DEFAULT_IDS: ReadonlyMap<string, Readonly<Record<string, number>>> = new Map([
  ["llama", { bos: 1, eos: 2 }],
  ["bert", { bos: 101, sep: 102 }],
  ["t5", { eos: 1 }],
  ["plamo2", { bos: 1, eos: 2 }],
]);

/** The number of a token by its short name in a vocabulary of this kind that does not say it; undefined for none. */
export function defaultTokenId(kind: string | undefined, name: string): number | undefined {
  return DEFAULT_IDS.get(kind ?? "")?.[name];
}

/** The numbers of `tokenizer.ggml.token_type`, which are those of SentencePiece. `user`: defined by a user. */
export const TOKEN_TYPES = { normal: 1, unknown: 2, control: 3, user: 4, unused: 5, byte: 6 } as const;
