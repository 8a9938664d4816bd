/** The pieces of a vocabulary that a text has at a place. */

/** Longer pieces are never found. It bounds the time, whatever the vocabulary is; real pieces have up to 30 characters. */
const LONGEST_PIECE = 256;

/** Pieces are kept by as many code units that they begin with, or by all that they have. */
const BEGIN = 3;

/** A power of two. */
const BUCKETS = 1 << 14;

interface Some {
  readonly ids: number[];
  isSorted: boolean;
}

/**
 * A vocabulary is large, and most texts are short: so at first pieces are only put into buckets, as lists that are linked, which
 * makes no objects. What begins in the same way as a text is taken from there, and sorted, when it is first asked for.
 */
export class Pieces {
  readonly #texts: readonly string[];
  /** The first piece of each bucket, and the one that comes after each piece; -1 for none. */
  readonly #firsts = new Int32Array(BUCKETS).fill(-1);
  readonly #next: Int32Array;
  /** What has been taken from the buckets. */
  readonly #byBegin = new Map<string, Some>();

  /**
   * @param texts the pieces by their numbers; of equal ones, the last counts
   * @param isFound whether a piece is one that texts may have
   */
  constructor(texts: readonly string[], isFound?: (id: number) => boolean) {
    this.#texts = texts;
    const firsts = this.#firsts;
    const next = new Int32Array(texts.length);
    this.#next = next;
    for (let id = 0; id < texts.length; id++) {
      const text = texts[id] as string;
      if (text === "" || text.length > LONGEST_PIECE || isFound?.(id) === false) continue;
      const bucket = bucketOf(text);
      next[id] = firsts[bucket] as number;
      firsts[bucket] = id;
    }
  }

  /** Calls `visit` with the number and the length of each piece that the text has at `from`, the shortest first. */
  forEachAt(text: string, from: number, visit: (id: number, length: number) => void): void {
    let ids: readonly number[] = [];
    for (let length = 1; length <= BEGIN; length++) {
      if (from + length > text.length) return;
      ids = this.#sorted(text.slice(from, from + length));
      if (length < BEGIN && ids.length > 0) visit(ids[0] as number, length);
    }
    let low = 0;
    let high = ids.length;
    // The pieces from low to high begin with the first `length` characters. The shortest of them is the first.
    for (let length = BEGIN; low < high; length++) {
      const shortest = ids[low] as number;
      if (this.#texts[shortest]?.length === length) {
        visit(shortest, length);
        low++;
      }
      if (from + length === text.length) return;
      const code = text.charCodeAt(from + length);
      low = this.#firstFrom(ids, low, high, length, code);
      high = this.#firstFrom(ids, low, high, length, code + 1);
    }
  }

  /** Those that begin with a text of {@link BEGIN} code units; or the one that is a shorter text. */
  #sorted(begin: string): readonly number[] {
    const texts = this.#texts;
    const bucket = bucketOf(begin);
    for (let id = this.#firsts[bucket] as number; id >= 0; id = this.#next[id] as number) {
      const key = (texts[id] as string).slice(0, BEGIN);
      const some = this.#byBegin.get(key);
      if (some === undefined) this.#byBegin.set(key, { ids: [id], isSorted: false });
      else some.ids.push(id);
    }
    this.#firsts[bucket] = -1;
    const some = this.#byBegin.get(begin);
    if (some === undefined) return [];
    if (some.isSorted) return some.ids;
    const order = (a: number, b: number): number => {
      const first = texts[a] as string;
      const second = texts[b] as string;
      return first < second ? -1 : first > second ? 1 : a - b;
    };
    const ids = some.ids.sort(order).filter((id, i, all) => texts[id] !== texts[all[i + 1] as number]);
    this.#byBegin.set(begin, { ids, isSorted: true });
    return ids;
  }

  /** The first of some sorted pieces that has `code` or more at a place. */
  #firstFrom(ids: readonly number[], begin: number, end: number, at: number, code: number): number {
    let low = begin;
    let high = end;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#texts[ids[middle] as number] as string).charCodeAt(at) < code) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** By the {@link BEGIN} code units that a text begins with. No loop: this is done for each piece before it is compiled. */
function bucketOf(text: string): number {
  let hash = text.charCodeAt(0);
  if (text.length > 1) hash = hash * 31 + text.charCodeAt(1);
  if (text.length > 2) hash = hash * 31 + text.charCodeAt(2);
  return (hash ^ (hash >>> 14)) & (BUCKETS - 1);
}
