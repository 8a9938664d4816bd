/** Charts as SVG, drawn by Vega-Lite, for the README and the docs. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { GgmlType } from "gguf-native";
import type { Context } from "./context";
import { INSTALL_HINT, optionalPackage } from "./optional";
import { blockSizes, COLUMNS } from "./products";
import type { Results } from "./results";
import { kernelSeconds, limitFor, limitSeconds, outputSizes } from "./suites/kernels";
import { MANY, memoryLimit, productSpeed, VECTORS_TASK } from "./suites/products";
import { quantizeErrors } from "./suites/quantize";
import { size } from "./table";

interface Vega {
  View: new (runtime: unknown, options: object) => { toSVG(): Promise<string> };
  parse(spec: unknown): unknown;
}
interface VegaLite {
  compile(spec: unknown): { spec: unknown };
}

type Row = Record<string, string | number>;
type Named = [name: string, spec: object | undefined];

/** What a product from memory cannot exceed: see `memoryLimit`. */
const MEMORY_LIMIT = "plain reads, or cached blocks if slower";

/** From colour-blind-safe palettes. Limits are grey or black. */
const COLOURS: Record<string, string> = {
  "gguf-native": "#0072b2",
  "gguf-native, int8": "#d55e00",
  libggml: "#e69f00",
  "llama.cpp": "#e69f00",
  TypeScript: "#999999",
  "dequantize, then multiply": "#56b4e9",
  "@huggingface/gguf": "#cc79a7",
  "node-llama-cpp": "#009e73",
  "plain-store limit": "#555555",
  "streaming-store limit": "#000000",
  [MEMORY_LIMIT]: "#000000",
};
/** What each limit is, for the line below the title. */
const LIMITS: Record<string, string> = {
  "plain-store limit": "plain-store limit: a loop that only stores, as much as this machine can write",
  "streaming-store limit": "streaming-store limit: a loop that only stores, past the cache",
  [MEMORY_LIMIT]: "limit: reading the blocks once, or multiplying cached blocks, whichever is slower",
};
const LABELS: Record<string, string> = {
  native: "gguf-native",
  int8: "gguf-native, int8",
  dequantize: "gguf-native",
  typescript: "TypeScript",
  "two steps": "dequantize, then multiply",
  store: "plain-store limit",
  stream: "streaming-store limit",
};
const label = (side: string) => LABELS[side] ?? side;
const WIDTH = 560;
const STYLE = {
  background: "white",
  padding: 8,
  width: WIDTH,
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
  const specs: Named[] = [
    ...outputSizes(options.quick).map(
      (bytes) => [`dequantize-${size(bytes).replace(" ", "")}`, kernelChart(results, bytes)] as Named,
    ),
    ...blockSizes(options.quick).map(
      (bytes) =>
        [`products-${size(bytes).replace(" ", "")}`, productChart(results, bytes, options.quick)] as Named,
    ),
    ["products-128-vectors", vectorsChart(results)],
    ["llama", llamaChart(results)],
    ["open", openChart(results)],
    ["scaling-by-size", sizesChart(results)],
    ["scaling-by-threads", threadsChart(results)],
    ["quantize-error", quantizeChart(results)],
  ];
  mkdirSync(folder, { recursive: true });
  for (const [name, spec] of specs) {
    if (spec === undefined) continue;
    const compiled = vegaLite.compile({ ...STYLE, ...spec }).spec;
    const path = join(folder, `${name}.svg`);
    writeFileSync(path, `${await new vega.View(vega.parse(compiled), { renderer: "none" }).toSVG()}\n`);
    console.log(`wrote ${path}`);
  }
}

/** What `rows` are about, in the order of legends and of bars. */
function sidesOf(rows: readonly Row[]): string[] {
  return Object.keys(COLOURS).filter((name) => rows.some(({ side }) => side === name));
}

function colour(rows: readonly Row[], legend: object = {}): object {
  const domain = sidesOf(rows);
  const range = domain.map((name) => COLOURS[name]);
  return {
    field: "side",
    type: "nominal",
    title: null,
    scale: { domain, range },
    legend: { orient: "top", ...legend },
  };
}

/** The lines below a title: the machine, and what the limits in `rows` are. */
function caption({ machine }: Results, rows: readonly Row[], threads = "one thread"): string[] {
  const limits = sidesOf(rows).flatMap((side) => LIMITS[side] ?? []);
  return [`${machine.processor}, ${machine.isa}, ${threads}, Node ${machine.node}`, ...limits];
}

function kernelChart(results: Results, bytes: number): object | undefined {
  const limit = limitFor(bytes);
  const rows: Row[] = [];
  const limits: Row[] = [];
  for (const { subject, side } of results.all({ task: "dequantize", bytes })) {
    const seconds = kernelSeconds(results, subject, side, bytes);
    if (seconds === undefined) continue;
    rows.push({ type: subject, side: label(side), speed: bytes / seconds / 1e9 });
  }
  const bound = limitSeconds(results, bytes);
  for (const { subject } of bound === undefined
    ? []
    : results.all({ task: "dequantize", side: "native", bytes })) {
    limits.push({ type: subject, side: label(limit), speed: bytes / bound! / 1e9 });
  }
  return typesChart(
    results,
    `Dequantizing to ${size(bytes)} of output`,
    "GB/s of float32 written",
    rows,
    limits,
  );
}

function productChart(results: Results, bytes: number, quick: boolean): object | undefined {
  const rows: Row[] = [];
  const limits: Row[] = [];
  for (const { subject, side } of results.all({ task: "product", bytes })) {
    if (side === "cached") continue; // a limit
    const speed = productSpeed(results, subject, side, bytes);
    if (speed !== undefined) rows.push({ type: subject, side: label(side), speed });
  }
  const [, memory] = blockSizes(quick);
  if (bytes === memory) {
    for (const { subject } of results.all({ task: "product", side: "native", bytes })) {
      const speed = memoryLimit(results, subject as GgmlType, quick);
      if (speed !== undefined) limits.push({ type: subject, side: MEMORY_LIMIT, speed });
    }
  }
  return typesChart(results, `Products of ${size(bytes)} of blocks and a vector`, "Gweights/s", rows, limits);
}

/** Products of many vectors, in GFLOP/s. */
function vectorsChart(results: Results): object | undefined {
  const rows = results
    .all({ task: VECTORS_TASK, vectors: MANY })
    .map(({ subject, side, weights = 0, best }): Row => {
      return { type: subject, side: label(side), speed: (2 * weights * MANY) / best / 1e9 };
    });
  const title = `Products of ${COLUMNS} x ${COLUMNS} weights and ${MANY} vectors`;
  return typesChart(results, title, "GFLOP/s", rows, []);
}

function llamaChart(results: Results): object | undefined {
  const rows = results.all({ task: "llama" }).map(({ subject, side, threads = 1, best }): Row => {
    const name = side === "f32" ? label("native") : label(side);
    return { subject, threads: `threads: ${threads}`, side: name, speed: 1 / best };
  });
  if (rows.length === 0) return undefined;
  const sides = sidesOf(rows);
  return {
    title: {
      text: "The llama example and llama.cpp",
      subtitle: caption(results, [], "by threads"),
      anchor: "start",
    },
    data: { values: rows },
    facet: {
      row: {
        field: "subject",
        type: "nominal",
        sort: null,
        title: null,
        header: { labelAngle: 0, labelAlign: "left" },
      },
      column: { field: "threads", type: "nominal", title: null },
    },
    spec: {
      width: WIDTH / 2 - 130,
      height: { step: 18 },
      encoding: {
        y: { field: "side", type: "nominal", sort: sides, title: null },
        x: { field: "speed", type: "quantitative", title: "tokens per second" },
      },
      layer: [
        { mark: "bar", encoding: { color: colour(rows, { disable: true }) } },
        {
          mark: { type: "text", align: "left", dx: 4 },
          encoding: { text: { field: "speed", format: ".3~r" } },
        },
      ],
    },
    resolve: { scale: { x: "independent" } },
  };
}

/** Bars of `rows` for each type, and ticks at its limit. */
function typesChart(
  results: Results,
  title: string,
  unit: string,
  rows: readonly Row[],
  limits: readonly Row[],
): object | undefined {
  if (rows.length === 0) return undefined;
  const y = { field: "type", type: "nominal", sort: null, title: null };
  const x = { field: "speed", type: "quantitative", title: unit };
  const color = colour([...rows, ...limits], { symbolType: "square" });
  return {
    title: { text: title, subtitle: caption(results, limits), anchor: "start" },
    height: { step: 20, for: "position" },
    layer: [
      {
        data: { values: rows },
        mark: "bar",
        encoding: { y, yOffset: { field: "side", sort: sidesOf(rows) }, x, color },
      },
      {
        data: { values: limits },
        mark: { type: "tick", thickness: 2, bandSize: 20 },
        encoding: { y, x, color },
      },
    ],
  };
}

/** The start of the time axis, in milliseconds. */
const OPEN_FROM = 0.1;

function openChart(results: Results): object | undefined {
  const rows = results.all({ task: "open" }).map(({ subject, side, best }): Row => {
    const [name, what = "open"] = side.split(", ");
    const work = name === "native" ? `${label(name)}, ${what}` : label(side);
    return { subject, work, side: label(name!), milliseconds: best * 1000 };
  });
  if (rows.length === 0) return undefined;
  const x = {
    field: "milliseconds",
    type: "quantitative",
    title: "milliseconds, logarithmic",
    scale: { type: "log", domainMin: OPEN_FROM },
  };
  return {
    title: {
      text: "Opening a header with a large vocabulary",
      subtitle: caption(results, []),
      anchor: "start",
    },
    data: { values: rows },
    facet: { row: { field: "subject", type: "nominal", sort: null, title: null } },
    spec: {
      width: WIDTH - 140,
      height: { step: 18 },
      encoding: { y: { field: "work", type: "nominal", sort: null, title: null }, x },
      layer: [
        // On a logarithmic axis, a bar needs an explicit start.
        { mark: "bar", encoding: { x2: { datum: OPEN_FROM }, color: colour(rows, { disable: true }) } },
        {
          mark: { type: "text", align: "left", dx: 4 },
          encoding: { text: { field: "milliseconds", format: ".3~r" } },
        },
      ],
    },
  };
}

function quantizeChart(results: Results): object | undefined {
  const rows = quantizeErrors(results);
  if (rows.length === 0) return undefined;
  const bits = { field: "bits", type: "quantitative", title: "bits per weight", scale: { zero: false } };
  const snr = {
    field: "snr",
    type: "quantitative",
    title: "signal to noise, decibels",
    scale: { zero: false },
  };
  return {
    title: {
      text: "What quantizing loses, by size",
      subtitle: "gaussian weights, all columns equally important; 6 dB more are half the error",
      anchor: "start",
    },
    data: { values: rows },
    height: 420,
    encoding: { x: bits, y: snr },
    layer: [
      { mark: { type: "point", filled: true, size: 40, color: COLOURS["gguf-native"] } },
      // The names of codebook types stand on the left, those of others on the right, so that few overlap.
      ...[true, false].map((isLeft) => ({
        transform: [{ filter: `${isLeft ? "" : "!"}test(/^IQ/, datum.subject)` }],
        mark: { type: "text", align: isLeft ? "right" : "left", dx: isLeft ? -6 : 6, dy: 1, fontSize: 9 },
        encoding: { text: { field: "subject", type: "nominal" } },
      })),
    ],
  };
}

function sizesChart(results: Results): object | undefined {
  const rows = results.all({ task: "scaling by size" }).map(
    ({ subject, side, bytes = 0, best }): Row => ({
      subject,
      side: label(side),
      bytes,
      speed: bytes / best / 1e9,
    }),
  );
  if (rows.length === 0) return undefined;
  const ticks = [...new Set(rows.map(({ bytes }) => bytes))];
  return {
    title: {
      text: "Speed by size of the output, calls included",
      subtitle: caption(results, rows),
      anchor: "start",
    },
    data: { values: rows },
    height: 260,
    mark: { type: "line", point: true },
    encoding: {
      ...(new Set(rows.map(({ subject }) => subject)).size > 1 && {
        row: { field: "subject", type: "nominal", title: null },
      }),
      x: {
        field: "bytes",
        type: "quantitative",
        title: "output",
        scale: { type: "log", base: 2 },
        axis: {
          values: ticks,
          labelExpr:
            "datum.value >= pow(2, 30) ? datum.value / pow(2, 30) + ' GiB' : datum.value >= pow(2, 20) ? datum.value / pow(2, 20) + ' MiB' : datum.value / 1024 + ' KiB'",
        },
      },
      y: {
        field: "speed",
        type: "quantitative",
        title: "GB/s of float32 written",
      },
      color: colour(rows),
    },
  };
}

function threadsChart(results: Results): object | undefined {
  const rows = results
    .all({ task: "scaling by threads" })
    .filter(({ side }) => side !== "dequantizeSync")
    .map(
      ({ subject, side, threads = 1, bytes = 0, best }): Row => ({
        subject,
        side: label(side),
        threads,
        speed: bytes / best / 1e9,
      }),
    );
  if (rows.length === 0) return undefined;
  return {
    title: {
      text: "Speed by threads",
      subtitle: caption(results, rows, "await dequantize()"),
      anchor: "start",
    },
    data: { values: rows },
    height: 220,
    mark: { type: "line", point: true },
    encoding: {
      ...(new Set(rows.map(({ subject }) => subject)).size > 1 && {
        row: { field: "subject", type: "nominal", title: null },
      }),
      x: { field: "threads", type: "ordinal", title: "threads", axis: { labelAngle: 0 } },
      y: { field: "speed", type: "quantitative", title: "GB/s of float32 written" },
      color: colour(rows),
    },
  };
}
