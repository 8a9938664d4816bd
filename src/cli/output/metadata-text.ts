/** Metadata values for people to read. */
import type { GgufMetadata, GgufValue, GgufValueType } from "../../index";
import { escapeText, float32Text } from "./text";

/** The declared type and the value, both in one line. */
export function metadataText(metadata: GgufMetadata, key: string): [type: string, value: string] {
  const type = metadata.typeOf(key) as GgufValueType;
  return [typeText(type), valueText(metadata.get(key) as GgufValue, type.type === "float32")];
}

function typeText(type: GgufValueType): string {
  return type.type === "array" ? `${type.elementType}[${type.length}]` : type.type;
}

/** Enough of a value to fill any line; the table cuts it to the line at hand. */
const PREVIEW = 400;

function valueText(value: GgufValue, isFloat32: boolean): string {
  if (typeof value === "string") return escapeText(value.slice(0, PREVIEW));
  if (typeof value === "number" && isFloat32) return float32Text(value);
  if (typeof value !== "object") return Object.is(value, -0) ? "-0" : String(value);
  const parts: string[] = [];
  for (let i = 0, length = 0; i < value.length && length < PREVIEW; i++) {
    const element = (value as ArrayLike<GgufValue>)[i] as GgufValue;
    const plain = valueText(element, value instanceof Float32Array);
    const text = typeof element === "string" ? `"${plain}"` : plain;
    parts.push(text);
    length += text.length + 2;
  }
  return `[${parts.join(", ")}${parts.length < value.length ? ", ..." : ""}]`;
}
