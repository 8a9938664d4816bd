/** Changing the header of a file where it is. */
import { basename } from "node:path";
import { destinationOf } from "./destination";
import { checkInput, type InputFile } from "./input-file";
import { Journal } from "./journal";
import { journalPath, type OverwritePlan } from "./journal-file";
import { orWriteError } from "./system-calls";
import { unfinished } from "./unfinished";

/** Bytes of a file that differ, from the first one to the last. */
export interface HeaderChange {
  readonly offset: number;
  readonly before: Uint8Array;
  readonly after: Uint8Array;
}

/** What the system takes over from one write as a whole, whatever happens to the process. */
const PAGE_BYTES = 4096;

/**
 * What differs between the header of a file and a new one. Room that the old one took beyond the new one becomes zero.
 */
export async function changeOf({ source, header }: InputFile, bytes: Uint8Array): Promise<HeaderChange> {
  const length = Math.min(Math.max(header.byteLength, bytes.length), source.byteLength);
  const before = new Uint8Array(length);
  await source.read(0, before);
  const after = new Uint8Array(length);
  after.set(bytes.subarray(0, length));
  const offset = before.findIndex((byte, i) => byte !== after[i]);
  if (offset < 0) return { offset: 0, before: new Uint8Array(), after: new Uint8Array() };
  const end = before.findLastIndex((byte, i) => byte !== after[i]) + 1;
  return { offset, before: before.subarray(offset, end), after: after.subarray(offset, end) };
}

/** Whether one write within one page makes the change: then every reader sees the old file or the new one. */
export function isAtomic({ offset, after }: HeaderChange): boolean {
  return Math.floor(offset / PAGE_BYTES) >= Math.floor((offset + after.length - 1) / PAGE_BYTES);
}

/**
 * Makes a change while no other process changes the model. One that is not {@link isAtomic} is written down first, so
 * that `recover` can take it back.
 */
export async function changeInPlace(input: InputFile, change: HeaderChange, signal?: AbortSignal): Promise<void> {
  const { source } = input;
  await unfinished(() => orWriteError(source.path, changeUnderJournal(input, change, signal), signal));
}

async function changeUnderJournal(
  input: InputFile,
  change: HeaderChange,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { source } = input;
  const { path } = await destinationOf(source.path);
  const needsPlan = !isAtomic(change);
  const journal = await Journal.acquire(journalPath(path), signal).catch((error) => {
    // In a folder that cannot be written to, nobody can have a journal.
    if (needsPlan || !["EACCES", "EPERM", "EROFS"].includes(error.code)) throw error;
    return undefined;
  });
  try {
    await checkInput(input);
    if (change.after.length === 0) return;
    if (needsPlan) {
      const { ino } = await source.stat();
      const plan: OverwritePlan = {
        kind: "overwrite",
        target: basename(path),
        inode: String(ino),
        ...change,
      };
      await journal?.record(plan);
    }
    await journal?.check();
    await source.overwrite(change.offset, change.after);
  } finally {
    await journal?.release();
  }
}
