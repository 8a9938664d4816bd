/** How the weights of a model divide into types. */
import type { GgufModelTensor } from "../file/model-tensor";

/** The tensors of one type. */
export interface TypeTotal {
  tensors: number;
  elements: number;
  /** NaN for an unknown type. */
  bytes: number;
}

/** Tensors, weights and bytes of each type, the largest first. */
export function typeTotals(tensors: Iterable<GgufModelTensor>): Map<string, TypeTotal> {
  const totals = new Map<string, TypeTotal>();
  for (const { type, elementCount, byteLength } of tensors) {
    const total = totals.get(type) ?? { tensors: 0, elements: 0, bytes: 0 };
    total.tensors++;
    total.elements += elementCount;
    total.bytes += byteLength;
    totals.set(type, total);
  }
  return new Map([...totals].sort(([, a], [, b]) => (b.bytes || 0) - (a.bytes || 0)));
}
