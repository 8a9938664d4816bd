/** What becomes of the keys of a file, by the arguments of `set`. */

import {
  type GgufInput,
  type GgufInputType,
  type GgufMetadata,
  type MetadataChange,
  parseMetadataValue,
} from "../../index";
import { parseExactJson } from "../../writer/text";
import { globMatcher, isGlob } from "./glob";
import { UsageError } from "./parse";
import { textOf } from "./text-files";

export type Change = readonly [key: string, change: MetadataChange];

export const CHAT_TEMPLATE = "tokenizer.chat_template";

/** Pairs of KEY and VALUE, all of one type if one is given. */
export function pairChanges(words: readonly string[], type: GgufInputType | undefined): Change[] {
  if (words.length % 2 === 1) throw new UsageError(`missing VALUE after '${words.at(-1)}'`);
  return words.flatMap((key, i) =>
    i % 2 === 0 ? [[key, { text: words[i + 1] as string, type }] as const] : [],
  );
}

/** The keys of a file that a name or a glob stands for. */
export function keysNamed(metadata: GgufMetadata, pattern: string): string[] {
  if (metadata.has(pattern)) return [pattern];
  if (!isGlob(pattern)) return [];
  return Array.from(metadata.keys()).filter(globMatcher(pattern));
}

/**
 * The changes that JSON describes: an object by key, with values as they are, or as `inspect --json` writes them, with
 * their type. `null` removes a key. What `inspect --json` prints is understood as a whole, too.
 */
export function jsonChanges(path: string): Change[] {
  const text = textOf("--from", path);
  let json: unknown;
  try {
    JSON.parse(text);
    json = parseExactJson(text);
  } catch (error) {
    throw new Error(`${path}: not JSON: ${(error as Error).message}`);
  }
  const top = objectOf(json);
  const inner = top && Object.hasOwn(top, "metadata") ? objectOf(top.metadata) : undefined;
  const entries = inner !== undefined && !Object.hasOwn(inner, "type") ? inner : top;
  if (entries === undefined) throw new Error(`${path}: --from takes an object in JSON, by key`);
  return Object.entries(entries).map(([key, value]): Change => {
    if (value === null) return [key, undefined];
    const declared = objectOf(value);
    try {
      return [key, declared === undefined ? { value: value as GgufInput } : typedChange(declared)];
    } catch (error) {
      throw new Error(`${path}: metadata key '${key}': ${(error as Error).message}`);
    }
  });
}

function objectOf(value: unknown): Record<string, unknown> | undefined {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? (value as Record<string, unknown>) : undefined;
}

/** A value with its type, as `inspect --json` writes it: numbers that JSON lacks are text, other bytes hexadecimal. */
function typedChange({ type, elementType, value, bytes }: Record<string, unknown>): MetadataChange {
  if (typeof type !== "string" || value === undefined) {
    throw new Error("must be a value, or an object with a type and a value");
  }
  if (type !== "array") {
    const exact = typeof bytes === "string" ? Buffer.from(bytes, "hex") : plain(value, type);
    return { value: exact as GgufInput, type: type as GgufInputType };
  }
  if (!Array.isArray(value)) throw new Error("an array must have an array as its value");
  const array = value.map((element: unknown) => plain(element, String(elementType)));
  for (const [path, hex] of Object.entries(objectOf(bytes) ?? {})) putBytes(array, path, hex);
  return { value: array as GgufInput, type: { type, elementType } as GgufInputType };
}

function plain(value: unknown, type: string): unknown {
  const isNumber = /^(u?int|float)\d+$/.test(type);
  return isNumber && typeof value === "string" ? parseMetadataValue(value, type as GgufInputType) : value;
}

/** Puts bytes where a path such as "2.0" leads. */
function putBytes(array: unknown[], path: string, hex: unknown): void {
  const indexes = path.split(".").map(Number);
  const last = indexes.pop() as number;
  let place: unknown = array;
  for (const index of indexes) place = Array.isArray(place) ? place[index] : undefined;
  if (!Array.isArray(place) || typeof place[last] !== "string" || typeof hex !== "string") {
    throw new Error(`has bytes for '${path}', where it has no text`);
  }
  place[last] = Buffer.from(hex, "hex");
}
