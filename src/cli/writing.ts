/** Writing files from the command line: with a progress line, and so that nothing half done is left when interrupted. */
import { statSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { type Output, type WriteOptions, writeOutputs } from "../writer/output-file";
import { withProgress } from "./terminal";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Runs `work`, which is to stop and clean up when its signal is aborted, under a progress line. A signal that would end
 * the process does so once `work` has stopped; a second one does at once.
 */
export async function writing<T>(
  label: string,
  work: (options: Required<Pick<WriteOptions, "signal" | "onProgress">>) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  let received: NodeJS.Signals | undefined;
  const interrupt = (signal: NodeJS.Signals): void => {
    received = signal;
    controller.abort();
  };
  for (const signal of SIGNALS) process.once(signal, interrupt);
  try {
    return await withProgress(label, 0, (progress) => {
      const onProgress = (done: number, total: number): void => progress.update(done, total);
      return work({ signal: controller.signal, onProgress });
    });
  } finally {
    for (const signal of SIGNALS) process.off(signal, interrupt);
    if (received !== undefined) process.kill(process.pid, received);
  }
}

/** Writes files, all or none. What is there and no regular file, such as a pipe, is written to as it is. */
export async function writeFiles(label: string, outputs: readonly Output[]): Promise<void> {
  await writing(label, async ({ signal, onProgress }) => {
    const [first] = outputs;
    const existing = first && statSync(first.path, { throwIfNoEntry: false });
    if (outputs.length > 1 || !first || !existing || existing.isFile() || existing.isDirectory()) {
      await writeOutputs(outputs, signal, onProgress);
      return;
    }
    await writeFile(first.path, first.chunks, { signal });
  });
}
