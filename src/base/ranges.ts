/** Ranges of elements, and their parts. */

/** Elements of a tensor: whole blocks. */
export interface ElementRange {
  start: number;
  end: number;
}

/** Elements of a part: whole blocks of every type, and what the addon's totals may be joined at. */
export const PART_ELEMENTS = 2 ** 22;

/** `start` to `end` in parts. */
export function* partsOf(start: number, end: number, size = PART_ELEMENTS): Generator<ElementRange> {
  for (; start < end; start += size) yield { start, end: Math.min(end, start + size) };
}
