/**
 * Metadata values in parts, straight from the file and in constant memory, however large a value is. Whoever needs only
 * the first elements of an array takes only the first parts, and no more is read than these.
 */

import { native } from "../backend/native";
import { haveSameBytes, swapBytes } from "../base/bytes";
import { GgufError } from "../base/errors";
import {
  ARRAY_CLASSES,
  type GgufTypeName,
  type GgufValueType,
  type NumericArray,
  SIZES,
  TYPE_NAMES,
} from "../base/metadata-values";
import { handleOf, type OpenFile } from "./handle";

/** A part of a value. Its bytes are good until the next one is asked for. */
export type ValuePart =
  /** An array begins: so many elements follow, and then its end. */
  | { readonly kind: "array"; readonly elementType: GgufTypeName; readonly length: number }
  | { readonly kind: "end" }
  /** Numbers or bools, one or several elements of an array: little-endian, back to back. */
  | { readonly kind: "numbers"; readonly type: GgufTypeName; readonly bytes: Uint8Array }
  /** Whole strings: number i is `bytes` from `starts[i]` to `ends[i]`, and before it comes its length, little-endian. */
  | {
      readonly kind: "strings";
      readonly bytes: Uint8Array;
      readonly starts: Uint32Array;
      readonly ends: Uint32Array;
      readonly count: number;
    }
  /** A piece of a long string of `length` bytes, which begins `at` so many; they come in order. */
  | { readonly kind: "text"; readonly bytes: Uint8Array; readonly at: number; readonly length: number };

/** The most bytes that are in memory at a time, and those that are read at first. */
const WINDOW_BYTES = 1 << 20;
const FIRST_BYTES = 1 << 12;

/** The most strings of a part. */
const STRINGS = 1 << 12;

/** As many levels of arrays as opening a file accepts. */
const MAX_DEPTH = 64;

/** A metadata value in the file. */
export interface ValuePlace {
  readonly file: OpenFile;
  /** The number of its key. */
  readonly position: number;
  readonly type: GgufValueType;
  /** Bytes in the file: of a string with its length, of an array without element type and length. */
  readonly byteLength: number;
}

/**
 * The parts of a value.
 * @throws GgufError ERR_GGUF_INVALID where the bytes are not those that the file was opened with; ERR_GGUF_TRUNCATED;
 *   ERR_GGUF_CLOSED
 */
export function* valueParts(place: ValuePlace): Generator<ValuePart, void, undefined> {
  const { type } = place;
  const input = new Window(place);
  if (type.type !== "array") {
    yield* elementParts(input, type.type, 1);
    return;
  }
  yield { kind: "array", elementType: type.elementType, length: type.length };
  /** The arrays that have begun: the elements of each that are still to come. */
  const levels = [{ elementType: type.elementType, left: type.length }];
  for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
    if (level.elementType === "array" && level.left > 0) {
      level.left--;
      const elementType = TYPE_NAMES[input.uint32()] ?? input.changed("an array has an unknown type");
      const length = input.length();
      if (levels.length === MAX_DEPTH) input.changed("arrays are nested too deep");
      levels.push({ elementType, left: length });
      yield { kind: "array", elementType, length };
      continue;
    }
    if (level.elementType !== "array") yield* elementParts(input, level.elementType, level.left);
    levels.pop();
    yield { kind: "end" };
  }
}

function* elementParts(
  input: Window,
  type: Exclude<GgufTypeName, "array">,
  count: number,
): Generator<ValuePart, void, undefined> {
  if (type === "string") {
    yield* stringParts(input, count);
    return;
  }
  const size = SIZES[type];
  for (let left = count; left > 0; ) {
    const bytes = input.takeNumbers(left, size);
    yield { kind: "numbers", type, bytes };
    left -= bytes.length / size;
  }
}

function* stringParts(input: Window, count: number): Generator<ValuePart, void, undefined> {
  const starts = new Uint32Array(Math.min(count, STRINGS));
  const ends = new Uint32Array(starts.length);
  for (let left = count; left > 0; ) {
    const found = input.takeStrings(Math.min(left, STRINGS), starts, ends);
    left -= found;
    if (found > 0) {
      yield { kind: "strings", bytes: input.bytes, starts, ends, count: found };
      continue;
    }
    const length = input.length();
    for (let at = 0; at < length; ) {
      const bytes = input.takeSome(length - at);
      yield { kind: "text", bytes, at, length };
      at += bytes.length;
    }
    left--;
  }
}

/** The parts of element `index` of an array that is given by its parts; none where the array ends before it. */
export function* elementOf(parts: Iterable<ValuePart>, index: number): Generator<ValuePart, void, undefined> {
  /** How many arrays have begun, this one among them, and how many of its elements have passed. */
  let depth = 0;
  let passed = 0;
  for (const part of parts) {
    if (part.kind === "array") {
      if (depth > 0 && passed === index) yield part;
      depth++;
    } else if (part.kind === "end") {
      depth--;
      if (depth > 0 && passed === index) yield part;
      if (depth === 1) passed++;
    } else if (depth > 1 || part.kind === "text") {
      if (passed === index) yield part;
      const isWhole = part.kind === "text" && part.at + part.bytes.length === part.length;
      if (depth === 1 && isWhole) passed++;
    } else {
      const size = part.kind === "numbers" ? SIZES[part.type] : 0;
      const count = part.kind === "numbers" ? part.bytes.length / size : part.count;
      const at = index - passed;
      passed += count;
      if (at < 0 || at >= count) continue;
      if (part.kind === "numbers") yield { ...part, bytes: part.bytes.subarray(at * size, (at + 1) * size) };
      else {
        const [starts, ends] = [part.starts.subarray(at), part.ends.subarray(at)];
        yield { ...part, starts, ends, count: 1 };
      }
    }
    if (passed > index) return;
  }
}

/**
 * The value as a little-endian file of version 3 has it, from its type on: the same for equal values, whatever the
 * file. Each piece is good until the next one is asked for.
 */
export function* canonicalBytes(place: ValuePlace): Generator<Uint8Array, void, undefined> {
  const { version, bigEndian } = place.file.info;
  const { type, byteLength } = place;
  yield uint32(TYPE_NAMES.indexOf(type.type));
  if (version > 1 && !bigEndian) {
    if (type.type === "array") yield arrayHead(type.elementType, type.length);
    const input = new Window(place);
    for (let left = byteLength; left > 0; ) {
      const bytes = input.takeSome(left);
      yield bytes;
      left -= bytes.length;
    }
    return;
  }
  let strings = new Uint8Array();
  for (const part of valueParts(place)) {
    if (part.kind === "array") yield arrayHead(part.elementType, part.length);
    else if (part.kind === "numbers") yield part.bytes;
    else if (part.kind === "text") {
      if (part.at === 0) yield uint64(part.length);
      yield part.bytes;
    } else if (part.kind === "strings") {
      const { bytes, starts, ends, count } = part;
      if (version > 1) {
        yield bytes.subarray((starts[0] as number) - 8, ends[count - 1]);
        continue;
      }
      const room = bytes.length + 8 * count;
      if (strings.length < room) strings = new Uint8Array(room);
      const view = new DataView(strings.buffer, strings.byteOffset);
      let end = 0;
      for (let i = 0; i < count; i++) {
        const start = starts[i] as number;
        const length = (ends[i] as number) - start;
        view.setUint32(end, length, true);
        view.setUint32(end + 4, 0, true);
        end += 8;
        strings.set(bytes.subarray(start, start + length), end);
        end += length;
      }
      yield strings.subarray(0, end);
    }
  }
}

/** Whether two values are the same to the bit, types included. Reads them only as far as they are. */
export function sameValues(a: ValuePlace, b: ValuePlace): boolean {
  if (JSON.stringify(a.type) !== JSON.stringify(b.type)) return false;
  const others = canonicalBytes(b);
  let other: Uint8Array = new Uint8Array();
  for (let piece of canonicalBytes(a)) {
    while (piece.length > 0) {
      if (other.length === 0) {
        const next = others.next();
        if (next.done) return false;
        other = next.value;
      }
      const length = Math.min(piece.length, other.length);
      if (!haveSameBytes(piece.subarray(0, length), other.subarray(0, length))) return false;
      piece = piece.subarray(length);
      other = other.subarray(length);
    }
  }
  return other.length === 0 && others.next().done === true;
}

/** The numbers of a part as a typed array of their own; bools as bytes. */
export function numbersOf(type: GgufTypeName, bytes: Uint8Array): NumericArray {
  const { buffer, byteOffset, byteLength } = bytes;
  const own = buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
  return new (ARRAY_CLASSES[type] ?? Uint8Array)(own);
}

function arrayHead(elementType: GgufTypeName, length: number): Uint8Array {
  const bytes = new Uint8Array(12);
  bytes.set(uint32(TYPE_NAMES.indexOf(elementType)));
  bytes.set(uint64(length), 4);
  return bytes;
}

function uint32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}

function uint64(value: number): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(value), true);
  return bytes;
}

/** The bytes of a value that are in memory, which go forward over all of them. */
class Window {
  readonly #place: ValuePlace;
  readonly #lengthBytes: number;
  readonly #bigEndian: boolean;
  /** Of the value, before `bytes`. */
  #passed = 0;
  /** What was taken of `bytes`. */
  #at = 0;
  #view: DataView;
  bytes: Uint8Array;

  constructor(place: ValuePlace) {
    const { version, bigEndian } = place.file.info;
    this.#place = place;
    this.#lengthBytes = version === 1 ? 4 : 8;
    this.#bigEndian = bigEndian;
    this.bytes = new Uint8Array();
    this.#view = new DataView(this.bytes.buffer, 0, 0);
  }

  uint32(): number {
    this.#need(4);
    this.#at += 4;
    return this.#view.getUint32(this.#at - 4, !this.#bigEndian);
  }

  /** A length of a string or array. */
  length(): number {
    this.#need(this.#lengthBytes);
    this.#at += this.#lengthBytes;
    return this.#lengthAt(this.#at - this.#lengthBytes);
  }

  /** Some of the next `count` numbers, at least one, in little-endian order. */
  takeNumbers(count: number, size: number): Uint8Array {
    this.#need(size);
    const here = Math.floor((this.bytes.length - this.#at) / size);
    const bytes = this.#take(Math.min(count, here) * size);
    if (this.#bigEndian) swapBytes(bytes, size);
    return bytes;
  }

  /** Some of the next `count` bytes, at least one. */
  takeSome(count: number): Uint8Array {
    this.#need(1);
    return this.#take(Math.min(count, this.bytes.length - this.#at));
  }

  /** Whole strings, `count` at most: how many there were. None where the next is longer than what can be in memory. */
  takeStrings(count: number, starts: Uint32Array, ends: Uint32Array): number {
    this.#need(this.#lengthBytes);
    const next = this.#lengthBytes + this.#lengthAt(this.#at);
    if (next > WINDOW_BYTES) return 0;
    this.#need(next);
    const view = this.#view;
    const width = this.#lengthBytes;
    const here = this.bytes.length;
    const swaps = this.#bigEndian;
    let at = this.#at;
    let found = 0;
    // In constants and without calls: an array can have millions of strings.
    for (; found < count && at + width <= here; found++) {
      const low = view.getUint32(swaps ? at + width - 4 : at, !swaps);
      const high = width === 4 ? 0 : view.getUint32(swaps ? at : at + 4, !swaps);
      const end = at + width + low;
      if (high > 0 || end > here) break;
      if (swaps) {
        view.setUint32(at, low, true);
        if (width === 8) view.setUint32(at + 4, 0, true);
      }
      starts[found] = at + width;
      ends[found] = end;
      at = end;
    }
    this.#at = at;
    return found;
  }

  /** Throws: a file that was opened has only good values. */
  changed(what: string): never {
    const { path } = this.#place.file;
    throw new GgufError("ERR_GGUF_INVALID", `${what} (the file has changed since it was opened)`, { path });
  }

  #lengthAt(at: number): number {
    const low = this.#lengthBytes === 8 && this.#bigEndian ? at + 4 : at;
    const value = this.#view.getUint32(low, !this.#bigEndian);
    if (this.#lengthBytes === 4) return value;
    return value + 2 ** 32 * this.#view.getUint32(this.#bigEndian ? at : at + 4, !this.#bigEndian);
  }

  #take(count: number): Uint8Array {
    this.#at += count;
    return this.bytes.subarray(this.#at - count, this.#at);
  }

  /** Has the next `count` bytes, WINDOW_BYTES at most, in `bytes`. */
  #need(count: number): void {
    if (count <= this.bytes.length - this.#at) return;
    const { file, position, byteLength } = this.#place;
    this.#passed += this.#at;
    const left = byteLength - this.#passed;
    if (count > left) this.changed("a metadata value is longer than it was");
    const kept = this.bytes.subarray(this.#at);
    const wanted = Math.min(left, Math.max(count, FIRST_BYTES, Math.min(WINDOW_BYTES, 4 * this.bytes.length)));
    // Of the same size again as soon as it has grown.
    const target = wanted <= this.#view.byteLength ? new Uint8Array(this.#view.buffer) : new Uint8Array(wanted);
    target.set(kept);
    native.readValue(handleOf(file), position, this.#passed + kept.length, target.subarray(kept.length, wanted));
    this.bytes = target.subarray(0, wanted);
    this.#view = new DataView(target.buffer);
    this.#at = 0;
  }
}
