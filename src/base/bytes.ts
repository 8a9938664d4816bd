/** Bytes in any runtime: comparing them, swapping their order, the text in them. */

import { Decoder, utf8Into } from "./text-decoder";

const decoder = new Decoder("utf-8", { ignoreBOM: true });

/** The text of UTF-8; what is not UTF-8 becomes U+FFFD. */
export function textOf(bytes: Uint8Array): string {
  // Browsers do not decode shared memory.
  const isShared = typeof SharedArrayBuffer !== "undefined" && bytes.buffer instanceof SharedArrayBuffer;
  return decoder.decode(isShared ? bytes.slice() : bytes);
}

/** The characters at the beginning of a text that have `most` bytes in UTF-8 together; half a surrogate pair is U+FFFD. */
export function beginningOf(text: string, most: number): string {
  const bytes = new Uint8Array(most);
  return textOf(bytes.subarray(0, utf8Into(text, bytes)));
}

/** Whether two arrays have the same bytes. */
export function haveSameBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let at = 0;
  // Four at a time where both are aligned: megabytes are compared.
  if (a.byteOffset % 4 === 0 && b.byteOffset % 4 === 0) {
    const count = Math.floor(a.length / 4);
    const [wordsA, wordsB] = [a, b].map(({ buffer, byteOffset }) => new Int32Array(buffer, byteOffset, count)) as [
      Int32Array,
      Int32Array,
    ];
    for (let i = 0; i < count; i++) if (wordsA[i] !== wordsB[i]) return false;
    at = 4 * count;
  }
  for (; at < a.length; at++) if (a[at] !== b[at]) return false;
  return true;
}

/** Turns numbers of `size` bytes around, in place. */
export function swapBytes(bytes: Uint8Array, size: number): void {
  for (let at = 0; at < bytes.length; at += size) {
    for (let i = at, j = at + size - 1; i < j; i++, j--) {
      const byte = bytes[i] as number;
      bytes[i] = bytes[j] as number;
      bytes[j] = byte;
    }
  }
}

/** Arrays one after the other. */
export function joinBytes(pieces: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    joined.set(piece, at);
    at += piece.length;
  }
  return joined;
}
