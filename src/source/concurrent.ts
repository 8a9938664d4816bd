/** Several at a time, and no more than that. */
import { setMaxListeners } from "node:events";

/**
 * Calls `work` for each item, up to `limit` at a time, and returns the results in the order of the items.
 *
 * Where work fails, no more is begun, and what was begun for later items is aborted by the signal that it was given.
 * What is thrown does not depend on timing: it is the failure of the first item, in their order, whose work failed.
 * Nothing is under way any more then.
 *
 * @param signal aborts the work for all items
 */
export async function mapConcurrently<T, R>(
  items: readonly T[],
  limit: number,
  signal: AbortSignal | undefined,
  work: (item: T, signal: AbortSignal) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const underWay = new Map<number, AbortController>();
  let begun = 0;
  let failure: { index: number; error: unknown } | undefined;

  const runOne = async (index: number): Promise<void> => {
    const controller = new AbortController();
    underWay.set(index, controller);
    try {
      results[index] = await work(items[index] as T, controller.signal);
    } catch (error) {
      if (failure === undefined || index < failure.index) failure = { index, error };
      for (const [other, controller] of underWay) if (other > index) controller.abort();
    } finally {
      underWay.delete(index);
    }
  };
  const runSome = async (): Promise<void> => {
    while (failure === undefined && !signal?.aborted && begun < items.length) await runOne(begun++);
  };
  const abortAll = (): void => {
    for (const controller of underWay.values()) controller.abort(signal?.reason);
  };

  signal?.throwIfAborted();
  signal?.addEventListener("abort", abortAll, { once: true });
  try {
    await Promise.all(Array.from({ length: Math.min(limit, items.length) }, runSome));
  } finally {
    signal?.removeEventListener("abort", abortAll);
  }
  signal?.throwIfAborted();
  if (failure !== undefined) throw (failure as { error: unknown }).error;
  return results;
}

/**
 * Calls `work` for each item, up to `limit` at a time. Items are made when their turn comes, and results are not kept.
 *
 * The first failure in time aborts all other work, and is what is thrown once nothing is under way any more.
 *
 * @param signal aborts the work for all items
 */
export async function forEachConcurrently<T>(
  items: Iterable<T>,
  limit: number,
  signal: AbortSignal | undefined,
  work: (item: T, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  const abort = (): void => controller.abort(signal?.reason);
  signal?.addEventListener("abort", abort, { once: true });
  let failure: { error: unknown } | undefined;
  const iterator = items[Symbol.iterator]();
  const run = async (): Promise<void> => {
    try {
      for (let item = iterator.next(); !item.done; item = iterator.next()) {
        await work(item.value, controller.signal);
        controller.signal.throwIfAborted();
      }
    } catch (error) {
      failure ??= { error };
      controller.abort(error);
    }
  };
  try {
    await Promise.all(Array.from({ length: limit }, run));
  } finally {
    signal?.removeEventListener("abort", abort);
  }
  if (failure !== undefined) throw failure.error;
}
