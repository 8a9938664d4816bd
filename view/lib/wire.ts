/**
 * Messages of the session as bytes, for when it answers over HTTP: JSON, with the numbers of typed arrays behind it as they
 * are in memory. Each begins with the length of both in bytes, as 32-bit little-endian numbers.
 */

const ARRAYS = { Int8Array, Uint8Array, Int32Array, Uint32Array, Float32Array, Float64Array };
type ArrayName = keyof typeof ARRAYS;
type NumberArray = InstanceType<(typeof ARRAYS)[ArrayName]>;

/** What JSON has no word for. */
type Special =
  | { readonly $: "array"; readonly name: ArrayName; readonly at: number; readonly length: number }
  | { readonly $: "map"; readonly entries: readonly unknown[] }
  | { readonly $: "number"; readonly text: string }
  | { readonly $: "undefined" };

const HEAD_BYTES = 8;
/** Typed arrays begin at multiples of this. */
const ALIGNMENT = 8;

/** A message as bytes. */
export function encodeMessage(message: unknown): Uint8Array {
  const arrays: { at: number; bytes: Uint8Array }[] = [];
  let length = 0;
  const special = (value: unknown): Special | undefined => {
    if (typeof value === "number" && (!Number.isFinite(value) || Object.is(value, -0))) {
      return { $: "number", text: Object.is(value, -0) ? "-0" : String(value) };
    }
    if (value instanceof Map) return { $: "map", entries: [...value] };
    if (!ArrayBuffer.isView(value)) return undefined;
    const array = value as NumberArray;
    const at = length;
    arrays.push({ at, bytes: new Uint8Array(array.buffer, array.byteOffset, array.byteLength) });
    length += Math.ceil(array.byteLength / ALIGNMENT) * ALIGNMENT;
    return { $: "array", name: array.constructor.name as ArrayName, at, length: array.length };
  };
  const json = JSON.stringify(message, function (this: unknown, _, value: unknown) {
    // As a property, what is undefined may as well be absent.
    if (value === undefined) return Array.isArray(this) ? ({ $: "undefined" } satisfies Special) : undefined;
    return special(value) ?? value;
  });
  const text = new TextEncoder().encode(json);
  const bytes = new Uint8Array(HEAD_BYTES + text.length + length);
  const head = new DataView(bytes.buffer);
  head.setUint32(0, text.length, true);
  head.setUint32(4, length, true);
  bytes.set(text, HEAD_BYTES);
  for (const { at, bytes: part } of arrays) bytes.set(part, HEAD_BYTES + text.length + at);
  return bytes;
}

/** The message that bytes are; the numbers of its arrays are copies. */
function decodeMessage(bytes: Uint8Array, textLength: number): unknown {
  const text = new TextDecoder().decode(bytes.subarray(HEAD_BYTES, HEAD_BYTES + textLength));
  const { buffer } = bytes.slice(HEAD_BYTES + textLength);
  const revive = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) {
      for (const [i, element] of value.entries()) value[i] = revive(element);
      return value;
    }
    if ("$" in value) {
      const special = value as Special;
      if (special.$ === "number") return Number(special.text);
      if (special.$ === "undefined") return undefined;
      if (special.$ === "map") return new Map(revive(special.entries) as [unknown, unknown][]);
      return new ARRAYS[special.name](buffer, special.at, special.length);
    }
    const object = value as Record<string, unknown>;
    for (const [key, property] of Object.entries(object)) object[key] = revive(property);
    return object;
  };
  return revive(JSON.parse(text));
}

/** Takes bytes as they arrive, and gives the messages that are complete. */
export class MessageReader {
  #bytes = new Uint8Array(0);
  #length = 0;

  *add(chunk: Uint8Array): Generator<unknown, void, undefined> {
    this.#reserve(this.#length + chunk.length);
    this.#bytes.set(chunk, this.#length);
    this.#length += chunk.length;
    for (;;) {
      if (this.#length < HEAD_BYTES) return;
      const head = new DataView(this.#bytes.buffer);
      const textLength = head.getUint32(0, true);
      const end = HEAD_BYTES + textLength + head.getUint32(4, true);
      this.#reserve(end);
      if (this.#length < end) return;
      yield decodeMessage(this.#bytes.subarray(0, end), textLength);
      this.#bytes.copyWithin(0, end, this.#length);
      this.#length -= end;
    }
  }

  /** Makes room for so many bytes. */
  #reserve(length: number): void {
    if (length <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(length, 2 * this.#bytes.length));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}
