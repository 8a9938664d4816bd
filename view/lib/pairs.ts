/** The tensors of two models beside each other, by name. */
import type { TensorTable } from "./protocol";

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
    const type = (table: TensorTable, at: number): string =>
      table.types[table.typeOf[at] as number] as string;
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
