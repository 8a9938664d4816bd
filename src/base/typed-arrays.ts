/** What kind of typed array or buffer a value is, in any runtime and from any realm. */

const typedArrayPrototype = Object.getPrototypeOf(Uint8Array.prototype);
const tag = Object.getOwnPropertyDescriptor(typedArrayPrototype, Symbol.toStringTag);
const tagOf = tag?.get as (this: unknown) => string | undefined;

type Getter<T> = (this: ArrayBufferView) => T;
const getterOf = <T>(name: string): Getter<T> =>
  Object.getOwnPropertyDescriptor(typedArrayPrototype, name)?.get as Getter<T>;
const bufferOf = getterOf<ArrayBufferLike>("buffer");
const byteOffsetOf = getterOf<number>("byteOffset");
const byteLengthOf = getterOf<number>("byteLength");
const elementsOf = getterOf<number>("length");

/** What an array may hide by a property of its own. */
const members = Reflect.ownKeys(typedArrayPrototype);

/** How many elements a typed array has, whatever a `length` that a subclass or its owner gave it says. */
export function lengthOf(array: ArrayBufferView): number {
  return elementsOf.call(array);
}

type Plain = Uint8Array | Uint16Array | Float32Array | Float64Array;
interface PlainClass<A> {
  readonly prototype: A;
  readonly BYTES_PER_ELEMENT: number;
  new (buffer?: ArrayBufferLike, byteOffset?: number, length?: number): A;
}
const plainClasses: Readonly<Record<string, PlainClass<Plain>>> = {
  ...{ Uint8Array, Uint16Array, Float32Array, Float64Array },
};

/**
 * The memory of a caller's array as an array of the language's own class: its length and its methods are what they seem,
 * which those of a subclass, such as `Buffer`, need not be. An array that is so already stays itself. Empty where the memory
 * was taken away.
 */
export function plain<A extends Plain>(array: A): A {
  const Class = plainClasses[typedArrayName(array) as string] as PlainClass<A>;
  const isPlain = Object.getPrototypeOf(array) === Class.prototype;
  if (isPlain && !members.some((name) => Object.hasOwn(array, name))) return array;
  return memoryAs(Class, array);
}

/** The memory of a caller's array as an array of one of the language's own classes. Empty where it was taken away. */
export function memoryAs<A extends Plain>(Class: PlainClass<A>, array: ArrayBufferView): A {
  const byteLength = byteLengthOf.call(array);
  if (byteLength === 0) return new Class();
  return new Class(bufferOf.call(array), byteOffsetOf.call(array), byteLength / Class.BYTES_PER_ELEMENT);
}

/** Whether two values are arrays of the same memory, or of parts of it. */
export function shareBuffer(a: unknown, b: unknown): boolean {
  return isTypedArray(a) && isTypedArray(b) && bufferOf.call(a) === bufferOf.call(b);
}

/** Whether two arrays share memory, but do not have the same. */
export function overlapPartly(a: ArrayBufferView, b: ArrayBufferView): boolean {
  if (bufferOf.call(a) !== bufferOf.call(b)) return false;
  const [startA, startB] = [byteOffsetOf.call(a), byteOffsetOf.call(b)];
  const [sizeA, sizeB] = [byteLengthOf.call(a), byteLengthOf.call(b)];
  if ((startA === startB && sizeA === sizeB) || sizeA === 0 || sizeB === 0) return false;
  return startA < startB + sizeB && startB < startA + sizeA;
}

/** Two of `arrays`, by their indexes, that share memory; undefined where each has its own. */
export function findOverlap(arrays: readonly ArrayBufferView[]): [number, number] | undefined {
  if (arrays.length === 1) return undefined;
  const places = arrays.map((array, index) => {
    const start = byteOffsetOf.call(array);
    return { buffer: bufferOf.call(array), start, end: start + byteLengthOf.call(array), index };
  });
  const last = new Map<ArrayBufferLike, (typeof places)[number]>();
  for (const place of places.filter(({ start, end }) => end > start).sort((a, b) => a.start - b.start)) {
    const before = last.get(place.buffer);
    if (before !== undefined && before.end > place.start) return [before.index, place.index];
    last.set(place.buffer, place);
  }
  return undefined;
}

/** Such as `"Float32Array"`; undefined for a value that is not a typed array. */
export function typedArrayName(value: unknown): string | undefined {
  return tagOf.call(value);
}

export function isTypedArray(value: unknown): value is ArrayBufferView {
  return typedArrayName(value) !== undefined;
}

export function isUint8Array(value: unknown): value is Uint8Array {
  return typedArrayName(value) === "Uint8Array";
}

export function isFloat32Array(value: unknown): value is Float32Array {
  return typedArrayName(value) === "Float32Array";
}

/** Whether a value is an ArrayBuffer or a SharedArrayBuffer. */
export function isAnyArrayBuffer(value: unknown): value is ArrayBufferLike {
  return (
    isBuffer(value, ArrayBuffer) || (typeof SharedArrayBuffer !== "undefined" && isBuffer(value, SharedArrayBuffer))
  );
}

/** Only such a buffer has a length that the getter of its class reads. */
function isBuffer(value: unknown, { prototype }: { prototype: object }): boolean {
  const length = Object.getOwnPropertyDescriptor(prototype, "byteLength")?.get;
  try {
    length?.call(value);
    return true;
  } catch {
    return false;
  }
}

/**
 * The longest array that is made: asking for a longer one is an error before any memory is. Without a limit, the
 * constructor of the array decides.
 */
export let longestArray = Number.POSITIVE_INFINITY;

/** Sets the limit to that of the runtime. The addon needs one, since it makes memory first and the array around it. */
export function limitArrays(longest: number): void {
  longestArray = longest;
}
