/** Charts as SVG, drawn by Vega-Lite, for the README and the docs. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Context } from "./context";
import { INSTALL_HINT, optionalPackage } from "./optional";
import { blockSizes } from "./products";
import { figure, type Key, type Results, type Unit } from "./results";
import { limitOf, outputSizes } from "./suites/kernels";
import { quantizeErrors } from "./suites/quantize";
import { size } from "./table";

interface Vega {
  View: new (runtime: unknown, options: object) => { toSVG(): Promise<string> };
  parse(spec: unknown): unknown;
}
interface VegaLite {
  compile(spec: unknown): { spec: unknown };
}

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
const STYLE = {
  ...{ background: "white", padding: 8, width: 560 },
  config: { font: "sans-serif", legend: { labelLimit: 0 }, axis: { labelLimit: 0 } },
};

/** Writes a chart of each kind of measurement to `folder`. Kinds that were not measured get none. */
export async function writeCharts({ results, options }: Context, folder: string): Promise<void> {
  const vega = await optionalPackage<Vega>("vega");
  const vegaLite = await optionalPackage<VegaLite>("vega-lite");
  if (vega === undefined || vegaLite === undefined) {
    results.miss(`charts: vega and vega-lite are not installed (${INSTALL_HINT})`);
    return;
  }
  const [, second] = outputSizes(options.quick);
  const [, memory] = blockSizes(options.quick);
  const compact = (bytes: number) => size(bytes).replace(" ", "");
  const dequantizing = { task: "dequantize", bytes: second };
  const product = { task: "product", bytes: memory };
  const reads = { task: "limit", side: "read", bytes: memory };
  const specs: Record<string, object | undefined> = {
    [`dequantize-${compact(second)}`]: typesChart(
      results,
      `Dequantizing to ${size(second)}`,
      dequantizing,
      "GB/s",
      limitOf(second),
    ),
    [`products-${compact(memory)}`]: typesChart(
      ...([results, `Products of ${size(memory)} of blocks and a vector`, product] as const),
      ...(["Gweights/s", reads] as const),
    ),
    "scaling-by-size": sizesChart(results),
    "quantize-error": quantizeChart(results),
  };
  mkdirSync(folder, { recursive: true });
  for (const [name, spec] of Object.entries(specs)) {
    if (spec === undefined) continue;
    const compiled = vegaLite.compile({ ...STYLE, ...spec }).spec;
    const path = join(folder, `${name}.svg`);
    writeFileSync(path, `${await new vega.View(vega.parse(compiled), { renderer: "none" }).toSVG()}\n`);
    console.log(`wrote ${path}`);
  }
}

/** The colours of the sides that are there, in the order of legends and bars. */
function colours(rows: readonly { side: string }[]): { domain: string[]; range: string[] } {
  const found = Object.values(SIDES).filter(([name]) => rows.some(({ side }) => side === name));
  return { domain: found.map(([name]) => name), range: found.map(([, colour]) => colour) };
}

function titleOf({ machine }: Results, text: string): object {
  return {
    text,
    subtitle: `${machine.processor}, ${machine.isa}, one thread, Node ${machine.node}`,
    anchor: "start",
  };
}

/** Bars of the sides for each type, and ticks at a limit: in bytes, of which each type has as many for the same time. */
function typesChart(
  results: Results,
  text: string,
  key: Partial<Key>,
  unit: Unit,
  limitKey: Partial<Key>,
): object | undefined {
  const measured = results.all(key).filter(({ side }) => side in SIDES);
  if (measured.length === 0) return undefined;
  const rows = measured.map((one) => ({
    type: one.subject,
    side: SIDES[one.side]![0],
    speed: figure(unit, one),
  }));
  const seconds = results.best(limitKey);
  const limits = measured
    .filter(({ side }) => side === "native" && seconds !== undefined)
    .map((one) => ({
      type: one.subject,
      side: SIDES[limitKey.side!]![0],
      speed: figure(unit, { ...one, best: seconds! }),
    }));
  const scale = colours([...rows, ...limits]);
  const y = { field: "type", type: "nominal", sort: null, title: null };
  const x = {
    field: "speed",
    type: "quantitative",
    title: unit === "GB/s" ? "GB/s of float32 written" : unit,
  };
  const color = {
    field: "side",
    type: "nominal",
    title: null,
    scale,
    legend: { orient: "top", symbolType: "square" },
  };
  const bars = { y, yOffset: { field: "side", sort: scale.domain }, x, color };
  const tick = { type: "tick", thickness: 2, bandSize: 20 };
  return {
    title: titleOf(results, text),
    height: { step: 20, for: "position" },
    layer: [
      { data: { values: rows }, mark: "bar", encoding: bars },
      { data: { values: limits }, mark: tick, encoding: { y, x, color } },
    ],
  };
}

function sizesChart(results: Results): object | undefined {
  const native = results.all({ task: "scaling by size" });
  if (native.length === 0) return undefined;
  const sizes = [...new Set(native.map(({ bytes = 0 }) => bytes))];
  const limits = sizes.flatMap((bytes) => results.all({ task: "limit", subject: native[0]!.subject, bytes }));
  const rows = [...native, ...limits]
    .filter(({ side }) => side in SIDES && side !== "read")
    .map((one) => ({ side: SIDES[one.side]![0], bytes: one.bytes, speed: figure("GB/s", one) }));
  const labelExpr = `datum.value >= pow(2, 30) ? datum.value / pow(2, 30) + ' GiB'
    : datum.value >= pow(2, 20) ? datum.value / pow(2, 20) + ' MiB' : datum.value / 1024 + ' KiB'`;
  const axis = { values: sizes, labelExpr };
  const legend = { orient: "top" };
  return {
    title: titleOf(results, `Speed of ${native[0]!.subject} by size of the output, calls included`),
    data: { values: rows },
    height: 260,
    mark: { type: "line", point: true },
    encoding: {
      x: { field: "bytes", type: "quantitative", title: "output", scale: { type: "log", base: 2 }, axis },
      y: { field: "speed", type: "quantitative", title: "GB/s of float32 written" },
      color: { field: "side", type: "nominal", title: null, scale: colours(rows), legend },
    },
  };
}

function quantizeChart(results: Results): object | undefined {
  const values = quantizeErrors(results);
  if (values.length === 0) return undefined;
  const axis = (field: string, title: string) => ({
    field,
    type: "quantitative",
    title,
    scale: { zero: false },
  });
  const subtitle = "gaussian weights, all columns equally important; 6 dB more are half the error";
  return {
    title: { text: "What quantizing loses, by size", subtitle, anchor: "start" },
    data: { values },
    height: 420,
    encoding: { x: axis("bits", "bits per weight"), y: axis("snr", "signal to noise, decibels") },
    layer: [
      { mark: { type: "point", filled: true, size: 40, color: SIDES.native![1] } },
      // The names of codebook types stand on the left, those of others on the right, so that few overlap.
      ...[true, false].map((isLeft) => ({
        transform: [{ filter: `${isLeft ? "" : "!"}test(/^IQ/, datum.subject)` }],
        mark: { type: "text", align: isLeft ? "right" : "left", dx: isLeft ? -6 : 6, dy: 1, fontSize: 9 },
        encoding: { text: { field: "subject", type: "nominal" } },
      })),
    ],
  };
}
