/** The tokens of a text, as they are shown: what each is in the text, and its bytes. */
import { escapeText, shorten } from "#dist/describe/text";
import type { Tokenizer } from "#dist/tokenizer/tokenizer";

export interface TextToken {
  readonly id: number;
  /** What the token is in the text; bytes that are no whole characters as `\xf0`. */
  readonly text: string;
  /** Two digits for each byte, "f0 9f". */
  readonly bytes: string;
}

export interface TextTokens {
  /** The first ones. */
  readonly tokens: readonly TextToken[];
  /** How many there are, shown or not. */
  readonly count: number;
}

/** The most tokens that are shown, and the most bytes of each. */
const MOST_TOKENS = 1000;
const MOST_BYTES = 64;

/** @throws GgufError where the vocabulary lacks a byte of the text */
export function textTokens(tokenizer: Tokenizer, text: string, special: boolean): TextTokens {
  const ids = tokenizer.encode(text, { special });
  const tokens = Array.from(ids.subarray(0, MOST_TOKENS), (id) => {
    const all = tokenizer.bytes(id, { special: true });
    const bytes = Array.from(all.subarray(0, MOST_BYTES), (byte) => byte.toString(16).padStart(2, "0"));
    return { id, text: shorten(textOf(all, bytes), MOST_BYTES), bytes: bytes.join(" ") };
  });
  return { tokens, count: ids.length };
}

function textOf(bytes: Uint8Array, digits: readonly string[]): string {
  try {
    return escapeText(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    return digits.map((digit) => `\\x${digit}`).join("");
  }
}
