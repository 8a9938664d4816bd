/**
 * JSON that loses nothing: 64-bit integers are decimal strings; so are the floats that JSON lacks or that parsers lose:
 * "NaN", "Infinity", "-Infinity", "-0".
 */
export function exactJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, (_key, member: unknown) => exact(member), indent);
}

function exact(value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  if (typeof value === "number" && (!Number.isFinite(value) || Object.is(value, -0))) {
    return value === 0 ? "-0" : String(value);
  }
  return ArrayBuffer.isView(value) ? Array.from(value as Uint8Array) : value;
}
