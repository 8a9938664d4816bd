/** The tensors of two models beside each other, by name, and in what their values differ. */
import type { TensorComparison } from "gguf-native";
import { compareNames, layerColumns, type TensorTable } from "#dist/describe/tensor-table";
import { searchMatcher } from "./search";

/** A tensor of each model; -1 where it has none of that name. */
export interface Pair {
  readonly name: string;
  readonly a: number;
  readonly b: number;
  /** What is different without looking at the values; "" where only they can be. */
  readonly what: string;
  /** Whether values can be compared: the shapes are the same. */
  readonly isComparable: boolean;
}

/** The tensors of the first model in their order, then those that the second one alone has. */
export function tensorPairs(a: TensorTable, b: TensorTable): Pair[] {
  const inB = new Map(b.names.map((name, i) => [name, i]));
  const pairs = a.names.map((name, i): Pair => {
    const other = inB.get(name);
    inB.delete(name);
    if (other === undefined) return { name, a: i, b: -1, what: "only in A", isComparable: false };
    const type = (table: TensorTable, at: number): string => table.types[table.typeOf[at] as number] as string;
    const [shapes, types] = [
      [a.shapes[i], b.shapes[other]],
      [type(a, i), type(b, other)],
    ];
    const isComparable = shapes[0] === shapes[1];
    const what = (isComparable ? types : shapes).join(" -> ");
    const isSame = isComparable && types[0] === types[1];
    return { name, a: i, b: other, what: isSame ? "" : what, isComparable };
  });
  for (const [name, i] of inB) pairs.push({ name, a: -1, b: i, what: "only in B", isComparable: false });
  return pairs;
}

/** What is known of the values of a pair. */
export type Measured = TensorComparison | { readonly failure: string };

/** What pairs can be sorted by. */
export const PAIR_ORDERS = ["snr", "error", "file", "name"] as const;
export type PairOrder = (typeof PAIR_ORDERS)[number];

/**
 * The numbers of the pairs that a search finds, in an order. By signal to noise, what cannot be compared is worst of all, and
 * what has not been compared yet comes last.
 */
export function selectPairs(
  pairs: readonly Pair[],
  measured: ReadonlyMap<number, Measured>,
  search: string,
  order: PairOrder,
  isReversed = false,
): number[] {
  const matches = searchMatcher(search);
  const found = pairs.flatMap(({ name, what }, i) => (matches(name, `${name} ${what}`) ? [i] : []));
  if (order === "file") return found;
  const nameOf = (i: number): string => (pairs[i] as Pair).name;
  const sign = isReversed ? -1 : 1;
  if (order === "name") return found.sort((a, b) => sign * compareNames(nameOf(a), nameOf(b)) || a - b);
  const badness = new Map(found.map((i) => [i, badnessOf(pairs[i] as Pair, measured.get(i), order)]));
  const at = (i: number): readonly [kind: number, value: number] => badness.get(i) as [number, number];
  return found.sort((a, b) => sign * (at(a)[0] - at(b)[0] || at(a)[1] - at(b)[1]) || a - b);
}

/** What is sorted by, the worst first: a kind, and within that a value. */
function badnessOf(pair: Pair, found: Measured | undefined, order: "snr" | "error"): [number, number] {
  if (!pair.isComparable || (found !== undefined && "failure" in found)) return [0, 0];
  if (found === undefined) return [2, 0];
  const value = order === "snr" ? found.snr : -found.maxError;
  return [1, Number.isNaN(value) ? Number.NEGATIVE_INFINITY : value];
}

/** The signal-to-noise ratio of a pair in a column of layers. */
export interface NoisePoint {
  readonly pair: number;
  readonly column: number;
  /** In decibels; Infinity where there is no error. */
  readonly snr: number;
}

/** What the chart of signal to noise by layer shows. */
export interface NoiseByLayer {
  readonly titles: readonly string[];
  readonly points: readonly NoisePoint[];
  /** The worst of each block, in their order, where something was compared. */
  readonly worst: readonly NoisePoint[];
}

/** The layers are those of the first model, `most` columns of them at most. */
export function noiseByLayer(
  table: TensorTable,
  pairs: readonly Pair[],
  measured: ReadonlyMap<number, Measured>,
  most: number,
): NoiseByLayer {
  const { titles, blockColumns, columnOf } = layerColumns(table, most);
  const points: NoisePoint[] = [];
  const worst = new Array<NoisePoint | undefined>(titles.length).fill(undefined);
  for (const [pair, found] of measured) {
    if ("failure" in found || Number.isNaN(found.snr)) continue;
    const column = columnOf((pairs[pair] as Pair).a);
    const point = { pair, column, snr: found.snr };
    points.push(point);
    const { [column]: before } = worst;
    if (before === undefined || found.snr < before.snr) worst[column] = point;
  }
  return { titles, points, worst: worst.slice(0, blockColumns).filter((point) => point !== undefined) };
}
