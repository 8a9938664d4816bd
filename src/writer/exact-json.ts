/**
 * JSON as it is written: JSON.parse rounds numbers beyond 2^53, keeps the last of two equal keys, and moves keys that look
 * like indexes to the front. `scripts/build/bundle-packages.mjs` puts the parser into this file once it is compiled, so that the
 * package depends on nothing.
 */
import { ParseErrorCode, visit } from "jsonc-parser";
import { errorAbout, GgufError } from "../base/errors";

/** Metadata has 64 levels of arrays at most; around them are a few objects. */
const MAX_DEPTH = 100;

/** An object, with its keys in the order of the text; an array; a string, boolean or null; or what a number is read as. */
export type ExactJson = Map<string, ExactJson> | ExactJson[] | string | boolean | null | number | bigint;

/** Whether text is JSON. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Parses JSON, with each number read by `read` from its own text.
 * @throws GgufError ERR_GGUF_METADATA_TYPE, with line and column, for text that is no JSON, for a key that an object has
 *   twice, and for more than 100 levels; whatever `read` throws
 */
export function parseExactJson(text: string, read: (number: string) => number | bigint): ExactJson {
  /** What is not complete, from the outside in. */
  const open: (Map<string, ExactJson> | ExactJson[])[] = [];
  let key = "";
  let result: ExactJson = null;
  const put = (value: ExactJson): void => {
    const container = open.at(-1);
    if (container === undefined) result = value;
    else if (Array.isArray(container)) container.push(value);
    else container.set(key, value);
  };
  const begin = (value: Map<string, ExactJson> | ExactJson[], line: number, column: number): void => {
    if (open.length === MAX_DEPTH) throw wrong(`more than ${MAX_DEPTH} levels of nesting`, line, column);
    put(value);
    open.push(value);
  };
  visit(
    text,
    {
      onObjectBegin: (_offset, _length, line, column) => begin(new Map(), line, column),
      onArrayBegin: (_offset, _length, line, column) => begin([], line, column),
      onObjectEnd: () => void open.pop(),
      onArrayEnd: () => void open.pop(),
      onObjectProperty: (name, _offset, _length, line, column) => {
        const object = open.at(-1) as Map<string, ExactJson>;
        if (object.has(name)) throw wrong(`the key '${name}' is there twice`, line, column);
        key = name;
      },
      onLiteralValue: (value, offset, length, line, column) => {
        if (typeof value !== "number") return put(value);
        try {
          put(read(text.slice(offset, offset + length)));
        } catch (error) {
          throw error instanceof GgufError ? errorAbout(error, {}, place(line, column)) : error;
        }
      },
      onError: (code, _offset, _length, line, column) => {
        const detail = `not JSON: ${place(line, column)}${ERRORS[code]}`;
        throw new GgufError("ERR_GGUF_METADATA_TYPE", detail);
      },
    },
    { disallowComments: true, allowTrailingComma: false, allowEmptyContent: false },
  );
  return result;
}

function wrong(detail: string, line: number, column: number): GgufError {
  return new GgufError("ERR_GGUF_METADATA_TYPE", place(line, column) + detail);
}

/** Both are counted from 0 by the parser. */
function place(line: number, column: number): string {
  return `line ${line + 1}, column ${column + 1}: `;
}

const ERRORS: Readonly<Record<ParseErrorCode, string>> = {
  [ParseErrorCode.InvalidSymbol]: "there is no such word in JSON",
  [ParseErrorCode.InvalidNumberFormat]: "this is no number",
  [ParseErrorCode.PropertyNameExpected]: "a key in quotes is missing here",
  [ParseErrorCode.ValueExpected]: "a value is missing here",
  [ParseErrorCode.ColonExpected]: "a colon is missing here",
  [ParseErrorCode.CommaExpected]: "a comma is missing here",
  [ParseErrorCode.CloseBraceExpected]: "a closing brace is missing here",
  [ParseErrorCode.CloseBracketExpected]: "a closing bracket is missing here",
  [ParseErrorCode.EndOfFileExpected]: "the text should end here",
  [ParseErrorCode.InvalidCommentToken]: "there are no comments in JSON",
  [ParseErrorCode.UnexpectedEndOfComment]: "there are no comments in JSON",
  [ParseErrorCode.UnexpectedEndOfString]: "this string does not end",
  [ParseErrorCode.UnexpectedEndOfNumber]: "this number does not end",
  [ParseErrorCode.InvalidUnicode]: "\\u takes four hexadecimal digits",
  [ParseErrorCode.InvalidEscapeCharacter]: "there is no such escape in JSON",
  [ParseErrorCode.InvalidCharacter]: "a control character must be escaped",
};
