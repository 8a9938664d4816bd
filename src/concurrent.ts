/** Asynchronous work on many items, several at a time. */
import { setMaxListeners } from "node:events";

/**
 * Runs `work` on every item, on up to `limit` of them at a time, in their order. The signal that it passes on is aborted
 * by `signal`, and by the first failure; with that failure it rejects, once no work runs any more.
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
