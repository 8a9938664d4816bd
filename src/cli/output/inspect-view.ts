/** What `gguf-native inspect` shows: for people see inspect-text.ts, for programs inspect-json.ts. */
import type { GgufModel, GgufModelTensor } from "../../index";

/** The parts of a model that are shown. */
export interface InspectView {
  /** As it may be shown. */
  readonly path: string;
  readonly file: GgufModel<GgufModelTensor>;
  readonly sections: { readonly summary: boolean; readonly tensors: boolean; readonly metadata: boolean };
  /** The tensors that the filter selects. */
  readonly tensors: readonly GgufModelTensor[];
  /** The metadata keys that it selects. */
  readonly keys: readonly string[];
}

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
