/** Special tokens that `set --token` names, by their texts. */
import { didYouMean } from "../../base/suggest";
import { vocabularyTokens } from "../../describe/vocabulary";
import type { GgufMetadata } from "../../index";
import type { Change } from "./metadata-changes";
import { UsageError } from "./parse";

/** What the keys of special tokens are called, in part otherwise than the tokens are. */
const KEYS: Readonly<Record<string, string>> = {
  ...{
    bos: "bos",
    eos: "eos",
    eot: "eot",
    eom: "eom",
    unk: "unknown",
    pad: "padding",
    mask: "mask",
    cls: "cls",
  },
  sep: "seperator", // misspelt in every file
  ...{ "fim-pre": "fim_pre", "fim-suf": "fim_suf", "fim-mid": "fim_mid" },
  ...{ "fim-pad": "fim_pad", "fim-rep": "fim_rep", "fim-sep": "fim_sep" },
};

/** Checks NAME=TEXT of each. */
export function specialTokens(values: readonly string[] = []): { key: string; text: string }[] {
  return values.map((value) => {
    const [, name = "", text] = /^([^=]*)=(.+)$/s.exec(value) ?? [];
    if (text === undefined) throw new UsageError(`--token must be NAME=TEXT, not '${value}'`);
    if (!Object.hasOwn(KEYS, name)) {
      const known = Object.keys(KEYS);
      throw new UsageError(
        `--token: no special token is '${name}': ${known.join(", ")}${didYouMean(name, known)}`,
      );
    }
    return { key: `tokenizer.ggml.${KEYS[name]}_token_id`, text };
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
