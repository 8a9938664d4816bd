/** Vocabularies of the kind `bert`: WordPiece, where the first piece of a word begins with U+2581. */
import { utf8 } from "../base/text-decoder";
import { type Encoding, SPACE, type Vocabulary } from "./encoding";
import { tokenIdKey } from "./special-tokens";

/** Characters that are words of their own: punctuation, ASCII symbols and Han. */
const ALONE =
  /[\p{P}$+<=>^`|~\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/u;
const WHITE_SPACE = /\p{White_Space}/u;
const LEFT_OUT = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\ufffd]/u;
const ACCENT = /\p{M}/u;

/** Longer pieces are never found. It bounds the time, whatever the vocabulary is; real pieces have up to 30 characters. */
const LONGEST_PIECE = 256;

/** Repeatedly takes the longest piece that a word begins with. A word that has no such pieces is one unknown token. */
export function wordPieceEncoding({ metadata, tokens, ids }: Vocabulary): Encoding {
  const unknown = metadata.number(tokenIdKey("unk")) ?? 100;
  const lowercase = metadata.boolean("tokenizer.ggml.normalizer.lowercase") ?? true;
  const stripAccents = metadata.boolean("tokenizer.ggml.normalizer.strip_accents") ?? lowercase;
  const longest = Math.min(
    LONGEST_PIECE,
    tokens.reduce((most, { length }) => Math.max(most, length), 0),
  );

  const piecesOf = (word: string): number[] => {
    const text = SPACE + word;
    const pieces: number[] = [];
    for (let from = 0; from < text.length; ) {
      let end = Math.min(text.length, from + longest);
      let id: number | undefined;
      while (end > from) {
        id = ids.get(text.slice(from, end));
        if (id !== undefined) break;
        end--;
      }
      if (id === undefined) return [unknown];
      pieces.push(id);
      from = end;
    }
    return pieces;
  };
  return {
    encode: (text) => wordsOf(text, lowercase, stripAccents).flatMap(piecesOf),
    bytes: (token) => utf8((tokens[token] ?? "").replace(SPACE, " ")),
  };
}

/** The words of a text, as BERT's models have them: lower case, without accents. */
function wordsOf(text: string, lowercase: boolean, stripAccents: boolean): string[] {
  const words = [""];
  for (const given of text) {
    const character = stripAccents ? baseOf(given) : given;
    if (WHITE_SPACE.test(character)) words.push("");
    else if (LEFT_OUT.test(character) || (stripAccents && ACCENT.test(character))) continue;
    else if (ALONE.test(character)) words.push(lowercase ? character.toLowerCase() : character, "");
    else words[words.length - 1] += lowercase ? character.toLowerCase() : character;
  }
  return words.filter((word) => word !== "");
}

/** A character without its accents: what its canonical decomposition begins with. */
function baseOf(character: string): string {
  return String.fromCodePoint(character.normalize("NFD").codePointAt(0) as number);
}
