/** Runs asynchronous work of the addon with the signal and the progress callback of a caller. */

import { type JobArguments, native, resultOf, type Started } from "../backend/native";
import { whenAborted } from "../base/abortable";
import { checkAsync } from "../base/arguments";
import type { AsyncOptions } from "../base/options";

/**
 * Runs a native job with a caller's signal, progress callback and number of threads. The promise settles after the last worker
 * thread has finished with the job's memory. Aborting cancels the job, and an exception from the callback
 * makes the addon stop it. The promise then rejects with the reason or the exception, and no more progress is
 * reported.
 */
export async function runJob<Result>(
  options: AsyncOptions | undefined,
  begin: (...how: JobArguments) => Started<Result>,
  explain: (error: unknown) => unknown,
): Promise<Result> {
  const { signal, onProgress, threads } = attempt(() => checkAsync(options), explain);
  signal?.throwIfAborted();

  let thrown: { error: unknown } | undefined;
  const report = (done: number, total: number): void => {
    try {
      onProgress?.(done, total);
    } catch (error) {
      thrown = { error };
      throw error;
    }
  };
  const { job, promise } = attempt(() => begin(onProgress && report, threads), explain);
  const forget = whenAborted(signal, () => native.cancel(job));
  try {
    const result = await resultOf(promise);
    signal?.throwIfAborted();
    return result;
  } catch (error) {
    // Throw the callback's own error unchanged, even if it looks like an error of the addon.
    if (thrown !== undefined) throw thrown.error;
    signal?.throwIfAborted();
    throw explain(error);
  } finally {
    forget();
  }
}

/** Calls `run`; if that throws an error, throws the result of `explain` for it. */
export function attempt<T>(run: () => T, explain: (error: unknown) => unknown): T {
  try {
    return run();
  } catch (error) {
    throw explain(error);
  }
}
