/** Finishing or undoing an interrupted change: {@link recover}. */

import { checkWritable } from "../backend/permission-model";
import { checkPath } from "../file/open";
import { removeLeftovers } from "./leftovers";
import { busyError, folderOf, journalsOf, settle } from "./settle";
import { orWriteError } from "./system-calls";

/** What {@link recover} did: about one interrupted change, or with one file. */
export type Recovery =
  | {
      /** The journal of the change, which is gone now. */
      readonly journal: string;
      /**
       * Whether the change was completed, or taken back; "nothing" where it had not begun, or where the file has been
       * replaced since.
       */
      readonly outcome: "finished" | "undone" | "nothing";
    }
  | {
      /** A temporary file that a killed process left, and nothing needs. */
      readonly temporary: string;
      /** It was removed. */
      readonly outcome: "removed";
    };

/**
 * Finishes or takes back what a killed process left half done: a change in place, or several files of which some have
 * their new names. Then removes the temporary files that such processes left in the folder: those that this user wrote,
 * on this machine, and that no journal needs. `setMetadata`, `splitModel` and `mergeModel` do so by themselves before they
 * change that model, and every writer removes what is left in the folder that it writes to. Nothing that only reads does.
 *
 * @param path a file of the model, or a folder for all models in it
 * @returns what was done: an element for each change that was interrupted, and for each file that was removed
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
  for (const temporary of await removeLeftovers(await folderOf(file))) {
    done.push({ temporary, outcome: "removed" });
  }
  return done;
}
