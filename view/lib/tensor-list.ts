/** The list of tensors: by block, searched and sorted. */
import { compareNames, type TensorTable } from "#dist/describe/tensor-table";
import { searchMatcher } from "./search";

/** What tensors can be sorted by. */
export const ORDERS = ["file", "name", "type", "size", "weights"] as const;
export type Order = (typeof ORDERS)[number];

/** The order that a text names, and whether it is reversed: "-size". */
export function orderIn<T extends string>(orders: readonly T[], text: string, usual: T): [T, boolean] {
  const name = text.replace(/^-/, "");
  const order = orders.find((one) => one === name);
  return [order ?? usual, order !== undefined && name !== text];
}

/** A line of the list: a tensor, or the title of a block. */
export type Line =
  | { readonly tensor: number }
  | { readonly block: number; readonly count: number; readonly bytes: number; readonly isOpen: boolean };

/** The numbers of the tensors whose names, types and shapes a search finds, in an order. */
export function selectTensors(table: TensorTable, search: string, order: Order, isReversed = false): number[] {
  const matches = searchMatcher(search);
  const found: number[] = [];
  for (const [i, name] of table.names.entries()) {
    if (matches(name, `${name} ${table.types[table.typeOf[i] as number]} ${table.shapes[i]}`)) found.push(i);
  }
  const at = (column: Float64Array, i: number): number => column[i] || 0;
  const type = (i: number): string => table.types[table.typeOf[i] as number] as string;
  const compare: Record<Exclude<Order, "file">, (a: number, b: number) => number> = {
    name: (a, b) => compareNames(table.names[a] as string, table.names[b] as string),
    type: (a, b) => compareNames(type(a), type(b)),
    size: (a, b) => at(table.byteLengths, b) - at(table.byteLengths, a),
    weights: (a, b) => at(table.elementCounts, b) - at(table.elementCounts, a),
  };
  if (order === "file") return found;
  return found.sort((a, b) => (isReversed ? compare[order](b, a) : compare[order](a, b)) || a - b);
}

/** Tensors in file order with a title before those of each block; those of a closed block are left out. */
export function blockLines(table: TensorTable, tensors: readonly number[], closed: ReadonlySet<number>): Line[] {
  const members = new Map<number, number[]>();
  for (const tensor of tensors) {
    const block = table.blockOf[tensor] as number;
    const others = members.get(block);
    if (others === undefined) members.set(block, [tensor]);
    else others.push(tensor);
  }
  const lines: Line[] = [];
  const begun = new Set<number>();
  for (const tensor of tensors) {
    const block = table.blockOf[tensor] as number;
    if (block < 0) {
      lines.push({ tensor });
      continue;
    }
    if (begun.has(block)) continue;
    begun.add(block);
    const isOpen = !closed.has(block);
    const inBlock = members.get(block) as number[];
    const bytes = inBlock.reduce((sum, member) => sum + (table.byteLengths[member] || 0), 0);
    lines.push({ block, count: inBlock.length, bytes, isOpen });
    if (isOpen) for (const member of inBlock) lines.push({ tensor: member });
  }
  return lines;
}
