/** What waits for signals, and signals for work that does not support them. */

interface Waiting {
  readonly acts: Set<() => void>;
  readonly listener: () => void;
}

/** Of signals that calls under way have. */
const waitingFor = new WeakMap<AbortSignal, Waiting>();

/**
 * Calls `act` when `signal` is aborted from now on, unless the function that is returned was called before. However many
 * calls wait for a signal, it has one listener: of more than ten, Node warns.
 */
export function whenAborted(signal: AbortSignal | undefined, act: () => void): () => void {
  if (signal === undefined || signal.aborted) return () => undefined;
  const { acts, listener } = waitingFor.get(signal) ?? listenTo(signal);
  const mine = (): void => act();
  acts.add(mine);
  return () => {
    if (!acts.delete(mine) || acts.size > 0) return;
    signal.removeEventListener("abort", listener);
    waitingFor.delete(signal);
  };
}

function listenTo(signal: AbortSignal): Waiting {
  const acts = new Set<() => void>();
  const listener = (): void => {
    for (const act of acts) act();
  };
  const waiting = { acts, listener };
  signal.addEventListener("abort", listener, { once: true });
  waitingFor.set(signal, waiting);
  return waiting;
}

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
  let forget: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    else forget = whenAborted(signal, abort);
  });
  try {
    const result = await Promise.race([promise, aborted]);
    if (!signal.aborted) return result;
    throw signal.reason;
  } catch (error) {
    if (signal.aborted) promise.then(discard, () => undefined);
    throw error;
  } finally {
    forget();
  }
}
