/** The tensors of a model in columns, and the layers that they are in: what lists and pictures of them are made of. */
import type { GgufModelTensor } from "../file/model-tensor";
import { blockParts } from "./blocks";
import { escapeText, shapeText, shorten } from "./text";

/** The tensors of a model: there may be hundreds of thousands. */
export interface TensorTable {
  /** As they are shown. */
  readonly names: readonly string[];
  /** Those that take most bytes first. */
  readonly types: readonly string[];
  /** Which of `types` each has. */
  readonly typeOf: Uint32Array;
  /** Dimensions as stored, "4096 x 32000". */
  readonly shapes: readonly string[];
  readonly elementCounts: Float64Array;
  /** NaN for an unknown type. */
  readonly byteLengths: Float64Array;
  readonly offsets: Float64Array;
  /** "blk.0" and so on, in file order. */
  readonly blocks: readonly string[];
  /** Which of `blocks` each is in; -1 outside of blocks. */
  readonly blockOf: Int32Array;
}

type Listed = Pick<GgufModelTensor, "name" | "type" | "shape" | "elementCount" | "byteLength" | "offset">;

/** The most characters of a name that are shown. */
const MOST_NAME = 300;

export function nameText(name: string): string {
  return shorten(escapeText(name.slice(0, MOST_NAME + 1)), MOST_NAME);
}

/** @param types all of them, in the order in which they are shown */
export function tensorTable(tensors: readonly Listed[], types: readonly string[]): TensorTable {
  const numberOfType = new Map(types.map((type, i) => [type, i]));
  const blocks = new Map<string, number>();
  const blockOf = Int32Array.from(tensors, ({ name }) => {
    const parts = blockParts(name);
    if (parts === undefined) return -1;
    const block = nameText(`${parts[0]}.${parts[1]}`);
    const number = blocks.get(block) ?? blocks.size;
    blocks.set(block, number);
    return number;
  });
  return {
    names: tensors.map(({ name }) => nameText(name)),
    types,
    typeOf: Uint32Array.from(tensors, ({ type }) => numberOfType.get(type) as number),
    shapes: tensors.map(({ shape }) => shapeText(shape)),
    elementCounts: Float64Array.from(tensors, ({ elementCount }) => elementCount),
    byteLengths: Float64Array.from(tensors, ({ byteLength }) => byteLength),
    offsets: Float64Array.from(tensors, ({ offset }) => offset),
    blocks: [...blocks.keys()],
    blockOf,
  };
}

/** Columns for the blocks in their order, and one for all tensors outside of blocks. */
export interface LayerColumns {
  readonly titles: readonly string[];
  /** How many of them are of blocks, and so follow each other. */
  readonly blockColumns: number;
  /** The column of a tensor. */
  columnOf(tensor: number): number;
}

/** Columns of a table, `most` at most: where there are many blocks, several that follow each other share one. */
export function layerColumns({ blocks, blockOf }: Pick<TensorTable, "blocks" | "blockOf">, most: number): LayerColumns {
  const sorted = blocks.map((_, i) => i).sort((a, b) => compareNames(blocks[a] as string, blocks[b] as string));
  const place = new Uint32Array(blocks.length);
  for (const [i, block] of sorted.entries()) place[block] = i;
  const perColumn = Math.max(1, Math.ceil(blocks.length / (most - 1)));
  const columns = Math.ceil(blocks.length / perColumn);
  const titles = Array.from({ length: columns }, (_, i) => {
    const [first, last] = [i * perColumn, Math.min((i + 1) * perColumn, blocks.length) - 1];
    const nameOf = (at: number): string => blocks[sorted[at] as number] as string;
    return first === last ? nameOf(first) : `${nameOf(first)} to ${nameOf(last)}`;
  });
  return {
    titles: blockOf.includes(-1) ? [...titles, "outside"] : titles,
    blockColumns: columns,
    columnOf: (tensor) => {
      const block = blockOf[tensor] as number;
      return block < 0 ? columns : Math.floor((place[block] as number) / perColumn);
    },
  };
}

/** By code units, which is fast and the same everywhere; but numbers by what they are: blk.2 comes before blk.10. */
export function compareNames(a: string, b: string): number {
  let i = 0;
  while (i < a.length && a[i] === b[i]) i++;
  while (i > 0 && isDigit(a.charCodeAt(i - 1))) i--;
  const [x, y] = [numberAt(a, i), numberAt(b, i)];
  if (x !== undefined && y !== undefined && x !== y) return x - y;
  return a < b ? -1 : a > b ? 1 : 0;
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

function numberAt(text: string, begin: number): number | undefined {
  let end = begin;
  while (isDigit(text.charCodeAt(end))) end++;
  return end === begin ? undefined : Number(text.slice(begin, end));
}
