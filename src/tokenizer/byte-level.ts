/** Vocabularies of the kind `gpt2`: byte-level BPE, with a list of merges. */
import { type Encoding, mergePairs, utf8Bytes, type Vocabulary } from "./encoding";

const CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d";
const GPT2_WORDS = new RegExp(
  `${CONTRACTIONS}| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+`,
  "gu",
);

/** How a text is split into words. Merges never cross the boundary of a word. */
export interface WordRule {
  /** Each expression splits the pieces that the previous one made. */
  expressions: readonly RegExp[];
  /** Whether a whole word that is a token stays one token, whatever the merges are. */
  wholeWords?: boolean;
}

/** The words of newer vocabularies. They differ in how many digits are in one word. */
const TIKTOKEN_WORDS = (digits: string): RegExp =>
  new RegExp(
    `(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`,
    "gu",
  );

/** By `tokenizer.ggml.pre`. New vocabularies have their own rules, so this list is never complete. */
const WORD_RULES: Readonly<Record<string, WordRule>> = {
  "gpt-2": { expressions: [GPT2_WORDS] },
  smollm: { expressions: [/\p{N}/gu, GPT2_WORDS] },
  "llama-bpe": { expressions: [TIKTOKEN_WORDS("\\p{N}{1,3}")], wholeWords: true },
  qwen2: { expressions: [TIKTOKEN_WORDS("\\p{N}")] },
};

/** The rule with a name. @throws Error if it is not known */
export function wordRule(pre: string): WordRule {
  const rule = Object.hasOwn(WORD_RULES, pre) ? WORD_RULES[pre] : undefined;
  if (rule !== undefined) return rule;
  const known = Object.keys(WORD_RULES).join(", ");
  throw new Error(`text is split into words as ${known} do, not as ${pre} does`);
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

/** The character for each byte in these vocabularies: the byte if it is visible, else the next one from 256 on. */
const BYTE_CHARACTERS: readonly string[] = byteCharacters();

function byteCharacters(): string[] {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const visible = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
    return String.fromCharCode(visible ? byte : next++);
  });
}

/** Within each word, repeatedly joins the pair that comes first in the list of merges. */
export function byteLevelEncoding({ metadata, tokens, ids }: Vocabulary): Encoding {
  const rule = wordRule(metadata.string("tokenizer.ggml.pre") ?? "gpt-2");
  const merges = metadata.strings("tokenizer.ggml.merges");
  if (merges === undefined) throw new Error("the vocabulary has no merges, but its kind (gpt2) needs them");
  const ranks = new Map(merges.map((pair, rank) => [pair, rank]));
  const byteOf = new Map(BYTE_CHARACTERS.map((character, byte) => [character, byte]));

  const symbolsOf = (word: string): string[] => {
    const symbols = Array.from(utf8Bytes(word), (byte) => BYTE_CHARACTERS[byte] as string);
    const whole = symbols.join("");
    if (rule.wholeWords && ids.has(whole)) return [whole];
    return mergePairs(symbols, (left, right) => ranks.get(`${left} ${right}`));
  };
  return {
    encode: (text) =>
      words(text, rule)
        .flatMap(symbolsOf)
        .map((symbol) => {
          const id = ids.get(symbol);
          if (id === undefined) throw new Error(`the vocabulary has no token for '${symbol}'`);
          return id;
        }),
    // Tokens that were added to the vocabulary later are plain text.
    bytes: (token) =>
      Uint8Array.from(
        Array.from(tokens[token] ?? "").flatMap(
          (character) => byteOf.get(character) ?? [...utf8Bytes(character)],
        ),
      ),
  };
}
