/** Checks measured ratios against the minimum ratios in `floors.json`, which has a set for each instruction set. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { GgmlType } from "gguf-native";
import { type Context, chosenTypes } from "./context";
import { KERNEL_SUITES } from "./options";
import { benchFolder } from "./paths";
import { blockSizes } from "./products";
import type { Results } from "./results";
import { type EmbeddingsSubject, embeddingsSeconds, runEmbeddings } from "./suites/embeddings";
import { kernelSeconds, limitFor, limitSeconds, outputSizes, runKernels } from "./suites/kernels";
import { type LlamaSide, llamaSpeed, llamaSubject, runLlama } from "./suites/llama";
import { GENERATED, REAL, runOpen } from "./suites/open";
import { manyRatio, memoryLimit, productSpeed, runMany, runProductTypes } from "./suites/products";
import { QUANTIZE_WAYS, quantizeRatio, runQuantizeTypes } from "./suites/quantize";
import { runStatsTypes, type StatsSide, statsShare } from "./suites/stats";
import { digits, printTable, size } from "./table";

/** By type, or by file; "default" is for all that are not named. */
type Floors = Record<string, number>;

/** What native is compared with. The ratio says how many times faster it is, or its share of the limit. */
type Against = "typescript" | "libggml" | "limit";

interface FloorsFile {
  /** By instruction set, then by output: "first" (16 KiB), "second" (256 KiB), "memory". */
  kernels: Record<string, Partial<Record<Output, Partial<Record<Against, Floors>>>>>;
  /** Products of one vector, by instruction set. "cached" and "memory" say where the blocks are; "int8" how many times
   * faster than native products of vectors of 8 bits are. */
  products: Record<string, Partial<Record<"cached" | "memory", Partial<Record<Against | "int8", Floors>>>>>;
  /** Products of 128 vectors of 8 bits, by instruction set: how many times as fast as another they are. */
  many: Record<string, Partial<Record<"native" | "libggml", Floors>>>;
  /** What looking at values leaves of the speed of dequantizing, by instruction set. */
  stats: Record<string, Partial<Record<StatsSide, Floors>>>;
  /** How many times faster than libggml blocks are made of numbers, by instruction set. */
  quantize: Record<string, Floors>;
  /** The llama example with activations of 8 bits and one thread, by instruction set, then by what it does. */
  llama: Record<string, Record<LlamaFloor, Partial<Record<Exclude<LlamaSide, "int8">, number>>>>;
  /** The embeddings example with Q8_0, by instruction set, then by what it does: how many times as fast as others. */
  embeddings: Record<string, Record<EmbeddingsSubject, Floors>>;
  /** By reader. */
  open: Record<string, Floors>;
}

type LlamaFloor = "reading" | "writing";

const OUTPUTS = ["first", "second", "memory"] as const;
type Output = (typeof OUTPUTS)[number];

interface Ratio {
  what: string;
  floor: number;
  measured: number;
  /** Measures again. The best time of all measurements counts. */
  again: () => Promise<void>;
  current: () => number | undefined;
}

/** How often a low ratio is measured before it counts: other programs may have used the machine. */
const ATTEMPTS = 3;

/** Measures, compares and prints; returns whether every ratio holds. */
export async function checkFloors(context: Context): Promise<boolean> {
  const floors = JSON.parse(readFileSync(join(benchFolder, "floors.json"), "utf8")) as FloorsFile;
  const [isa] = context.results.machine.isa.split("_") as [string]; // neon_dotprod and neon_i8mm are neon, with more
  const kernels = floors.kernels[isa];
  const products = floors.products[isa];
  const stats = floors.stats[isa];
  const llama = floors.llama[isa];
  if (kernels === undefined || products === undefined || stats === undefined)
    console.log(`floors.json has no floors for ${isa}`);
  const { suites } = context.options;
  const ratios: Ratio[] = [];
  if (kernels && KERNEL_SUITES.some((suite) => suites.has(suite))) {
    ratios.push(...(await kernelRatios(context, kernels)));
  }
  if (products && suites.has("products")) ratios.push(...(await productRatios(context, products)));
  const many = floors.many[isa];
  if (many && suites.has("products")) ratios.push(...(await manyRatios(context, many)));
  if (stats && suites.has("stats")) ratios.push(...(await statsRatios(context, stats)));
  const quantize = floors.quantize[isa];
  if (quantize && suites.has("quantize")) ratios.push(...(await quantizeRatios(context, quantize)));
  if (llama && suites.has("llama")) ratios.push(...(await llamaRatios(context, llama)));
  const embeddings = floors.embeddings[isa];
  if (embeddings && suites.has("embeddings")) ratios.push(...(await embeddingsRatios(context, embeddings)));
  if (suites.has("open")) ratios.push(...(await openRatios(context, floors.open)));

  for (const ratio of ratios) {
    for (let attempt = 1; attempt < ATTEMPTS && ratio.measured < ratio.floor; attempt++) {
      console.log(`${ratio.what}: ${digits(ratio.measured)} is below ${ratio.floor}, measuring again`);
      await ratio.again();
      ratio.measured = Math.max(ratio.measured, ratio.current() ?? 0);
    }
  }
  printTable(
    `Ratios and their floors (${isa})`,
    ["ratio", "measured", "floor", ""],
    ratios.map(({ what, measured, floor }) => [
      what,
      digits(measured),
      String(floor),
      measured < floor ? "BELOW" : "ok",
    ]),
  );
  const below = ratios.filter(({ measured, floor }) => measured < floor);
  console.log(`\n${ratios.length - below.length} of ${ratios.length} ratios hold`);
  return below.length === 0;
}

async function kernelRatios(context: Context, floors: FloorsFile["kernels"][string]): Promise<Ratio[]> {
  await runKernels(context);
  const { results, options } = context;
  const sizes = outputSizes(options.quick);
  const ratios: Ratio[] = [];
  for (const type of chosenTypes(context)) {
    for (const [i, output] of OUTPUTS.entries()) {
      for (const [against, byType] of Object.entries(floors[output] ?? {})) {
        const floor = byType[type] ?? byType.default;
        const current = () => kernelRatio(results, type, against as Against, sizes[i]!);
        const measured = current();
        if (floor === undefined || measured === undefined) continue;
        const compared =
          against === "limit" ? `share of the ${limitFor(sizes[i]!)} limit` : `times ${against}`;
        const what = `${type}, ${size(sizes[i]!)}: ${compared}`;
        ratios.push({ what, floor, measured, current, again: () => runKernels(context, [type]) });
      }
    }
  }
  return ratios;
}

function kernelRatio(results: Results, type: GgmlType, against: Against, bytes: number): number | undefined {
  const fast = kernelSeconds(results, type, "native", bytes);
  const other =
    against === "limit" ? limitSeconds(results, bytes) : kernelSeconds(results, type, against, bytes);
  if (fast === undefined || other === undefined) return undefined;
  return other / fast;
}

const COMPARED: Record<string, string> = {
  limit: "share of reads or of the cached speed",
  int8: "of int8, times those of binary32",
};

async function productRatios(context: Context, floors: FloorsFile["products"][string]): Promise<Ratio[]> {
  await runProductTypes(context);
  const { results, options } = context;
  const [cached, memory] = blockSizes(options.quick);
  const ratios: Ratio[] = [];
  for (const type of chosenTypes(context)) {
    for (const [place, bytes] of [["cached", cached] as const, ["memory", memory] as const]) {
      for (const [against, byType] of Object.entries(floors[place] ?? {})) {
        const floor = byType[type] ?? byType.default;
        const current = () => {
          const fast = productSpeed(results, type, against === "int8" ? "int8" : "native", bytes);
          const other =
            against === "limit"
              ? memoryLimit(results, type, options.quick)
              : productSpeed(results, type, against === "int8" ? "native" : against, bytes);
          return fast === undefined || other === undefined ? undefined : fast / other;
        };
        const measured = current();
        if (floor === undefined || measured === undefined) continue;
        const compared = COMPARED[against] ?? `times ${against}`;
        const what = `product of ${type}, ${size(bytes)}: ${compared}`;
        ratios.push({ what, floor, measured, current, again: () => runProductTypes(context, [type]) });
      }
    }
  }
  return ratios;
}

async function manyRatios(context: Context, floors: FloorsFile["many"][string]): Promise<Ratio[]> {
  await runMany(context);
  const ratios: Ratio[] = [];
  for (const type of chosenTypes(context)) {
    for (const [side, byType] of Object.entries(floors)) {
      const floor = byType[type] ?? byType.default;
      const current = () => manyRatio(context.results, type, side as "native" | "libggml");
      const measured = current();
      if (floor === undefined || measured === undefined) continue;
      const what = `products of ${type} with 128 vectors: int8, times ${side}`;
      ratios.push({ what, floor, measured, current, again: () => runMany(context, [type]) });
    }
  }
  return ratios;
}

async function statsRatios(context: Context, floors: FloorsFile["stats"][string]): Promise<Ratio[]> {
  await runStatsTypes(context);
  const ratios: Ratio[] = [];
  for (const type of chosenTypes(context)) {
    for (const [side, byType] of Object.entries(floors)) {
      const floor = byType[type] ?? byType.default;
      const current = () => statsShare(context.results, type, side as StatsSide);
      const measured = current();
      if (floor === undefined || measured === undefined) continue;
      const what = `${side} of ${type}: share of dequantizing`;
      ratios.push({ what, floor, measured, current, again: () => runStatsTypes(context, [type]) });
    }
  }
  return ratios;
}

async function quantizeRatios(context: Context, floors: Floors): Promise<Ratio[]> {
  await runQuantizeTypes(context);
  const ratios: Ratio[] = [];
  for (const type of chosenTypes(context)) {
    for (const way of QUANTIZE_WAYS) {
      const floor = floors[type] ?? floors.default;
      const current = () => quantizeRatio(context.results, type, way);
      const measured = current();
      if (floor === undefined || measured === undefined) continue;
      const what = `blocks of ${type}, ${way}: times libggml`;
      ratios.push({ what, floor, measured, current, again: () => runQuantizeTypes(context, [type]) });
    }
  }
  return ratios;
}

async function llamaRatios(context: Context, floors: FloorsFile["llama"][string]): Promise<Ratio[]> {
  const { prompt } = await runLlama(context);
  const ratios: Ratio[] = [];
  for (const [work, bySide] of Object.entries(floors)) {
    const subject = llamaSubject[work as LlamaFloor](prompt);
    for (const [side, floor] of Object.entries(bySide)) {
      const current = () => {
        const fast = llamaSpeed(context.results, subject, "int8", 1);
        const slow = llamaSpeed(context.results, subject, side as LlamaSide, 1);
        return fast === undefined || slow === undefined ? undefined : fast / slow;
      };
      const measured = current();
      if (measured === undefined) continue;
      const again = async () => void (await runLlama(context));
      ratios.push({ what: `llama, ${subject}: times ${side}`, floor, measured, current, again });
    }
  }
  return ratios;
}

async function embeddingsRatios(
  context: Context,
  floors: FloorsFile["embeddings"][string],
): Promise<Ratio[]> {
  await runEmbeddings(context);
  const ratios: Ratio[] = [];
  for (const [subject, bySide] of Object.entries(floors)) {
    for (const [side, floor] of Object.entries(bySide)) {
      const current = () => {
        const fast = embeddingsSeconds(context.results, subject as EmbeddingsSubject, "Q8_0");
        const slow = embeddingsSeconds(context.results, subject as EmbeddingsSubject, side);
        return fast === undefined || slow === undefined ? undefined : slow / fast;
      };
      const measured = current();
      if (measured === undefined) continue;
      const again = () => runEmbeddings(context);
      ratios.push({ what: `vectors of ${subject}: times ${side}`, floor, measured, current, again });
    }
  }
  return ratios;
}

async function openRatios(context: Context, floors: FloorsFile["open"]): Promise<Ratio[]> {
  await runOpen(context);
  const { results } = context;
  const ratios: Ratio[] = [];
  for (const [work, byReader] of Object.entries(floors)) {
    for (const [reader, floor] of Object.entries(byReader)) {
      for (const subject of [GENERATED, REAL]) {
        const current = () => {
          const fast = results.best({ task: "open", subject, side: work });
          const slow = results.best({ task: "open", subject, side: reader });
          return fast === undefined || slow === undefined ? undefined : slow / fast;
        };
        const measured = current();
        if (measured === undefined) continue;
        const what = `${subject}, ${work}: times ${reader}`;
        ratios.push({ what, floor, measured, current, again: () => runOpen(context) });
      }
    }
  }
  return ratios;
}
