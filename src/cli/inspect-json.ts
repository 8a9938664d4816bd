/**
 * `gguf-native inspect --json`: everything the header says, and nothing lost on the way to JSON.
 *
 * A metadata value is an object: its `type`, for arrays `elementType` and `length`, and its `value`. 64-bit integers
 * are decimal strings; so are the floats that JSON lacks or that parsers lose: "NaN", "Infinity", "-Infinity", "-0".
 * Strings that are not UTF-8 have U+FFFD in `value` and their bytes in hexadecimal in `bytes`: one string for a
 * string, an object by index for an array of strings.
 */
import { isUtf8 } from "node:buffer";
import type { GgufFile, GgufMetadata, GgufValue } from "../index";
import { type Sections, typeTotals } from "./inspect";

/** Writes one line per key and per tensor, so that memory stays bounded by the largest value. */
export function writeJson(
  file: GgufFile,
  path: string,
  sections: Sections,
  write: (text: string) => void,
): void {
  write("{");
  let separator = "\n";
  const member = (key: string, json: string): void => {
    write(`${separator}  ${JSON.stringify(key)}: ${json}`);
    separator = ",\n";
  };
  if (sections.summary) {
    const { version, byteOrder, byteLength, alignment, tensors } = file;
    for (const [key, value] of Object.entries({ path, version, byteOrder, byteLength, alignment })) {
      member(key, JSON.stringify(value));
    }
    member("tensorCount", String(tensors.size));
    let parameterCount = 0;
    for (const tensor of tensors.values()) parameterCount += tensor.elementCount;
    member("parameterCount", String(parameterCount));
    member("types", JSON.stringify(Object.fromEntries(typeTotals(file))));
  }
  if (sections.metadata) {
    member("metadata", "{");
    writeItems(
      file.metadata.keys(),
      write,
      (key) => `${JSON.stringify(key)}: ${valueJson(file.metadata, key)}`,
    );
    write("}");
  }
  if (sections.tensors) {
    member("tensors", "[");
    writeItems(file.tensors.values(), write, (tensor) => JSON.stringify(tensor));
    write("]");
  }
  write("\n}\n");
}

function writeItems<T>(items: Iterable<T>, write: (text: string) => void, json: (item: T) => string): void {
  let separator = "\n";
  for (const item of items) {
    write(`${separator}    ${json(item)}`);
    separator = ",\n";
  }
  if (separator === ",\n") write("\n  ");
}

function valueJson(metadata: GgufMetadata, key: string): string {
  const value = metadata.get(key) as GgufValue;
  return JSON.stringify({
    ...metadata.typeOf(key),
    value: exact(value),
    bytes: bytesOf(metadata, key, value),
  });
}

function exact(value: GgufValue): unknown {
  if (typeof value === "bigint") return String(value);
  if (typeof value === "number") {
    return !Number.isFinite(value) ? String(value) : Object.is(value, -0) ? "-0" : value;
  }
  return typeof value === "object" ? Array.from(value as ArrayLike<GgufValue>, exact) : value;
}

/** The bytes of what is not UTF-8; undefined, so no member, where everything is. */
function bytesOf(metadata: GgufMetadata, key: string, value: GgufValue): unknown {
  const suspect = (text: unknown): boolean => typeof text === "string" && text.includes("\ufffd");
  if (suspect(value)) {
    const bytes = metadata.bytes(key) as Uint8Array;
    return isUtf8(bytes) ? undefined : Buffer.from(bytes).toString("hex");
  }
  if (!Array.isArray(value) || !(value as unknown[]).some(suspect)) return undefined;
  const all = metadata.bytes(key) as Uint8Array[];
  const broken = all.flatMap((bytes, i) =>
    isUtf8(bytes) ? [] : [[i, Buffer.from(bytes).toString("hex")] as const],
  );
  return broken.length > 0 ? Object.fromEntries(broken) : undefined;
}
