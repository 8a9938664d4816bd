/** Tensors a part at a time: memory stays bounded however large they are. */
import type { ElementRange } from "../decode/request";

/** Elements of a part: whole blocks of every type, and what the addon's totals may be joined at. */
export const PART_ELEMENTS = 2 ** 22;

/** `start` to `end` in parts. */
export function* partsOf(start: number, end: number, size = PART_ELEMENTS): Generator<ElementRange> {
  for (; start < end; start += size) yield { start, end: Math.min(end, start + size) };
}

/** Yields what `fetch` gets for each part from `start` to `end`; it gets the next while one is used. */
export async function* fetchedAhead<T>(
  start: number,
  end: number,
  fetch: (part: ElementRange) => Promise<T>,
  size = PART_ELEMENTS,
): AsyncGenerator<{ part: ElementRange; bytes: T }> {
  const todo = partsOf(start, end, size);
  const begin = (): { part: ElementRange; bytes: Promise<T> } | undefined => {
    const { value: part } = todo.next();
    if (part === undefined) return undefined;
    const bytes = fetch(part);
    bytes.catch(() => undefined); // reported when it is awaited, if it still is
    return { part, bytes };
  };
  for (let next = begin(); next !== undefined; ) {
    const { part } = next;
    const bytes = await next.bytes;
    next = begin();
    yield { part, bytes };
  }
}
