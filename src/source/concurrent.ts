/** Several at a time, and no more than that. */

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
