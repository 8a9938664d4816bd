/** Metadata values from text, as a command line has them: {@link parseMetadataValue}. */
import { GgufError, invalidArgType } from "../base/errors";
import type { GgufTypeName } from "../base/metadata-values";
import { type ExactJson, isJson, parseExactJson } from "./exact-json";
import { checkType, type GgufInput, type GgufInputType } from "./values";

/**
 * Turns text into a metadata value.
 *
 * @param text `true`, `false`, a number (`1e-5`, `inf` and `nan` too), any text for a string, and for an array its
 *   elements in JSON: `[1, 2, 3]`. Whole numbers are exact, however large, in arrays as well
 * @param type what the value is declared as; where it is absent, text that reads as one of the above becomes that, and
 *   anything else is a string
 * @throws GgufError ERR_GGUF_METADATA_TYPE for text that does not read as a value of `type`; ERR_GGUF_METADATA_RANGE for
 *   a decimal that is too large for a float64, and for a whole number of more than 1000 digits
 */
export function parseMetadataValue(text: string, type?: GgufInputType): GgufInput {
  if (typeof text !== "string") throw invalidArgType("text", "of type string", text);
  const declared = checkType(type);
  if (declared === undefined) return guess(text);
  if (declared.type === "array") return parseArray(text, declared.elementType);
  return parseScalar(text, declared.type);
}

/** What `--from` of the command line reads: whole numbers are exact. @throws GgufError as parseExactJson @internal */
export function parseChangesJson(text: string): ExactJson {
  return parseExactJson(text, number);
}

const INTEGER = /^[+-]?\d+$/;
// A digit can be matched in one way only: it does not take time that grows with the square of the length.
const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;
/** A whole number has 20 digits at most, in 64 bits. Turning digits into a bigint takes time that grows with their square. */
const MAX_DIGITS = 1000;
const SPECIAL = new Map([
  ["nan", Number.NaN],
  ["inf", Number.POSITIVE_INFINITY],
  ["infinity", Number.POSITIVE_INFINITY],
  ["-inf", Number.NEGATIVE_INFINITY],
  ["-infinity", Number.NEGATIVE_INFINITY],
]);

function guess(text: string): GgufInput {
  if (text === "true" || text === "false") return text === "true";
  if (NUMBER.test(text)) return number(text);
  // Text such as "[INST] ..." is no array.
  if (text.startsWith("[") && isJson(text)) return parseExactJson(text, number) as GgufInput;
  return SPECIAL.get(text.toLowerCase()) ?? text;
}

function number(text: string): number | bigint {
  return INTEGER.test(text) ? integer(text) : decimal(text);
}

function integer(text: string): number | bigint {
  const value = Number(text);
  if (Number.isSafeInteger(value)) return value;
  if (text.length <= MAX_DIGITS) return BigInt(text.replace(/^\+/, ""));
  const detail = `${shortened(text)} has ${text.length} digits, more than any number in a file`;
  throw new GgufError("ERR_GGUF_METADATA_RANGE", detail);
}

function decimal(text: string): number {
  const value = Number(text);
  if (Number.isFinite(value)) return value;
  const detail = `${shortened(text)} does not fit in a float64; infinity is 'inf'`;
  throw new GgufError("ERR_GGUF_METADATA_RANGE", detail);
}

function isFloat(type: GgufTypeName): boolean {
  return type === "float32" || type === "float64";
}

function parseScalar(text: string, type: Exclude<GgufTypeName, "array">): GgufInput {
  if (type === "string") return text;
  const trimmed = text.trim();
  if (type === "bool") {
    if (trimmed === "true" || trimmed === "false") return trimmed === "true";
  } else if (isFloat(type)) {
    const special = SPECIAL.get(trimmed.toLowerCase());
    if (special !== undefined) return special;
    if (NUMBER.test(trimmed)) return decimal(trimmed);
  } else if (INTEGER.test(trimmed)) {
    return integer(trimmed);
  }
  throw unreadable(text, `a value of type ${type}`);
}

/** Numbers that JSON does not have come as strings. */
function parseArray(text: string, type: GgufTypeName): GgufInput {
  // What begins with a bracket is meant as JSON: the error says where it is none.
  const array = text.trimStart().startsWith("[") ? parseExactJson(text, isFloat(type) ? decimal : number) : undefined;
  if (!Array.isArray(array)) throw unreadable(text, "an array in JSON");
  if (type === "array") return array as GgufInput;
  return array.map((element) => (typeof element === "string" ? parseScalar(element, type) : element)) as GgufInput;
}

function unreadable(text: string, what: string): GgufError {
  return new GgufError("ERR_GGUF_METADATA_TYPE", `${shortened(text)} is not ${what}`);
}

function shortened(text: string): string {
  return `'${text.length > 40 ? `${text.slice(0, 37)}...` : text}'`;
}
