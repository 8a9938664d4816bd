/** Vocabularies of the kind `gpt2`: byte-level BPE, with a list of merges. */
import { GgufError } from "../base/errors";
import { utf8 } from "../base/text-decoder";
import { bytePieces, type Encoding, mergePairs, missing, SPACE, type Vocabulary } from "./encoding";
import { type WordRule, words } from "./word-rules";

/** The character for each byte in these vocabularies: the byte if it is visible, else the next one from 256 on. */
const BYTE_CHARACTERS: readonly string[] = byteCharacters();

const BYTE_OF: ReadonlyMap<string, number> = new Map(
  BYTE_CHARACTERS.map((character, byte) => [character, byte]),
);

function byteCharacters(): string[] {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const visible = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
    return String.fromCharCode(visible ? byte : next++);
  });
}

/** Within each word, repeatedly joins the pair that comes first in the list of merges. */
export function byteLevelEncoding(vocabulary: Vocabulary, rule: WordRule): Encoding {
  const { metadata, ids } = vocabulary;
  const merges = metadata.strings("tokenizer.ggml.merges");
  if (merges === undefined) throw missing("tokenizer.ggml.merges");
  const ranks = new Map(merges.map((pair, rank) => [pair, rank]));
  const { idsOf, bytesOf } = rule.plainText ? plainText(vocabulary) : byteText(vocabulary);

  const symbolsOf = (word: string): string[] => {
    const whole = rule.plainText
      ? word
      : Array.from(utf8(word), (byte) => BYTE_CHARACTERS[byte] as string).join("");
    const stays = rule.wholeWords || (rule.plainText && word.startsWith("\n"));
    if (stays && ids.has(whole)) return [whole];
    return mergePairs(Array.from(whole), (left, right) => ranks.get(`${left} ${right}`));
  };
  return {
    encode: (text) =>
      words(rule.plainText ? text.replaceAll(" ", SPACE) : text, rule)
        .flatMap(symbolsOf)
        .flatMap(idsOf),
    bytes: bytesOf,
  };
}

/** The text of symbols, and the tokens for them. */
interface Symbols {
  idsOf(symbol: string): number[];
  bytesOf(token: number): Uint8Array;
}

/** Each character of a symbol stands for a byte. */
function byteText({ tokens, ids }: Vocabulary): Symbols {
  return {
    idsOf(symbol) {
      const id = ids.get(symbol);
      if (id !== undefined) return [id];
      throw new GgufError("ERR_GGUF_INVALID", `the vocabulary has no token for '${symbol}'`);
    },
    // Tokens that were added to the vocabulary later are plain text.
    bytesOf: (token) =>
      Uint8Array.from(
        Array.from(tokens[token] ?? "").flatMap(
          (character) => BYTE_OF.get(character) ?? [...utf8(character)],
        ),
      ),
  };
}

/** Symbols are text. What has no token is written byte by byte. */
function plainText(vocabulary: Vocabulary): Symbols {
  const { idOfByte, bytesOf } = bytePieces(vocabulary);
  return {
    idsOf(symbol) {
      const id = vocabulary.ids.get(symbol);
      return id === undefined ? Array.from(utf8(symbol)).flatMap((byte) => idOfByte[byte] ?? []) : [id];
    },
    bytesOf,
  };
}
