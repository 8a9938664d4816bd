/** Files of texts, one a line, or one in each line of JSON. */
import { isUtf8 } from "node:buffer";

/** A text, and where it is. */
export interface TextLine {
  /** From 1. */
  readonly line: number;
  readonly text: string;
  /** The line as it is, where it is JSON. */
  readonly json?: string;
  /** Its member "embedding", where it has one. */
  readonly embedding?: unknown;
}

/** What a line of JSON has its vector in. */
export const VECTOR_FIELD = "embedding";

/** The texts of a file, read whole, which are made line by line. */
export class TextLines implements Iterable<TextLine> {
  readonly #path: string;
  readonly #bytes: Buffer;
  readonly #field: string | undefined;

  /**
   * @param path for messages
   * @param field which member of each line is the text; undefined where lines are texts
   */
  constructor(path: string, bytes: Buffer, field: string | undefined) {
    this.#path = path;
    this.#bytes = bytes;
    this.#field = field;
  }

  /** @throws Error that names the line */
  *[Symbol.iterator](): Generator<TextLine, void, undefined> {
    const bytes = this.#bytes;
    let number = 1;
    for (let at = 0; at < bytes.length; number++) {
      const found = bytes.indexOf(10, at);
      const end = found < 0 ? bytes.length : found;
      const line = bytes.subarray(at, bytes[end - 1] === 13 && end > at ? end - 1 : end);
      at = end + 1;
      if (!isUtf8(line)) throw this.error(number, "it is not UTF-8");
      const text = number === 1 ? line.toString().replace(/^\ufeff/, "") : line.toString();
      yield this.#field === undefined ? { line: number, text } : this.#ofJson(number, text, this.#field);
    }
  }

  /** An error in a line. */
  error(number: number, detail: string): Error {
    return new Error(`${this.#path}: line ${number}: ${detail}`);
  }

  #ofJson(number: number, json: string, field: string): TextLine {
    let value: unknown;
    try {
      value = JSON.parse(json);
    } catch (error) {
      throw this.error(number, json.trim() === "" ? "it is empty" : `no JSON: ${(error as Error).message}`);
    }
    if (typeof value !== "object" || value === null || Array.isArray(value))
      throw this.error(number, "it is no JSON object");
    const member = (name: string): unknown => Object.getOwnPropertyDescriptor(value, name)?.value;
    const text = member(field);
    if (typeof text !== "string")
      throw this.error(number, `'${field}' is ${text === undefined ? "not there" : "no text"}`);
    return { line: number, text, json, embedding: member(VECTOR_FIELD) };
  }
}
