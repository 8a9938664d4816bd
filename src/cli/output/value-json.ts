/** Metadata values as JSON, in pieces: memory does not grow with the value. json.ts says how numbers are written. */

import { isUtf8 } from "node:buffer";
import { valueAt } from "../../file/metadata";
import { numbersOf, type ValuePart, type ValuePlace, valueParts } from "../../file/value-parts";
import type { GgufMetadata, GgufTypeName } from "../../index";
import { exactJson } from "./json";

/**
 * The value of a key: its `type`, for arrays `elementType` and `length`, and its `value`. Strings that are not UTF-8
 * have U+FFFD in `value` and their bytes in hexadecimal in `bytes`: one string for a string, an object by index for an
 * array of strings; in arrays of arrays by the indexes from the outside in, joined by dots. `keyBytes` has the bytes of
 * a key that is not UTF-8.
 */
export function* metadataJson(metadata: GgufMetadata, key: string): Generator<string, void, undefined> {
  const place = valueAt(metadata, key) as ValuePlace;
  const keyBytes = differentBytes("keyBytes", key, metadata.keyBytes(key) as Uint8Array);
  yield* typedJson({ ...place.type, ...keyBytes }, () => valueParts(place));
}

/**
 * The same of a value that is given by its parts.
 * @param facts what comes before the value; its type among them
 * @param parts gone through twice where there is text that is not UTF-8
 */
export function* typedJson(
  facts: { readonly type: GgufTypeName },
  parts: () => Iterable<ValuePart>,
): Generator<string, void, undefined> {
  yield `${exactJson(facts).slice(0, -1)},"value":`;
  const found: BrokenStrings = { some: false, long: new Set() };
  yield* valueJson(parts(), found);
  if (found.some) {
    yield ',"bytes":';
    yield* brokenJson(parts(), found, facts.type === "array");
  }
  yield "}";
}

/** Which strings of a value are not UTF-8. */
interface BrokenStrings {
  /** Whether any is. */
  some: boolean;
  /** Of those that come in pieces, which: by what they are counted as, in order. */
  readonly long: Set<number>;
}

/** A member with the bytes of a name in hexadecimal where the name does not tell them; none where it does. */
export function differentBytes(member: string, name: string, bytes: Uint8Array): Record<string, string> {
  const stored = Buffer.from(bytes);
  return stored.equals(Buffer.from(name)) ? {} : { [member]: stored.toString("hex") };
}

/** Bytes of numbers that are written at a time: texts are several times as long. */
const NUMBER_BYTES = 1 << 15;

/**
 * The value alone, of its parts.
 * @param found is told which strings are not UTF-8
 */
export function* valueJson(
  parts: Iterable<ValuePart>,
  found: BrokenStrings = { some: false, long: new Set() },
): Generator<string, void, undefined> {
  let separator = "";
  let longCount = 0;
  let text = new LongText();
  for (const part of parts) {
    if (part.kind === "array") {
      yield `${separator}[`;
      separator = "";
      continue;
    }
    if (part.kind === "end") yield "]";
    else if (part.kind === "numbers") {
      for (let at = 0; at < part.bytes.length; at += NUMBER_BYTES) {
        yield `${separator}${numbersJson(part.type, part.bytes.subarray(at, at + NUMBER_BYTES))}`;
        separator = ",";
      }
    } else if (part.kind === "strings") {
      const items: string[] = [];
      const bytes = bufferOf(part.bytes);
      for (let i = 0; i < part.count; i++) {
        const item = bytes.toString("utf8", part.starts[i], part.ends[i]);
        if (!found.some && item.includes("\ufffd")) found.some = !isUtf8(stringOf(part, i));
        items.push(JSON.stringify(item));
      }
      yield `${separator}${items.join(",")}`;
    } else {
      const isLast = part.at + part.bytes.length === part.length;
      const piece = JSON.stringify(text.decode(part.bytes, isLast)).slice(1, -1);
      yield `${part.at === 0 ? `${separator}"` : ""}${piece}${isLast ? '"' : ""}`;
      if (!isLast) continue;
      if (text.broken) {
        found.some = true;
        found.long.add(longCount);
      }
      longCount++;
      text = new LongText();
    }
    separator = ",";
  }
}

function numbersJson(type: GgufTypeName, bytes: Uint8Array): string {
  const numbers = numbersOf(type, bytes);
  if (type === "bool") return Array.from(bytes, (byte) => byte !== 0).join(",");
  if (type === "float32" || type === "float64") {
    return Array.from(numbers as Float32Array | Float64Array, (value: number) => exactJson(value)).join(",");
  }
  return type === "uint64" || type === "int64" ? `"${numbers.join('","')}"` : numbers.join(",");
}

/** The bytes of what is not UTF-8. */
function* brokenJson(
  parts: Iterable<ValuePart>,
  found: BrokenStrings,
  isArray: boolean,
): Generator<string, void, undefined> {
  /** The index of the next element of each array that has begun. */
  const path: number[] = [];
  const passed = (count: number): void => {
    if (path.length > 0) path.push((path.pop() as number) + count);
  };
  let separator = isArray ? "{" : "";
  const label = (offset: number): string => {
    const indexes = [...path.slice(0, -1), (path.at(-1) ?? 0) + offset];
    const text = isArray ? `${separator}"${indexes.join(".")}":` : "";
    separator = ",";
    return text;
  };
  let longCount = 0;
  for (const part of parts) {
    if (part.kind === "array") path.push(0);
    else if (part.kind === "end") {
      path.pop();
      passed(1);
    } else if (part.kind === "strings") {
      for (let i = 0; i < part.count; i++) {
        const bytes = stringOf(part, i);
        if (!isUtf8(bytes)) yield `${label(i)}"${bytes.toString("hex")}"`;
      }
      passed(part.count);
    } else if (part.kind === "text") {
      const isLast = part.at + part.bytes.length === part.length;
      if (found.long.has(longCount)) {
        if (part.at === 0) yield `${label(0)}"`;
        yield `${bufferOf(part.bytes).toString("hex")}${isLast ? '"' : ""}`;
      }
      if (!isLast) continue;
      longCount++;
      passed(1);
    }
  }
  if (isArray) yield "}";
}

function stringOf({ bytes, starts, ends }: ValuePart & { kind: "strings" }, i: number): Buffer {
  return bufferOf(bytes.subarray(starts[i], ends[i]));
}

/** The same memory as a Buffer, which turns many short texts into strings faster than anything else. */
function bufferOf({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length);
}

/** Decodes a string that comes in pieces, and notices where it is not UTF-8. */
class LongText {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  readonly #strict = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true });
  broken = false;

  /** The text of `bytes`, up to the last whole character. */
  decode(bytes: Uint8Array, isLast: boolean): string {
    try {
      if (!this.broken) this.#strict.decode(bytes, { stream: !isLast });
    } catch {
      this.broken = true;
    }
    return this.#decoder.decode(bytes, { stream: !isLast });
  }
}
