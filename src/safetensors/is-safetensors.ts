/** Which of both formats is at a place, by its name. */
import { statSync } from "node:fs";
import { isRepository } from "../source/hub";
import { isRemote } from "../source/url";

/** Whether a path or URL is that of a model of safetensors: a file or an index by its ending, a folder, a repository of the hub. */
export function isSafetensors(place: string): boolean {
  // What follows a file's name in a URL is no part of it.
  const name = /^http/i.test(place) && isRemote(place) ? place.replace(/[?#].*$/s, "") : place;
  if (/\.safetensors(\.index\.json)?$/i.test(name)) return true;
  return isRemote(place) ? isRepository(place) || name.endsWith("/") : isFolder(place);
}

/** Whether a path leads to a folder. Where that may not be looked at, opening it says so. */
export function isFolder(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
  } catch {
    return false;
  }
}
