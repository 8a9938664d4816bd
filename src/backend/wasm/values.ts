/**
 * A metadata value, as the module hands it over: a tape of numbers that says what to build, the text of all strings, and
 * numbers in the host's byte order. On the tape, one after the other:
 *
 *   number    its bytes, in two words
 *   bool      0 or 1
 *   string    its bytes, its UTF-16 code units
 *   array     element type, length, place of its numbers or bools; of other types: its elements
 */

import { ARRAY_CLASSES, type GgufValue, SIZES, TYPE_NAMES } from "../../base/metadata-values";
import type { OwnBytes } from "../../base/options";
import { Texts } from "./texts";

export const BOOL = 7;
export const STRING = 8;
export const ARRAY = 9;

/** Words before the elements of an array. */
export const ARRAY_HEAD = 3;

/** Words of a string, and of a number. */
export const STRING_WORDS = 2;
const NUMBER_WORDS = 2;

/** What a value consists of. */
export interface ValueParts {
  tape: Uint32Array;
  text: OwnBytes;
  /** A copy of numbers or bools that lie in the value. */
  copy(at: number, byteLength: number): ArrayBuffer;
}

/** Builds a value of a type, given by its number. */
export function buildValue(type: number, { tape, text, copy }: ValueParts): GgufValue {
  const texts = new Texts(text);
  let at = 0;

  function words(count: number): Uint32Array {
    at += count;
    return tape.subarray(at - count, at);
  }

  function value(type: number): GgufValue {
    if (type === ARRAY) return array();
    if (type === BOOL) return words(1)[0] !== 0;
    if (type === STRING) return texts.take(words(STRING_WORDS))[0]!;
    return new ARRAY_CLASSES[TYPE_NAMES[type]!]!(words(NUMBER_WORDS).slice().buffer)[0]!;
  }

  function array(): GgufValue {
    const [type, length, place] = words(ARRAY_HEAD) as unknown as [number, number, number];
    const name = TYPE_NAMES[type]!;
    const Numbers = ARRAY_CLASSES[name];
    if (Numbers !== undefined) return new Numbers(copy(place, length * SIZES[name]));
    if (type === BOOL) return Array.from(new Uint8Array(copy(place, length)), (byte) => byte !== 0);
    if (type === STRING) return texts.take(words(STRING_WORDS * length));
    return Array.from({ length }, array) as GgufValue[];
  }

  return value(type);
}
