/** Vocabularies of the kind `bert`: WordPiece, where the first piece of a word begins with U+2581. */
import { utf8 } from "../base/text-decoder";
import { classOf } from "./character-class";
import { type Encoding, SPACE, type Vocabulary } from "./encoding";
import { tokenIdKey } from "./special-tokens";

/** Characters that are words of their own: punctuation, ASCII symbols and Han. */
const ALONE = classOf(
  /[\p{P}$+<=>^`|~\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/u,
);
const WHITE_SPACE = classOf(/\p{White_Space}/u);
const LEFT_OUT = classOf(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\ufffd]/u);
const ACCENT = classOf(/\p{M}/u);

/** Longer pieces are never found. It bounds the time, whatever the vocabulary is; real pieces have up to 30 characters. */
const LONGEST_PIECE = 256;

/** Repeatedly takes the longest piece that a word begins with. A word that has no such pieces is one unknown token. */
export function wordPieceEncoding({ metadata, tokens, ids }: Vocabulary): Encoding {
  const unknown = metadata.number(tokenIdKey("unk")) ?? 100;
  const lowercase = metadata.boolean("tokenizer.ggml.normalizer.lowercase") ?? true;
  const stripAccents = metadata.boolean("tokenizer.ggml.normalizer.strip_accents") ?? lowercase;
  const pieces = [...ids.keys()].filter(({ length }) => length > 0 && length <= LONGEST_PIECE).sort();

  const addPieces = (word: string, found: number[]): void => {
    const before = found.length;
    for (let from = 0; from < word.length; ) {
      const piece = longestPiece(pieces, word, from);
      if (piece === undefined) {
        found.length = before;
        found.push(unknown);
        return;
      }
      found.push(ids.get(piece) as number);
      from += piece.length;
    }
  };
  return {
    encode(text, found) {
      for (const word of wordsOf(text, lowercase, stripAccents)) addPieces(word, found);
    },
    bytes: (token) => utf8((tokens[token] ?? "").replace(SPACE, " ")),
  };
}

/** The longest of the sorted `pieces` that the word has at `from`. */
function longestPiece(pieces: readonly string[], word: string, from: number): string | undefined {
  let found: string | undefined;
  let low = 0;
  let high = pieces.length;
  // The pieces from low to high begin with the first `length` characters. The shortest of them is the first.
  for (let length = 0; low < high; length++) {
    if (pieces[low]?.length === length) found = pieces[low++];
    if (from + length === word.length) break;
    const code = word.charCodeAt(from + length);
    low = firstFrom(pieces, low, high, length, code);
    high = firstFrom(pieces, low, high, length, code + 1);
  }
  return found;
}

/** The first of some sorted pieces that has `code` or more at a place. */
function firstFrom(pieces: readonly string[], begin: number, end: number, at: number, code: number): number {
  let low = begin;
  let high = end;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((pieces[middle] as string).charCodeAt(at) < code) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The words of a text, as BERT's models have them: lower case, without accents, and with U+2581 before them. */
function* wordsOf(
  text: string,
  lowercase: boolean,
  stripAccents: boolean,
): Generator<string, void, undefined> {
  // A string that grows by one character after the other is a rope: each look into it may go through all of it.
  let word = [SPACE];
  for (const given of text) {
    const character = stripAccents ? baseOf(given) : given;
    const code = character.codePointAt(0) as number;
    const isAlone = ALONE(code);
    const ends = isAlone || WHITE_SPACE(code);
    if (!ends && (LEFT_OUT(code) || (stripAccents && ACCENT(code)))) continue;
    if (ends && word.length > 1) {
      yield word.join("");
      word = [SPACE];
    }
    const written = lowercase ? character.toLowerCase() : character;
    if (isAlone) yield SPACE + written;
    else if (!ends) word.push(written);
  }
  if (word.length > 1) yield word.join("");
}

/** A character without its accents: what its canonical decomposition begins with. */
function baseOf(character: string): string {
  return character < "\u0080"
    ? character
    : String.fromCodePoint(character.normalize("NFD").codePointAt(0) as number);
}
