/** What kind of typed array or buffer a value is, in any runtime and from any realm. */

const typedArrayPrototype = Object.getPrototypeOf(Uint8Array.prototype);
const tag = Object.getOwnPropertyDescriptor(typedArrayPrototype, Symbol.toStringTag);
const tagOf = tag?.get as (this: unknown) => string | undefined;

/** Such as `"Float32Array"`; undefined for a value that is not a typed array. */
export function typedArrayName(value: unknown): string | undefined {
  return tagOf.call(value);
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
    isBuffer(value, ArrayBuffer) ||
    (typeof SharedArrayBuffer !== "undefined" && isBuffer(value, SharedArrayBuffer))
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
