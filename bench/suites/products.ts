/**
 * Products of quantized weights with vectors (`matmulSync`): by type, by the number of vectors and by threads, compared
 * with what one would use instead, with plain reads of the same blocks, and with the processor's own products of bytes. All contenders run in turns, in one process.
 */
import { cpu, type GgmlType } from "gguf-native";
import { type Context, chosenTypes, compete, MIB, makeOut, patience, threadCounts } from "../context";
import { blockSizes, COLUMNS, compareProducts, makeMemory, makeVectors, rowBytes, type Side } from "../products";
import type { Key } from "../results";
import { progress, size } from "../table";
import { fillBlocks } from "../weights";

/** Few vectors, as programs that serve several users multiply at a time; and many, as in prompts. */
const VECTORS = [1, 2, 4, 8, 16, 128];
export const MANY = 128;
export const BY_VECTORS = "products by vectors";
const BY_VECTORS_SIDES: readonly Side[] = ["int8", "prepared", "native", "libggml"];

export async function runProducts(context: Context): Promise<void> {
  const { results, options, libggmlCpu } = context;
  const [cached, memory] = blockSizes(options.quick);
  const types = chosenTypes(context);
  await measureProducts(context, types);
  for (const first of ["int8", "native"]) {
    const sides = (bytes: number) =>
      first === "int8" ? ["native", "libggml"] : [bytes === cached ? "typescript" : "cached", "two steps", "libggml"];
    for (const bytes of [cached, memory]) {
      const title = `Products (${first}) of ${size(bytes)} of blocks and a vector`;
      const key = { task: "product", bytes };
      results.compare(title, key, "Gweights/s", [first, ...sides(bytes)], {
        "of reads": { task: "limit", side: "read", bytes },
      });
    }
  }
  await measureVectors(context, types, VECTORS);
  for (const vectors of VECTORS) {
    const title = `Products of ${COLUMNS} × ${COLUMNS} weights and vectors: ${vectors}`;
    const limit = { task: "limit", subject: "bytes", vectors, threads: 1 };
    const peak = context.limits?.peak(cpu().isa, COLUMNS * COLUMNS * vectors);
    if (peak !== undefined) await compete(context, limit, [peak], patience(context, 0.5, 0.2));
    results.compare(title, { task: BY_VECTORS, vectors }, "GFLOP/s", BY_VECTORS_SIDES, {
      "of peak": { ...limit, side: "peak" },
    });
  }
  await runThreads(context);
  if (libggmlCpu) console.log(`\n  libggml: mul_mat of ${libggmlCpu.name}`);
}

/** One vector, one thread: every type, with blocks in the cache and in memory. */
export async function measureProducts(
  context: Context,
  types: readonly GgmlType[],
  sizes: readonly number[] = blockSizes(context.options.quick),
): Promise<void> {
  const x = makeVectors(1);
  for (const bytes of sizes) {
    const isCached = bytes <= MIB;
    // The reference takes 10 to 20 ns per weight, too long for a matrix that fits only in memory.
    const sides: Side[] = ["native", "int8", isCached ? "typescript" : "cached", "two steps", "libggml", "read"];
    for (const type of types) {
      progress(`product of ${type}, ${size(bytes)}`);
      const key = { task: "product", subject: type, bytes, threads: 1 };
      await compareMatrix(context, type, makeMemory(bytes), x, sides, key);
    }
  }
  progress("");
}

/** A square matrix of every type and several vectors at a time, one thread. */
export async function measureVectors(
  context: Context,
  types: readonly GgmlType[],
  counts: readonly number[],
): Promise<void> {
  for (const type of types) {
    const memory = makeMemory(COLUMNS * rowBytes(type));
    for (const vectors of counts) {
      progress(`product of ${type}, ${vectors} vectors`);
      const key = { task: BY_VECTORS, subject: type, vectors, threads: 1 };
      await compareMatrix(context, type, memory, makeVectors(vectors), BY_VECTORS_SIDES, key);
    }
  }
  progress("");
}

/** From one thread to all: one vector with blocks from memory, and many vectors with a square matrix. */
async function runThreads(context: Context): Promise<void> {
  const { options, results } = context;
  for (const type of chosenTypes(context, ["Q4_K"])) {
    for (const vectors of [1, MANY]) {
      const memory = makeMemory(vectors === 1 ? blockSizes(options.quick)[1] : COLUMNS * rowBytes(type));
      const task = `products of ${type} by threads`;
      const sides: Side[] = ["int8", "native", "libggml", ...(vectors === 1 ? ["read" as const] : [])];
      for (const threads of threadCounts()) {
        progress(`product of ${type}, ${vectors} vectors, ${threads} threads`);
        const key = { task, subject: `${threads} threads`, vectors, threads };
        await compareMatrix(context, type, memory, makeVectors(vectors), sides, key);
      }
      results.compare(`Products of ${type} with vectors: ${vectors}`, { task, vectors }, "GFLOP/s", sides);
    }
  }
  progress("");
}

/** Fills the memory with whole rows, and has all sides multiply them. */
async function compareMatrix(
  context: Context,
  type: GgmlType,
  memory: Uint8Array,
  x: Float32Array,
  sides: readonly Side[],
  key: Omit<Key, "side"> & { threads: number },
): Promise<void> {
  const rows = Math.floor(memory.length / rowBytes(type));
  const blocks = fillBlocks(type, memory.subarray(0, rows * rowBytes(type)));
  const out = makeOut((x.length / COLUMNS) * rows * 4);
  const product = { type, blocks, x, out, threads: key.threads };
  const isLimit = (side: string) => side === "read" && key.task === "product";
  const keyOf = (side: string) => ({
    ...key,
    side,
    weights: rows * COLUMNS,
    ...(isLimit(side) && { task: "limit" }),
  });
  const spent = patience(context, memory.length > MIB && key.task === "product" ? 2 : 0.6, 0.3);
  await compareProducts(context, product, sides, keyOf, { memory, patience: spent });
}
