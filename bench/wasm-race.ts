/**
 * The WebAssembly module beside the TypeScript reference, in Node and in browsers: nothing of Node is used. In a browser,
 * this is a page, which asks its server what to measure.
 */
import * as reference from "gguf-native/reference";
import { type GgmlType, ggmlTypes } from "gguf-native/reference";
import { dequantize, multiply } from "#dist/backend/wasm/kernels";
import { inModule, setModule } from "#dist/backend/wasm/module";
import { Random } from "../test/support/random";
import { type Contender, type Patience, race, type Timing } from "./measure";

/** One MiB of output, of weights that do not repeat. */
export const WEIGHTS = 2 ** 18;

/** Numbers of a row of these weights that are multiplied, and with how many vectors at a time. */
const COLUMNS = 4096;
export const VECTORS = [1, 8] as const;

/** Seconds by contender: of dequantizing, and of products with as many vectors as {@link VECTORS} says. */
export type Found = { numbers: Record<string, Timing>; products: Record<string, Timing>[] };

/** `others` are further contenders that dequantize to the same output. */
export async function raceModule(
  type: GgmlType,
  blocks: Uint8Array,
  patience: Patience,
  others: (out: Float32Array) => Contender[] = () => [],
): Promise<Found> {
  const { id } = ggmlTypes[type];
  const out = new Float32Array(WEIGHTS);
  const wasm = (): void => dequantize(id, blocks, false, 0, out);
  const scalar = (): void => {
    inModule(({ exports }) => exports.use_scalar(1));
    wasm();
    inModule(({ exports }) => exports.use_scalar(0));
  };
  const contenders = [
    ...others(out),
    { name: "wasm", run: wasm },
    { name: "without SIMD", run: scalar },
    { name: "typescript", run: () => reference.dequantizeSync(type, blocks, { out }) },
  ];
  const numbers = Object.fromEntries(await race(contenders, patience));
  const products = [];
  for (const vectors of VECTORS) {
    const random = new Random(4);
    const x = Float32Array.from({ length: vectors * COLUMNS }, () => random.gaussian());
    const y = new Float32Array(vectors * (WEIGHTS / COLUMNS));
    const multipliers = [false, true].map((int8) => ({
      name: int8 ? "int8" : "f32",
      run: () => multiply(id, blocks, false, COLUMNS, x, y, int8),
    }));
    products.push(Object.fromEntries(await race(multipliers, patience)));
  }
  return { numbers, products };
}

/** What the page measures. Bytes are in base64. */
export interface PageInput {
  module: string;
  blocks: Partial<Record<GgmlType, string>>;
  patience: Patience;
}

interface Page {
  document?: unknown;
  WebAssembly: { compile(bytes: Uint8Array): Promise<object> };
  fetch(url: string, options?: { method: "POST"; body: string }): Promise<{ json(): Promise<unknown> }>;
}
const { document, WebAssembly, fetch } = globalThis as unknown as Page;

async function main(): Promise<void> {
  const { module, blocks, patience } = (await (await fetch("/input")).json()) as PageInput;
  const decode = (text: string) => Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const compiled = await WebAssembly.compile(decode(module));
  setModule(() => compiled);
  const found: Record<string, Found> = {};
  for (const [type, text] of Object.entries(blocks)) {
    found[type] = await raceModule(type as GgmlType, decode(text), patience);
  }
  await fetch("/result", { method: "POST", body: JSON.stringify(found) });
}

if (document !== undefined) void main();
