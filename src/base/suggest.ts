/** "Did you mean": the name that somebody who wrote another one probably meant. */

/** The end of a sentence that says that a name is not there: ". Did you mean 'x'?", with x as `shown` has it, or nothing. */
export function didYouMean(
  name: string,
  candidates: Iterable<string>,
  shown = (meant: string): string => meant,
): string {
  const meant = closest(name, candidates);
  return meant === undefined ? "" : `. Did you mean '${shown(meant)}'?`;
}

/** Longer names are not compared: what takes so long to write is rarely written by hand. */
const MAX_LENGTH = 128;

/** The longest part that a name may lack. */
const MAX_MISSING = 64;

/** More than this many edits, and a name is another one rather than misspelt. */
const MAX_EDITS = 4;

/**
 * Comparisons of letters in one search, which take two or three milliseconds. The names of a file are as many and as
 * similar as whoever made it likes, and an error must not cost more than what failed.
 */
const MAX_WORK = 600_000;

/** What looking at a candidate costs, in the same unit. */
const LOOK_WORK = 2;

const DOT = 46;

/**
 * The candidate that is most similar to `name`, or undefined where none is similar. Upper and lower case count as the
 * same. Letters that were left out, added, replaced or swapped with the next one are edits: up to one in three may be.
 * A part that is missing at the start or the end, up to a dot, counts as one edit: `attn_q` for `attn_q.weight`, or
 * `context_length` for `llama.context_length`. Of several equally similar ones, the first.
 */
export function closest(name: string, candidates: Iterable<string>): string | undefined {
  const { length } = name;
  if (length === 0 || length > MAX_LENGTH) return undefined;
  const search = new Search(name);
  let best: string | undefined;
  let limit = Math.min(MAX_EDITS, Math.floor((length + 1) / 3));
  for (const candidate of candidates) {
    search.work += LOOK_WORK;
    const edits = isPart(name, candidate) ? 1 : search.edits(candidate, limit);
    if (edits <= limit) {
      best = candidate;
      limit = edits - 1;
    }
    if (limit < 0 || search.work > MAX_WORK) break;
  }
  return best;
}

function isPart(name: string, candidate: string): boolean {
  const missing = candidate.length - name.length;
  if (missing < 2 || missing > MAX_MISSING) return false;
  return (
    (candidate.charCodeAt(name.length) === DOT && candidate.startsWith(name)) ||
    (candidate.charCodeAt(missing - 1) === DOT && candidate.endsWith(name))
  );
}

/** Compares one name with many. */
class Search {
  /** Comparisons so far. */
  work = 0;
  readonly #name: Uint16Array;
  readonly #other = new Uint16Array(MAX_LENGTH + MAX_EDITS);
  /** The edits from the start of the other to each start of the name: for this letter of the other, and the two before. */
  #row = new Uint8Array(MAX_LENGTH + 2);
  #before = new Uint8Array(MAX_LENGTH + 2);
  #beforeThat = new Uint8Array(MAX_LENGTH + 2);

  constructor(name: string) {
    this.#name = new Uint16Array(name.length);
    fold(name, this.#name);
  }

  /** How many edits make `other` of the name; some number above `limit` where they are more than that. */
  edits(other: string, limit: number): number {
    const [name, length] = [this.#name, this.#name.length];
    const tooMany = limit + 1;
    if (Math.abs(other.length - length) > limit) return tooMany;
    const letters = this.#other;
    fold(other, letters);
    this.work += other.length;
    // More than `limit` to the side of the diagonal, there are more than `limit` edits.
    for (let j = 0; j <= Math.min(length, tooMany); j++) this.#before[j] = j;
    for (let i = 1; i <= other.length; i++) {
      const [row, before, beforeThat] = [this.#row, this.#before, this.#beforeThat];
      const [first, last] = [Math.max(1, i - limit), Math.min(length, i + limit)];
      row[first - 1] = first === 1 ? i : tooMany;
      let least = row[first - 1] as number;
      for (let j = first; j <= last; j++) {
        const isSame = letters[i - 1] === name[j - 1];
        let edits = (before[j - 1] as number) + (isSame ? 0 : 1);
        edits = Math.min(edits, (before[j] as number) + 1, (row[j - 1] as number) + 1);
        if (i > 1 && j > 1 && letters[i - 1] === name[j - 2] && letters[i - 2] === name[j - 1]) {
          edits = Math.min(edits, (beforeThat[j - 2] as number) + 1);
        }
        row[j] = edits;
        least = Math.min(least, edits);
      }
      row[last + 1] = tooMany;
      this.work += last - first + 1;
      if (least > limit) return tooMany;
      [this.#row, this.#before, this.#beforeThat] = [beforeThat, row, before];
    }
    return this.#before[length] as number;
  }
}

/** Writes the letters of `text` to `to`; capitals of ASCII as small ones. */
function fold(text: string, to: Uint16Array): void {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    to[i] = code >= 65 && code <= 90 ? code + 32 : code;
  }
}
