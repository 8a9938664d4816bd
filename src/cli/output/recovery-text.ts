/** What was done about an interrupted change. */
import type { Recovery } from "../../index";
import { escapeText } from "./text";

const OUTCOMES: Readonly<Record<Recovery["outcome"], string>> = {
  finished: "an interrupted change was finished",
  undone: "an interrupted change was taken back",
  nothing: "an interrupted change had not begun, or the file was replaced since",
};

/** A line for each change of the model of `path`. */
export function recoveryLines(path: string, done: readonly Recovery[]): string[] {
  return done.map(({ outcome }) => `${escapeText(path)}: ${OUTCOMES[outcome]}`);
}
