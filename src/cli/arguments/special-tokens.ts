/** Special tokens that `set --token` names, by their texts. */
import { didYouMean } from "../../base/suggest";
import { vocabularyTokens } from "../../describe/vocabulary";
import type { GgufMetadata } from "../../index";
import { SPECIAL_TOKENS, tokenIdKey } from "../../tokenizer/special-tokens";
import type { Change } from "./metadata-changes";
import { UsageError } from "./parse";

/** What they may be called. */
const KNOWN = [
  ...[...SPECIAL_TOKENS, "eot", "eom"],
  ...["fim-pre", "fim-suf", "fim-mid", "fim-pad", "fim-rep", "fim-sep"],
];

/** Checks NAME=TEXT of each. */
export function specialTokens(values: readonly string[] = []): { key: string; text: string }[] {
  return values.map((value) => {
    const [, name = "", text] = /^([^=]*)=(.+)$/s.exec(value) ?? [];
    if (text === undefined) throw new UsageError(`--token must be NAME=TEXT, not '${value}'`);
    if (!KNOWN.includes(name)) {
      throw new UsageError(`--token: no special token is '${name}': ${KNOWN.join(", ")}${didYouMean(name, KNOWN)}`);
    }
    return { key: tokenIdKey(name.replace("-", "_")), text };
  });
}

/**
 * The changes that give special tokens their numbers.
 * @throws UsageError for a text that no token has, or several
 */
export function tokenChanges(
  metadata: GgufMetadata,
  tokens: readonly { readonly key: string; readonly text: string }[],
): Change[] {
  if (tokens.length === 0) return [];
  const wanted = tokens.map(({ text }) => Buffer.from(text));
  const ids = tokens.map((): number[] => []);
  for (const { id, bytes } of vocabularyTokens(metadata)) {
    for (const [i, text] of wanted.entries()) if (text.equals(bytes)) ids[i]?.push(id);
  }
  return tokens.map(({ key, text }, i): Change => {
    const [id, other] = ids[i] as number[];
    if (id === undefined) throw new UsageError(`--token: no token of the vocabulary is '${text}'`);
    if (other !== undefined) {
      throw new UsageError(`--token: '${text}' is token ${id} and token ${other}: set ${key} to one of them`);
    }
    return [key, { value: id }];
  });
}
