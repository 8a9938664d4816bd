/**
 * How a text is split into words before byte-pair encoding, whose merges never cross the boundary of a word: the rules
 * that `tokenizer.ggml.pre` names. They come from the `tokenizer.json` of these models, with the few differences that
 * llama.cpp has, as models are run by it: letters are never of one case only, unless they are ASCII.
 */
import { GgufError } from "../base/errors";

/** A rule. */
export interface WordRule {
  /** Each expression splits the pieces that the previous one made. */
  expressions: readonly RegExp[];
  /** Whether a whole word that is a token stays one token, whatever the merges are. */
  wholeWords?: true;
  /** Whether a text begins with the model's start token where the metadata does not say. */
  addsBegin?: true;
  /** Whether tokens are text with U+2581 for a space, and not characters that stand for bytes. */
  plainText?: true;
}

/** White space, as Unicode has it: `\s` of JavaScript has one character more and one less. */
const W = "\\p{White_Space}";
const CONTRACTION = "'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]";
/** One character that may stand before the letters of a word. */
const BEFORE = "[^\\r\\n\\p{L}\\p{N}]?";
const SYMBOLS = ` ?[^${W}\\p{L}\\p{N}]+`;
/** The last of several spaces belongs to the word after them. */
const SPACES = `${W}+(?!\\P{White_Space})|${W}+`;
const LINES = `${W}*[\\r\\n]+|${SPACES}`;

const anyOf = (...alternatives: string[]): RegExp => new RegExp(alternatives.join("|"), "gu");

const GPT2 = anyOf("'s|'t|'re|'ve|'m|'ll|'d", " ?\\p{L}+", " ?\\p{N}+", SYMBOLS, SPACES);

/** The words of tiktoken's vocabularies, which differ in how many digits are in one word. */
const tiktoken = (digits: string, spaces = LINES): RegExp =>
  anyOf(CONTRACTION, `${BEFORE}\\p{L}+`, digits, `${SYMBOLS}[\\r\\n]*`, spaces);

/** Words that begin with capital letters or have only these, with `end` after them. */
const cased = (letter: string, digits: string, end = ""): RegExp => {
  const upper = `(?:(?=${letter})[^a-z])`;
  const lower = `(?:(?=${letter})[^A-Z])`;
  const words = [`${BEFORE}${upper}*${lower}+${end}`, `${BEFORE}${upper}+${lower}*${end}`];
  return anyOf(...words, digits, `${SYMBOLS}[\\r\\n/]*`, LINES);
};

const DIGIT = "\\p{N}";
const THREE_DIGITS = "\\p{N}{1,3}";
const digitsFirst = /\p{N}/gu;
const threeDigitsFirst = /\p{N}{1,3}/gu;

const LLAMA3 = tiktoken(THREE_DIGITS);
const QWEN2 = tiktoken(DIGIT);
const ANY_CASE_4O = `(?:${CONTRACTION})?`;
const BLOOM = / ?[^(\s|.,!?…。，、।۔،)]+/gu;
/** Spaces, but 512 at once at most, then 256 and so on. */
const JAIS2_SPACES = [512, 256, 128, 64, 32, 16, 8, 4]
  .map((n) => `${W}{${n}}(?!\\P{White_Space})`)
  .concat(`${W}{1,2}(?!\\P{White_Space})|${W}`)
  .join("|");
const DEEPSEEK_WORDS = anyOf(
  "[!\"#$%&'()*+,\\-.\\/:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+",
  "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+",
  ` ?[\\p{P}\\p{S}]+[\\r\\n]*`,
  LINES,
);
/** Han, Hiragana and Katakana. */
const JAPANESE = /[\u4e00-\u9fa5\u3040-\u30ff]+/gu;
/** From where the scripts of Asia begin, without white space. */
const HAN_AND_HANGUL = /(?:(?!\p{White_Space})[\u0800-\u9fa5\uac00-\ud7ff])+/gu;
/** The letters with case that DeepSeek's first models know: not those of Armenian and Georgian, of mathematics, or newer ones. */
const CASED_LETTER =
  "(?:(?![\\u0560-\\u0588\\u10c7-\\u10ff\\u1c80-\\u1c8a\\u2d00-\\u2d2d\\ua790-\\ua7ff\\uab30-\\uab68\\u{10570}-\\u{105bc}\\u{10d50}-\\u{10d85}\\u{16e40}-\\u{16ed3}\\u{1d400}-\\u{1df2a}])[\\p{Lu}\\p{Ll}\\p{Lt}]|\\u0295)";
const PUNCTUATION = "\\p{P}$+<=>^~\\|";

/** Each rule with its names. */
const RULES: readonly [names: string, rule: WordRule][] = [
  [
    "gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert exaone4 jina-v1-en jina-v2-code roberta-bpe mpt olmo jais trillion granite-docling",
    { expressions: [GPT2] },
  ],
  [
    "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
    { expressions: [LLAMA3], wholeWords: true, addsBegin: true },
  ],
  ["dbrx smaug-bpe chatglm-bpe", { expressions: [LLAMA3] }],
  ["glm4", { expressions: [LLAMA3], wholeWords: true }],
  [
    "qwen2 deepseek-r1-qwen kormo f2llmv2 stablelm2 megrez hunyuan solar-open grok-2",
    { expressions: [QWEN2] },
  ],
  [
    "qwen35",
    {
      expressions: [
        anyOf(CONTRACTION, `${BEFORE}[\\p{L}\\p{M}]+`, DIGIT, ` ?[^${W}\\p{L}\\p{M}\\p{N}]+[\\r\\n]*`, LINES),
      ],
    },
  ],
  ["smollm starcoder refact command-r codeshell exaone minerva-7b", { expressions: [digitsFirst, GPT2] }],
  [
    "deepseek-llm",
    {
      expressions: [
        /[\r\n]/gu,
        new RegExp(`${W}?${CASED_LETTER}+`, "gu"),
        new RegExp(`${W}?[!-/:-~\\uff01-\\uff0f\\uff1a-\\uff5e\\u2018-\\u201f\\u3001\\u3002]+`, "gu"),
        // Only from where the spaces begin, or long runs of them would take forever.
        new RegExp(`(?<!${W})${W}+$`, "gu"),
        HAN_AND_HANGUL,
        /\p{N}+/gu,
      ],
    },
  ],
  [
    "deepseek-coder",
    {
      expressions: [
        /[\r\n]/gu,
        new RegExp(`${W}?\\p{L}+`, "gu"),
        new RegExp(`${W}?\\p{P}+`, "gu"),
        HAN_AND_HANGUL,
        digitsFirst,
      ],
    },
  ],
  ["deepseek-v3 hunyuan-dense joyai-llm", { expressions: [threeDigitsFirst, JAPANESE, DEEPSEEK_WORDS] }],
  ["falcon", { expressions: [new RegExp(`[${PUNCTUATION}\`]+`, "gu"), GPT2, /[0-9]{3}/gu] }],
  ["default", { expressions: [new RegExp(`[${PUNCTUATION}]+`, "gu"), GPT2, /\p{N}+/gu, /[0-9]{3}/gu] }],
  ["poro-chat bloom gpt3-finnish", { expressions: [BLOOM] }],
  ["viking", { expressions: [BLOOM, digitsFirst] }],
  ["tekken", { expressions: [cased("\\p{L}", DIGIT)], wholeWords: true, addsBegin: true }],
  ["gpt-4o llama4 kanana2 minimax-m2", { expressions: [cased("\\p{L}", THREE_DIGITS, ANY_CASE_4O)] }],
  ["jais-2", { expressions: [tiktoken(THREE_DIGITS, `${W}*[\\r\\n]+|${JAIS2_SPACES}`)] }],
  ["bailingmoe bailingmoe2 llada-moe", { expressions: [tiktoken(DIGIT, `${W}*[\\r\\n]|${SPACES}`)] }],
  [
    "seed-coder",
    { expressions: [anyOf(CONTRACTION, `${BEFORE}\\p{L}+`, DIGIT, ` ?[^${W}\\p{L}\\p{N}\\r\\n]+`, LINES)] },
  ],
  ["gemma4", { expressions: [/[^\n]+|\n+/gu], plainText: true, addsBegin: true }],
];

const WORD_RULES: ReadonlyMap<string, WordRule> = new Map(
  RULES.flatMap(([names, rule]) => names.split(" ").map((name): [string, WordRule] => [name, rule])),
);

/** The names of all rules, as `tokenizer.ggml.pre` has them. */
export const wordRuleNames: readonly string[] = [...WORD_RULES.keys()];

/** The rule with a name. @throws GgufError ERR_GGUF_UNSUPPORTED_TYPE if it is not known */
export function wordRule(name: string): WordRule {
  const rule = WORD_RULES.get(name);
  if (rule !== undefined) return rule;
  const detail = `the vocabulary splits text into words by the rule '${name}', which is not known here: known are ${wordRuleNames.join(", ")}`;
  throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail);
}

/** Splits a text into words. Joined together, they are the text. */
export function words(text: string, { expressions }: WordRule): string[] {
  return expressions.reduce(
    (pieces, expression) => pieces.flatMap((piece) => cut(piece, expression)),
    [text],
  );
}

/** The matches of `expression` and the pieces between them, in order. */
function cut(text: string, expression: RegExp): string[] {
  const pieces: string[] = [];
  let end = 0;
  for (const { 0: match, index } of text.matchAll(expression)) {
    if (index > end) pieces.push(text.slice(end, index));
    pieces.push(match);
    end = index + match.length;
  }
  if (end < text.length) pieces.push(text.slice(end));
  return pieces;
}
