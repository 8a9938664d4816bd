/** How the bytes of a model divide into its blocks, and those into types: what the picture of layers shows. */
import type { TensorTable } from "./protocol";

/** A column of the picture: a block, or several that follow each other where there are many. */
export interface Layer {
  readonly title: string;
  readonly bytes: number;
  /** Of each type of the table. */
  readonly byType: readonly number[];
}

/** The blocks in the order of the file, then all tensors outside of blocks; `most` columns at most. */
export function layersOf(table: TensorTable, most: number): Layer[] {
  const { blocks, blockOf, byteLengths, types, typeOf } = table;
  const perColumn = Math.max(1, Math.ceil(blocks.length / (most - 1)));
  const columns = Math.ceil(blocks.length / perColumn);
  const bytes = Array.from({ length: columns + 1 }, () => types.map(() => 0));
  for (const [i, block] of blockOf.entries()) {
    const column = bytes[block < 0 ? columns : Math.floor(block / perColumn)] as number[];
    const type = typeOf[i] as number;
    column[type] = (column[type] as number) + (byteLengths[i] || 0);
  }
  const isOutside = blockOf.includes(-1);
  return bytes.slice(0, isOutside ? columns + 1 : columns).map((byType, i): Layer => {
    const last = Math.min((i + 1) * perColumn, blocks.length) - 1;
    const first = i * perColumn;
    const title =
      i === columns ? "outside" : first === last ? `${blocks[first]}` : `${blocks[first]} to ${blocks[last]}`;
    return { title, bytes: byType.reduce((sum, n) => sum + n, 0), byType };
  });
}
