/** The common part of all kinds of vocabulary. */
import { GgufError } from "../base/errors";
import { utf8 } from "../base/text-decoder";
import type { GgufMetadata } from "../file/metadata";

/** Stands for a space in the pieces of some vocabularies. */
export const SPACE = "\u2581";

/** A text with U+2581 for each space. (The method replaceAll makes a rope, which takes ten times as much memory.) */
export function withVisibleSpaces(text: string): string {
  return text.replace(/ /g, SPACE);
}

/** The interface that each kind of vocabulary implements. */
export interface Encoding {
  /** Appends the tokens of a text, without tokens that mark its beginning or end. */
  encode(text: string, tokens: number[]): void;
  /** The bytes that a token stands for. The bytes of a character may belong to several tokens. */
  bytes(token: number): Uint8Array;
}

/** Who prepares texts: llama.cpp, or the model's own tokenizer, with which it was trained. */
export type Normalization = "llama.cpp" | "model";

/** The data from which an {@link Encoding} is made. */
export class Vocabulary {
  readonly metadata: GgufMetadata;
  readonly normalization: Normalization;
  /** The text of each token, as in the file. */
  readonly tokens: string[];
  #ids: Map<string, number> | undefined;

  /** @throws GgufError if there are no tokens */
  constructor(metadata: GgufMetadata, normalization: Normalization) {
    this.metadata = metadata;
    this.normalization = normalization;
    const tokens = metadata.strings("tokenizer.ggml.tokens");
    if (tokens === undefined) throw missing("tokenizer.ggml.tokens");
    this.tokens = tokens;
  }

  /** The token for each text, of equal ones the last. Not every kind of vocabulary needs it, and it takes long to make. */
  get ids(): ReadonlyMap<string, number> {
    if (this.#ids !== undefined) return this.#ids;
    this.#ids = new Map();
    // No pair is made for each: that takes as long as the map.
    for (let id = 0; id < this.tokens.length; id++) this.#ids.set(this.tokens[id] as string, id);
    return this.#ids;
  }
}

/** The error for a vocabulary that lacks a part. */
export function missing(key: string): GgufError {
  return new GgufError("ERR_GGUF_INVALID", `the vocabulary needs '${key}', which the metadata does not have`);
}

/** The tokens such as `<0x0A>`, each for one byte of a character that has no token of its own; and the bytes of any token. */
export function bytePieces({ tokens, ids }: Vocabulary): {
  idOfByte: readonly (number | undefined)[];
  bytesOf: (token: number) => Uint8Array;
} {
  const idOfByte = Array.from({ length: 256 }, (_, byte) =>
    ids.get(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`),
  );
  const byteOfId = new Map(idOfByte.map((id, byte) => [id, byte]));
  const bytesOf = (token: number): Uint8Array => {
    const byte = byteOfId.get(token);
    return byte === undefined ? utf8((tokens[token] ?? "").replaceAll(SPACE, " ")) : Uint8Array.of(byte);
  };
  return { idOfByte, bytesOf };
}

/** Which symbols are joined. Symbols are numbers: those of tokens, and others as a kind of vocabulary needs them. */
export interface Merges {
  /** The rank of two neighbours, of which the lowest is joined first; Infinity if they stay apart. */
  rank(left: number, right: number): number;
  /** The symbol that two neighbours with a rank become. */
  join(left: number, right: number): number;
}

/** Words with up to so many symbols share one memory. */
const SHORT_WORD = 256;

/** Numbers in a block: so many are looked at one after the other. Most words are shorter. */
const BLOCK_BITS = 4;

/**
 * The symbols of a word. Symbols are numbers: those of tokens, and others as a kind of vocabulary needs them. Those below 0
 * are characters that have no other number.
 */
export class Word {
  /** How many symbols there are. */
  count = 0;
  readonly symbols: Int32Array;
  /** The neighbours of each symbol; the count and -1 at the ends. */
  readonly #next: Int32Array;
  readonly #previous: Int32Array;
  /** The rank of each symbol with its right neighbour; Infinity if they are not joined. */
  readonly #ranks: Float64Array;
  /** A binary tree of the lowest ranks: that of block `i` is at `#blocks + i`, and that of nodes 2 i and 2 i + 1 at i. */
  readonly #lowest: Float64Array;
  #blocks = 1;

  /** A word of up to `most` symbols, which is good until the next one is made: short ones share their memory. */
  static withRoom(most: number): Word {
    if (most > SHORT_WORD) return new Word(most);
    shortWord.count = 0;
    return shortWord;
  }

  constructor(most: number) {
    const blocks = ((most - 1) >> BLOCK_BITS) + 1;
    this.symbols = new Int32Array(most);
    this.#next = new Int32Array(most);
    this.#previous = new Int32Array(most);
    this.#ranks = new Float64Array(blocks << BLOCK_BITS);
    this.#lowest = new Float64Array(2 ** (Math.ceil(Math.log2(blocks)) + 1));
  }

  add(symbol: number): void {
    this.symbols[this.count++] = symbol;
  }

  /** Adds the characters of a text. */
  addCharacters(text: string, numberOf: (character: string) => number | undefined): void {
    for (const character of text) this.add(numberOf(character) ?? -1 - (character.codePointAt(0) as number));
  }

  /**
   * Joins neighbours until no two have a rank. The pair with the lowest rank comes first, and of equal ranks the leftmost
   * pair. That is the whole algorithm of byte-pair encoding. The ranks depend on the vocabulary. A tree finds the pair, so
   * that a long word takes little longer than many short ones.
   */
  join({ rank, join }: Merges): void {
    const { symbols, count } = this;
    if (count < 2) return;
    const next = this.#next;
    const previous = this.#previous;
    const rankOf = (left: number, right: number): number => rank(symbols[left] as number, symbols[right] as number);
    this.#clearRanks();
    for (let i = 0; i < count; i++) {
      next[i] = i + 1;
      previous[i] = i - 1;
      if (i > 0) this.#setRank(i - 1, rankOf(i - 1, i));
    }
    for (let left = this.#first(); left >= 0; left = this.#first()) {
      const right = next[left] as number;
      const after = next[right] as number;
      const before = previous[left] as number;
      symbols[left] = join(symbols[left] as number, symbols[right] as number);
      next[left] = after;
      if (after < count) previous[after] = left;
      this.#setRank(right, Number.POSITIVE_INFINITY);
      this.#setRank(left, after < count ? rankOf(left, after) : Number.POSITIVE_INFINITY);
      if (before >= 0) this.#setRank(before, rankOf(before, left));
    }
    this.count = 0;
    for (let i = 0; i < count; i = next[i] as number) this.add(symbols[i] as number);
  }

  #clearRanks(): void {
    const blocks = ((this.count - 1) >> BLOCK_BITS) + 1;
    this.#blocks = 1;
    while (this.#blocks < blocks) this.#blocks *= 2;
    this.#ranks.fill(Number.POSITIVE_INFINITY, 0, blocks << BLOCK_BITS);
    this.#lowest.fill(Number.POSITIVE_INFINITY, 0, 2 * this.#blocks);
  }

  /** NaN counts as Infinity. */
  #setRank(left: number, rank: number): void {
    const ranks = this.#ranks;
    const lowest = this.#lowest;
    ranks[left] = rank < Number.POSITIVE_INFINITY ? rank : Number.POSITIVE_INFINITY;
    const block = left >> BLOCK_BITS;
    const begin = block << BLOCK_BITS;
    const end = begin + (1 << BLOCK_BITS);
    let low = Number.POSITIVE_INFINITY;
    for (let i = begin; i < end; i++) if ((ranks[i] as number) < low) low = ranks[i] as number;
    for (let node = this.#blocks + block; node > 0 && lowest[node] !== low; ) {
      lowest[node] = low;
      node >>= 1;
      low = Math.min(lowest[2 * node] as number, lowest[2 * node + 1] as number);
    }
  }

  /** The left one of the pair with the lowest rank, or -1 if no two are joined. */
  #first(): number {
    const lowest = this.#lowest;
    const low = lowest[1] as number;
    if (low === Number.POSITIVE_INFINITY) return -1;
    let node = 1;
    while (node < this.#blocks) node = 2 * node + (lowest[2 * node] === low ? 0 : 1);
    let left = (node - this.#blocks) << BLOCK_BITS;
    while (this.#ranks[left] !== low) left++;
    return left;
  }
}

const shortWord = new Word(SHORT_WORD);

/** The character of a symbol below 0. */
export function characterOf(symbol: number): string {
  return String.fromCodePoint(-1 - symbol);
}
