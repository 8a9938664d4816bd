/** What becomes of the keys of a file, by the arguments of `set`. */

import { globMatcher, isGlob } from "../../base/glob";
import {
  type GgufInput,
  type GgufInputType,
  type GgufMetadata,
  type MetadataChange,
  parseMetadataValue,
} from "../../index";
import type { ExactJson } from "../../writer/exact-json";
import { parseChangesJson } from "../../writer/text";
import { UsageError } from "./parse";
import { textOf } from "./text-files";

export type Change = readonly [key: string, change: MetadataChange];

export const CHAT_TEMPLATE = "tokenizer.chat_template";

/** Pairs of KEY and VALUE, all of one type if one is given. */
export function pairChanges(words: readonly string[], type: GgufInputType | undefined): Change[] {
  if (words.length % 2 === 1) throw new UsageError(`missing VALUE after '${words.at(-1)}'`);
  return words.flatMap((key, i) => (i % 2 === 0 ? [[key, { text: words[i + 1] as string, type }] as const] : []));
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
  const json = about(path, () => parseChangesJson(textOf("--from", path)));
  const inner = json instanceof Map ? json.get("metadata") : undefined;
  const entries = inner instanceof Map && !inner.has("type") ? inner : json;
  if (!(entries instanceof Map)) throw new Error(`${path}: --from takes an object in JSON, by key`);
  return Array.from(entries, ([key, value]): Change => {
    if (value === null) return [key, undefined];
    if (!(value instanceof Map)) return [key, { value: value as GgufInput }];
    return [key, about(`${path}: metadata key '${key}'`, () => typedChange(value))];
  });
}

/** Runs `work`; its errors say what they are about. */
function about<T>(subject: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new Error(`${subject}: ${(error as Error).message}`);
  }
}

/** A value with its type, as `inspect --json` writes it: numbers that JSON lacks are text, other bytes hexadecimal. */
function typedChange(declared: Map<string, ExactJson>): MetadataChange {
  const [type, elementType, value, bytes] = ["type", "elementType", "value", "bytes"].map((name) => declared.get(name));
  if (typeof type !== "string" || value === undefined) {
    throw new Error("must be a value, or an object with a type and a value");
  }
  if (type !== "array") {
    const exact = bytes === undefined ? plain(value, type) : bytesOf("bytes", bytes);
    return { value: exact as GgufInput, type: type as GgufInputType };
  }
  if (!Array.isArray(value)) throw new Error("an array must have an array as its value");
  const array = value.map((element): unknown => plain(element, String(elementType)));
  if (bytes !== undefined && !(bytes instanceof Map)) {
    throw new Error("the bytes of an array must be an object, by index");
  }
  for (const [place, hex] of bytes ?? []) putBytes(array, place, hex);
  return { value: array as GgufInput, type: { type, elementType } as GgufInputType };
}

function plain(value: ExactJson, type: string): unknown {
  const isNumber = /^(u?int|float)\d+$/.test(type);
  return isNumber && typeof value === "string" ? parseMetadataValue(value, type as GgufInputType) : value;
}

/** Puts bytes where a path such as "2.0" leads. */
function putBytes(array: unknown[], path: string, hex: ExactJson): void {
  const indexes = path.split(".").map((index) => (/^\d+$/.test(index) ? Number(index) : Number.NaN));
  const last = indexes.pop() as number;
  let place: unknown = array;
  for (const index of indexes) place = Array.isArray(place) ? place[index] : undefined;
  if (!Array.isArray(place) || typeof place[last] !== "string") {
    throw new Error(`has bytes for '${path}', where it has no text`);
  }
  place[last] = bytesOf(`bytes['${path}']`, hex);
}

/** Bytes in hexadecimal. Buffer.from would leave out what is none, and everything after it. */
function bytesOf(name: string, hex: ExactJson): Buffer {
  if (typeof hex !== "string") throw new Error(`${name} must be text in hexadecimal`);
  const wrong = hex.search(/[^\da-f]/i);
  if (wrong >= 0) throw new Error(`${name} has no hexadecimal digit at character ${wrong + 1}`);
  if (hex.length % 2 === 1) throw new Error(`${name} has ${hex.length} hexadecimal digits: two make a byte`);
  return Buffer.from(hex, "hex");
}
