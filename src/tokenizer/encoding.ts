/** The common part of all kinds of vocabulary. */
import { GgufError } from "../base/errors";
import { utf8 } from "../base/text-decoder";
import type { GgufMetadata } from "../file/metadata";

/** Stands for a space in the pieces of some vocabularies. */
export const SPACE = "\u2581";

/** The interface that each kind of vocabulary implements. */
export interface Encoding {
  /** The tokens of a text, without tokens that mark its beginning or end. */
  encode(text: string): number[];
  /** The bytes that a token stands for. The bytes of a character may belong to several tokens. */
  bytes(token: number): Uint8Array;
}

/** The data from which an {@link Encoding} is made. */
export interface Vocabulary {
  metadata: GgufMetadata;
  /** The text of each token, as in the file. */
  tokens: string[];
  /** The token for each text. */
  ids: ReadonlyMap<string, number>;
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

/**
 * Joins adjacent symbols until no pair has a rank. The pair with the lowest rank comes first, and of equal ranks the
 * leftmost pair. That is the whole algorithm of byte-pair encoding. The ranks depend on the vocabulary. A heap holds the
 * pairs, so that a long text takes little longer than its words would.
 */
export function mergePairs(
  symbols: readonly string[],
  rankOf: (left: string, right: string) => number | undefined,
): string[] {
  const texts = [...symbols];
  const at = (i: number): string => texts[i] as string;
  /** The neighbours of each symbol that is left; texts.length and -1 at the ends. */
  const next = Int32Array.from(texts, (_, i) => i + 1);
  const previous = Int32Array.from(texts, (_, i) => i - 1);
  /** Counts the changes of each symbol and of its right neighbour: a pair in the heap is good for one state. */
  const states = new Uint32Array(texts.length);
  const heap = new PairHeap();
  const add = (left: number): void => {
    const right = next[left] as number;
    const rank = right < texts.length ? rankOf(at(left), at(right)) : undefined;
    if (rank !== undefined && rank < Number.POSITIVE_INFINITY)
      heap.add({ rank, left, state: states[left] as number });
  };
  const changed = (left: number): void => {
    if (left < 0) return;
    states[left] = (states[left] as number) + 1;
    add(left);
  };
  for (let i = 0; i < texts.length; i++) add(i);
  for (let pair = heap.take(); pair !== undefined; pair = heap.take()) {
    const { left, state } = pair;
    if (states[left] !== state) continue;
    const right = next[left] as number;
    const after = next[right] as number;
    texts[left] = at(left) + at(right);
    texts[right] = "";
    states[right] = (states[right] as number) + 1;
    next[left] = after;
    if (after < texts.length) previous[after] = left;
    changed(left);
    changed(previous[left] as number);
  }
  const merged: string[] = [];
  for (let i = 0; i < texts.length; i = next[i] as number) merged.push(at(i));
  return merged;
}

/** Two neighbours that may be joined. */
interface Pair {
  rank: number;
  left: number;
  state: number;
}

function comesFirst(a: Pair, b: Pair): boolean {
  return a.rank < b.rank || (a.rank === b.rank && a.left < b.left);
}

/** Gives the pair with the lowest rank, the leftmost of equals. */
class PairHeap {
  readonly #pairs: Pair[] = [];

  add(pair: Pair): void {
    const pairs = this.#pairs;
    let at = pairs.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!comesFirst(pair, pairs[parent] as Pair)) break;
      pairs[at] = pairs[parent] as Pair;
      at = parent;
    }
    pairs[at] = pair;
  }

  take(): Pair | undefined {
    const pairs = this.#pairs;
    const [first] = pairs;
    const last = pairs.pop();
    if (last === undefined || pairs.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= pairs.length) break;
      if (child + 1 < pairs.length && comesFirst(pairs[child + 1] as Pair, pairs[child] as Pair)) child++;
      if (!comesFirst(pairs[child] as Pair, last)) break;
      pairs[at] = pairs[child] as Pair;
      at = child;
    }
    pairs[at] = last;
    return first;
  }
}
