/** Vocabularies of the kind `gpt2`: byte-level BPE, with a list of merges. */
import { type Encoding, mergePairs, type Vocabulary } from "./encoding";

const CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d";
const GPT2_WORDS = new RegExp(
  `${CONTRACTIONS}| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+`,
  "gu",
);

/** How a text is cut into words, between which nothing is merged. */
export interface WordRule {
  /** Every expression cuts what the one before it left. */
  expressions: readonly RegExp[];
  /** Whether a word that is a token as a whole is left whole, whatever the merges say. */
  wholeWords?: boolean;
}

/** By `tokenizer.ggml.pre`. Each new vocabulary brings a rule of its own, so this list can never be complete. */
const WORD_RULES: Readonly<Record<string, WordRule>> = {
  "gpt-2": { expressions: [GPT2_WORDS] },
  smollm: { expressions: [/\p{N}/gu, GPT2_WORDS] },
  "llama-bpe": {
    expressions: [
      /(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+/gu,
    ],
    wholeWords: true,
  },
};

/** @throws Error for a rule that is not known here */
export function wordRule(pre: string): WordRule {
  const rule = Object.hasOwn(WORD_RULES, pre) ? WORD_RULES[pre] : undefined;
  if (rule !== undefined) return rule;
  const known = Object.keys(WORD_RULES).join(", ");
  throw new Error(`this example cuts text into words as ${known} do, not as ${pre} does`);
}

/** Cuts a text into words, which together are the text. */
export function words(text: string, { expressions }: WordRule): string[] {
  return expressions.reduce(
    (pieces, expression) => pieces.flatMap((piece) => cut(piece, expression)),
    [text],
  );
}

/** The matches of `expression` and what lies between them, in order. */
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

/** The character that stands for each byte in such vocabularies: itself if it is visible, otherwise one from 256 on. */
const BYTE_CHARACTERS: readonly string[] = byteCharacters();

function byteCharacters(): string[] {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const visible = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
    return String.fromCharCode(visible ? byte : next++);
  });
}

/** Joins the pair that comes first in the list of merges, over and over, within each word. */
export function byteLevelEncoding({ metadata, tokens, ids }: Vocabulary): Encoding {
  const rule = wordRule(metadata.string("tokenizer.ggml.pre") ?? "gpt-2");
  const merges = metadata.strings("tokenizer.ggml.merges");
  if (merges === undefined) throw new Error("the vocabulary has no merges, which its kind (gpt2) needs");
  const ranks = new Map(merges.map((pair, rank) => [pair, rank]));
  const byteOf = new Map(BYTE_CHARACTERS.map((character, byte) => [character, byte]));

  const symbolsOf = (word: string): string[] => {
    const symbols = Array.from(Buffer.from(word), (byte) => BYTE_CHARACTERS[byte]!);
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
          if (id === undefined) throw new Error(`the vocabulary lacks a token for '${symbol}'`);
          return id;
        }),
    // Tokens that were added to the vocabulary later are plain text.
    bytes: (token) =>
      Buffer.concat(
        Array.from(tokens[token] ?? "", (character) => {
          const byte = byteOf.get(character);
          return byte === undefined ? Buffer.from(character) : Uint8Array.of(byte);
        }),
      ),
  };
}
