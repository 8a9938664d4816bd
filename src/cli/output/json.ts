/**
 * JSON that loses nothing: 64-bit integers are decimal strings; so are the floats that JSON lacks or that parsers lose:
 * "NaN", "Infinity", "-Infinity", "-0".
 */
import { isUtf8 } from "node:buffer";
import type { GgufMetadata, GgufValue } from "../../index";

export function exactJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, (_key, member: unknown) => exact(member), indent);
}

function exact(value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  if (typeof value === "number" && (!Number.isFinite(value) || Object.is(value, -0))) {
    return value === 0 ? "-0" : String(value);
  }
  return ArrayBuffer.isView(value) ? Array.from(value as Uint8Array) : value;
}

/**
 * A metadata value: its `type`, for arrays `elementType` and `length`, and its `value`. Strings that are not UTF-8 have
 * U+FFFD in `value` and their bytes in hexadecimal in `bytes`: one string for a string, an object by index for an array
 * of strings.
 */
export function metadataValueJson(metadata: GgufMetadata, key: string): string {
  const value = metadata.get(key) as GgufValue;
  return exactJson({ ...metadata.typeOf(key), value, bytes: bytesOf(metadata, key, value) });
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
