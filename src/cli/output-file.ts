/** A file that appears under its name only when it is complete. */
import { randomBytes } from "node:crypto";
import { realpathSync, rmSync, statSync } from "node:fs";
import { type FileHandle, open, rename } from "node:fs/promises";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Temporary files that are there now: whatever ends the process removes them. */
const unfinished = new Set<string>();

function removeUnfinished(): void {
  for (const path of unfinished) rmSync(path, { force: true });
  unfinished.clear();
}

function interrupted(signal: NodeJS.Signals): void {
  removeUnfinished();
  stopWatching();
  process.kill(process.pid, signal);
}

function startWatching(): void {
  if (unfinished.size > 0) return;
  for (const signal of SIGNALS) process.once(signal, interrupted);
  process.once("exit", removeUnfinished);
}

function stopWatching(): void {
  if (unfinished.size > 0) return;
  for (const signal of SIGNALS) process.off(signal, interrupted);
  process.off("exit", removeUnfinished);
}

/**
 * Writes a file through `write`, under another name until it is complete; where that fails nothing is left behind, and
 * what had the name before stays. What is no regular file, such as a pipe, is written to as it is.
 */
export async function writeFile(path: string, write: (file: FileHandle) => Promise<void>): Promise<void> {
  const existing = statSync(path, { throwIfNoEntry: false });
  if (existing !== undefined && !existing.isFile()) {
    const file = await open(path, "w");
    await write(file).finally(() => file.close());
    return;
  }
  // Through a link, so that it stays one.
  const target = existing === undefined ? path : realpathSync(path);
  const temporary = `${target}.${randomBytes(4).toString("hex")}.tmp`;
  startWatching(); // before there is anything to remove
  unfinished.add(temporary);
  try {
    const file = await open(temporary, "wx", existing?.mode);
    await write(file).finally(() => file.close());
    await rename(temporary, target);
  } finally {
    rmSync(temporary, { force: true });
    unfinished.delete(temporary);
    stopWatching();
  }
}
