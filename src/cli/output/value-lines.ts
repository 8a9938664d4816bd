/** Metadata values as they are, for other programs: in pieces, so that memory does not grow with the value. */
import { numberTexts } from "../../describe/metadata-text";
import { escapeJson } from "../../describe/text";
import type { ValuePart } from "../../file/value-parts";
import { valueJson } from "./value-json";

/** Bytes that are handed on at a time, at least. */
const LEAST_BYTES = 1 << 16;

const END_OF_LINE = Buffer.from("\n");

/**
 * A value in lines: of an array a line for each element, arrays in arrays as JSON. Text is its bytes, whatever they are.
 * @param parts of the value
 */
export function* valueLines(parts: Iterable<ValuePart>): Generator<Uint8Array, void, undefined> {
  let pieces: Uint8Array[] = [];
  let length = 0;
  for (const piece of smallPieces(parts[Symbol.iterator]())) {
    // Copied: what a part has is good until the next one.
    pieces.push(Uint8Array.from(piece));
    length += piece.length;
    if (length < LEAST_BYTES) continue;
    yield Buffer.concat(pieces);
    [pieces, length] = [[], 0];
  }
  if (length > 0) yield Buffer.concat(pieces);
}

function* smallPieces(parts: Iterator<ValuePart>): Generator<Uint8Array, void, undefined> {
  let isInArray = false;
  for (let next = parts.next(); !next.done; next = parts.next()) {
    const part = next.value;
    if (part.kind === "array" && isInArray) {
      for (const json of valueJson(nested(part, parts))) yield Buffer.from(escapeJson(json));
      yield END_OF_LINE;
    } else if (part.kind === "array") {
      isInArray = true;
    } else if (part.kind === "numbers") {
      yield Buffer.from(`${[...numberTexts(part)].join("\n")}\n`);
    } else if (part.kind === "strings") {
      for (let i = 0; i < part.count; i++) {
        yield part.bytes.subarray(part.starts[i], part.ends[i]);
        yield END_OF_LINE;
      }
    } else if (part.kind === "text") {
      yield part.bytes;
      if (part.at + part.bytes.length === part.length) yield END_OF_LINE;
    }
  }
}

/** An array that has begun, up to its end. */
function* nested(first: ValuePart, parts: Iterator<ValuePart>): Generator<ValuePart, void, undefined> {
  yield first;
  for (let depth = 1; depth > 0; ) {
    const next = parts.next();
    if (next.done) return;
    if (next.value.kind === "array") depth++;
    if (next.value.kind === "end") depth--;
    yield next.value;
  }
}
