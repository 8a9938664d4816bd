/** Two values of a key, each from shortly before the place where they differ: no more is read of them than up to there. */

import { haveSameBytes } from "../base/bytes";
import { SIZES } from "../base/metadata-values";
import { type ValuePart, type ValuePlace, valueParts } from "../file/value-parts";
import { valueText } from "./metadata-text";

/** Characters that a table always shows of a value; what differs within them need not be looked for. */
const ALWAYS_SHOWN = 12;

/** Bytes of a text that are shown before the first one that differs. */
const BEFORE = 8;

/** The value of a string or number, or an element of an array: where it is, and its bytes. */
interface Item {
  readonly index: string;
  readonly part: Exclude<ValuePart, { kind: "array" | "end" }>;
  readonly bytes: Uint8Array;
}

/** Both values in one line each, so that the start of the lines tells them apart. */
export function differingTexts(a: ValuePlace, b: ValuePlace): [string, string] {
  const whole = [a, b].map((place) => valueText(valueParts(place))) as [string, string];
  const [startA, startB] = whole.map((text) => text.slice(0, ALWAYS_SHOWN));
  if (startA !== startB || a.type.type !== b.type.type) return whole;
  const [itemsA, itemsB] = [items(a), items(b)];
  for (;;) {
    const [inA, inB] = [itemsA.next().value, itemsB.next().value];
    if (inA === undefined && inB === undefined) return whole;
    if (inA !== undefined && inB !== undefined && inA.index === inB.index) {
      const at = firstDifference(inA.bytes, inB.bytes);
      if (at === undefined) continue;
      return [textFrom(inA, at, itemsA), textFrom(inB, at, itemsB)];
    }
    const index = (inA ?? inB)?.index ?? "";
    return [inA, inB].map((item, i) =>
      item === undefined ? `${index}none` : textFrom(item, 0, i === 0 ? itemsA : itemsB),
    ) as [string, string];
  }
}

/** Every number and string of a value, arrays in arrays included. */
function* items(place: ValuePlace): Generator<Item, undefined, undefined> {
  /** The index of the next element of each array that has begun. */
  const path: number[] = [];
  const index = (): string => (path.length === 0 ? "" : `[${path.join("][")}] `);
  const passed = (): void => {
    if (path.length > 0) path.push((path.pop() as number) + 1);
  };
  for (const part of valueParts(place)) {
    if (part.kind === "array") path.push(0);
    else if (part.kind === "end") {
      path.pop();
      passed();
    } else if (part.kind === "text") {
      yield { index: index(), part, bytes: part.bytes };
      if (part.at + part.bytes.length === part.length) passed();
    } else if (part.kind === "strings") {
      for (let i = 0; i < part.count; i++) {
        yield { index: index(), part, bytes: part.bytes.subarray(part.starts[i], part.ends[i]) };
        passed();
      }
    } else {
      const size = SIZES[part.type];
      for (let at = 0; at < part.bytes.length; at += size) {
        yield { index: index(), part, bytes: part.bytes.subarray(at, at + size) };
        passed();
      }
    }
  }
}

/** Undefined where there is none. */
function firstDifference(a: Uint8Array, b: Uint8Array): number | undefined {
  if (haveSameBytes(a, b)) return undefined;
  const at = a.findIndex((byte, i) => byte !== b[i]);
  return at < 0 ? a.length : at;
}

/** An item from byte `at` on, or from shortly before that in a text, and the few items after it. */
function textFrom(item: Item, at: number, others: Iterator<Item, undefined>): string {
  const first = shown(item, at);
  if (item.index === "") return first;
  const next = others.next().value;
  return `${item.index}${first}${next === undefined ? "" : `, ${shown(next, 0)}, ...`}`;
}

function shown({ index, part, bytes }: Item, at: number): string {
  if (part.kind === "numbers") return valueText([{ ...part, bytes }]);
  const mark = index === "" ? "" : '"';
  let begin = at <= BEFORE ? 0 : at - BEFORE;
  // Not within a character.
  while (begin > 0 && ((bytes[begin] as number) & 0xc0) === 0x80) begin--;
  const rest = bytes.subarray(begin);
  const [starts, ends] = [Uint32Array.of(0), Uint32Array.of(rest.length)];
  const text = valueText([{ kind: "strings", bytes: rest, starts, ends, count: 1 }]);
  return `${begin > 0 ? "…" : ""}${mark}${text}${mark}`;
}
