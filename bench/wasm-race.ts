/** The WebAssembly module beside the TypeScript reference, in Node and in browsers: nothing of Node is used. */

import * as reference from "gguf-native/reference";
import { type GgmlType, ggmlTypes } from "gguf-native/reference";
import { dequantize, multiply } from "#dist/backend/wasm/kernels";
import { inModule } from "#dist/backend/wasm/module";
import { Random } from "../test/support/random";
import { type Contender, type Patience, race, type Timing } from "./measure";
import { gaussianBlocks } from "./weights";

/** One MiB of output, of weights that do not repeat. */
export const WEIGHTS = 2 ** 18;

/** Numbers of a row of these weights that are multiplied, and with how many vectors at a time. */
const COLUMNS = 4096;
export const VECTORS = [1, 8] as const;

/** Seconds by contender. */
export type Timings = Record<string, Timing>;

/** What takes so long with {@link WEIGHTS} weights of a type. */
export interface TypeTimings {
  /** Dequantizing. */
  numbers: Timings;
  /** Multiplying with as many vectors as {@link VECTORS} says. */
  products: Timings[];
}

/** `others` are further contenders that dequantize. */
export async function raceModule(
  type: GgmlType,
  patience: Patience,
  others: (blocks: Uint8Array, out: Float32Array) => Contender[] = () => [],
): Promise<TypeTimings> {
  const blocks = gaussianBlocks(type, WEIGHTS);
  const numbers = await race(dequantizers(type, blocks, others), patience);
  const products: Timings[] = [];
  for (const vectors of VECTORS) {
    products.push(Object.fromEntries(await race(multipliers(type, blocks, vectors), patience)));
  }
  return { numbers: Object.fromEntries(numbers), products };
}

/** Standard deviations of weights: as usual; so small that many are subnormal in binary16; that nearly all are. */
export const DEVIATIONS = [2e-2, 2e-4, 2e-5] as const;

/** Dequantizing of as many F16 weights of such a standard deviation. */
export async function raceF16(
  deviation: number,
  patience: Patience,
  others: (blocks: Uint8Array, out: Float32Array) => Contender[],
): Promise<Timings> {
  const random = new Random(5);
  const weights = Float32Array.from({ length: WEIGHTS }, () => deviation * random.gaussian());
  const blocks = reference.quantizeSync("F16", weights);
  return Object.fromEntries(await race(dequantizers("F16", blocks, others), patience));
}

function dequantizers(
  type: GgmlType,
  blocks: Uint8Array,
  others: (blocks: Uint8Array, out: Float32Array) => Contender[],
): Contender[] {
  const out = new Float32Array(WEIGHTS);
  const { id } = ggmlTypes[type];
  const wasm = (): void => dequantize(id, blocks, false, 0, out);
  const scalar = (): void => {
    inModule(({ exports }) => exports.use_scalar(1));
    wasm();
    inModule(({ exports }) => exports.use_scalar(0));
  };
  const typescript = (): void => void reference.dequantizeSync(type, blocks, { out });
  return [
    ...others(blocks, out),
    { name: "wasm", run: wasm },
    { name: "scalar", run: scalar },
    { name: "typescript", run: typescript },
  ];
}

function multipliers(type: GgmlType, blocks: Uint8Array, vectors: number): Contender[] {
  const { id } = ggmlTypes[type];
  const random = new Random(4);
  const x = Float32Array.from({ length: vectors * COLUMNS }, () => random.gaussian());
  const out = new Float32Array(vectors * (WEIGHTS / COLUMNS));
  return [false, true].map((int8) => ({
    name: int8 ? "int8" : "f32",
    run: () => multiply(id, blocks, false, COLUMNS, x, out, int8),
  }));
}
