/** What was done about an interrupted change. */

import { escapeText } from "../../describe/text";
import type { Recovery } from "../../index";

const OUTCOMES: Readonly<Record<Recovery["outcome"], string>> = {
  finished: "an interrupted change was finished",
  undone: "an interrupted change was taken back",
  nothing: "an interrupted change had not begun, or the file was replaced since",
  removed: "removed: a command that was killed had left it",
};

/** A line for each change of the model of `path`, and for each file that was removed. */
export function recoveryLines(path: string, done: readonly Recovery[]): string[] {
  return done.map((each) => {
    const subject = each.outcome === "removed" ? each.temporary : path;
    return `${escapeText(subject)}: ${OUTCOMES[each.outcome]}`;
  });
}
