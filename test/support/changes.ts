/** What somebody else does to files. */
import { closeSync, openSync, renameSync, writeFileSync, writeSync } from "node:fs";

/** Writes some bytes of it in place. */
export function patch(path: string, bytes: Uint8Array, at: number): void {
  const file = openSync(path, "r+");
  writeSync(file, bytes, 0, bytes.length, at);
  closeSync(file);
}

/** Puts another file under its name. */
export function replace(path: string, bytes: Uint8Array): void {
  writeFileSync(`${path}.new`, bytes);
  renameSync(`${path}.new`, path);
}
