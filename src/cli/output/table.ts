/** Tables, and text in lines, as wide as the terminal. */
import { clusters, clusterWidth, textWidth, truncate } from "./text-width";

export interface Column {
  title: string;
  align?: "left" | "right";
  /** Shrinks to this many columns, but no further, where a table is too wide. The last such column shrinks first. */
  min?: number;
  /** Left out where a table is still too wide then: the column with the lowest number first. */
  drop?: number;
  /** Colours the cells. */
  paint?: Paint;
}

/** Adds colour to text that has its final form. */
export type Paint = (text: string) => string;

const plain: Paint = (text) => text;

/** How a table is laid out, beyond its columns. */
export interface TableOptions {
  /** Colours the titles. */
  paintTitle?: Paint;
  /** Where rows are too wide after all, they and the titles take two lines: the first column, and the others under it. */
  stacks?: boolean;
}

/** A row (already escaped): its cells, or text that goes across all columns. */
export type Row = readonly string[] | string;

const GAP = "  ";

/**
 * Lays out rows in columns, indented by two, no line longer than `width` as far as the columns allow. Goes through the rows
 * twice, for the widths and for the lines, and keeps none of them.
 */
export function* table(
  columns: readonly Column[],
  rows: Iterable<Row>,
  width: number,
  { paintTitle = plain, stacks = false }: TableOptions = {},
): Generator<string, void, undefined> {
  const natural = columns.map(({ title }) => title.length);
  for (const row of rows) {
    if (typeof row === "string") continue;
    row.forEach((cell, i) => {
      natural[i] = Math.max(natural[i] ?? 0, textWidth(cell));
    });
  }
  const across = (text: string): string[] => wrap(text, width - GAP.length).map((part) => GAP + part);
  const all = columns.map((_, i) => i);
  const titles = columns.map(({ title }) => title);
  const layout = fit(columns, natural, all, width);
  function* lay(lineOf: (cells: readonly string[], paintAll?: Paint) => string[]): Generator<string, void, undefined> {
    yield* lineOf(titles, paintTitle).filter((text) => text !== "");
    for (const row of rows) yield* typeof row === "string" ? across(row) : lineOf(row);
  }
  if (stacks && layout.excess > 0 && columns.length > 1) {
    const first = fit(columns, natural.with(0, Math.min(natural[0] as number, width - GAP.length)), [0], width);
    const under = fit(columns, natural, all.slice(1), width - GAP.length);
    yield* lay((cells, paintAll) => [
      line(columns, cells, first, paintAll),
      (GAP + line(columns, cells, under, paintAll)).trimEnd(),
    ]);
    return;
  }
  yield* lay((cells, paintAll) => [line(columns, cells, layout, paintAll)]);
}

/** Which columns are shown, how wide each of all columns is, and by how much a line is too wide. */
interface Layout {
  shown: readonly number[];
  widths: readonly number[];
  excess: number;
}

/** Shrinks columns, and leaves some out, until the others fit. */
function fit(
  columns: readonly Column[],
  natural: readonly number[],
  indexes: readonly number[],
  width: number,
): Layout {
  const widths = [...natural];
  let excess = indexes.reduce((sum, i) => sum + (widths[i] as number) + GAP.length, 0) - width;
  for (const i of [...indexes].reverse()) {
    const { min } = columns[i] as Column;
    const now = widths[i] as number;
    if (excess <= 0) break;
    if (min === undefined || now <= min) continue;
    widths[i] = Math.max(min, now - excess);
    excess -= now - (widths[i] as number);
  }
  const dropOf = (i: number): number => columns[i]?.drop ?? Number.POSITIVE_INFINITY;
  const next = indexes.reduce((a, b) => (dropOf(b) < dropOf(a) ? b : a), indexes[0] as number);
  if (excess <= 0 || dropOf(next) === Number.POSITIVE_INFINITY) return { shown: indexes, widths, excess };
  return fit(
    columns,
    natural,
    indexes.filter((i) => i !== next),
    width,
  );
}

function line(
  columns: readonly Column[],
  cells: readonly string[],
  { shown, widths }: Layout,
  paintAll?: Paint,
): string {
  const parts = shown.map((i) => {
    const { align, paint = plain } = columns[i] as Column;
    const cell = truncate(cells[i] ?? "", widths[i] as number);
    const space = " ".repeat((widths[i] as number) - textWidth(cell));
    const painted = cell === "" ? "" : (paintAll ?? paint)(cell);
    return GAP + (align === "right" ? space + painted : painted + space);
  });
  return parts.join("").trimEnd();
}

/** Names and values in two columns, indented by two. Values that are too long continue in the next line. */
export function facts(
  rows: readonly (readonly [name: string, value: string])[],
  width: number,
  paint = plain,
): string[] {
  const nameWidth = Math.max(...rows.map(([name]) => textWidth(name)));
  const room = Math.max(1, width - nameWidth - 2 * GAP.length);
  return rows.flatMap(([name, value]) =>
    wrap(value, room).map((text, i) => {
      const label = i === 0 ? paint(name) + " ".repeat(nameWidth - textWidth(name)) : " ".repeat(nameWidth);
      return `${GAP}${label}${GAP}${text}`.trimEnd();
    }),
  );
}

/** The most lines of wrapped text. */
const MAX_WRAPPED = 4;

/** Text in lines of `width` columns, broken at spaces; what does not fit in a few lines is cut off. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  const words = text.split(" ");
  for (const [i, word] of words.entries()) {
    if (line !== "" && textWidth(line) + 1 + textWidth(word) > width) {
      if (lines.length === MAX_WRAPPED - 1) return [...lines, truncate([line, ...words.slice(i)].join(" "), width)];
      lines.push(line);
      line = "";
    }
    line = truncate(line === "" ? word : `${line} ${word}`, width);
  }
  return [...lines, line];
}

/** Text in lines of `width` columns, broken at spaces, and unless `keepsWords` within words that are longer; all of it. */
export function wrapWhole(text: string, width: number, keepsWords = false): string[] {
  const lines: string[] = [];
  let line = "";
  let used = 0;
  for (const word of text.split(/(?<= )/)) {
    if (used > 0 && used + textWidth(word.trimEnd()) > width) {
      lines.push(line.trimEnd());
      [line, used] = ["", 0];
    }
    for (const cluster of keepsWords ? [word] : clusters(word)) {
      if (used > 0 && used + clusterWidth(cluster.trimEnd()) > width) {
        lines.push(line);
        [line, used] = ["", 0];
      }
      line += cluster;
      used += clusterWidth(cluster);
    }
  }
  return [...lines, line.trimEnd()];
}
