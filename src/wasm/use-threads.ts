import * as threads from "../backend/wasm/threads";
import { checkThreads } from "../base/arguments";

/**
 * Starts the threads that help with products and with what lies between them, up to `most` with the calling one; 1: none helps. They are
 * workers over one shared memory, in pages that are isolated (`crossOriginIsolated`; docs/browser.md says which headers that takes).
 * Without this call they start at the first work that is worth it, as many as there are processors.
 *
 * @param most how many threads work at most from now on: 1 or more; default: `navigator.hardwareConcurrency`. No more than 16 do
 * @returns a promise for how many there are: 1 where the page is not isolated, or its policy has no `worker-src blob:`
 * @throws TypeError or GgufError ERR_GGUF_RANGE if `most` is no positive whole number
 */
export async function useThreads(most?: number): Promise<number> {
  return threads.useThreads(checkThreads(most) ?? Number.POSITIVE_INFINITY);
}
