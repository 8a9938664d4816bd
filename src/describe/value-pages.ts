/** Metadata values a page at a time: a long array, or a long text, of which no more is kept than is shown. */

import { type GgufMetadata, valueAt } from "../file/metadata";
import { numbersOf, type ValuePart, type ValuePlace, valueParts } from "../file/value-parts";
import { elementTexts, valueText } from "./metadata-text";
import { escapeText } from "./text";

/** The elements of an array from number `first` on, `count` at most, each in one line; of arrays in it the start. */
export function arrayTexts(metadata: GgufMetadata, key: string, first: number, count: number): string[] {
  const texts: string[] = [];
  const end = first + count;
  let index = 0;
  const parts = valueParts(valueAt(metadata, key) as ValuePlace);
  parts.next(); // the array itself begins
  for (let next = parts.next(); !next.done && index < end; next = parts.next()) {
    const part = next.value;
    if (part.kind === "end") break;
    if (part.kind === "array") {
      const inner = innerParts(part, parts);
      if (index >= first) texts.push(valueText(inner));
      for (const _ of inner); // what is not shown of it
      index++;
    } else if (part.kind === "text") {
      if (part.at > 0) continue;
      if (index >= first) texts.push(...elementTexts(part, true));
      index++;
    } else {
      const length = part.kind === "strings" ? part.count : numbersOf(part.type, part.bytes).length;
      const [from, to] = [Math.max(first - index, 0), Math.min(end - index, length)];
      if (from < to) texts.push(...elementTexts(partOf(part, from, to, length), true));
      index += length;
    }
  }
  return texts;
}

/** The parts of an array inside another one, which began with `begin`, up to its end. It takes no part beyond that. */
function innerParts(begin: ValuePart, parts: Iterator<ValuePart>): Iterable<ValuePart> {
  let depth = 0;
  let waiting: ValuePart | undefined = begin;
  const iterator: IterableIterator<ValuePart> = {
    [Symbol.iterator]: () => iterator,
    next() {
      if (waiting === undefined && depth === 0) return { done: true, value: undefined };
      const part: ValuePart = waiting ?? (parts.next().value as ValuePart);
      waiting = undefined;
      if (part.kind === "array") depth++;
      if (part.kind === "end") depth--;
      return { done: false, value: part };
    },
  };
  return iterator;
}

/** Of a part with `length` elements those from `from` to `to`. */
function partOf(
  part: Extract<ValuePart, { kind: "numbers" | "strings" }>,
  from: number,
  to: number,
  length: number,
): typeof part {
  if (part.kind === "numbers") {
    const size = part.bytes.length / length;
    return { ...part, bytes: part.bytes.subarray(from * size, to * size) };
  }
  return { ...part, starts: part.starts.subarray(from), ends: part.ends.subarray(from), count: to - from };
}

/**
 * A string with its lines, `limit` bytes of it at most, and its length in bytes. In each line what is not plain printing
 * text is escaped.
 */
export function linesOf(
  metadata: GgufMetadata,
  key: string,
  limit: number,
): { lines: string[]; byteLength: number; isCut: boolean } {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let text = "";
  let left = limit;
  let byteLength = 0;
  for (const part of valueParts(valueAt(metadata, key) as ValuePlace)) {
    if (part.kind !== "strings" && part.kind !== "text") continue;
    const [start, end] = part.kind === "text" ? [0, part.bytes.length] : [part.starts[0] ?? 0, part.ends[0] ?? 0];
    byteLength = part.kind === "text" ? part.length : end - start;
    const taken = Math.min(left, end - start);
    text += decoder.decode(part.bytes.subarray(start, start + taken), { stream: true });
    left -= taken;
    if (left === 0) break;
  }
  text += decoder.decode();
  return { lines: text.split("\n").map(escapeText), byteLength, isCut: byteLength > limit };
}
