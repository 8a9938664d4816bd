/** Files of text that arguments name. */
import { isUtf8 } from "node:buffer";
import { readFileSync } from "node:fs";

/** The text of a file, or of standard input for "-". */
export function textOf(option: string, path: string): string {
  const bytes = readFileSync(path === "-" ? 0 : path);
  if (!isUtf8(bytes)) throw new Error(`${path}: ${option} takes text in UTF-8`);
  return bytes.toString();
}
