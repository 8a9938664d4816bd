/** Vocabularies of the kind `gpt2`: byte-level BPE, with a list of merges. */
import { GgufError } from "../base/errors";
import { utf8 } from "../base/text-decoder";
import {
  bytePieces,
  characterOf,
  type Encoding,
  type Merges,
  missing,
  type Vocabulary,
  Word,
  withVisibleSpaces,
} from "./encoding";
import { type WordRule, words } from "./word-rules";

/** The character for each byte in these vocabularies: the byte if it is visible, else the next one from 256 on. */
const BYTE_CHARACTERS: readonly string[] = byteCharacters();

const BYTE_OF: ReadonlyMap<string, number> = new Map(BYTE_CHARACTERS.map((character, byte) => [character, byte]));

function byteCharacters(): string[] {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const visible = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
    return String.fromCharCode(visible ? byte : next++);
  });
}

/** Within each word, repeatedly joins the pair that comes first in the list of merges. */
export function byteLevelEncoding(vocabulary: Vocabulary, rule: WordRule): Encoding {
  const { ids, tokens: pieces } = vocabulary;
  const { merges, numberOf, textOf } = mergesOf(vocabulary);
  const { wordOf, addMissing, bytesOf } = rule.plainText
    ? plainText(vocabulary, numberOf)
    : byteText(vocabulary, numberOf);
  const composes = vocabulary.normalization === "model" && rule.composes;
  const longest = rule.wholeWords || rule.plainText ? longestOf(pieces) : 0;

  /** The token that a whole word is, if it stays one. */
  const wholeWord = (word: string): number | undefined => {
    if (word.length > longest || (!rule.wholeWords && !word.startsWith("\n"))) return undefined;
    return ids.get(rule.plainText ? word : byteCharactersOf(word));
  };
  return {
    encode(text, tokens) {
      const composed = composes ? text.normalize("NFC") : text;
      for (const piece of words(rule.plainText ? withVisibleSpaces(composed) : composed, rule)) {
        const whole = wholeWord(piece);
        if (whole !== undefined) {
          tokens.push(whole);
          continue;
        }
        const word = wordOf(piece);
        word.join(merges);
        for (let i = 0; i < word.count; i++) {
          const symbol = word.symbols[i] as number;
          if (symbol >= 0 && symbol < pieces.length) tokens.push(symbol);
          else addMissing(symbol < 0 ? characterOf(symbol) : textOf(symbol), tokens);
        }
      }
    },
    bytes: bytesOf,
  };
}

/** The merges of a vocabulary, and the symbols in them: the numbers of tokens, and more for what is no token. */
function mergesOf({ metadata, tokens, ids }: Vocabulary): {
  merges: Merges;
  numberOf: (text: string) => number | undefined;
  textOf: (symbol: number) => string;
} {
  const pairs = metadata.strings("tokenizer.ggml.merges");
  if (pairs === undefined) throw missing("tokenizer.ggml.merges");
  const others: string[] = [];
  const numbers = new Map<string, number>();
  const numberOf = (text: string): number | undefined => ids.get(text) ?? numbers.get(text);
  const makeNumber = (text: string): number => {
    const known = numberOf(text);
    if (known !== undefined) return known;
    const number = tokens.length + others.length;
    others.push(text);
    numbers.set(text, number);
    return number;
  };
  const table = new PairTable(pairs.length);
  for (const [rank, pair] of pairs.entries()) {
    const space = pair.indexOf(" ");
    // No symbol has a space in it.
    if (space <= 0 || space === pair.length - 1 || pair.includes(" ", space + 1)) continue;
    table.add(makeNumber(pair.slice(0, space)), makeNumber(pair.slice(space + 1)), rank);
  }
  /** What pairs become, once it was asked for; 0 before, else one more than the symbol. */
  const joined = new Int32Array(pairs.length);
  const merges: Merges = {
    rank: (left, right) => table.find(left, right) ?? Number.POSITIVE_INFINITY,
    join(left, right) {
      const rank = table.find(left, right) as number;
      joined[rank] ||= 1 + makeNumber((pairs[rank] as string).replace(" ", ""));
      return (joined[rank] as number) - 1;
    },
  };
  return { merges, numberOf, textOf: (symbol) => others[symbol - tokens.length] as string };
}

/** The ranks of pairs of symbols: a hash table in typed arrays, since making a Map for each left symbol takes twice the time. */
class PairTable {
  readonly #lefts: Int32Array;
  readonly #rights: Int32Array;
  /** One more than a rank; 0 where a slot is free. At least half of them are. */
  readonly #slots: Int32Array;
  readonly #shift: number;
  /** By chance, so that no vocabulary can make its pairs meet in one slot. */
  readonly #factors = [0, 1].map(() => Math.floor(Math.random() * 2 ** 32) | 1) as [number, number];

  constructor(count: number) {
    this.#lefts = new Int32Array(count);
    this.#rights = new Int32Array(count);
    this.#shift = Math.clz32(2 * count + 1);
    this.#slots = new Int32Array(2 ** (32 - this.#shift));
  }

  /** Of equal pairs the last one counts. */
  add(left: number, right: number, rank: number): void {
    this.#slots[this.#slotOf(left, right)] = rank + 1;
    this.#lefts[rank] = left;
    this.#rights[rank] = right;
  }

  find(left: number, right: number): number | undefined {
    const found = this.#slots[this.#slotOf(left, right)] as number;
    return found === 0 ? undefined : found - 1;
  }

  /** Where a pair is, or would be. */
  #slotOf(left: number, right: number): number {
    const [a, b] = this.#factors;
    let slot = (Math.imul(left, a) + Math.imul(right, b)) >>> this.#shift;
    for (; ; slot = (slot + 1) % this.#slots.length) {
      const rank = (this.#slots[slot] as number) - 1;
      if (rank < 0 || (this.#lefts[rank] === left && this.#rights[rank] === right)) return slot;
    }
  }
}

/** The characters that stand for the bytes of a text. */
function byteCharactersOf(text: string): string {
  return Array.from(utf8(text), (byte) => BYTE_CHARACTERS[byte]).join("");
}

function longestOf(texts: readonly string[]): number {
  return texts.reduce((most, { length }) => Math.max(most, length), 0);
}

/** What the two ways to write texts in symbols differ in. */
interface Symbols {
  wordOf(text: string): Word;
  /** Appends the tokens for a symbol that has none of its own. */
  addMissing(text: string, tokens: number[]): void;
  bytesOf(token: number): Uint8Array;
}

/** Each character of a symbol stands for a byte. */
function byteText({ tokens }: Vocabulary, numberOf: (text: string) => number | undefined): Symbols {
  const bytes = new Word(256);
  bytes.addCharacters(BYTE_CHARACTERS.join(""), numberOf);
  return {
    wordOf(text) {
      // Most words are short, and their characters are bytes.
      if (/^[\0-\x7f]{1,16}$/.test(text)) {
        const word = Word.withRoom(text.length);
        for (let i = 0; i < text.length; i++) word.add(bytes.symbols[text.charCodeAt(i)] as number);
        return word;
      }
      const written = utf8(text);
      const word = Word.withRoom(written.length);
      for (const byte of written) word.add(bytes.symbols[byte] as number);
      return word;
    },
    addMissing(text) {
      throw new GgufError("ERR_GGUF_INVALID", `the vocabulary has no token for '${text}'`);
    },
    bytesOf: (token) =>
      Uint8Array.from(
        Array.from(tokens[token] ?? "").flatMap((character) => BYTE_OF.get(character) ?? [...utf8(character)]),
      ),
  };
}

/** Symbols are text. What has no token is written byte by byte. */
function plainText(vocabulary: Vocabulary, numberOf: (text: string) => number | undefined): Symbols {
  const { idOfByte, bytesOf } = bytePieces(vocabulary);
  return {
    wordOf(text) {
      const word = Word.withRoom(text.length);
      word.addCharacters(text, numberOf);
      return word;
    },
    addMissing(text, tokens) {
      for (const byte of utf8(text)) if (idOfByte[byte] !== undefined) tokens.push(idOfByte[byte]);
    },
    bytesOf,
  };
}
