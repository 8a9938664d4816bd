/** Which of both formats is at a place, by its name alone. */
import { isRepository } from "../source/hub";
import { isRemote } from "../source/url";

/** Whether a name is that of a file or an index of safetensors, or a URL of a folder or of a repository of the hub. */
export function isSafetensorsName(place: string): boolean {
  // What follows a file's name in a URL is no part of it.
  const name = /^http/i.test(place) && isRemote(place) ? place.replace(/[?#].*$/s, "") : place;
  if (/\.safetensors(\.index\.json)?$/i.test(name)) return true;
  return isRemote(place) && (isRepository(place) || name.endsWith("/"));
}
