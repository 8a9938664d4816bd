/** Waiting, in any runtime. */
import { whenAborted } from "./abortable";

type Deferring = (callback: () => void) => unknown;

/** Calls back in another turn of the event loop; chosen when it is first needed. */
let inNextTurn: Deferring | undefined;

/** Browsers have no `setImmediate`, and some realms of test runners neither; timers wait for some milliseconds. */
function fastest(): Deferring {
  const { setImmediate } = globalThis as { setImmediate?: Deferring };
  if (setImmediate !== undefined) return setImmediate;
  return typeof MessageChannel === "undefined" ? (callback) => setTimeout(callback, 0) : byMessage();
}

function byMessage(): Deferring {
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
  inNextTurn ??= fastest();
  const defer = inNextTurn;
  return new Promise((resolve) => void defer(resolve));
}

/** Resolves after so many milliseconds, or as soon as `signal` is aborted. */
export function delay(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      forget();
      resolve();
    };
    const timer = setTimeout(done, ms);
    const forget = whenAborted(signal, done);
    if (signal?.aborted) done();
  });
}
