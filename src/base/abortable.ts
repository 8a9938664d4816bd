/** Signals for work that does not support them. */

/**
 * Settles as `promise` does, or rejects with the signal's reason as soon as it is aborted. The work itself
 * cannot be stopped: its result is then passed to `discard`.
 */
export async function abortable<T>(
  promise: Promise<T>,
  signal: AbortSignal | undefined,
  discard: (result: T) => void,
): Promise<T> {
  if (signal === undefined) return promise;
  let abort: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
  try {
    const result = await Promise.race([promise, aborted]);
    if (!signal.aborted) return result;
    throw signal.reason;
  } catch (error) {
    if (signal.aborted) promise.then(discard, () => undefined);
    throw error;
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
