/**
 * JSON that nobody is trusted to have written, a member at a time: with `JSON.parse` the last of two equal names counts, and
 * nothing tells where in the text something is. Only what is asked for is kept.
 */

import { beginningOf } from "../base/bytes";

/** Values that are skipped may hold so many levels of objects and arrays. */
const MAX_DEPTH = 64;

/** An object may have so many names, as many as a model has tensors at most, and a few more. */
const MAX_NAMES = 2 ** 20 + 16;

/** What is wrong with a text, and where: the number of a character. */
export class JsonFault extends Error {
  readonly at: number;

  constructor(detail: string, at: number) {
    super(detail);
    this.at = at;
  }
}

/** A text of a file as it may be in a message: short, and without control characters. */
export function quotable(text: string): string {
  const escaped = (c: string): string => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return beginningOf(text, 200).replace(/\p{Cc}/gu, escaped);
}

export class JsonReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** The next character that is no white space. */
  get at(): number {
    while (" \n\r\t".includes(this.#text[this.#at] ?? "x")) this.#at++;
    return this.#at;
  }

  /** Reads an object: `member` reads the value of each name. */
  members(member: (name: string, at: number) => void): void {
    const names = new Set<string>();
    this.#list("{", "}", () => {
      const { at } = this;
      const name = this.string();
      if (names.has(name)) throw new JsonFault(`a name is there twice`, at);
      if (names.size === MAX_NAMES) throw new JsonFault(`an object has more than ${MAX_NAMES} names`, at);
      names.add(name);
      this.#expect(":");
      member(name, at);
    });
  }

  /** Reads an array: `item` reads each item. */
  items(item: (at: number) => void): void {
    this.#list("[", "]", () => item(this.at));
  }

  string(): string {
    const begin = this.at;
    this.#expect('"');
    let end = begin;
    let escapes = 0;
    do {
      end = this.#text.indexOf('"', end + 1);
      if (end === -1) throw new JsonFault("a string does not end", begin);
      for (escapes = 0; this.#text[end - 1 - escapes] === "\\"; ) escapes++;
    } while (escapes % 2 === 1);
    this.#at = end + 1;
    let value: string;
    try {
      value = JSON.parse(this.#text.slice(begin, end + 1));
    } catch {
      throw new JsonFault("a string has a character or an escape that JSON does not allow", begin);
    }
    if (/\p{Surrogate}/u.test(value)) throw new JsonFault("a string has half a character", begin);
    return value;
  }

  /** A whole number from 0 to 2^53 - 1. */
  size(): number {
    const { at } = this;
    const [digits = ""] = this.#match(/(?:0|[1-9]\d{0,15})(?![\d.eE])/y) ?? [];
    const value = Number(digits);
    if (digits === "" || value > Number.MAX_SAFE_INTEGER) {
      throw new JsonFault("there must be a whole number from 0 to 2^53 - 1", at);
    }
    return value;
  }

  /** Any value, which is checked and dropped. */
  skip(depth = 0): void {
    const { at } = this;
    const first = this.#text[at];
    if (depth > MAX_DEPTH) throw new JsonFault(`more than ${MAX_DEPTH} levels of nesting`, at);
    if (first === "{") this.members(() => this.skip(depth + 1));
    else if (first === "[") this.items(() => this.skip(depth + 1));
    else if (first === '"') this.string();
    else if (!this.#match(/true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y)) {
      throw new JsonFault("a value is missing here", at);
    }
  }

  /** Nothing but white space may be left. */
  end(): void {
    if (this.at < this.#text.length) throw new JsonFault("the text should end here", this.at);
  }

  #list(open: string, close: string, item: () => void): void {
    this.#expect(open);
    if (this.#text[this.at] === close) {
      this.#at++;
      return;
    }
    do item();
    while (this.#take(","));
    this.#expect(close);
  }

  #take(character: string): boolean {
    if (this.#text[this.at] !== character) return false;
    this.#at++;
    return true;
  }

  #expect(character: string): void {
    if (!this.#take(character)) throw new JsonFault(`there must be '${character}' here`, this.at);
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.#text);
    if (found !== null) this.#at = pattern.lastIndex;
    return found;
  }
}
