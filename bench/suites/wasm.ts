/**
 * The WebAssembly module in Node, compared with its kernels without SIMD, with the TypeScript reference and with the addon, on one
 * thread. And its products: with vectors of 8 bits, on one thread and on several, and in the addon; and with vectors as they are.
 * Bringing blocks to the module and numbers back is included.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { dequantizeSync, type GgmlType, ggmlTypes, matmulSync, quantizeSync } from "gguf-native";
import * as reference from "gguf-native/reference";
import { threadsOfNode } from "#dist/backend/wasm/in-node";
import { dequantize, multiply } from "#dist/backend/wasm/kernels";
import { inModule, setModule } from "#dist/backend/wasm/module";
import { setThreading, useThreads } from "#dist/backend/wasm/threads";
import { Random } from "../../test/support/random";
import { type Context, chosenTypes, patience } from "../context";
import { type Patience, race } from "../measure";
import { projectRoot } from "../paths";
import { progress } from "../table";
import { gaussianBlocks } from "../weights";

const path = join(projectRoot, "dist", "wasm", "kernels.wasm");
/** One MiB of output, of weights that do not repeat. */
const WEIGHTS = 2 ** 18;
/** Weights that are multiplied, numbers of a row of them, and with how many vectors at a time. */
const PRODUCT_WEIGHTS = 2 ** 21;
const COLUMNS = 4096;
const VECTORS = [1, 8, 32, 128];
/** Standard deviations of F16 weights: so small that many are subnormal in binary16; that nearly all are. */
const DEVIATIONS = [2e-4, 2e-5];

export async function runWasm(context: Context): Promise<void> {
  const { results } = context;
  if (!existsSync(path)) {
    results.miss("WebAssembly: dist/wasm/kernels.wasm is not there (npm run build:wasm)");
    return;
  }
  const module = new (globalThis as unknown as WithModules).WebAssembly.Module(readFileSync(path));
  setModule(() => module);
  setThreading(threadsOfNode(path));
  const waiting = setInterval(() => {}, 1000); // threads that start do not keep the process
  const threads = await useThreads(Number.POSITIVE_INFINITY);
  clearInterval(waiting);
  const types = chosenTypes(context);
  const spent = patience(context, 1, 0.2);
  for (const type of types) {
    await raceModule(context, type, gaussianBlocks(type, WEIGHTS), spent);
    await raceProducts(context, type, threads, spent);
  }
  // Subnormal numbers take no longer than others.
  for (const deviation of types.includes("F16") ? DEVIATIONS : []) {
    const random = new Random(5);
    const weights = Float32Array.from({ length: WEIGHTS }, () => deviation * random.gaussian());
    await raceModule(context, "F16", quantizeSync("F16", weights), spent, `F16 of ${deviation}`);
  }
  progress("");
  const sides = ["wasm", "without SIMD", "typescript", "native"];
  results.compare("WebAssembly, 1 MiB of output", { task: "wasm" }, "GB/s", sides);
  for (const vectors of VECTORS) {
    const title = `Products in WebAssembly, vectors: ${vectors}`;
    const sides = ["int8", ...(threads > 1 ? [threaded(threads)] : []), "native int8", "f32"];
    results.compare(title, { task: "wasm product", vectors }, "Gweights/s", sides);
  }
  setThreading(undefined);
}

function threaded(threads: number): string {
  return `${threads} threads`;
}

interface WithModules {
  WebAssembly: { Module: new (bytes: Uint8Array) => object };
}

async function raceModule(
  { results }: Context,
  type: GgmlType,
  blocks: Uint8Array,
  spent: Patience,
  subject: string = type,
): Promise<void> {
  progress(`WebAssembly: ${subject}`);
  const { id } = ggmlTypes[type];
  const out = new Float32Array(WEIGHTS);
  const wasm = (): void => dequantize(id, blocks, false, 0, out);
  const scalar = (): void => {
    inModule(({ exports }) => exports.use_scalar(1));
    wasm();
    inModule(({ exports }) => exports.use_scalar(0));
  };
  const contenders = [
    { name: "native", run: () => dequantizeSync(type, blocks, { out }) },
    { name: "wasm", run: wasm },
    { name: "without SIMD", run: scalar },
    { name: "typescript", run: () => reference.dequantizeSync(type, blocks, { out }) },
  ];
  for (const [side, timing] of await race(contenders, spent)) {
    results.add({ task: "wasm", subject, side, bytes: 4 * WEIGHTS }, timing);
  }
}

async function raceProducts({ results }: Context, type: GgmlType, threads: number, spent: Patience): Promise<void> {
  progress(`Products in WebAssembly: ${type}`);
  const { id } = ggmlTypes[type];
  const blocks = gaussianBlocks(type, PRODUCT_WEIGHTS);
  for (const vectors of VECTORS) {
    const random = new Random(4);
    const x = Float32Array.from({ length: vectors * COLUMNS }, () => random.gaussian());
    const out = new Float32Array(vectors * (PRODUCT_WEIGHTS / COLUMNS));
    const module = (int8: boolean, most: number) => (): void =>
      multiply(id, blocks, false, COLUMNS, x, out, int8, undefined, most);
    const options = { threads: 1, activations: "int8", out } as const;
    const contenders = [
      { name: "int8", run: module(true, 1) },
      ...(threads > 1 ? [{ name: threaded(threads), run: module(true, threads) }] : []),
      { name: "native int8", run: () => matmulSync(type, blocks, COLUMNS, x, options) },
      { name: "f32", run: module(false, 1), maxRounds: 3 },
    ];
    for (const [side, timing] of await race(contenders, spent)) {
      results.add({ task: "wasm product", subject: type, side, weights: PRODUCT_WEIGHTS, vectors }, timing);
    }
  }
}
