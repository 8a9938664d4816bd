/** Which of both formats is at a place, by its name. */
import { statSync } from "node:fs";
import { isRemote } from "../source/url";
import { isSafetensorsName } from "./is-safetensors-name";

/** Whether a path or URL is that of a model of safetensors: a file or an index by its ending, a folder, a repository of the hub. */
export function isSafetensors(place: string): boolean {
  return isSafetensorsName(place) || (!isRemote(place) && isFolder(place));
}

/** Whether a path leads to a folder. Where that may not be looked at, opening it says so. */
export function isFolder(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
  } catch {
    return false;
  }
}
