/**
 * A model at a glance, as SVG: layers across, kinds of tensors down, a small cell for each; what is outside of layers stands
 * apart. The picture is a tree of elements, which the page shows and `svgText` writes.
 */
import { compareNames, layerColumns, type TensorTable } from "./tensor-table";
import { counted, escapeXml, humanBytes, humanCount } from "./text";

type Attributes = Readonly<Record<string, string | number>>;

export interface SvgElement {
  readonly tag: string;
  readonly attributes: Attributes;
  readonly children: readonly (SvgElement | string)[];
}

/** What cells are coloured by, other than their types: one number for each tensor. */
export interface Coloring {
  readonly title: string;
  /** Undefined where it is not known. */
  numberOf(tensor: number): number | undefined;
  textOf(value: number): string;
  /** Of several tensors in a cell, the one that says most. */
  readonly choose: "sum" | "max" | "min";
  readonly isLogarithmic: boolean;
}

export interface PictureOptions {
  /** The name of the model, as it is shown. */
  readonly title: string;
  readonly isDark?: boolean;
  readonly width?: number;
  /** Types, where it is left out. */
  readonly coloring?: Coloring | undefined;
  /** Attributes of the links that cells are, of one tensor or several; `number` counts the cells, line by line. */
  readonly linkOf?: (tensors: readonly number[], number: number) => Attributes;
}

/** Columns, and rows of kinds, at most: what more there is shares columns, and the last row. */
const MOST_COLUMNS = 128;
const MOST_KINDS = 64;

const FONT = 12;
/** What a character takes at most in fonts of one width. */
const CHARACTER = 0.62 * FONT;
const PAD = 16;
const ROW = 18;
const MOST_CELL = 44;
/** What stands beside the layers has so much room at least. */
const LEAST_BESIDE = 220;

const LIGHT = { ground: "#ffffff", text: "#1d2024", quiet: "#5c636d", line: "#c9ccd1", ramp: "#12337a" };
const DARK = { ground: "#1b1e22", text: "#e6e8eb", quiet: "#9ca4af", line: "#4a5058", ramp: "#9cc0ff" };
type Palette = typeof LIGHT;
/** Colours far from each other, for types and parts of a whole; the second eight are the first in another lightness. */
const SHADES = {
  light:
    "4269b3 a64e2f 00826a 86539d 866800 0077a5 a6485f 367e3a 8bb7ff fb9b7a 46d1b6 d59fef d4b54f 51c6f7 fb94aa 83cc84",
  dark: "79a4f3 e68867 29bea3 c18cdb c1a23a 3ab3e3 e68297 70b972 355ba3 963f20 00735c 77458e 775900 006895 953951 266f2b",
};

export function shadeColor(index: number, isDark: boolean): string {
  return `#${SHADES[isDark ? "dark" : "light"].split(" ")[index % 16]}`;
}

function element(tag: string, attributes: Attributes, ...children: (SvgElement | string)[]): SvgElement {
  return { tag, attributes, children };
}

export function svgText({ tag, attributes, children }: SvgElement): string {
  const written = Object.entries(attributes).map(([name, value]) => ` ${name}="${escapeXml(String(value))}"`);
  const inner = children.map((child) => (typeof child === "string" ? escapeXml(child) : svgText(child)));
  const begin = `<${tag}${written.join("")}`;
  return inner.length > 0 ? `${begin}>${inner.join("")}</${tag}>` : `${begin}/>`;
}

/** The width of text; letters of the Far East take twice as much. */
function widthOf(text: string): number {
  return Array.from(text).reduce((sum, char) => sum + (char > "\u2e80" ? 2 : 1), 0) * CHARACTER;
}

/** `text`, cut to its room. */
function cut(text: string, room: number): string {
  if (widthOf(text) <= room) return text;
  let shown = "";
  for (const char of text) {
    if (widthOf(`${shown}${char}…`) > room) break;
    shown += char;
  }
  return `${shown}…`;
}

type Cell = { readonly row: number; readonly column: number; readonly tensors: readonly number[] };

/** The kinds of some tensors by name, and the tensors of each cell, line by line. */
function cellsOf(
  tensors: readonly number[],
  kindOf: (tensor: number) => string,
  columnOf: (tensor: number) => number,
): { kinds: string[]; cells: Cell[] } {
  const kinds = [...new Set(tensors.map(kindOf))].sort(compareNames);
  const rows = new Map(kinds.map((kind, i) => [kind, Math.min(i, MOST_KINDS - 1)]));
  const cells = new Map<number, number[]>();
  for (const tensor of tensors) {
    const place = (rows.get(kindOf(tensor)) as number) * MOST_COLUMNS + columnOf(tensor);
    const cell = cells.get(place) ?? [];
    cells.set(place, cell);
    cell.push(tensor);
  }
  const others = kinds.splice(kinds.length > MOST_KINDS ? MOST_KINDS - 1 : MOST_KINDS);
  if (others.length > 0) kinds.push(counted(others.length, "other"));
  const inOrder = [...cells].sort(([a], [b]) => a - b);
  return {
    kinds: kinds.map((kind) => kind.replace(/\.weight$/, "")),
    cells: inOrder.map(([at, of]) => ({ row: (at / MOST_COLUMNS) | 0, column: at % MOST_COLUMNS, tensors: of })),
  };
}

/** The cells of layers, and of what is outside of them. */
function bothCellsOf({ names, blocks, blockOf }: TensorTable, columnOf: (tensor: number) => number) {
  // Numbers in names do not tell kinds apart.
  const kindOf = (i: number): string => {
    const [name, block] = [names[i] as string, blocks[blockOf[i] as number]];
    if (block === undefined) return name.replace(/\d+/g, "*");
    return name.slice(block.length + 1).replace(/(?<![^.])\d+(?![^.])/g, "*");
  };
  const all = Array.from(names, (_, i) => i);
  const inside = all.filter((i) => blockOf[i] !== -1);
  const outside = all.filter((i) => blockOf[i] === -1);
  return { inside: cellsOf(inside, kindOf, columnOf), outside: cellsOf(outside, kindOf, () => 0) };
}

function bytesOf({ byteLengths }: TensorTable, tensors: readonly number[]): number {
  return tensors.reduce((sum, tensor) => sum + (byteLengths[tensor] || 0), 0);
}

/** What the colours of a picture mean. */
interface Colors {
  /** That of a cell, and what is said of it beside its type and size. */
  of(tensors: readonly number[]): { color: Attributes; said: readonly string[] };
  readonly legend: readonly (readonly [label: string, color: Attributes])[];
}

function colorsOfTypes(table: TensorTable, isDark: boolean): Colors {
  const { types, typeOf } = table;
  const all = [...typeOf.keys()];
  const ofType = (type: number): Attributes => ({ fill: shadeColor(type, isDark) });
  const sizeOf = (type: number): string =>
    humanBytes(
      bytesOf(
        table,
        all.filter((i) => typeOf[i] === type),
      ),
    );
  return {
    of(tensors) {
      const largest = tensors.reduce((a, b) => (bytesOf(table, [b]) > bytesOf(table, [a]) ? b : a));
      return { color: ofType(typeOf[largest] as number), said: [] };
    },
    legend: types.map((type, i) => [`${type} ${sizeOf(i)}`, ofType(i)]),
  };
}

/** @param cells those whose numbers the scale is made for */
function colorsOfNumbers(table: TensorTable, coloring: Coloring, cells: readonly Cell[], palette: Palette): Colors {
  const { title, choose, isLogarithmic } = coloring;
  const numberOf = (tensors: readonly number[]): number | undefined => {
    const values = tensors.flatMap((tensor) => coloring.numberOf(tensor) ?? []);
    if (values.length < 2) return values[0];
    return values.reduce((a, b) => (choose === "sum" ? a + b : Math[choose](a, b)));
  };
  const numbers = cells.flatMap(({ tensors }) => numberOf(tensors) ?? []);
  const scale = scaleOf(numbers, isLogarithmic);
  const unknown = { fill: "none", stroke: palette.line };
  const colorOf = (share: number): Attributes => ({ fill: palette.ramp, "fill-opacity": round(0.1 + 0.9 * share) });
  const legend = scale.marks.map(([share, value]): [string, Attributes] => [coloring.textOf(value), colorOf(share)]);
  if (table.names.some((_, i) => coloring.numberOf(i) === undefined)) legend.push(["not known", unknown]);
  const of: Colors["of"] = (tensors) => {
    const value = numberOf(tensors);
    if (value === undefined) return { color: unknown, said: [] };
    const said = choose === "sum" ? [] : [`${title} ${coloring.textOf(value)}`];
    return { color: colorOf(scale.shareOf(value)), said };
  };
  return { of, legend };
}

/** Something of some width, with a label beside it. */
type Labelled = { readonly label: string; readonly size: number; draw(x: number, y: number): unknown };

/** Elements at their places. */
class Drawing {
  readonly content: SvgElement[] = [];

  constructor(
    readonly width: number,
    readonly palette: Palette,
  ) {}

  write(x: number, y: number, anchor: string, text: string, more: Attributes = {}): void {
    const place = { x: round(x), y: round(y), "text-anchor": anchor };
    this.content.push(element("text", { ...place, fill: this.palette.quiet, ...more }, text));
  }

  /** Things with labels, one after the other, or below each other. @returns where the last line ends */
  flow(left: number, top: number, isList: boolean, things: readonly Labelled[]): number {
    const end = this.width - PAD;
    let [x, y] = [left, top];
    for (const { label, size, draw } of things) {
      const shown = cut(label, end - left - size - 6);
      const taken = size + 6 + widthOf(shown);
      if (x > left && (isList || x + taken > end)) [x, y] = [left, y + ROW];
      draw(x, y);
      this.write(x + size + 6, y + FONT - 0.5, "start", shown);
      x += taken + 2 * CHARACTER;
    }
    return things.length > 0 ? y + ROW : top;
  }

  /** The numbers of layers; the first one of a kind of layers says what they are. */
  titles(left: number, y: number, step: number, titles: readonly string[]): void {
    let end = 0;
    for (const [i, title] of titles.entries()) {
      const [, prefix = "", layer = ""] = /^(.*?)\.?(\d+)(?: to .*)?$/s.exec(title) ?? [];
      const isFirst = i === 0 || !titles[i - 1]?.startsWith(`${prefix}.`);
      const label = cut(isFirst ? `${prefix}.${layer}` : layer, 160);
      const [x, half] = [left + (i + 0.5) * step, widthOf(label) / 2];
      if (x - half < end + 6 || x + half > this.width) continue;
      this.write(x, y, "middle", label);
      end = x + half;
    }
  }
}

function box(x: number, y: number, width: number, color: Attributes): SvgElement {
  const rounding = round(Math.min(2, width / 4));
  return element("rect", { x: round(x), y: round(y), width: round(width), height: 15, rx: rounding, ...color });
}

export function modelPicture(table: TensorTable, options: PictureOptions): SvgElement {
  const { title, isDark = false, width = 1000, coloring, linkOf } = options;
  const { names, types, typeOf, elementCounts, blocks } = table;
  const palette = isDark ? DARK : LIGHT;
  const drawing = new Drawing(width, palette);
  const { titles, blockColumns: count, columnOf } = layerColumns(table, MOST_COLUMNS);
  const { inside, outside } = bothCellsOf(table, columnOf);
  // What is outside of layers does not count, so that a large one does not pale all others.
  const counting = (count > 0 ? inside : outside).cells;
  const colors =
    coloring === undefined ? colorsOfTypes(table, isDark) : colorsOfNumbers(table, coloring, counting, palette);
  let number = 0;
  const cell = ({ column, tensors }: Cell, where: string, ...[x, y, w]: [number, number, number]): void => {
    const { color, said } = colors.of(tensors);
    const what = [
      tensors.length === 1 ? names[tensors[0] as number] : `${counted(tensors.length, "tensor")}, ${where}`,
      [...new Set(tensors.map((tensor) => types[typeOf[tensor] as number]))].slice(0, 4).join(" "),
      humanBytes(bytesOf(table, tensors)),
      ...said,
    ].join(", ");
    const parts = [element("title", {}, what), box(x, y, w, color)];
    const link = linkOf && { "aria-label": what, "data-column": column, ...linkOf(tensors, number++) };
    drawing.content.push(link === undefined ? element("g", {}, ...parts) : element("a", link, ...parts));
  };

  const counts = [
    ...(blocks.length > 0 ? [counted(blocks.length, "layer")] : []),
    counted(names.length, "tensor"),
    `${humanCount(elementCounts.reduce((a, b) => a + b, 0))} weights`,
  ].join(", ");
  const bytes = humanBytes(bytesOf(table, [...typeOf.keys()]));
  const totals = `${counts}, ${bytes}`;
  const shownTitle = cut(title, width - 2 * PAD);
  drawing.write(PAD, PAD + FONT, "start", shownTitle, { fill: palette.text, "font-weight": "bold" });
  const facts = widthOf(totals) > width - 2 * PAD ? [counts, bytes] : [totals];
  const notes = [...facts, `colours: ${coloring?.title ?? "types"}`].map((label) => ({ label, size: -6, draw() {} }));
  const head = drawing.flow(PAD, PAD + ROW + 0.5, false, notes);

  const labels = Math.min(0.4 * width, Math.max(0, ...inside.kinds.map(widthOf)));
  const [left, top] = [PAD + labels + 8, head + 30 - 0.5];
  const step = count === 0 ? 0 : Math.min(MOST_CELL, (width - PAD - left) / count);
  drawing.titles(left, top - 8, step, titles.slice(0, count));
  for (const [row, kind] of inside.kinds.entries()) {
    drawing.write(left - 8, top + row * ROW + FONT, "end", cut(kind, labels));
  }
  for (const one of inside.cells) {
    const [where, gap] = [`${inside.kinds[one.row]} of ${titles[one.column]}`, Math.min(2, 0.2 * step)];
    cell(one, where, left + one.column * step, top + one.row * ROW, step - gap);
  }
  // Outside of layers: on the right where there is room, else beneath.
  const [right, below] = [left + count * step + 2 * PAD, top + inside.kinds.length * ROW];
  const isBeside = count > 0 && width - PAD - right >= LEAST_BESIDE;
  const [x, y] = isBeside ? [right, top] : [PAD, below + (count > 0 ? 30 : 0)];
  if (outside.kinds.length > 0) drawing.write(x, y - 8, "start", count > 0 ? "outside of layers" : "tensors");
  const beside = outside.cells.map((one) => {
    const label = outside.kinds[one.row] as string;
    const draw = (at: number, line: number): void => cell({ ...one, column: one.row }, label, at, line, 22);
    return { label, size: 22, draw };
  });
  const end = drawing.flow(x, y, isBeside, beside);
  const legend = colors.legend.map(([label, color]) => {
    const draw = (at: number, line: number): unknown => drawing.content.push(box(at, line, 15, color));
    return { label, size: 15, draw };
  });
  const bottom = drawing.flow(PAD, Math.max(below, end) + 22, false, legend);
  const size = { width, height: Math.ceil(bottom + PAD) };
  return element(
    "svg",
    {
      ...{ xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${size.height}`, ...size },
      ...{ "font-family": "ui-monospace, Menlo, Consolas, monospace", "font-size": FONT },
      ...{ role: linkOf === undefined ? "img" : "group", "aria-label": `${title}: ${totals}` },
    },
    element("rect", { ...size, fill: palette.ground }),
    ...(linkOf === undefined ? [element("title", {}, title)] : []),
    ...drawing.content,
  );
}

const round = (x: number): number => Math.round(x * 100) / 100;

/** Where values are between the least and the most, and some of them for the legend; what is infinite is at an end. */
function scaleOf(values: readonly number[], isLogarithmic: boolean) {
  const finite = values.filter((value) => Number.isFinite(value) && (!isLogarithmic || value > 0));
  const [place, back] = isLogarithmic ? [Math.log, Math.exp] : [(x: number) => x, (x: number) => x];
  const low = place(finite.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY));
  const high = place(finite.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY));
  const shareOf = (value: number): number => {
    if (high > low) return Math.max(0, Math.min(1, (place(value) - low) / (high - low)));
    return value === Number.NEGATIVE_INFINITY ? 0 : 1;
  };
  const shares = high > low ? [0, 0.25, 0.5, 0.75, 1] : [1];
  const marks = shares.map((share): [number, number] => [share, back(low + share * (high - low))]);
  const [only = 0] = values;
  return { shareOf, marks: finite.length > 0 ? marks : values.length > 0 ? [[1, only] as const] : [] };
}
