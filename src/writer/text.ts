/** Metadata values from text, as a command line has them: {@link parseMetadataValue}. */
import { GgufError, invalidArgType } from "../errors";
import type { GgufTypeName } from "../metadata";
import { checkType, type GgufInput, type GgufInputType } from "./values";

/**
 * Turns text into a metadata value.
 *
 * @param text `true`, `false`, a number (`1e-5`, `inf` and `nan` too), any text for a string, and for an array its
 *   elements in JSON: `[1, 2, 3]`
 * @param type what the value is declared as; where it is absent, text that reads as one of the above becomes that, and
 *   anything else is a string
 * @throws GgufError ERR_GGUF_METADATA_TYPE for text that does not read as a value of `type`
 */
export function parseMetadataValue(text: string, type?: GgufInputType): GgufInput {
  if (typeof text !== "string") throw invalidArgType("text", "of type string", text);
  const declared = checkType(type);
  if (declared === undefined) return guess(text);
  if (declared.type === "array") return parseArray(text, declared.elementType);
  return parseScalar(text, declared.type);
}

const INTEGER = /^[+-]?\d+$/;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const SPECIAL = new Map([
  ["nan", Number.NaN],
  ["inf", Number.POSITIVE_INFINITY],
  ["infinity", Number.POSITIVE_INFINITY],
  ["-inf", Number.NEGATIVE_INFINITY],
  ["-infinity", Number.NEGATIVE_INFINITY],
]);

function guess(text: string): GgufInput {
  if (text === "true" || text === "false") return text === "true";
  if (INTEGER.test(text)) return integer(text);
  if (NUMBER.test(text)) return Number(text);
  if (!text.startsWith("[")) return text;
  try {
    return JSON.parse(text) as GgufInput;
  } catch {
    return text; // such as "[INST] ..."
  }
}

function integer(text: string): number | bigint {
  const value = BigInt(text.replace(/^\+/, ""));
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

function parseScalar(text: string, type: Exclude<GgufTypeName, "array">): GgufInput {
  if (type === "string") return text;
  const trimmed = text.trim();
  if (type === "bool") {
    if (trimmed === "true" || trimmed === "false") return trimmed === "true";
  } else if (type === "float32" || type === "float64") {
    const special = SPECIAL.get(trimmed.toLowerCase());
    if (special !== undefined) return special;
    if (NUMBER.test(trimmed)) return Number(trimmed);
  } else if (INTEGER.test(trimmed)) {
    return integer(trimmed);
  }
  throw unreadable(text, `a value of type ${type}`);
}

/** Numbers too large for JSON, and those that it does not have, come as strings. */
function parseArray(text: string, type: GgufTypeName): GgufInput {
  let array: unknown;
  try {
    array = JSON.parse(text);
  } catch {
    throw unreadable(text, "an array in JSON");
  }
  if (!Array.isArray(array)) throw unreadable(text, "an array in JSON");
  if (type === "array") return array as GgufInput;
  return array.map((element: unknown) =>
    typeof element === "string" ? parseScalar(element, type) : element,
  ) as GgufInput;
}

function unreadable(text: string, what: string): GgufError {
  const shown = text.length > 40 ? `${text.slice(0, 37)}...` : text;
  return new GgufError("ERR_GGUF_METADATA_TYPE", `'${shown}' is not ${what}`);
}
