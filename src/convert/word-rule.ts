/** Which of llama.cpp's rules for words (`tokenizer.ggml.pre`) the pre-tokenizer of a `tokenizer.json` is. */
import { GgufError } from "../base/errors";
import { type Component, componentsOf, type TokenizerJson } from "./tokenizer-json";

const CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const SPACES = "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const UPPER = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]";
const LOWER = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]";
const BEFORE = "[^\\r\\n\\p{L}\\p{N}]?";

const tiktoken = (digits: string): string =>
  `${CONTRACTIONS}|${BEFORE}\\p{L}+|${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${SPACES}`;
const cased = (digits: string, end = ""): string =>
  `${BEFORE}${UPPER}*${LOWER}+${end}|${BEFORE}${UPPER}+${LOWER}*${end}|${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|${SPACES}`;

/** What splits a text, in order: expressions, digits one by one, the expression of GPT-2. */
const RULES: ReadonlyMap<string, string> = new Map([
  [tiktoken("\\p{N}{1,3}"), "llama-bpe"],
  [tiktoken("\\p{N}"), "qwen2"],
  ["digits gpt-2", "smollm"],
  ["gpt-2", "gpt-2"],
  [cased("\\p{N}"), "tekken"],
  [cased("\\p{N}{1,3}", `${CONTRACTIONS}?`), "gpt-4o"],
]);

function partOf(component: Component): string {
  const { type, pattern, individual_digits: one, use_regex: usesExpression } = component;
  if (type === "Split") {
    const expression = (pattern as { Regex?: unknown } | null | undefined)?.Regex;
    return typeof expression === "string" ? expression : "a text";
  }
  if (type === "Digits") return one === true ? "digits" : "runs of digits";
  if (type === "ByteLevel") return usesExpression === false ? "" : "gpt-2";
  return typeof type === "string" ? type : "no type";
}

/**
 * The name of the rule.
 * @throws GgufError ERR_GGUF_UNSUPPORTED_TYPE for one that is not known: with the wrong words a model works, but badly
 */
export function wordRuleOf({ pre_tokenizer: given }: TokenizerJson, path: string): string {
  const rule = componentsOf(given, "pretokenizers").map(partOf).filter(Boolean).join(" ");
  const name = RULES.get(rule);
  if (name !== undefined) return name;
  const detail = `its rule for words is not known: ${JSON.stringify(rule.slice(0, 300))}; name it with wordRule`;
  throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail, { path });
}
