/**
 * Checks measured ratios against the minimum ratios in `floors.json`: one for each type and comparison, that every machine of
 * a family of processors holds with a third to spare. The run names the family.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { GgmlType } from "gguf-native";
import { type Context, chosenTypes } from "./context";
import type { Suite } from "./options";
import { benchFolder } from "./paths";
import { blockSizes } from "./products";
import type { Key, Results } from "./results";
import { EMBEDDINGS_SUBJECTS, runEmbeddings } from "./suites/embeddings";
import { limitOf, measureKernels, outputSizes } from "./suites/kernels";
import { runLlama } from "./suites/llama";
import { measureOpen } from "./suites/open";
import { BY_VECTORS, MANY, measureProducts, measureVectors } from "./suites/products";
import { measureQuantize, QUANTIZE_TASKS } from "./suites/quantize";
import { measureStats } from "./suites/stats";
import { digits } from "./table";
import { WEIGHT_TYPES } from "./weights";

/** By family, then by subject (a type or a work; "default" is for all types that have none of their own), then by ratio. */
type Floors = Record<string, Record<string, Record<string, number>>>;

const FAMILIES: Record<string, string> = { avx2: "x64", avx512: "x64", neon: "arm64" };

/** How often a low ratio is measured before it counts: other programs may have used the machine. */
const ATTEMPTS = 5;

/** How many times as fast as another a side is; undefined if one of them was not measured. */
type Ratio = (results: Results, subject: string) => number | undefined;

interface Check {
  suites: readonly Suite[];
  /** `types` are those to measure, if the subjects are types. */
  measure(types: readonly GgmlType[]): Promise<unknown>;
  /** Default: types. */
  subjects?: readonly string[];
  ratios: Readonly<Record<string, Ratio>>;
}

function checksOf(context: Context): Check[] {
  const { quick } = context.options;
  const [, second, memory] = outputSizes(quick);
  const [cached] = blockSizes(quick);
  const times =
    (key: Partial<Key>, side: string, slow: string): Ratio =>
    (results, subject) =>
      results.ratio({ ...key, subject }, side, slow);
  const stats = (side: string): Ratio => times({ task: "stats" }, side, "dequantize");
  const vectors = { task: BY_VECTORS, vectors: MANY };
  return [
    {
      suites: ["native-vs-ts", "peers", "machine"],
      measure: async (types) => {
        await measureKernels(context, types, [second]);
        await measureKernels(context, types, [memory], true);
      },
      ratios: {
        "native-vs-ts": times({ task: "dequantize", bytes: second }, "native", "typescript"),
        peers: times({ task: "dequantize", bytes: second }, "native", "libggml"),
        machine: (results, subject) => {
          // In turns with it: this one may have been disturbed as much.
          const limit = results.best({ ...limitOf(memory), subject });
          const ours = results.best({ task: "dequantize", subject, side: "native", bytes: memory });
          return limit === undefined || ours === undefined ? undefined : limit / ours;
        },
      },
    },
    {
      suites: ["products"],
      measure: async (types) => {
        await measureProducts(context, types, [cached]);
        await measureVectors(context, types, [MANY]);
      },
      ratios: {
        products: times({ task: "product", bytes: cached }, "native", "typescript"),
        "products, int8": times(vectors, "int8", "native"),
        "products, libggml": times(vectors, "int8", "libggml"),
      },
    },
    {
      suites: ["stats"],
      measure: (types) => measureStats(context, types),
      ratios: {
        stats: stats("stats"),
        finite: stats("finite"),
        histogram: stats("histogram"),
        compare: stats("compare"),
      },
    },
    {
      suites: ["quantize"],
      measure: (types) => measureQuantize(context, types),
      ratios: {
        // Without importance and with it.
        quantize: (results, subject) => {
          const ratios = QUANTIZE_TASKS.map((task) => results.ratio({ task, subject }, "native", "libggml"));
          return ratios.reduce((a, b) => (a === undefined || (b !== undefined && b < a) ? b : a));
        },
      },
    },
    {
      suites: ["llama"],
      measure: () => runLlama(context),
      subjects: ["reading 128 tokens", "writing after 128 tokens"],
      ratios: {
        "llama, f32": times({ task: "llama", threads: 1 }, "int8", "f32"),
        "llama.cpp": times({ task: "llama", threads: 1 }, "int8", "llama.cpp"),
      },
    },
    {
      suites: ["embeddings"],
      measure: () => runEmbeddings(context),
      subjects: EMBEDDINGS_SUBJECTS,
      ratios: Object.fromEntries(
        ["F16", "onnxruntime, f32", "onnxruntime, q8"].map((side) => [
          side,
          times({ task: "embeddings" }, "Q8_0", side),
        ]),
      ),
    },
    {
      suites: ["open"],
      measure: () => measureOpen(context),
      subjects: ["100,000 tokens", "deepseek-llm"],
      ratios: Object.fromEntries(
        ["@huggingface/gguf", "node-llama-cpp"].flatMap((side) => [
          [side, times({ task: "open" }, "native", side)],
          [`everything, ${side}`, times({ task: "open" }, "native, everything", side)],
        ]),
      ),
    },
  ];
}

/** Measures, compares and prints; returns whether every ratio holds. */
export async function checkFloors(context: Context): Promise<boolean> {
  const { results, options } = context;
  const [isa] = results.machine.isa.split("_") as [string]; // neon_dotprod and neon_i8mm are neon, with more
  const family = FAMILIES[isa];
  if (family === undefined) {
    console.log(`floors.json has no floors for ${isa}`);
    return true;
  }
  const all = JSON.parse(readFileSync(join(benchFolder, "floors.json"), "utf8")) as Floors;
  const floors = all[family]!;
  const rows: string[][] = [];
  let below = 0;
  for (const { suites, measure, subjects, ratios } of checksOf(context)) {
    if (!suites.some((suite) => options.suites.has(suite))) continue;
    const types = subjects === undefined ? chosenTypes(context) : [];
    await measure(types);
    for (const subject of subjects ?? types) {
      for (const [name, ratio] of Object.entries(ratios)) {
        const floor = floors[subject]?.[name] ?? (subjects ? undefined : floors.default?.[name]);
        let measured = ratio(results, subject);
        if (floor === undefined || measured === undefined) continue;
        for (let attempt = 1; attempt < ATTEMPTS && measured < floor; attempt++) {
          console.log(`${subject}, ${name}: ${digits(measured)} is below ${floor}, measuring again`);
          await measure(WEIGHT_TYPES.filter((type) => type === subject));
          measured = ratio(results, subject)!; // of the best times of all measurements
        }
        if (measured < floor) below++;
        rows.push([subject, name, digits(measured), String(floor), measured < floor ? "BELOW" : "ok"]);
      }
    }
  }
  results.table(`Ratios and their floors (${isa}: floors of ${family})`, ["", "ratio", "measured", "floor", ""], rows);
  console.log(`\n${rows.length - below} of ${rows.length} ratios hold`);
  return below === 0;
}
