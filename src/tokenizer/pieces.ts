/** The pieces of a vocabulary that a text has at a place. */

/** Longer pieces are never found. It bounds the time, whatever the vocabulary is; real pieces have up to 30 characters. */
const LONGEST_PIECE = 256;

interface Some {
  readonly pieces: string[];
  isSorted: boolean;
}

export class Pieces {
  /** By the code units that they begin with: two, or the only one. */
  readonly #byBegin = new Map<string, Some>();

  constructor(pieces: Iterable<string>) {
    for (const piece of pieces) {
      if (piece === "" || piece.length > LONGEST_PIECE) continue;
      const begin = piece.slice(0, 2);
      const some = this.#byBegin.get(begin);
      if (some === undefined) this.#byBegin.set(begin, { pieces: [piece], isSorted: false });
      else some.pieces.push(piece);
    }
  }

  /** Calls `visit` with each piece that the text has at `from`, the shortest first. */
  forEachAt(text: string, from: number, visit: (piece: string) => void): void {
    const first = text.charAt(from);
    if (this.#byBegin.has(first)) visit(first);
    const pieces = from + 1 < text.length ? this.#sorted(text.slice(from, from + 2)) : [];
    let low = 0;
    let high = pieces.length;
    // The pieces from low to high begin with the first `length` characters. The shortest of them is the first.
    for (let length = 2; low < high; length++) {
      const shortest = pieces[low] as string;
      if (shortest.length === length) {
        visit(shortest);
        low++;
      }
      if (from + length === text.length) return;
      const code = text.charCodeAt(from + length);
      low = firstFrom(pieces, low, high, length, code);
      high = firstFrom(pieces, low, high, length, code + 1);
    }
  }

  /** They are sorted when they are first asked for: sorting all of a vocabulary takes longer than most texts. */
  #sorted(begin: string): readonly string[] {
    const some = this.#byBegin.get(begin);
    if (some === undefined) return [];
    if (!some.isSorted) some.pieces.sort();
    some.isSorted = true;
    return some.pieces;
  }
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
