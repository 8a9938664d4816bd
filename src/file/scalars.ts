/** Numbers of metadata that may hold anything: what is no number, or out of range, counts as absent. */
import type { GgufMetadata } from "./metadata";

/** The number of a key; undefined where there is none. An array is not decoded only to find that it is no number. */
export function numberOf(metadata: GgufMetadata, key: string): number | undefined {
  if (metadata.typeOf(key)?.type === "array") return undefined;
  const value = metadata.get(key);
  return typeof value === "number" || typeof value === "bigint" ? Number(value) : undefined;
}

/** The same, if it is a whole number that can be a count or a length. */
export function countOf(metadata: GgufMetadata, key: string): number | undefined {
  const number = numberOf(metadata, key);
  return number !== undefined && isCount(number) ? number : undefined;
}

function isCount(number: number): boolean {
  return Number.isSafeInteger(number) && number >= 0;
}

/** The most layers that are believed. */
export const MAX_LAYERS = 65_536;

/**
 * A count for each of `layers`, from a key that holds one for all of them, or an array; undefined where it holds neither.
 */
export function countsPerLayer(metadata: GgufMetadata, key: string, layers: number): number[] | undefined {
  const type = metadata.typeOf(key);
  if (type?.type !== "array") {
    const count = countOf(metadata, key);
    return count === undefined ? undefined : Array(layers).fill(count);
  }
  if (type.length < layers || type.length > MAX_LAYERS) return undefined;
  if (type.elementType === "string" || type.elementType === "array") return undefined;
  const all = Array.from(metadata.get(key) as ArrayLike<number | bigint | boolean>, Number).slice(0, layers);
  return all.every(isCount) ? all : undefined;
}
