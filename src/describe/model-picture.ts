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
    cells: inOrder.map(([at, of]) => ({
      row: (at / MOST_COLUMNS) | 0,
      column: at % MOST_COLUMNS,
      tensors: of,
    })),
  };
}

export function modelPicture(
  table: TensorTable,
  { title, isDark = false, width = 1000, coloring, linkOf }: PictureOptions,
): SvgElement {
  const { names, types, typeOf, byteLengths, elementCounts, blocks, blockOf } = table;
  const colors = isDark ? DARK : LIGHT;
  const { titles, blockColumns: count, columnOf } = layerColumns(table, MOST_COLUMNS);
  const all = Array.from(names, (_, i) => i);
  // Numbers in names do not tell kinds apart.
  const kindOf = (i: number): string => {
    const [name, block] = [names[i] as string, blocks[blockOf[i] as number]];
    if (block === undefined) return name.replace(/\d+/g, "*");
    return name.slice(block.length + 1).replace(/(?<![^.])\d+(?![^.])/g, "*");
  };
  const isInside = (i: number): boolean => blockOf[i] !== -1;
  const inside = cellsOf(all.filter(isInside), kindOf, columnOf);
  const rest = all.filter((i) => !isInside(i));
  const outside = cellsOf(rest, kindOf, () => 0);
  const bytesOf = (tensors: readonly number[]): number =>
    tensors.reduce((sum, tensor) => sum + (byteLengths[tensor] || 0), 0);
  const numberOf = (tensors: readonly number[]): number | undefined => {
    const values = tensors.flatMap((tensor) => coloring?.numberOf(tensor) ?? []);
    if (values.length < 2 || coloring === undefined) return values[0];
    if (coloring.choose === "sum") return values.reduce((a, b) => a + b);
    return values.reduce((a, b) => Math[coloring.choose as "min" | "max"](a, b));
  };
  // What is outside of layers does not count, so that a large one does not pale all others.
  const scale = scaleOf(
    (count > 0 ? inside : outside).cells.flatMap(({ tensors }) => numberOf(tensors) ?? []),
    coloring?.isLogarithmic ?? false,
  );

  const content: SvgElement[] = [];
  const write = (x: number, y: number, anchor: string, text: string, more: Attributes = {}): void => {
    const place = { x: round(x), y: round(y), "text-anchor": anchor };
    content.push(element("text", { ...place, fill: colors.quiet, ...more }, text));
  };
  const colorOf = (share: number | undefined): Attributes =>
    share === undefined
      ? { fill: "none", stroke: colors.line }
      : { fill: colors.ramp, "fill-opacity": round(0.1 + 0.9 * share) };
  const box = (x: number, y: number, w: number, color: Attributes): SvgElement =>
    element("rect", {
      ...{ x: round(x), y: round(y), width: round(w), height: 15, rx: round(Math.min(2, w / 4)) },
      ...color,
    });
  let number = 0;
  const cell = ({ column, tensors }: Cell, where: string, ...[x, y, w]: [number, number, number]): void => {
    const value = numberOf(tensors);
    const isSaid = value !== undefined && coloring?.choose !== "sum";
    const what = [
      tensors.length === 1 ? names[tensors[0] as number] : `${counted(tensors.length, "tensor")}, ${where}`,
      [...new Set(tensors.map((tensor) => types[typeOf[tensor] as number]))].slice(0, 4).join(" "),
      humanBytes(bytesOf(tensors)),
      ...(isSaid ? [`${coloring?.title} ${coloring?.textOf(value)}`] : []),
    ].join(", ");
    const largest = tensors.reduce((a, b) => (bytesOf([b]) > bytesOf([a]) ? b : a));
    const ofType = { fill: shadeColor(typeOf[largest] as number, isDark) };
    const color = coloring === undefined ? ofType : colorOf(value === undefined ? value : scale.shareOf(value));
    const parts = [element("title", {}, what), box(x, y, w, color)];
    const link = linkOf && { "aria-label": what, "data-column": column, ...linkOf(tensors, number++) };
    content.push(link === undefined ? element("g", {}, ...parts) : element("a", link, ...parts));
  };
  /** Things with labels, one after the other, or below each other. @returns where the last line ends */
  const flow = (
    left: number,
    top: number,
    isList: boolean,
    things: readonly { label: string; size: number; draw(x: number, y: number): unknown }[],
  ): number => {
    let [x, y] = [left, top];
    for (const { label, size, draw } of things) {
      const shown = cut(label, width - PAD - left - size - 6);
      const taken = size + 6 + widthOf(shown);
      if (x > left && (isList || x + taken > width - PAD)) [x, y] = [left, y + ROW];
      draw(x, y);
      write(x + size + 6, y + FONT - 0.5, "start", shown);
      x += taken + 2 * CHARACTER;
    }
    return things.length > 0 ? y + ROW : top;
  };

  const totals = [
    ...(blocks.length > 0 ? [counted(blocks.length, "layer")] : []),
    counted(names.length, "tensor"),
    `${humanCount(elementCounts.reduce((a, b) => a + b, 0))} weights`,
    humanBytes(bytesOf(all)),
  ].join(", ");
  write(PAD, PAD + FONT, "start", cut(title, width - 2 * PAD), { fill: colors.text, "font-weight": "bold" });
  const note = cut(`${totals}; colours: ${coloring?.title ?? "types"}`, width - 2 * PAD);
  write(PAD, PAD + FONT + ROW, "start", note);
  const labels = Math.min(0.4 * width, Math.max(0, ...inside.kinds.map(widthOf)));
  const [left, top] = [PAD + labels + 8, PAD + 2 * ROW + 30];
  const step = count === 0 ? 0 : Math.min(MOST_CELL, (width - PAD - left) / count);
  for (let i = 0, end = 0; i < count; i++) {
    // The first one of a kind of layers says what they are, the others have their numbers.
    const [, prefix = "", layer = ""] = /^(.*?)\.?(\d+)(?: to .*)?$/s.exec(titles[i] as string) ?? [];
    const isFirst = i === 0 || !titles[i - 1]?.startsWith(`${prefix}.`);
    const label = cut(isFirst ? `${prefix}.${layer}` : layer, 160);
    const [x, half] = [left + (i + 0.5) * step, widthOf(label) / 2];
    if (x - half < end + 6 || x + half > width) continue;
    write(x, top - 8, "middle", label);
    end = x + half;
  }
  for (const [row, kind] of inside.kinds.entries()) write(left - 8, top + row * ROW + FONT, "end", cut(kind, labels));
  for (const one of inside.cells) {
    const [where, gap] = [`${inside.kinds[one.row]} of ${titles[one.column]}`, Math.min(2, 0.2 * step)];
    cell(one, where, left + one.column * step, top + one.row * ROW, step - gap);
  }
  // Outside of layers: on the right where there is room, else beneath.
  const [right, below] = [left + count * step + 2 * PAD, top + inside.kinds.length * ROW];
  const isBeside = count > 0 && width - PAD - right >= LEAST_BESIDE;
  const [x, y] = isBeside ? [right, top] : [PAD, below + (count > 0 ? 30 : 0)];
  if (outside.kinds.length > 0) write(x, y - 8, "start", count > 0 ? "outside of layers" : "tensors");
  const beside = outside.cells.map((one) => {
    const label = outside.kinds[one.row] as string;
    const draw = (at: number, line: number): void => cell({ ...one, column: one.row }, label, at, line, 22);
    return { label, size: 22, draw };
  });
  const end = flow(x, y, isBeside, beside);
  const bytesOfType = (type: number): string => humanBytes(bytesOf(all.filter((i) => typeOf[i] === type)));
  const legend: [label: string, color: Attributes][] =
    coloring === undefined
      ? types.map((type, i) => [`${type} ${bytesOfType(i)}`, { fill: shadeColor(i, isDark) }])
      : scale.marks.map(([share, value]) => [coloring.textOf(value), colorOf(share)]);
  if (coloring !== undefined && all.some((i) => coloring.numberOf(i) === undefined)) {
    legend.push(["not known", colorOf(undefined)]);
  }
  const entries = legend.map(([label, color]) => {
    const draw = (at: number, line: number): number => content.push(box(at, line, 15, color));
    return { label, size: 15, draw };
  });
  const bottom = flow(PAD, Math.max(below, end) + 22, false, entries);
  const size = { width, height: Math.ceil(bottom + PAD) };
  return element(
    "svg",
    {
      ...{ xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${size.height}`, ...size },
      ...{ "font-family": "ui-monospace, Menlo, Consolas, monospace", "font-size": FONT },
      ...{ role: linkOf === undefined ? "img" : "group", "aria-label": `${title}: ${totals}` },
    },
    element("rect", { ...size, fill: colors.ground }),
    ...(linkOf === undefined ? [element("title", {}, title)] : []),
    ...content,
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
