/** What a search finds: words that a text has, and globs of names as on the command line. */
import { globMatcher, isGlob } from "#dist/base/glob";

/**
 * Whether a name, or a text that says more of it, has every word of a search, however they are written in capitals. A word
 * that could be meant as a glob also finds the names that match it as a whole.
 */
export function searchMatcher(search: string): (name: string, text: string) => boolean {
  const words = search
    .toLowerCase()
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => ({ word, matches: isGlob(word) ? globMatcher(word) : undefined }));
  return (name, text) => {
    const [lowName, lowText] = [name.toLowerCase(), text.toLowerCase()];
    return words.every(({ word, matches }) => lowText.includes(word) || matches?.(lowName));
  };
}
