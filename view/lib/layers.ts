/** How the bytes of a model divide into its blocks, and those into types: what the picture of layers shows. */
import type { TensorTable } from "./protocol";

/** A column of the picture: a block, or several that follow each other where there are many. */
export interface Layer {
  readonly title: string;
  readonly bytes: number;
  /** Of each type of the table. */
  readonly byType: readonly number[];
}

/** Columns for the blocks in the order of the file, and one for all tensors outside of blocks. */
export interface LayerColumns {
  readonly titles: readonly string[];
  /** How many of them are of blocks, and so follow each other. */
  readonly blockColumns: number;
  /** The column of a tensor. */
  columnOf(tensor: number): number;
}

/** Columns of a table, `most` at most. */
export function layerColumns({ blocks, blockOf }: TensorTable, most: number): LayerColumns {
  const perColumn = Math.max(1, Math.ceil(blocks.length / (most - 1)));
  const columns = Math.ceil(blocks.length / perColumn);
  const titles = Array.from({ length: columns }, (_, i) => {
    const first = i * perColumn;
    const last = Math.min(first + perColumn, blocks.length) - 1;
    return first === last ? `${blocks[first]}` : `${blocks[first]} to ${blocks[last]}`;
  });
  return {
    titles: blockOf.includes(-1) ? [...titles, "outside"] : titles,
    blockColumns: columns,
    columnOf: (tensor) => {
      const block = blockOf[tensor] as number;
      return block < 0 ? columns : Math.floor(block / perColumn);
    },
  };
}

/** The bytes of each column, of `most` at most. */
export function layersOf(table: TensorTable, most: number): Layer[] {
  const { byteLengths, types, typeOf } = table;
  const { titles, columnOf } = layerColumns(table, most);
  const bytes = titles.map(() => types.map(() => 0));
  for (const [i, type] of typeOf.entries()) {
    const column = bytes[columnOf(i)] as number[];
    column[type] = (column[type] as number) + (byteLengths[i] || 0);
  }
  return titles.map((title, i): Layer => {
    const byType = bytes[i] as number[];
    return { title, bytes: byType.reduce((sum, n) => sum + n, 0), byType };
  });
}
