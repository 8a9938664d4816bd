/** Tensors a part at a time: memory stays bounded however large they are. */
import { type ElementRange, partsOf } from "../base/ranges";
import { forEachConcurrently } from "../source/concurrent";

/** Parts that are there at a time: one is used while the next are fetched, so that a slow server is never idle. */
export const PARTS_AT_A_TIME = 3;

/**
 * Fetches the parts from `start` to `end`, and uses them one after the other, in their order. If one fails, no more is
 * fetched, and the failure of the first part that failed is thrown once nothing is under way any more.
 * @param size elements of a part; default {@link PART_ELEMENTS}
 * @param signal aborts everything; what `fetch` and `use` get is aborted as well if an earlier part failed
 */
export async function forEachPart<T>(
  { start, end, size }: ElementRange & { size?: number },
  signal: AbortSignal | undefined,
  fetch: (part: ElementRange, signal: AbortSignal) => Promise<T>,
  use: (bytes: T, part: ElementRange, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  let lastUse = Promise.resolve();
  await forEachConcurrently(partsOf(start, end, size), PARTS_AT_A_TIME, signal, (part, signal) => {
    const turn = lastUse;
    const used = fetch(part, signal).then(async (bytes) => {
      await turn;
      signal.throwIfAborted();
      await use(bytes, part, signal);
    });
    lastUse = used.catch(() => undefined);
    return used;
  });
}
