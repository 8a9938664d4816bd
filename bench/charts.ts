/** Charts as SVG, for the README and the docs. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { blockSizes } from "./products";
import { figure, type Key, type Measurement, type Results, type Unit } from "./results";
import { limitOf, outputSizes } from "./suites/kernels";
import { quantizeErrors } from "./suites/quantize";
import { size } from "./table";

/** What sides are called, and their colours, from palettes for the colour-blind. Limits are grey or black. */
const SIDES: Record<string, [name: string, colour: string]> = {
  native: ["gguf-native", "#0072b2"],
  int8: ["gguf-native, int8", "#d55e00"],
  libggml: ["libggml", "#e69f00"],
  typescript: ["TypeScript", "#999999"],
  "two steps": ["dequantize, then multiply", "#56b4e9"],
  store: ["plain stores", "#555555"],
  stream: ["streaming stores", "#000000"],
  read: ["plain reads", "#000000"],
};

/** The left and the right side of the plot, its top, and the height of the bars of a type. */
const LEFT = 80;
const RIGHT = 640;
const TOP = 72;
const BAND = 20;

/** Values along one side of the plot, and where they are in the picture. */
interface Axis {
  title: string;
  ticks: readonly { at: number; label: string }[];
  hasGrid: boolean;
}

/** Writes a chart of each kind of measurement to `folder`. Kinds that were not measured get none. */
export function writeCharts(results: Results, quick: boolean, folder: string): void {
  const [, second] = outputSizes(quick);
  const [, memory] = blockSizes(quick);
  const compact = (bytes: number) => size(bytes).replace(" ", "");
  const dequantizing = { task: "dequantize", bytes: second };
  const product = { task: "product", bytes: memory };
  const reads = { task: "limit", side: "read", bytes: memory };
  const written = `Dequantizing to ${size(second)}`;
  const multiplied = `Products of ${size(memory)} of blocks and a vector`;
  const charts: Record<string, string | undefined> = {
    [`dequantize-${compact(second)}`]: typesChart(results, written, dequantizing, "GB/s", limitOf(second)),
    [`products-${compact(memory)}`]: typesChart(results, multiplied, product, "Gweights/s", reads),
    "scaling-by-size": sizesChart(results),
    "quantize-error": quantizeChart(results),
  };
  mkdirSync(folder, { recursive: true });
  for (const [name, svg] of Object.entries(charts)) {
    if (svg === undefined) continue;
    const path = join(folder, `${name}.svg`);
    writeFileSync(path, svg);
    console.log(`wrote ${path}`);
  }
}

/** Bars of the sides for each type, and ticks at a limit: in bytes, of which each type has as many for the same time. */
function typesChart(
  results: Results,
  title: string,
  key: Partial<Key>,
  unit: Unit,
  limitKey: Partial<Key>,
): string | undefined {
  const measured = known(results.all(key));
  if (measured.length === 0) return undefined;
  const best = results.best(limitKey);
  const ofLimit = (one: Measurement): Measurement[] =>
    one.side === "native" && best !== undefined ? [{ ...one, side: limitKey.side!, best }] : [];
  const limits = measured.flatMap(ofLimit);
  const types = [...new Set(measured.map(({ subject }) => subject))];
  const sides = sidesOf(measured);
  const bottom = TOP + BAND * types.length;
  const top = (one: Measurement) => TOP + BAND * types.indexOf(one.subject);
  const speeds = [...measured, ...limits].map((one) => figure(unit, one));
  const x = linear(unit === "GB/s" ? "GB/s of float32 written" : unit, [0, Math.max(...speeds)], LEFT, RIGHT);
  const height = (BAND * 0.8) / sides.length;
  const bars = measured.map((one) => {
    const y = top(one) + BAND * 0.1 + height * sides.indexOf(one.side);
    const width = x.place(figure(unit, one)) - LEFT;
    return `<rect ${places({ x: LEFT, y, width, height })} fill="${SIDES[one.side]![1]}"/>`;
  });
  const marks = limits.map((one) => {
    const place = places({ x: x.place(figure(unit, one)) - 1, y: top(one), width: 2, height: BAND });
    return `<rect ${place} fill="${SIDES[one.side]![1]}"/>`;
  });
  const ticks = types.map((label, i) => ({ label, at: TOP + BAND * (i + 0.5) }));
  const y = { title: "", ticks, hasGrid: false };
  return picture(heading(results, title), sidesOf([...measured, ...limits]), x, y, bottom, [...bars, ...marks]);
}

function sizesChart(results: Results): string | undefined {
  const scaling = results.all({ task: "scaling by size" });
  if (scaling.length === 0) return undefined;
  const { subject } = scaling[0]!;
  const sizes = [...new Set(scaling.map(({ bytes = 0 }) => bytes))].sort((a, b) => a - b);
  const limits = sizes.flatMap((bytes) => results.all({ task: "limit", subject, bytes }));
  const rows = known([...scaling, ...limits]).filter(({ side }) => side !== "read");
  const bottom = TOP + 260;
  const step = (RIGHT - LEFT) / Math.log2(sizes.at(-1)! / sizes[0]!);
  const place = (bytes: number) => LEFT + Math.log2(bytes / sizes[0]!) * step;
  const x = {
    title: "output",
    hasGrid: true,
    ticks: sizes.map((bytes) => ({ at: place(bytes), label: size(bytes).replace(" of output", "") })),
  };
  const speeds = rows.map((one) => figure("GB/s", one));
  const y = linear("GB/s of float32 written", [0, Math.max(...speeds)], bottom, TOP);
  const lines = sidesOf(rows).flatMap((side) => {
    const its = rows.filter((one) => one.side === side).sort((a, b) => a.bytes! - b.bytes!);
    const points = its.map((one) => [place(one.bytes!), y.place(figure("GB/s", one))] as const);
    const [, colour] = SIDES[side]!;
    const path = points.map((point) => point.map(rounded).join(",")).join(" ");
    return [
      `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>`,
      ...points.map(([cx, cy]) => `<circle ${places({ cx, cy, r: 3 })} fill="${colour}"/>`),
    ];
  });
  const title = `Speed of ${subject} by size of the output, calls included`;
  return picture(heading(results, title), sidesOf(rows), x, y, bottom, lines);
}

function quantizeChart(results: Results): string | undefined {
  const values = quantizeErrors(results);
  if (values.length === 0) return undefined;
  const bottom = TOP + 420;
  const range = (numbers: number[]) => [Math.min(...numbers), Math.max(...numbers)] as const;
  const x = linear("bits per weight", range(values.map(({ bits }) => bits)), LEFT, RIGHT);
  const y = linear("signal to noise, decibels", range(values.map(({ snr }) => snr)), bottom, TOP);
  const marks = values.flatMap(({ subject, bits, snr }) => {
    const [cx, cy] = [x.place(bits), y.place(snr)];
    // The names of codebook types stand on the left, those of others on the right, so that few overlap.
    const isLeft = subject.startsWith("IQ");
    return [
      `<circle ${places({ cx, cy, r: 3.5 })} fill="${SIDES.native![1]}"/>`,
      text(subject, cx + (isLeft ? -6 : 6), cy + 3, isLeft ? "end" : "start", 'font-size="9"'),
    ];
  });
  const subtitle = "gaussian weights, all columns equally important; 6 dB more are half the error";
  return picture(["What quantizing loses, by size", subtitle], [], x, y, bottom, marks);
}

/** Those whose sides the charts have. */
function known(measured: readonly Measurement[]): Measurement[] {
  return measured.filter(({ side }) => side in SIDES);
}

/** The sides that are there, in the order of legends and bars. */
function sidesOf(rows: readonly Measurement[]): string[] {
  return Object.keys(SIDES).filter((name) => rows.some(({ side }) => side === name));
}

function heading({ machine }: Results, title: string): [title: string, subtitle: string] {
  return [title, `${machine.processor}, ${machine.isa}, one thread, Node ${machine.node}`];
}

/** An axis with ten ticks or so, at round numbers, the outer ones around all values. */
function linear(
  title: string,
  [low, high]: readonly [number, number],
  from: number,
  to: number,
): Axis & { place(value: number): number } {
  const least = (high - low || 1) / 10;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= least)!;
  const [first, last] = [Math.floor(low / step), Math.ceil(high / step)];
  const place = (value: number) => from + ((value / step - first) / Math.max(1, last - first)) * (to - from);
  const values = Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
  const label = (value: number) => value.toFixed(Math.max(0, -Math.floor(Math.log10(step))));
  return {
    title,
    hasGrid: true,
    place,
    ticks: values.map((value) => ({ at: place(value), label: label(value) })),
  };
}

function picture(
  [title, subtitle]: readonly [string, string],
  sides: readonly string[],
  x: Axis,
  y: Axis,
  bottom: number,
  marks: readonly string[],
): string {
  const [width, height] = [RIGHT + 30, bottom + 44];
  const middle = (TOP + bottom) / 2;
  const line = (x1: number, y1: number, x2: number, y2: number, colour: string) =>
    `<line ${places({ x1, y1, x2, y2 })} stroke="${colour}"/>`;
  let at = LEFT;
  const legend = sides.flatMap((side) => {
    const [name, colour] = SIDES[side]!;
    const key = [
      `<rect ${places({ x: at, y: 47, width: 10, height: 10 })} fill="${colour}"/>`,
      text(name, at + 15, 56),
    ];
    at += 40 + 6 * name.length;
    return key;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="sans-serif" font-size="10">`,
    `<rect width="${width}" height="${height}" fill="white"/>`,
    text(title, 8, 18, "start", 'font-size="13" font-weight="bold"'),
    text(subtitle, 8, 34, "start", 'font-size="12"'),
    ...legend,
    ...(x.hasGrid ? x.ticks.map(({ at }) => line(at, TOP, at, bottom, "#ddd")) : []),
    ...(y.hasGrid ? y.ticks.map(({ at }) => line(LEFT, at, RIGHT, at, "#ddd")) : []),
    ...marks,
    line(LEFT, TOP, LEFT, bottom, "#888"),
    line(LEFT, bottom, RIGHT, bottom, "#888"),
    ...x.ticks.map(({ at, label }) => text(label, at, bottom + 15, "middle")),
    ...y.ticks.map(({ at, label }) => text(label, LEFT - 6, at + 3.5, "end")),
    text(x.title, (LEFT + RIGHT) / 2, bottom + 34, "middle", 'font-weight="bold"'),
    text(y.title, 20, middle, "middle", `font-weight="bold" transform="rotate(-90 20 ${middle})"`),
    "</svg>\n",
  ].join("");
}

function text(content: string, x: number, y: number, anchor = "start", more = ""): string {
  const escaped = content.replace(/[&<>]/g, (char) => `&#${char.charCodeAt(0)};`);
  return `<text ${places({ x, y })} text-anchor="${anchor}" ${more}>${escaped}</text>`;
}

/** Attributes whose values are numbers. */
function places(numbers: Readonly<Record<string, number>>): string {
  return Object.entries(numbers)
    .map(([name, value]) => `${name}="${rounded(value)}"`)
    .join(" ");
}

function rounded(value: number): string {
  return String(Math.round(value * 10) / 10);
}
