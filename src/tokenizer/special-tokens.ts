/** Special tokens: what they are called, and the keys of the metadata that have their numbers. */

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
