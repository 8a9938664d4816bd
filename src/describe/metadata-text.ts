/** Metadata values for people to read: no more is read of a value than is shown. */
import { textOf } from "../base/bytes";
import type { GgufTypeName, GgufValueType } from "../base/metadata-values";
import { type GgufMetadata, valueAt } from "../file/metadata";
import { numbersOf, type ValuePart, type ValuePlace, valueParts } from "../file/value-parts";
import { escapeText, float32Text } from "./text";

/** The declared type and the value, both in one line. */
export function metadataText(metadata: GgufMetadata, key: string): [type: string, value: string] {
  const place = valueAt(metadata, key) as ValuePlace;
  return [typeText(place.type), valueText(valueParts(place))];
}

/** The start of a string, as much as fills any line; undefined where the value is of another type, or absent. */
export function stringText(metadata: GgufMetadata, key: string): string | undefined {
  const place = valueAt(metadata, key);
  return place?.type.type === "string" ? valueText(valueParts(place)) : undefined;
}

function typeText(type: GgufValueType): string {
  return type.type === "array" ? `${type.elementType}[${type.length}]` : type.type;
}

/** Enough of a value to fill any line; the table cuts it to the line at hand. */
const PREVIEW = 400;
/** Bytes that hold as many characters, whatever they are. */
const PREVIEW_BYTES = 4 * PREVIEW;

/** The start of a value, in one line. */
export function valueText(parts: Iterable<ValuePart>): string {
  let text = "";
  let separator = "";
  let depth = 0;
  for (const part of parts) {
    if (part.kind === "end") {
      text += "]";
      separator = ", ";
      depth--;
      continue;
    }
    for (const element of part.kind === "array" ? ["["] : elementTexts(part, depth > 0)) {
      if (text.length >= PREVIEW) return `${text}${separator}...${"]".repeat(depth)}`;
      text += separator + element;
      separator = ", ";
    }
    if (part.kind === "array") {
      separator = "";
      depth++;
    }
    // Of a long string only the start is shown.
    if (part.kind === "text") return depth > 0 ? `${text}, ...${"]".repeat(depth)}` : text;
  }
  return text;
}

/** Each element of a part, cut where it is long. */
export function* elementTexts(
  part: Exclude<ValuePart, { kind: "array" | "end" }>,
  quoted: boolean,
): Generator<string, void, undefined> {
  if (part.kind === "numbers") {
    yield* numberTexts(part);
    return;
  }
  const mark = quoted ? '"' : "";
  const starts = part.kind === "strings" ? part.starts.subarray(0, part.count) : [0];
  for (const [i, start] of starts.entries()) {
    const end = part.kind === "strings" ? (part.ends[i] as number) : part.bytes.length;
    const bytes = part.bytes.subarray(start, Math.min(end, start + PREVIEW_BYTES));
    yield mark + escapeText(textOf(bytes).slice(0, PREVIEW)) + mark;
  }
}

/** Each number or bool of a part, in full. */
export function* numberTexts({ type, bytes }: ValuePart & { kind: "numbers" }): Generator<string, void, undefined> {
  for (const value of numbersOf(type, bytes)) yield numberText(type, value);
}

function numberText(type: GgufTypeName, value: number | bigint): string {
  if (type === "bool") return String(value !== 0);
  if (type === "float32") return float32Text(value as number);
  return Object.is(value, -0) ? "-0" : String(value);
}
