/** Everyone who multiplies a matrix of blocks, in turns. */
import { buffer } from "node:stream/consumers";
import {
  type Activations,
  dequantizeSync,
  type GgmlType,
  type GgufTensor,
  GgufWriter,
  matmulSync,
  parse,
} from "gguf-native";
import * as reference from "gguf-native/reference";
import { Random } from "../test/support/random";
import { type Context, compete, KIB, MIB, makeOut } from "./context";
import type { Contender, Patience } from "./measure";
import type { Key } from "./results";
import { bytesOf } from "./weights";

/** Numbers of a row, as in the layers of a model of 7 to 8 G weights. */
export const COLUMNS = 4096;

/** Bytes of blocks that fit in the second-level cache. */
const CACHED_BYTES = 128 * KIB;

/** Bytes of blocks that fit in the second-level cache, and bytes that fit only in memory. */
export function blockSizes(quick: boolean): [cached: number, memory: number] {
  return [CACHED_BYTES, quick ? 64 * MIB : 256 * MIB];
}

export interface Product {
  type: GgmlType;
  /** Whole rows. They start at a cache line. */
  blocks: Uint8Array;
  /** Whole vectors, one after the other. They start at a cache line, as `out` does. */
  x: Float32Array;
  out: Float32Array;
  threads: number;
}

/**
 * Who multiplies: the addon; the addon with vectors rounded to 8 bits, and with rows that are prepared; the reference; `dequantizeSync` to the cache and then
 * a loop in JavaScript; ggml. The limits: "cached" is the addon with the first rows again and again, "read" only reads the
 * same memory. "two steps" and "cached" take one vector.
 */
export type Side = "native" | "int8" | "prepared" | "cached" | "typescript" | "two steps" | "libggml" | "read";

export function rowBytes(type: GgmlType): number {
  return bytesOf(type, COLUMNS);
}

/** Memory for blocks. It starts at a cache line. */
export function makeMemory(bytes: number): Uint8Array {
  const { buffer, byteOffset } = makeOut(Math.ceil(bytes / 4) * 4);
  return new Uint8Array(buffer, byteOffset, bytes);
}

/** `count` vectors of normally distributed numbers. */
export function makeVectors(count: number): Float32Array {
  const random = new Random(4);
  const x = makeOut(count * COLUMNS * 4);
  for (let i = 0; i < x.length; i++) x[i] = random.gaussian();
  return x;
}

/** A contender whose results are compared with the reference. */
interface Multiplier extends Contender {
  /** How many rows it multiplies: all, or the first ones. */
  rows: number;
  /** What the reference rounds vectors to: nothing if not given. */
  activations?: Activations;
  /** The greatest difference from the reference, as a share of the sum of |w x|. 0: the same bits. */
  tolerance: number;
}

/**
 * Checks and measures those of `sides` that are there. A result that differs prints an error and sets exit code 1. The
 * limit reads `memory`, whose size does not depend on the type.
 */
export async function compareProducts(
  context: Context,
  product: Product,
  sides: readonly Side[],
  key: (side: string) => Key,
  { memory, patience }: { memory: Uint8Array; patience: Patience },
): Promise<void> {
  const { libggmlCpu, limits } = context;
  const { type, blocks, x, out, threads } = product;
  const rows = blocks.length / rowBytes(type);
  const multipliers: Multiplier[] = [
    {
      name: "native",
      run: () => void matmulSync(type, blocks, COLUMNS, x, { out, threads }),
      rows,
      tolerance: 0,
    },
  ];
  if (sides.includes("int8")) {
    const activations = "int8";
    const run = () => void matmulSync(type, blocks, COLUMNS, x, { out, threads, activations });
    multipliers.push({ name: "int8", run, rows, activations, tolerance: 0 });
  }
  if (sides.includes("prepared")) {
    const tensor = await prepared(product, rows);
    const activations = "int8";
    const run = () => void tensor.matmulSync(x, { out, threads, activations });
    multipliers.push({ name: "prepared", run, rows, activations, tolerance: 0 });
  }
  if (sides.includes("cached")) multipliers.push(cached(product, rows));
  if (sides.includes("typescript")) {
    const run = () => void reference.matmulSync(type, blocks, COLUMNS, x, { out });
    multipliers.push({ name: "typescript", run, rows, tolerance: 0, maxRounds: 5 });
  }
  if (sides.includes("two steps")) multipliers.push(twoSteps(product, rows));
  const peer = sides.includes("libggml") ? libggmlCpu?.product(type, blocks, COLUMNS, x, out) : undefined;
  // ggml rounds vectors to 8 bits for most types.
  if (peer) multipliers.push({ name: "libggml", run: () => peer.run(threads), rows, tolerance: 0.004 });
  expectSameResults(product, rows, multipliers);

  const contenders: Contender[] = [...multipliers];
  if (sides.includes("read") && limits) contenders.push(limits.contender("read", memory, threads));
  await compete(context, key, contenders, patience);
  peer?.free();
}

/** The rows as a tensor, prepared. */
async function prepared({ type, blocks }: Product, rows: number): Promise<GgufTensor> {
  const writer = new GgufWriter().addTensor("w", type, [COLUMNS, rows], blocks);
  const tensor = parse(await buffer(writer.chunks())).tensor("w");
  await tensor.prepare();
  return tensor;
}

/** A call multiplies them this often, because the others have emptied the cache before. */
const CACHED_PASSES = 32;

/** The addon, in one thread, with as many of the first rows as fit in the second-level cache. */
function cached({ type, blocks, x, out }: Product, allRows: number): Multiplier {
  const rows = Math.min(allRows, Math.floor(CACHED_BYTES / rowBytes(type)));
  const first = blocks.subarray(0, rows * rowBytes(type));
  const into = { out: out.subarray(0, rows), threads: 1 };
  const run = () => {
    for (let pass = 0; pass < CACHED_PASSES; pass++) matmulSync(type, first, COLUMNS, x, into);
  };
  return { name: "cached", run, rows, tolerance: 0, repeats: (CACHED_PASSES * rows) / allRows };
}

/** Rows that are dequantized at a time: 64 KiB of numbers. */
const CACHED_ROWS = 4;
/** It is slow, and limited by JavaScript and not by memory, so a part of a large matrix is enough. */
const TWO_STEPS_BYTES = 4 * MIB;

/** What one does without products: dequantizes some rows to the cache, and multiplies them in JavaScript. */
function twoSteps({ type, blocks, x, out }: Product, allRows: number): Multiplier {
  const bytes = rowBytes(type);
  const rows = Math.min(allRows, Math.floor(TWO_STEPS_BYTES / bytes));
  const weights = new Float32Array(CACHED_ROWS * COLUMNS);
  const run = () => {
    for (let first = 0; first < rows; first += CACHED_ROWS) {
      const end = Math.min(first + CACHED_ROWS, rows);
      const part = blocks.subarray(first * bytes, end * bytes);
      dequantizeSync(type, part, { out: weights.subarray(0, (end - first) * COLUMNS) });
      for (let row = first; row < end; row++) out[row] = dot(weights, (row - first) * COLUMNS, x);
    }
  };
  return { name: "two steps", run, rows, tolerance: 1e-6, repeats: rows / allRows };
}

/** Four sums, because one would wait for each addition. */
function dot(weights: Float32Array, at: number, x: Float32Array): number {
  let [a, b, c, d] = [0, 0, 0, 0];
  for (let i = 0; i < COLUMNS; i += 4) {
    a += weights[at + i]! * x[i]!;
    b += weights[at + i + 1]! * x[i + 1]!;
    c += weights[at + i + 2]! * x[i + 2]!;
    d += weights[at + i + 3]! * x[i + 3]!;
  }
  return a + b + (c + d);
}

/** How many of the first and of the last rows are compared with the reference. */
const CHECKED_ROWS = 4;

function expectSameResults(product: Product, rows: number, multipliers: readonly Multiplier[]): void {
  const { type, blocks, x, out } = product;
  const vectors = x.length / COLUMNS;
  const bytes = rowBytes(type);
  const checked = new Set<number>();
  for (let i = 0; i < Math.min(CHECKED_ROWS, rows); i++) checked.add(i).add(rows - 1 - i);
  const expected = Array.from(checked, (row) => {
    const part = blocks.subarray(row * bytes, (row + 1) * bytes);
    const weights = reference.dequantizeSync(type, part);
    return {
      row,
      products: {
        f32: reference.matmulSync(type, part, COLUMNS, x),
        int8: reference.matmulSync(type, part, COLUMNS, x, { activations: "int8" }),
      },
      magnitudes: Array.from({ length: vectors }, (_, v) => magnitude(weights, x, v * COLUMNS)),
    };
  });
  for (const multiplier of multipliers) {
    out.fill(Number.NaN);
    multiplier.run();
    const same = expected.every(({ row, products, magnitudes }) =>
      magnitudes.every((magnitude, v) => {
        if (row >= multiplier.rows) return true;
        const found = out[v * rows + row]!;
        const wanted = products[multiplier.activations ?? "f32"][v]!;
        if (multiplier.tolerance === 0) return Object.is(found, wanted);
        return Math.abs(found - wanted) <= multiplier.tolerance * magnitude;
      }),
    );
    if (same) continue;
    console.error(`${type}, vectors: ${vectors}: ${multiplier.name} and the reference give different products`);
    process.exitCode = 1;
  }
}

/** The sum of |w x|. */
function magnitude(weights: Float32Array, x: Float32Array, at: number): number {
  let sum = 0;
  for (let i = 0; i < weights.length; i++) sum += Math.abs(weights[i]! * x[at + i]!);
  return sum;
}
