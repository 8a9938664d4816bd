/** Waiting, in any runtime. */

type Immediate = ((callback: () => void) => unknown) | undefined;

/** What browsers lack. Timers do not take its place: they wait for at least some milliseconds. */
const immediate = (globalThis as { setImmediate?: Immediate }).setImmediate;

/** Calls back in another turn of the event loop. */
const inNextTurn: (callback: () => void) => unknown = immediate ?? byMessage();

function byMessage(): (callback: () => void) => void {
  const waiting: (() => void)[] = [];
  const { port1, port2 } = new MessageChannel();
  port1.addEventListener("message", () => waiting.shift()?.());
  port1.start();
  return (callback) => {
    waiting.push(callback);
    port2.postMessage(undefined);
  };
}

/** Resolves in another turn of the event loop: what is waiting gets its turn before. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    inNextTurn(resolve);
  });
}

/** Resolves after so many milliseconds, or as soon as `signal` is aborted. */
export function delay(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    if (signal?.aborted) done();
    else signal?.addEventListener("abort", done, { once: true });
  });
}
