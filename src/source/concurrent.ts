/** Asynchronous work on many items, several at a time. */
import { whenAborted } from "../base/abortable";

/**
 * Calls `work` for every item, in their order, for up to `limit` of them at a time.
 *
 * Where work fails, no more is begun, and what is under way for later items is aborted. What is thrown does not depend
 * on timing: of the items whose work failed, it is the failure of the first one, in their order. By then nothing is under
 * way any more.
 *
 * @param signal aborts the work on all items
 */
export async function forEachConcurrently<T>(
  items: Iterable<T>,
  limit: number,
  signal: AbortSignal | undefined,
  work: (item: T, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  signal?.throwIfAborted();
  const iterator = items[Symbol.iterator]();
  const underWay = new Map<number, AbortController>();
  let begun = 0;
  let failed = Number.POSITIVE_INFINITY;
  let failure: unknown;

  const abortFrom = (first: number, reason: unknown): void => {
    for (const [index, controller] of underWay) if (index >= first) controller.abort(reason);
  };
  const abort = (): void => abortFrom(0, signal?.reason);
  const isOver = (): boolean => failed < begun || signal?.aborted === true;

  const run = async (): Promise<void> => {
    while (!isOver()) {
      const item = iterator.next();
      if (item.done) return;
      const index = begun++;
      const controller = new AbortController();
      underWay.set(index, controller);
      try {
        await work(item.value, controller.signal);
      } catch (error) {
        if (index > failed) continue;
        [failed, failure] = [index, error];
        abortFrom(index + 1, error);
      } finally {
        underWay.delete(index);
      }
    }
  };

  const forget = whenAborted(signal, abort);
  try {
    await Promise.all(Array.from({ length: limit }, run));
  } finally {
    forget();
  }
  signal?.throwIfAborted();
  if (failed < begun) throw failure;
}
