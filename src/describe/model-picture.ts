/**
 * A model at a glance, as SVG: layers across, kinds of tensors down, a small cell for each; what is outside of layers stands
 * apart. The picture is a tree of elements, which the page shows and `svgText` writes.
 */
import type { GgufModelTensor } from "../file/model-tensor";
import { compareNames, layerColumns, type TensorTable, tensorTable } from "./tensor-table";
import { counted, escapeXml, humanBytes, humanCount } from "./text";
import { typeTotals } from "./type-totals";

export interface SvgElement {
  readonly tag: string;
  readonly attributes: Readonly<Record<string, string | number>>;
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
  /** Of the model, as it is shown. */
  readonly title: string;
  readonly isDark?: boolean;
  readonly width?: number;
  /** Types, where it is left out. */
  readonly coloring?: Coloring | undefined;
  /** Attributes of the link that a cell is: one without is none. Cells go line by line; `column` says which are above each other. */
  readonly linkOf?: (cell: PictureCell, number: number) => Readonly<Record<string, string | number>>;
}

export interface PictureCell {
  readonly column: number;
  /** Most have one. */
  readonly tensors: readonly number[];
  /** What they are, in words. */
  readonly title: string;
}

/** Columns, and rows of kinds, at most: what more there is shares the last row. */
const MOST_COLUMNS = 128;
const MOST_KINDS = 64;

const FONT = 12;
/** What a character takes at most in fonts of one width. */
const CHARACTER = 0.62 * FONT;
const PAD = 16;
const ROW = 18;
/** Between the cells and what is outside of layers; the least room that this has beside them. */
const APART = 32;
const LEAST_APART = 220;
const MOST_CELL = 44;

const LIGHT = { ground: "#ffffff", text: "#1d2024", quiet: "#5c636d", line: "#c9ccd1" };
const DARK = { ground: "#1b1e22", text: "#e6e8eb", quiet: "#9ca4af", line: "#4a5058" };
/** From the least to the most. */
const RAMPS = { light: ["#dfe8f8", "#12337a"], dark: ["#2a3346", "#9cc0ff"] } as const;

/** The colour that tells something from others beside it, as those of the page do: as far from the last as can be. */
export function shadeColor(index: number, isDark: boolean): string {
  const isOther = index % 16 >= 8;
  const lightness = isDark ? (isOther ? 0.48 : 0.72) : isOther ? 0.78 : 0.53;
  const angle = ((262 + (index % 16) * 137.5) * Math.PI) / 180;
  const [a, b] = [0.125 * Math.cos(angle), 0.125 * Math.sin(angle)];
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return hexOf(
    [
      4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
      -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
      -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
    ].map((x) => 255 * (x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055)),
  );
}

const hexOf = (channels: readonly number[]): string =>
  `#${channels
    .map((x) =>
      Math.max(0, Math.min(255, Math.round(x)))
        .toString(16)
        .padStart(2, "0"),
    )
    .join("")}`;

function mixed([from, to]: readonly [string, string], share: number): string {
  const channel = (color: string, i: number): number =>
    Number.parseInt(color.slice(1 + 2 * i, 3 + 2 * i), 16);
  return hexOf([0, 1, 2].map((i) => channel(from, i) + (channel(to, i) - channel(from, i)) * share));
}

type Attributes = Record<string, string | number>;

function element(tag: string, attributes: Attributes, ...children: (SvgElement | string)[]): SvgElement {
  return { tag, attributes, children };
}

export function svgText({ tag, attributes, children }: SvgElement): string {
  const written = Object.entries(attributes).map(([name, value]) => ` ${name}="${escapeXml(String(value))}"`);
  const inner = children.map((child) => (typeof child === "string" ? escapeXml(child) : svgText(child)));
  const begin = `<${tag}${written.join("")}`;
  return inner.length > 0 ? `${begin}>${inner.join("")}</${tag}>` : `${begin}/>`;
}

/** The picture of a model by types, as the text of a file. */
export function modelSvg(title: string, tensors: readonly GgufModelTensor[]): string {
  const table = tensorTable(tensors, [...typeTotals(tensors).keys()]);
  return `${svgText(modelPicture(table, { title }))}\n`;
}

/** Columns of text; letters of the Far East take two. */
function columnsOf(text: string): number {
  return Array.from(text).reduce((sum, char) => sum + (char > "\u2e80" ? 2 : 1), 0);
}

/** `text`, cut to its room. */
function cut(text: string, room: number): string {
  let [shown, columns] = ["", 1];
  for (const char of text) {
    columns += columnsOf(char);
    if (columns * CHARACTER > room) return columnsOf(text) * CHARACTER <= room ? text : `${shown}…`;
    shown += char;
  }
  return text;
}

interface Row {
  readonly label: string;
  /** The tensors of each column; of what is outside of layers there is one column. */
  readonly cells: Map<number, number[]>;
}

/** The rows of the layers, and what is outside of them, kind by kind: numbers in names do not tell kinds apart. */
function rowsOf(table: TensorTable, columnOf: (tensor: number) => number): [inside: Row[], outside: Row[]] {
  const kinds = [new Map<string, Map<number, number[]>>(), new Map<string, Map<number, number[]>>()];
  for (const [i, name] of table.names.entries()) {
    const block = table.blocks[table.blockOf[i] as number];
    const member = block !== undefined && name.startsWith(`${block}.`) ? name.slice(block.length + 1) : name;
    const kind = member.replace(block === undefined ? /\d+/g : /(?<![^.])\d+(?![^.])/g, "*");
    const all = kinds[block === undefined ? 1 : 0] as Map<string, Map<number, number[]>>;
    const cells = all.get(kind) ?? new Map<number, number[]>();
    all.set(kind, cells);
    const column = block === undefined ? 0 : columnOf(i);
    const before = cells.get(column);
    if (before === undefined) cells.set(column, [i]);
    else before.push(i);
  }
  return kinds.map((all) => {
    const rows = [...all].map(([kind, cells]): Row => ({ label: kind.replace(/\.weight$/, ""), cells }));
    rows.sort((a, b) => compareNames(a.label, b.label));
    if (rows.length <= MOST_KINDS) return rows;
    const others = rows.splice(MOST_KINDS - 1);
    const cells = new Map<number, number[]>();
    for (const row of others)
      for (const [column, tensors] of row.cells) cells.set(column, (cells.get(column) ?? []).concat(tensors));
    return [...rows, { label: `${counted(others.length, "other")}`, cells }];
  }) as [Row[], Row[]];
}

export function modelPicture(
  table: TensorTable,
  { title, isDark = false, width = 1000, coloring, linkOf }: PictureOptions,
): SvgElement {
  const { names, types, typeOf, byteLengths, blocks } = table;
  const colors = isDark ? DARK : LIGHT;
  const ramp = RAMPS[isDark ? "dark" : "light"];
  const { titles, blockColumns: count, columnOf } = layerColumns(table, MOST_COLUMNS);
  const [inside, outside] = rowsOf(table, columnOf);
  const bytesOf = (tensor: number): number => byteLengths[tensor] || 0;
  const largest = (tensors: readonly number[]): number =>
    tensors.reduce((a, b) => (bytesOf(b) > bytesOf(a) ? b : a));
  const shownOf = (tensors: readonly number[]): number | undefined => {
    const values = tensors.flatMap((tensor) => coloring?.numberOf(tensor) ?? []);
    if (values.length === 0) return undefined;
    if (coloring?.choose === "sum") return values.reduce((a, b) => a + b);
    return values.reduce((a, b) => (coloring?.choose === "min" ? Math.min(a, b) : Math.max(a, b)));
  };
  // What is outside of layers does not count, so that a large one does not pale all others.
  const scale = scaleOf(
    (inside.length > 0 ? inside : outside).flatMap(({ cells }) =>
      [...cells.values()].flatMap((cell) => shownOf(cell) ?? []),
    ),
    coloring?.isLogarithmic ?? false,
  );

  const text = (x: number, y: number, content: string, more: Attributes = {}): SvgElement =>
    element(
      "text",
      { x: round(x), y: round(y), "text-anchor": "start", fill: colors.quiet, ...more },
      content,
    );
  let number = 0;
  const cellAt = (x: number, y: number, w: number, where: string, column: number, tensors: number[]) => {
    const [only] = tensors as [number];
    const value = shownOf(tensors);
    const what = [
      tensors.length === 1 ? (names[only] as string) : `${counted(tensors.length, "tensor")}, ${where}`,
      [...new Set(tensors.map((tensor) => types[typeOf[tensor] as number]))].slice(0, 4).join(" "),
      humanBytes(tensors.reduce((sum, tensor) => sum + bytesOf(tensor), 0)),
      ...(value === undefined || coloring?.choose === "sum"
        ? []
        : [`${coloring?.title} ${coloring?.textOf(value)}`]),
    ].join(", ");
    const fill =
      coloring === undefined
        ? shadeColor(typeOf[largest(tensors)] as number, isDark)
        : value === undefined
          ? "none"
          : mixed(ramp, scale.shareOf(value));
    const [rx, stroke] = [Math.min(2, w / 4), fill === "none" ? { stroke: colors.line } : {}];
    const rect = element("rect", {
      x: round(x),
      y: round(y),
      width: round(w),
      height: ROW - 3,
      rx,
      fill,
      ...stroke,
    });
    const link = linkOf?.({ column, tensors, title: what }, number++);
    const hint = element("title", {}, what);
    if (link === undefined) return element("g", {}, hint, rect);
    return element("a", { "aria-label": what, "data-column": column, ...link }, hint, rect);
  };

  const content: SvgElement[] = [
    text(PAD, PAD + FONT, cut(title, width - 2 * PAD), { fill: colors.text, "font-weight": "bold" }),
    text(
      PAD,
      PAD + FONT + ROW,
      cut(`${totalsText(table)}; colours: ${coloring?.title ?? "types"}`, width - 2 * PAD),
    ),
  ];
  const labels = Math.min(
    0.4 * width,
    Math.max(0, ...inside.map(({ label }) => columnsOf(label) + 1)) * CHARACTER,
  );
  const left = PAD + labels + 8;
  const top = PAD + 2 * ROW + 30;
  const step = count === 0 ? 0 : Math.min(MOST_CELL, (width - PAD - left) / count);
  let end = 0;
  for (let i = 0; i < count; i++) {
    // The first one of a kind of layers says what they are, the others have their numbers.
    const [, prefix = "", layer = ""] = /^(.*?)\.?(\d+)(?: to .*)?$/s.exec(titles[i] as string) ?? [];
    const isFirst = i === 0 || !(titles[i - 1] as string).startsWith(`${prefix}.`);
    const label = cut(isFirst ? `${prefix}.${layer}` : layer, 160);
    const [x, half] = [left + (i + 0.5) * step, (columnsOf(label) * CHARACTER) / 2];
    if (x - half < end + 6 || x + half > width) continue;
    content.push(text(x, top - 8, label, { "text-anchor": "middle" }));
    end = x + half;
  }
  const gap = Math.min(2, step * 0.2);
  for (const [r, { label, cells }] of inside.entries()) {
    const y = top + r * ROW;
    content.push(text(left - 8, y + FONT, cut(label, labels), { "text-anchor": "end" }));
    for (const [column, tensors] of [...cells].sort(([a], [b]) => a - b)) {
      content.push(
        cellAt(left + column * step, y, step - gap, `${label} of ${titles[column]}`, column, tensors),
      );
    }
  }
  // Outside of layers: on the right where there is room, else beneath.
  const right = left + count * step + APART;
  const isBeside = count > 0 && width - PAD - right >= LEAST_APART;
  let [x, y] = isBeside ? [right, top] : [PAD, top + inside.length * ROW + (count > 0 ? 30 : 0)];
  const begin = x;
  if (outside.length > 0) content.push(text(x, y - 8, count > 0 ? "outside of layers" : "tensors"));
  for (const [i, { label, cells }] of outside.entries()) {
    const room = width - PAD - begin - 36;
    const shown = cut(label, room);
    const taken = 30 + (columnsOf(shown) + 2) * CHARACTER;
    if (x > begin && (isBeside || x + taken - 2 * CHARACTER > width - PAD)) [x, y] = [begin, y + ROW];
    content.push(cellAt(x, y, 22, label, i, cells.get(0) as number[]), text(x + 28, y + FONT, shown));
    x += taken;
  }
  const bottom = Math.max(top + inside.length * ROW, outside.length > 0 ? y + ROW : 0) + 22;
  const legend = coloring === undefined ? typeLegend() : rampLegend(coloring);
  const height = Math.ceil(legend.bottom + PAD);
  return element(
    "svg",
    {
      ...{ xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${height}`, width, height },
      ...{ "font-family": "ui-monospace, Menlo, Consolas, monospace", "font-size": FONT },
      ...{ role: linkOf === undefined ? "img" : "group", "aria-label": `${title}: ${totalsText(table)}` },
    },
    element("rect", { class: "ground", width, height, fill: colors.ground }),
    ...(linkOf === undefined ? [element("title", {}, title)] : []),
    ...content,
    ...legend.parts,
  );

  function typeLegend(): { parts: SvgElement[]; bottom: number } {
    const totals = types.map(() => 0);
    for (const [i, type] of typeOf.entries()) totals[type] = (totals[type] as number) + bytesOf(i);
    const parts: SvgElement[] = [];
    let [at, line] = [PAD, bottom];
    for (const [i, type] of types.entries()) {
      const label = `${type} ${humanBytes(totals[i] as number)}`;
      const taken = 18 + (label.length + 2) * CHARACTER;
      if (at > PAD && at + taken > width) [at, line] = [PAD, line + ROW];
      const fill = shadeColor(i, isDark);
      parts.push(element("rect", { x: round(at), y: line, width: 12, height: 12, rx: 3, fill }));
      parts.push(text(at + 18, line + 10.5, label, { fill: colors.text }));
      at += taken;
    }
    return { parts, bottom: line + (types.length > 0 ? 12 : 0) };
  }

  function rampLegend({ textOf }: Coloring): { parts: SvgElement[]; bottom: number } {
    if (scale.low === undefined)
      return { parts: [text(PAD, bottom + 10.5, "not measured")], bottom: bottom + 12 };
    const [low, high] = [textOf(scale.low), textOf(scale.high)];
    const from = PAD + (low.length + 1) * CHARACTER;
    const stops = Array.from({ length: 24 }, (_, i) =>
      element("rect", {
        x: round(from + 5 * i),
        y: bottom,
        width: 5.5,
        height: 12,
        fill: mixed(ramp, i / 23),
      }),
    );
    return {
      parts: [text(PAD, bottom + 10.5, low), ...stops, text(from + 128, bottom + 10.5, high)],
      bottom: bottom + 12,
    };
  }

  function totalsText({ elementCounts }: TensorTable): string {
    const weights = elementCounts.reduce((a, b) => a + b, 0);
    const bytes = names.reduce((sum, _, i) => sum + bytesOf(i), 0);
    const layers = blocks.length > 0 ? [counted(blocks.length, "layer")] : [];
    return [
      ...layers,
      counted(names.length, "tensor"),
      `${humanCount(weights)} weights`,
      humanBytes(bytes),
    ].join(", ");
  }
}

const round = (x: number): number => Math.round(x * 100) / 100;

/** Where values are between the least and the most; what is infinite is at an end. */
function scaleOf(values: readonly number[], isLogarithmic: boolean) {
  const finite = values.filter((value) => Number.isFinite(value) && (!isLogarithmic || value > 0));
  const [low, high] = [
    finite.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY),
    finite.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY),
  ];
  const place = (value: number): number => (isLogarithmic ? Math.log(value) : value);
  const shareOf = (value: number): number => {
    const share = (place(value) - place(low)) / (place(high) - place(low));
    if (Number.isNaN(share)) return value > high ? 1 : 0.5;
    return Math.max(0, Math.min(1, share));
  };
  return finite.length > 0 ? { low, high, shareOf } : { low: values[0], high: values[0] ?? 0, shareOf };
}
