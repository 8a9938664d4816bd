/** Running asynchronous work of the addon under the signal and the progress callback of a caller. */
import { checkProgress, checkSignal } from "../arguments";
import { type NativeJob, type NativeOut, native } from "../native";
import type { AsyncOptions } from "./options";

/**
 * Runs a native job under a caller's signal and progress callback. The promise settles once no worker touches the
 * job's memory any more; an exception from the callback stops the job and becomes the rejection.
 */
export async function runJob(
  options: AsyncOptions | undefined,
  begin: (onProgress: AsyncOptions["onProgress"]) => { job: NativeJob; promise: Promise<NativeOut> },
  explain: (error: unknown) => unknown,
): Promise<NativeOut> {
  const signal = checkSignal(options?.signal);
  const onProgress = checkProgress(options?.onProgress);
  signal?.throwIfAborted();

  let failure: { error: unknown } | undefined;
  const report = (done: number, total: number): void => {
    if (failure !== undefined || signal?.aborted) return;
    try {
      onProgress?.(done, total);
    } catch (error) {
      failure = { error };
      native.cancel(job);
    }
  };
  const { job, promise } = attempt(() => begin(onProgress && report), explain);
  const cancel = (): void => native.cancel(job);
  signal?.addEventListener("abort", cancel, { once: true });
  try {
    const result = await promise;
    if (failure === undefined) {
      signal?.throwIfAborted();
      return result;
    }
  } catch (error) {
    if (failure === undefined) {
      signal?.throwIfAborted();
      throw explain(error);
    }
  } finally {
    signal?.removeEventListener("abort", cancel);
  }
  throw failure.error;
}

/** Runs `run`; throws what `explain` makes of an error. */
export function attempt<T>(run: () => T, explain: (error: unknown) => unknown): T {
  try {
    return run();
  } catch (error) {
    throw explain(error);
  }
}
