/** Strings that the module found, of which many are decoded at once. */
import { Decoder } from "../../base/text-decoder";
import { failure } from "./failure";

/** About so many bytes at once: a string may be a slice of these, and then keeps all of them. */
const BATCH_BYTES = 2 ** 16;

/** Instead of the length of a string that is not UTF-8. */
const NOT_UTF8 = 0xffff_ffff;

const decoder = new Decoder("utf-8", { ignoreBOM: true });

/** Takes strings from text that is joined without anything between them. */
export class Texts {
  readonly #text: Uint8Array;
  #at = 0;

  constructor(text: Uint8Array) {
    this.#text = text;
  }

  /** The next strings. `sizes` has two numbers for each: its bytes and its UTF-16 code units. */
  take(sizes: Uint32Array): string[] {
    const strings: string[] = [];
    for (let i = 0; i < sizes.length; ) {
      let end = i;
      let byteLength = 0;
      for (; end < sizes.length && byteLength < BATCH_BYTES && sizes[end + 1] !== NOT_UTF8; end += 2) {
        byteLength += sizes[end]!;
      }
      if (end === i) {
        strings.push(this.#next(sizes[i]!));
        i += 2;
        continue;
      }
      const joined = this.#next(byteLength);
      for (let from = 0; i < end; i += 2) {
        const to = from + sizes[i + 1]!;
        strings.push(joined.slice(from, to));
        from = to;
      }
    }
    return strings;
  }

  #next(byteLength: number): string {
    const bytes = this.#text.subarray(this.#at, this.#at + byteLength);
    this.#at += byteLength;
    try {
      return decoder.decode(bytes);
    } catch {
      const detail = `a string of ${byteLength} bytes is longer than this runtime allows`;
      throw failure("ERR_GGUF_OUT_OF_MEMORY", detail);
    }
  }
}
