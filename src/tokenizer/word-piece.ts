/** Vocabularies of the kind `bert`: WordPiece, where the first piece of a word begins with U+2581. */
import { utf8 } from "../base/text-decoder";
import { type Class, classOf } from "./character-class";
import { type Encoding, type Normalization, SPACE, type Vocabulary } from "./encoding";
import { Pieces } from "./pieces";
import { tokenIdKey } from "./special-tokens";

const HAN = classOf(
  "[\\u4e00-\\u9fff\\u3400-\\u4dbf\\u{20000}-\\u{2a6df}\\u{2a700}-\\u{2b73f}\\u{2b740}-\\u{2b81f}\\u{2b920}-\\u{2ceaf}\\uf900-\\ufaff\\u{2f800}-\\u{2fa1f}]",
);
const SYMBOLS = "\\p{P}$+<=>^`|~";
const SYMBOL = classOf(`[${SYMBOLS}]`);
/** Characters that are words of their own: punctuation, ASCII symbols and Han. */
const ALONE: Class = (code) => SYMBOL(code) || HAN(code);
const WHITE_SPACE = classOf("\\p{White_Space}");
const LEFT_OUT = classOf("[\\p{Cc}\\p{Cf}\\p{Co}\\p{Cs}\ufffd]");
const ACCENT = classOf("\\p{M}");

/**
 * The library with which these models are trained, tokenizers, knows categories of characters as of Unicode 8. What came later,
 * or was something else, is neither punctuation nor an accent nor a format for it. The ranges also have characters that are none
 * of these in any version.
 */
const UNKNOWN_CATEGORY =
  "61d 7fd 890-8e2 9fd-9fe a76 afa-aff b55 c04-c3c c77 c84 d00 d3b-d3c d81 eba ece 180f-1886 1abf-1aeb 1b4e-1b4f " +
  "1b7d-1b7f 1df6-1dfb 2e43-2e5d a82c a8c5 a8ff a9bd 10d24-10f89 11070-11074 110c2-110cd 111c9 111cf 1123e-11241 " +
  "1133b 113bb-1145e 11660-1166c 116b9 1182f-11fff 12ff1-1612f 16d6d-16f4f 16fe2-16fe4 1cf00-1cf46 1e000-1e6f5 " +
  "1e944-1e95f";
const escaped = (ranges: string): string => ranges.replace(/[0-9a-f]+/g, "\\u{$&}").replaceAll(" ", "");
const inUnicode8 = (members: string, others: string): Class =>
  classOf(`(?![${escaped(UNKNOWN_CATEGORY)}])[${members}]|[${escaped(others)}]`);
const PUNCTUATION = inUnicode8(SYMBOLS, "166d 111c9");
const CONTROL = inUnicode8("\\p{Cc}\\p{Cf}\\p{Co}", "fffd");
const MARK = inUnicode8("\\p{Mn}", "1734 1171e");

/** Longer words are unknown to the models' own tokenizers. */
const LONGEST_WORD = 100;

/**
 * Repeatedly takes the longest piece that a word begins with. A word that has no such pieces is one unknown token. Where the
 * metadata does not say whether a model knows capital letters, llama.cpp takes it that it does not; else its pieces tell.
 */
export function wordPieceEncoding({ metadata, tokens, normalization }: Vocabulary): Encoding {
  const isModel = normalization === "model";
  const unknown = metadata.number(tokenIdKey("unk")) ?? 100;
  const lowercase = metadata.boolean("tokenizer.ggml.normalizer.lowercase") ?? !(isModel && hasCapitals(tokens));
  const stripAccents = metadata.boolean("tokenizer.ggml.normalizer.strip_accents") ?? lowercase;
  const pieces = new Pieces(tokens);
  const { prepare, isAlone } = RULES[normalization];
  /** Appends the longest piece. Returns its length, which is 0 for none. */
  const addPiece = (word: string, from: number, found: number[]): number => {
    let longest = 0;
    let piece = unknown;
    // Before a piece, U+2581 begins a word. So one that a text has is found inside of a word as a piece of its own only.
    const isSpace = isModel && word[from] === SPACE;
    pieces.forEachAt(word, from, (id, length) => {
      if (isSpace && (length === 1) !== from > 0) return;
      longest = length;
      piece = id;
    });
    found.push(piece);
    return longest;
  };

  const addPieces = (word: string, found: number[]): void => {
    const before = found.length;
    const isLong = isModel && hasMoreCharacters(word, LONGEST_WORD + 1);
    for (let from = 0; from < word.length; ) {
      const length = isLong ? 0 : addPiece(word, from, found);
      from += length;
      if (length > 0) continue;
      found.length = before;
      found.push(unknown);
      return;
    }
  };
  return {
    encode(text, found) {
      for (const word of wordsOf(prepare(text, lowercase, stripAccents), isAlone)) addPieces(word, found);
    },
    bytes: (token) => utf8((tokens[token] ?? "").replace(SPACE, " ")),
  };
}

/** How a kind of text becomes words: each of a text that is prepared, cut at white space and at what stands alone. */
interface Rule {
  prepare(text: string, lowercase: boolean, stripAccents: boolean): string;
  isAlone: Class;
}

const RULES: Readonly<Record<Normalization, Rule>> = {
  "llama.cpp": { prepare: asInLlamaCpp, isAlone: ALONE },
  model: { prepare: asInTraining, isAlone: PUNCTUATION },
};

/** Character by character. */
function asInLlamaCpp(text: string, lowercase: boolean, stripAccents: boolean): string {
  const prepared: string[] = [];
  for (const given of text) {
    const character = stripAccents ? baseOf(given) : given;
    const code = character.codePointAt(0) as number;
    if (!WHITE_SPACE(code) && (LEFT_OUT(code) || (stripAccents && ACCENT(code)))) continue;
    prepared.push(lowercase ? character.toLowerCase() : character);
  }
  return prepared.join("");
}

/** The whole text, step by step: BERT's own normalization. */
function asInTraining(text: string, lowercase: boolean, stripAccents: boolean): string {
  const clean: string[] = [];
  for (const character of text) {
    const code = character.codePointAt(0) as number;
    if (HAN(code)) clean.push(" ", character, " ");
    else if (!CONTROL(code) || "\t\n\r".includes(character)) clean.push(character);
  }
  let prepared = clean.join("");
  if (stripAccents) {
    const isBase = (character: string): boolean => !MARK(character.codePointAt(0) as number);
    prepared = Array.from(prepared.normalize("NFD")).filter(isBase).join("");
  }
  // A sigma at the end of a word has another small letter, which these models do not use.
  return lowercase ? prepared.replaceAll("\u03a3", "\u03c3").toLowerCase() : prepared;
}

/** The words of a prepared text, with U+2581 before them. */
function* wordsOf(text: string, isAlone: Class): Generator<string, void, undefined> {
  // A string that grows by one character after the other is a rope: each look into it may go through all of it.
  let word = [SPACE];
  for (const character of text) {
    const code = character.codePointAt(0) as number;
    const alone = isAlone(code);
    const ends = alone || WHITE_SPACE(code);
    if (ends && word.length > 1) {
      yield word.join("");
      word = [SPACE];
    }
    if (alone) yield SPACE + character;
    else if (!ends) word.push(character);
  }
  if (word.length > 1) yield word.join("");
}

/** A character without its accents: what its canonical decomposition begins with. */
function baseOf(character: string): string {
  return character < "\u0080" ? character : String.fromCodePoint(character.normalize("NFD").codePointAt(0) as number);
}

function hasMoreCharacters(text: string, most: number): boolean {
  return text.length > most && (text.length > 2 * most || Array.from(text).length > most);
}

/** Whether a vocabulary has words with capital letters; names of special tokens, which are in brackets, are none. */
function hasCapitals(tokens: readonly string[]): boolean {
  const all = tokens.join();
  // One comparison for all, which most vocabularies need no more than.
  return all !== all.toLowerCase() && tokens.some((text) => text !== text.toLowerCase() && !/[[<]/.test(text));
}
