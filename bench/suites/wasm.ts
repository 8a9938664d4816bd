/**
 * The WebAssembly module, in Node and in Chromium, compared with its kernels without SIMD, with the TypeScript reference,
 * and in Node with the addon. And its products, with vectors as they are and of 8 bits. One thread; bringing blocks to the module and
 * numbers back included.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { dequantizeSync, type GgmlType } from "gguf-native";
import { setModule } from "#dist/backend/wasm/module";
import { bundleFile, chromium, runInChromium } from "../../test/support/browser";
import { type Context, chosenTypes } from "../context";
import type { Patience } from "../measure";
import { buildFolder, projectRoot } from "../paths";
import { digits, gigabytes, printTable, progress, times } from "../table";
import type { PageInput, PageResult } from "../wasm-page";
import { DEVIATIONS, raceF16, raceModule, VECTORS, WEIGHTS } from "../wasm-race";

const path = join(projectRoot, "dist", "wasm", "kernels.wasm");

export async function runWasm(context: Context): Promise<void> {
  const { results, options } = context;
  if (!existsSync(path)) {
    results.miss("WebAssembly: dist/wasm/kernels.wasm is not there (npm run build:wasm)");
    return;
  }
  const bytes = readFileSync(path);
  const types = chosenTypes(context);
  const patience = { budget: options.quick ? 0.2 : 1, minRounds: 5 };
  const module = new (globalThis as unknown as WithModules).WebAssembly.Module(bytes);
  setModule(() => module);
  const inNode: PageResult = {};
  const native = (type: GgmlType) => (blocks: Uint8Array, out: Float32Array) => [
    { name: "native", run: () => void dequantizeSync(type, blocks, { out }) },
  ];
  for (const type of types) {
    progress(`WebAssembly in Node: ${type}`);
    inNode[type] = await raceModule(type, patience, native(type));
  }
  report(context, "Node", inNode);
  reportProducts(context, "Node", inNode);
  if (types.includes("F16")) await reportSmallWeights(context, patience, native("F16"));
  if (chromium === undefined) {
    results.miss("WebAssembly in Chromium: chromium is not installed");
    return;
  }
  const inBrowser = await inChromium(bytes, types, patience);
  report(context, "Chromium", inBrowser);
  reportProducts(context, "Chromium", inBrowser);
}

interface WithModules {
  WebAssembly: { Module: new (bytes: Uint8Array) => object };
}

/** Calls of a batch: many, because the clock of a browser is coarse on purpose. */
const BROWSER_CALLS = 40;

/** A page that takes long is given up. */
const TYPES_AT_ONCE = 5;

async function inChromium(bytes: Buffer, types: GgmlType[], patience: Patience): Promise<PageResult> {
  const { outputFiles } = bundleFile(join(buildFolder, "wasm-page.js"), projectRoot);
  const found: PageResult = {};
  for (let i = 0; i < types.length; i += TYPES_AT_ONCE) {
    const some = types.slice(i, i + TYPES_AT_ONCE);
    progress(`WebAssembly in Chromium: ${some.join(", ")}`);
    const input: PageInput = {
      module: bytes.toString("base64"),
      types: some,
      patience: { budget: 4 * patience.budget, minRounds: 10, minCalls: BROWSER_CALLS },
    };
    Object.assign(found, await runInChromium(outputFiles[0]!.contents, input));
  }
  return found;
}

/** Adds the timings to the results, and prints them. */
function report({ results }: Context, runtime: string, found: PageResult): void {
  progress("");
  const bytes = 4 * WEIGHTS;
  const faster: number[] = [];
  const rows = Object.entries(found).map(([type, { numbers }]) => {
    for (const [side, timing] of Object.entries(numbers)) {
      results.add({ task: "wasm", subject: type, side, runtime, bytes }, timing);
    }
    const best = (side: string): number | undefined => numbers[side]?.best;
    faster.push(best("scalar")! / best("wasm")!);
    return [
      type,
      gigabytes(bytes, best("native")),
      gigabytes(bytes, best("wasm")),
      gigabytes(bytes, best("scalar")),
      times(best("scalar"), best("wasm")),
      gigabytes(bytes, best("typescript")),
      times(best("typescript"), best("wasm")),
    ];
  });
  printTable(
    `WebAssembly in ${runtime}: 1 MiB of output, GB/s, one thread`,
    ["type", "native", "module", "without SIMD", "ratio", "TypeScript", "ratio"],
    rows,
  );
  const mean = Math.exp(faster.reduce((sum, ratio) => sum + Math.log(ratio), 0) / faster.length);
  console.log(`\n  with SIMD ${digits(mean)} times as fast as without (geometric mean)`);
}

/** F16 with small weights: binary16 has subnormal numbers, which take no longer than others. */
async function reportSmallWeights(
  { results }: Context,
  patience: Patience,
  native: Parameters<typeof raceF16>[2],
): Promise<void> {
  const bytes = 4 * WEIGHTS;
  const rows: (string | undefined)[][] = [];
  for (const deviation of DEVIATIONS) {
    progress(`WebAssembly in Node: F16, standard deviation ${deviation}`);
    const timings = await raceF16(deviation, patience, native);
    for (const [side, timing] of Object.entries(timings)) {
      results.add({ task: "wasm", subject: `F16 of ${deviation}`, side, runtime: "Node", bytes }, timing);
    }
    const speed = (side: string) => gigabytes(bytes, timings[side]?.best);
    rows.push([String(deviation), ...["native", "wasm", "scalar", "typescript"].map(speed)]);
  }
  progress("");
  printTable(
    "WebAssembly in Node: F16 weights by their standard deviation, GB/s, one thread",
    ["deviation", "native", "module", "without SIMD", "TypeScript"],
    rows,
  );
}

/** The same of products. */
function reportProducts({ results }: Context, runtime: string, found: PageResult): void {
  const rows = Object.entries(found).map(([type, { products }]) => {
    const cells = products.flatMap((timings, i) => {
      const vectors = VECTORS[i]!;
      for (const [side, timing] of Object.entries(timings)) {
        const key = { task: "wasm product", subject: type, side, runtime, weights: WEIGHTS, vectors };
        results.add(key, timing);
      }
      const [exact, fast] = [timings.f32!.best, timings.int8!.best];
      const speed = (seconds: number) => digits((vectors * WEIGHTS) / seconds / 1e9);
      return [speed(exact), speed(fast), times(exact, fast)];
    });
    return [type, ...cells];
  });
  printTable(
    `Products in ${runtime}: G multiplications/s with ${VECTORS.join(" and ")} vectors, one thread`,
    ["type", ...VECTORS.flatMap(() => ["f32", "int8", "ratio"])],
    rows,
  );
}
