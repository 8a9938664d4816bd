/** Writes files under a progress line, and leaves nothing incomplete behind when a command is interrupted. */
import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { Socket } from "node:net";
import { dirname, resolve } from "node:path";
import { escapeText, humanBytes } from "../../describe/text";
import { type Destination, destinationOf } from "../../writer/destination";
import { checkReplaced, type Origin, type Replaced } from "../../writer/replaced-files";
import { watchUnfinished } from "../../writer/unfinished";
import { checkWriteOptions, type WriteOptions } from "../../writer/write-options";
import { type Output, writeOutputs } from "../../writer/write-outputs";
import type { Terminal } from "./terminal";

/** The option of every command that writes a file. */
export const FORCE_OPTION = { force: { type: "boolean" } } as const;

export const FORCE_HELP = "  --force             replaces OUT where it exists already\n";

/** What a dry run says of a file whose place would be taken. */
export function replacedLine(path: string, replaces: Replaced | undefined, force: boolean | undefined): string[] {
  if (replaces === undefined) return [];
  const isAllowed = force || replaces === "input";
  return [escapeText(isAllowed ? `would replace ${path}` : `${path} exists already: only --force replaces it`)];
}

/** What ends a command. */
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Runs `work`, which must stop and clean up when its signal is aborted, under a progress line. A signal that would end the
 * process does so once `work` has stopped; a second one does at once. So does the first one while nothing is half written: it
 * is left to the system then, which ends a process however long its JavaScript is busy.
 * @param force whether files are replaced that are not of the model
 */
export async function interruptible<T>(
  terminal: Terminal,
  label: string,
  force: boolean | undefined,
  work: (options: Required<WriteOptions>) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  let received: NodeJS.Signals | undefined;
  const interrupt = (signal: NodeJS.Signals): void => {
    received = signal;
    controller.abort();
  };
  const stopWatching = watchUnfinished((isUnfinished) => {
    for (const signal of SIGNALS) {
      if (isUnfinished) process.once(signal, interrupt);
      else process.off(signal, interrupt);
    }
  });
  try {
    return await terminal.withProgress(label, 0, (progress) => {
      const onProgress = (done: number, total: number): void => progress.update(done, total);
      const onWarning = (message: string): void => terminal.complain(`warning: ${message}`);
      return work({ signal: controller.signal, onProgress, onWarning, overwrite: force ?? false });
    });
  } finally {
    stopWatching();
    if (received !== undefined) process.kill(process.pid, received);
  }
}

/**
 * Writes files, all or none. A path that is not of a regular file, such as a pipe, and one that is a name of a
 * descriptor, such as /dev/stdout, is written to directly; a reader that stops reading is no error.
 *
 * @param origin what they are made of: no output takes the place of a file that is read
 * @param folder made where it is missing, and removed again where writing fails
 * @returns whether they are files: false where something was written to directly
 */
export async function writeFiles(
  terminal: Terminal,
  label: string,
  outputs: readonly Output[],
  origin: Origin,
  force: boolean | undefined,
  folder?: string,
): Promise<boolean> {
  const [first] = outputs;
  if (first !== undefined && outputs.length === 1 && folder === undefined) {
    const destination = await destinationOf(first.path);
    if (!destination.isReplaced && !destination.existing?.isDirectory()) {
      await checkReplaced([first.path], origin, force ?? false);
      // There is nothing to clean up, so signals end the process at once, however long a pipe waits for its reader.
      await writeDirectly(destination, first.chunks).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "EPIPE") throw error;
      });
      return false;
    }
  }
  await interruptible(terminal, label, force, (options) =>
    inFolder(folder, () => writeOutputs(outputs, origin, checkWriteOptions(options))),
  );
  return true;
}

/** Writes a picture, and says so, but not on standard output, which may be JSON. */
export async function writeSvg(
  path: string,
  svg: string,
  origin: Origin,
  force: boolean | undefined,
  terminal: Terminal,
): Promise<void> {
  const bytes = Buffer.from(svg);
  const chunks = async function* (): AsyncGenerator<Uint8Array, void, undefined> {
    yield bytes;
  };
  const outputs = [{ path, byteLength: bytes.length, chunks: chunks() }];
  const isFile = await writeFiles(terminal, path, outputs, origin, force);
  if (isFile) terminal.log(`${escapeText(path)}: ${humanBytes(bytes.length)}\n`);
}

/** Runs `work` with a folder that is made where it is missing, and removed again where `work` fails. */
export async function inFolder<T>(folder: string | undefined, work: () => Promise<T>): Promise<T> {
  const made = folder === undefined ? undefined : mkdirSync(folder, { recursive: true });
  try {
    return await work();
  } catch (error) {
    if (folder !== undefined && made !== undefined) removeFolders(folder, made);
    throw error;
  }
}

/** Removes `last` and the folders that it is in, up to `first`, while they are empty. */
function removeFolders(last: string, first: string): void {
  const end = resolve(first);
  try {
    for (let folder = resolve(last); ; folder = dirname(folder)) {
      rmdirSync(folder);
      if (folder === end) return;
    }
  } catch {
    // Another program has put something there.
  }
}

/** Writes to a descriptor at its present position; any other path is opened. */
async function writeDirectly({ path, descriptor, existing }: Destination, chunks: Output["chunks"]): Promise<void> {
  const stream = descriptor === 1 ? process.stdout : descriptor === 2 ? process.stderr : undefined;
  if (stream instanceof Socket) {
    // Node has made the descriptor non-blocking: only its stream waits while a pipe is full.
    for await (const chunk of chunks) {
      await new Promise<void>((done, fail) => {
        stream.write(chunk, (error) => (error ? fail(error) : done()));
      });
    }
  } else if (descriptor !== undefined && existing?.isFile()) {
    for await (const chunk of chunks) writeFileSync(descriptor, chunk);
  } else {
    await writeFile(path, chunks);
  }
}
