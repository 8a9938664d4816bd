/**
 * The WebAssembly module, in Node and in Chromium, compared with its kernels without SIMD, with the TypeScript reference,
 * and in Node with the addon. And its products, with vectors as they are and of 8 bits. One thread; bringing blocks to the module and
 * numbers back included.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { dequantizeSync, type GgmlType, quantizeSync } from "gguf-native";
import { setModule } from "#dist/backend/wasm/module";
import { bundleFile, chromium, runInChromium } from "../../test/support/browser";
import { Random } from "../../test/support/random";
import { type Context, chosenTypes, patience } from "../context";
import type { Patience } from "../measure";
import { buildFolder, projectRoot } from "../paths";
import { progress } from "../table";
import { type Found, type PageInput, raceModule, VECTORS, WEIGHTS } from "../wasm-race";
import { gaussianBlocks } from "../weights";

const path = join(projectRoot, "dist", "wasm", "kernels.wasm");
/** Standard deviations of F16 weights: so small that many are subnormal in binary16; that nearly all are. */
const DEVIATIONS = [2e-4, 2e-5];

export async function runWasm(context: Context): Promise<void> {
  const { results } = context;
  if (!existsSync(path)) {
    results.miss("WebAssembly: dist/wasm/kernels.wasm is not there (npm run build:wasm)");
    return;
  }
  const bytes = readFileSync(path);
  const types = chosenTypes(context);
  const spent = patience(context, 1, 0.2);
  const module = new (globalThis as unknown as WithModules).WebAssembly.Module(bytes);
  setModule(() => module);
  const inNode = async (type: GgmlType, blocks: Uint8Array, subject: string = type) => {
    progress(`WebAssembly in Node: ${subject}`);
    const native = (out: Float32Array) => ({
      name: "native",
      run: () => dequantizeSync(type, blocks, { out }),
    });
    add(context, "Node", subject, await raceModule(type, blocks, spent, (out) => [native(out)]));
  };
  for (const type of types) await inNode(type, gaussianBlocks(type, WEIGHTS));
  // Subnormal numbers take no longer than others.
  for (const deviation of types.includes("F16") ? DEVIATIONS : []) {
    const random = new Random(5);
    const weights = Float32Array.from({ length: WEIGHTS }, () => deviation * random.gaussian());
    await inNode("F16", quantizeSync("F16", weights), `F16 of ${deviation}`);
  }
  if (chromium === undefined) results.miss("WebAssembly in Chromium: chromium is not installed");
  else await inChromium(context, bytes, types, spent);
  progress("");
  for (const runtime of chromium === undefined ? ["Node"] : ["Node", "Chromium"]) {
    const sides = ["wasm", "without SIMD", "typescript", "native"];
    results.compare(`WebAssembly in ${runtime}, 1 MiB of output`, { task: "wasm", runtime }, "GB/s", sides);
    for (const vectors of VECTORS) {
      const title = `Products in WebAssembly in ${runtime}, vectors: ${vectors}`;
      results.compare(title, { task: "wasm product", runtime, vectors }, "Gweights/s", ["int8", "f32"]);
    }
  }
}

interface WithModules {
  WebAssembly: { Module: new (bytes: Uint8Array) => object };
}

/** Calls of a batch: many, because the clock of a browser is coarse on purpose. */
const BROWSER_CALLS = 40;
/** A page that takes long is given up. */
const TYPES_AT_ONCE = 5;

async function inChromium(
  context: Context,
  module: Buffer,
  types: readonly GgmlType[],
  { budget }: Patience,
): Promise<void> {
  const { outputFiles } = bundleFile(join(buildFolder, "wasm-race.js"), projectRoot);
  const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64");
  for (let i = 0; i < types.length; i += TYPES_AT_ONCE) {
    const some = types.slice(i, i + TYPES_AT_ONCE);
    progress(`WebAssembly in Chromium: ${some.join(", ")}`);
    const input: PageInput = {
      module: base64(module),
      blocks: Object.fromEntries(some.map((type) => [type, base64(gaussianBlocks(type, WEIGHTS))])),
      patience: { budget: 4 * budget, minRounds: 10, minCalls: BROWSER_CALLS },
    };
    const found = (await runInChromium(outputFiles[0]!.contents, input)) as Record<string, Found>;
    for (const [type, its] of Object.entries(found)) add(context, "Chromium", type, its);
  }
}

function add({ results }: Context, runtime: string, subject: string, { numbers, products }: Found): void {
  for (const [side, timing] of Object.entries(numbers)) {
    results.add({ task: "wasm", subject, side, runtime, bytes: 4 * WEIGHTS }, timing);
  }
  for (const [i, timings] of products.entries()) {
    for (const [side, timing] of Object.entries(timings)) {
      const key = { task: "wasm product", subject, side, runtime, weights: WEIGHTS, vectors: VECTORS[i]! };
      results.add(key, timing);
    }
  }
}
