/** Finishing or undoing an interrupted change: {@link recover}. */
import { checkPath } from "../file/open";
import { checkWritable } from "../permission-model";
import { busyError, journalsOf, settle } from "./settle";
import { orWriteError } from "./system-calls";

/** What {@link recover} did about one interrupted change. */
export interface Recovery {
  /** The journal of the change, which is gone now. */
  readonly journal: string;
  /**
   * Whether the change was completed, or taken back; "nothing" where it had not begun, or where the file has been
   * replaced since.
   */
  readonly outcome: "finished" | "undone" | "nothing";
}

/**
 * Finishes or takes back what a killed process left half done: a change in place, or several files of which some have
 * their new names. `setMetadata`, `splitModel` and `mergeModel` do so by themselves before they change that model.
 * On the command line, `verify` does so, too. Nothing else that only reads does.
 *
 * @param path a file of the model, or a folder for all models in it
 * @returns what was done: an element for each change that was interrupted
 * @throws GgufError ERR_GGUF_CHANGED while a process is changing the model; ERR_GGUF_WRITE where the journal belongs to
 *   another user, the file is neither as it was before nor as it was to be, or the system refuses
 */
export async function recover(path: string | URL): Promise<Recovery[]> {
  const file = checkPath(path);
  checkWritable(file);
  const done: Recovery[] = [];
  for (const journal of await journalsOf(file)) {
    const result = await orWriteError(journal, settle(journal));
    if (typeof result === "string") throw busyError(file, result);
    if (result !== undefined) done.push(result);
  }
  return done;
}
