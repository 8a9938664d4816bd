/**
 * How a text is split into words before byte-pair encoding, whose merges never cross the boundary of a word: the rules
 * that `tokenizer.ggml.pre` names. They come from the `tokenizer.json` of these models, with the few differences that
 * llama.cpp has, as models are run by it: letters are never of one case only, unless they are ASCII.
 */
import { GgufError } from "../base/errors";
import { classOf } from "./character-class";

/** A rule. */
export interface WordRule {
  /** Each splits the pieces that the previous one made. */
  splits: readonly Split[];
  /** Whether a whole word that is a token stays one token, whatever the merges are. */
  wholeWords?: true;
  /** Whether a text begins with the model's start token where the metadata does not say. */
  addsBegin?: true;
  /** Whether the models' own tokenizers compose the characters of a text before (NFC), which llama.cpp does not. */
  composes?: true;
  /** Whether tokens are text with U+2581 for a space, and not characters that stand for bytes. */
  plainText?: true;
}

/** Appends the pieces of a text. Joined together, they are the text. */
type Split = (text: string, pieces: string[]) => void;

/**
 * A part of an expression: where what it matches from `at` on ends, or -1. The rules are not regular expressions, since these
 * need a stack that grows with the match, and go back over long runs. Parts never go back, or over the run that they take.
 */
type Part = (text: string, at: number) => number;

/** As many characters of a class as there are, but not more than `most`. */
function run(expression: string, least = 1, most = Number.POSITIVE_INFINITY): Part {
  const isOf = classOf(expression);
  return (text, at) => {
    let end = at;
    let count = 0;
    while (end < text.length && count < most) {
      const code = text.codePointAt(end) as number;
      if (!isOf(code)) break;
      end += code > 0xffff ? 2 : 1;
      count++;
    }
    return count < least ? -1 : end;
  };
}

/** The first of some parts that matches. */
function anyOf(...parts: Part[]): Part {
  return (text, at) => {
    for (const part of parts) {
      const end = part(text, at);
      if (end >= 0) return end;
    }
    return -1;
  };
}

/** One part after the other. */
function both(first: Part, second: Part): Part {
  return (text, at) => {
    const end = first(text, at);
    return end < 0 ? -1 : second(text, end);
  };
}

/** A part that may be missing. */
function maybe(part: Part): Part {
  return (text, at) => Math.max(at, part(text, at));
}

/** A part with or without another one before it. */
function maybeAfter(before: Part, part: Part): Part {
  return anyOf(both(before, part), part);
}

/** The end of a contraction such as "don't"; `lettersOf` makes the letters after the apostrophe small, or leaves them. */
function contraction(lettersOf: (text: string) => string): Part {
  const endings = ["s", "t", "re", "ve", "m", "ll", "d"];
  return (text, at) => {
    if (text[at] !== "'") return -1;
    const after = lettersOf(text.slice(at + 1, at + 3));
    const ending = endings.find((known) => after.startsWith(known));
    return ending === undefined ? -1 : at + 1 + ending.length;
  };
}
const CONTRACTION = contraction((text) => text.toLowerCase());

const SPACE = run(" ", 1, 1);
const LETTERS = run("\\p{L}");
const LETTERS_AND_MARKS = run("[\\p{L}\\p{M}]");
const NUMBERS = run("\\p{N}");
const DIGIT = run("\\p{N}", 1, 1);
const THREE_DIGITS = run("\\p{N}", 1, 3);
const THREE_ASCII_DIGITS = run("[0-9]", 3, 3);
const NEWLINES = run("[\\r\\n]");
/** One character that may stand before the letters of a word. */
const BEFORE = run("[^\\r\\n\\p{L}\\p{N}]", 1, 1);
const SYMBOLS = maybeAfter(SPACE, run("[^\\p{White_Space}\\p{L}\\p{N}]"));

/** White space, as Unicode has it: `\s` of JavaScript has one character more and one less. */
const WHITE_SPACE = run("\\p{White_Space}");
const ONE_SPACE = run("\\p{White_Space}", 1, 1);
/** The last of several spaces belongs to the word after them. */
const SPACES: Part = (text, at) => {
  const end = WHITE_SPACE(text, at);
  return end < 0 || end === text.length || end === at + 1 ? end : end - 1;
};
/** White space up to the last end of a line in it. */
const LINES: Part = (text, at) => {
  let end = WHITE_SPACE(text, at);
  while (end > at && text[end - 1] !== "\n" && text[end - 1] !== "\r") end--;
  return end > at ? end : -1;
};
/** The white space at the end of a text. */
const LAST_SPACES: Part = (text, at) => {
  if (at > 0 && ONE_SPACE(text, at - 1) >= 0) return -1;
  return WHITE_SPACE(text, at) === text.length ? text.length : -1;
};

/** Makes each match of a part a piece, and what is between them. */
function matches(...parts: Part[]): Split {
  const part = anyOf(...parts);
  return (text, pieces) => {
    let end = 0;
    for (let at = 0; at < text.length; ) {
      const after = part(text, at);
      if (after < 0) {
        at += (text.codePointAt(at) as number) > 0xffff ? 2 : 1;
        continue;
      }
      if (at > end) pieces.push(text.slice(end, at));
      pieces.push(text.slice(at, after));
      at = after;
      end = after;
    }
    if (end < text.length) pieces.push(text.slice(end));
  };
}

const GPT2 = matches(
  contraction((text) => text),
  maybeAfter(SPACE, LETTERS),
  maybeAfter(SPACE, NUMBERS),
  ...[SYMBOLS, SPACES],
);

/** The words of tiktoken's vocabularies, which differ in how many digits are in one word. */
const tiktoken = (digits: Part): Split =>
  matches(CONTRACTION, maybeAfter(BEFORE, LETTERS), digits, both(SYMBOLS, maybe(NEWLINES)), LINES, SPACES);

/** Letters that are capital, or have no case, but for ASCII; and those that are small or have none. */
const UPPER = run("(?=\\p{L})[^a-z]");
const LOWER = run("(?=\\p{L})[^A-Z]");
/** Small letters, with capital ones before them, or only capital ones. Those without case are both, and may be the last. */
const CASED: Part = (text, at) => {
  const upper = UPPER(text, at);
  const lower = LOWER(text, Math.max(at, upper));
  if (upper < 0 || lower >= 0) return lower;
  let end = upper;
  while (end > at && /[A-Z]/.test(text[end - 1] as string)) end--;
  return end > at ? end : upper;
};

/** Words that begin with capital letters or have only these, with `end` after them. */
const cased = (digits: Part, end: Part): Split =>
  matches(both(maybeAfter(BEFORE, CASED), end), digits, both(SYMBOLS, maybe(run("[\\r\\n/]"))), ...[LINES, SPACES]);

const digitsFirst = matches(DIGIT);
const threeDigitsFirst = matches(THREE_DIGITS);
const lineEndsFirst = matches(run("[\\r\\n]", 1, 1));
const threeAsciiDigits = matches(THREE_ASCII_DIGITS);

const LLAMA3 = tiktoken(THREE_DIGITS);
const QWEN2 = tiktoken(DIGIT);
const BLOOM = matches(maybeAfter(SPACE, run("[^(\\s|.,!?…。，、।۔،)]")));
/** Spaces, but 512 at once at most, then 256 and so on. */
const FEWER_SPACES: Split = (text, pieces) => {
  const isSpaces = WHITE_SPACE(text, 0) === text.length && LINES(text, 0) < 0;
  let size = isSpaces ? 512 : text.length;
  for (let at = 0; at < text.length; at += size) {
    while (size > text.length - at) size /= 2;
    pieces.push(text.slice(at, at + size));
  }
};
const DEEPSEEK_WORDS = matches(
  both(run(String.raw`[!"#$%&'()*+,\-./:;<=>?@[\\\]^_\x60{|}~]`, 1, 1), run("[A-Za-z]")),
  maybeAfter(run("[^\\r\\n\\p{L}\\p{P}\\p{S}]", 1, 1), LETTERS_AND_MARKS),
  both(maybeAfter(SPACE, run("[\\p{P}\\p{S}]")), maybe(NEWLINES)),
  ...[LINES, SPACES],
);
/** Han, Hiragana and Katakana. */
const JAPANESE = matches(run("[\\u4e00-\\u9fa5\\u3040-\\u30ff]"));
/** From where the scripts of Asia begin, without white space. */
const HAN_AND_HANGUL = matches(run("(?!\\p{White_Space})[\\u0800-\\u9fa5\\uac00-\\ud7ff]"));
/** The letters with case that DeepSeek's first models know: not those of Armenian and Georgian, of mathematics, or newer ones. */
const CASED_LETTERS = run(
  "(?![\\u0560-\\u0588\\u10c7-\\u10ff\\u1c80-\\u1c8a\\u2d00-\\u2d2d\\ua790-\\ua7ff\\uab30-\\uab68\\u{10570}-\\u{105bc}\\u{10d50}-\\u{10d85}\\u{16e40}-\\u{16ed3}\\u{1d400}-\\u{1df2a}])[\\p{Lu}\\p{Ll}\\p{Lt}]|\\u0295",
);

/** Each rule with its names. */
const RULES: readonly [names: string, rule: WordRule][] = [
  [
    "gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert exaone4 jina-v1-en jina-v2-code roberta-bpe mpt olmo jais trillion granite-docling",
    { splits: [GPT2] },
  ],
  [
    "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
    { splits: [LLAMA3], wholeWords: true, addsBegin: true },
  ],
  ["dbrx smaug-bpe chatglm-bpe", { splits: [LLAMA3] }],
  ["glm4", { splits: [LLAMA3], wholeWords: true }],
  ["qwen2", { splits: [QWEN2], composes: true }],
  [
    "deepseek-r1-qwen kormo f2llmv2 stablelm2 megrez hunyuan solar-open grok-2 bailingmoe bailingmoe2 llada-moe",
    { splits: [QWEN2] },
  ],
  [
    "qwen35",
    {
      composes: true,
      splits: [
        matches(
          CONTRACTION,
          maybeAfter(BEFORE, LETTERS_AND_MARKS),
          DIGIT,
          both(maybeAfter(SPACE, run("[^\\p{White_Space}\\p{L}\\p{M}\\p{N}]")), maybe(NEWLINES)),
          ...[LINES, SPACES],
        ),
      ],
    },
  ],
  ["smollm starcoder refact command-r codeshell exaone minerva-7b", { splits: [digitsFirst, GPT2] }],
  [
    "deepseek-llm",
    {
      splits: [
        lineEndsFirst,
        matches(maybeAfter(ONE_SPACE, CASED_LETTERS)),
        matches(maybeAfter(ONE_SPACE, run("[!-/:-~\\uff01-\\uff0f\\uff1a-\\uff5e\\u2018-\\u201f\\u3001\\u3002]"))),
        matches(LAST_SPACES),
        HAN_AND_HANGUL,
        matches(NUMBERS),
      ],
    },
  ],
  [
    "deepseek-coder",
    {
      splits: [
        lineEndsFirst,
        matches(maybeAfter(ONE_SPACE, LETTERS)),
        matches(maybeAfter(ONE_SPACE, run("\\p{P}"))),
        HAN_AND_HANGUL,
        digitsFirst,
      ],
    },
  ],
  ["deepseek-v3 hunyuan-dense joyai-llm", { splits: [threeDigitsFirst, JAPANESE, DEEPSEEK_WORDS] }],
  ["falcon", { splits: [matches(run(String.raw`[\p{P}$+<=>^~|\x60]`)), GPT2, threeAsciiDigits] }],
  ["default", { splits: [matches(run("[\\p{P}$+<=>^~|]")), GPT2, matches(NUMBERS), threeAsciiDigits] }],
  ["poro-chat bloom gpt3-finnish", { splits: [BLOOM] }],
  ["viking", { splits: [BLOOM, digitsFirst] }],
  ["tekken", { splits: [cased(DIGIT, (_, at) => at)], wholeWords: true, addsBegin: true }],
  ["gpt-4o llama4 kanana2 minimax-m2", { splits: [cased(THREE_DIGITS, maybe(CONTRACTION))] }],
  ["jais-2", { splits: [LLAMA3, FEWER_SPACES] }],
  ["seed-coder", { splits: [matches(CONTRACTION, maybeAfter(BEFORE, LETTERS), DIGIT, SYMBOLS, LINES, SPACES)] }],
  ["gemma4", { splits: [matches(run("[^\\n]"), run("\\n"))], plainText: true, addsBegin: true }],
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
export function words(text: string, { splits }: WordRule): string[] {
  let pieces = [text];
  for (const split of splits) {
    const smaller: string[] = [];
    for (const piece of pieces) split(piece, smaller);
    pieces = smaller;
  }
  return pieces;
}
