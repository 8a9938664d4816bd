/**
 * Products of quantized weights with vectors (`matmulSync`): by type, by the number of vectors and by threads, compared
 * with what one would use instead and with plain reads of the same blocks. All contenders run in turns, in one process.
 */
import { type GgmlType, ggmlTypes } from "gguf-native";
import { type Context, chosenTypes, MIB, makeOut, threadCounts } from "../context";
import type { Patience } from "../measure";
import {
  blockSizes,
  COLUMNS,
  compareProducts,
  fillRows,
  makeMemory,
  makeVectors,
  rowBytes,
  type Side,
} from "../products";
import type { Key, Results } from "../results";
import { digits, gigabytes, printTable, progress, size, times } from "../table";

export async function runProducts(context: Context): Promise<void> {
  await runProductTypes(context);
  printProductTypes(context);
  await runVectors(context);
  await runThreads(context);
}

/** One vector, one thread: every type, with blocks in the cache and in memory. */
export async function runProductTypes(context: Context, types = chosenTypes(context)): Promise<void> {
  const { quick } = context.options;
  const x = await makeVectors(1);
  for (const bytes of blockSizes(quick)) {
    const cached = bytes <= MIB;
    const memory = await makeMemory(bytes);
    // The reference takes 10 to 20 ns per weight, too long for a matrix that fits only in memory.
    const sides: Side[] = [
      "native",
      "int8",
      cached ? "typescript" : "cached",
      "two steps",
      "libggml",
      "read",
    ];
    const patience = patienceFor(cached, quick);
    for (const type of types) {
      progress(`product of ${type}, ${size(bytes)}`);
      const blocks = fillRows(memory, type);
      const rows = blocks.length / rowBytes(type);
      const product = { type, blocks, x, out: await makeOut(rows * 4), threads: 1 };
      const key = (side: string): Key =>
        side === "read"
          ? { task: "limit", subject: type, side, bytes }
          : { task: "product", subject: type, side, bytes, weights: rows * COLUMNS };
      await compareProducts(context, product, sides, key, { memory, patience });
    }
  }
  progress("");
}

function patienceFor(cached: boolean, quick: boolean): Patience {
  if (cached) return { budget: quick ? 0.2 : 0.6, minRounds: 10 };
  return { budget: quick ? 0.6 : 2, minRounds: 8 };
}

/** Gweights/s of one vector and one thread. */
export function productSpeed(
  results: Results,
  subject: string,
  side: string,
  bytes: number,
): number | undefined {
  return fastest(results, { task: "product", subject, side, bytes });
}

/** The most Gweights/s of all measurements with this key: each weight counts once for each vector. */
function fastest(results: Results, key: Partial<Key>): number | undefined {
  const speeds = results
    .all(key)
    .map(({ weights = 0, vectors = 1, best }) => (weights * vectors) / best / 1e9);
  return speeds.length === 0 ? undefined : Math.max(...speeds);
}

/**
 * Gweights/s of a type if its blocks were only read: the best reads of all comparisons, because reads do not depend on
 * the type, and reads that were disturbed would give shares above 1.
 */
function readSpeed(results: Results, type: GgmlType, bytes: number): number | undefined {
  const seconds = readSeconds(results, bytes);
  return seconds === undefined ? undefined : bytes / bytesPerWeight(type) / seconds / 1e9;
}

function readSeconds(results: Results, bytes: number): number | undefined {
  const reads = results.all({ task: "limit", side: "read", bytes }).map(({ best }) => best);
  return reads.length === 0 ? undefined : Math.min(...reads);
}

/**
 * The limit of a product from memory, in Gweights/s: plain reads, or the same product with cached blocks where that is
 * slower.
 */
export function memoryLimit(results: Results, type: GgmlType, quick: boolean): number | undefined {
  const [, memory] = blockSizes(quick);
  const reads = readSpeed(results, type, memory);
  const kernel = productSpeed(results, type, "cached", memory);
  return reads === undefined || kernel === undefined ? undefined : Math.min(reads, kernel);
}

function bytesPerWeight(type: GgmlType): number {
  return ggmlTypes[type].typeSize / ggmlTypes[type].blockSize;
}

const show = (speed: number | undefined) => (speed === undefined ? undefined : digits(speed));
const share = (part: number | undefined, of: number | undefined) =>
  part === undefined || of === undefined ? undefined : digits(part / of);

function printProductTypes({ results, options, libggmlCpu, limits }: Context): void {
  const [cached, memory] = blockSizes(options.quick);
  const typesOf = (bytes: number) => [
    ...new Set(
      results.all({ task: "product", side: "native", bytes }).map(({ subject }) => subject as GgmlType),
    ),
  ];
  const conditions = `one vector, one thread (${results.machine.isa})`;
  printTable(
    `${size(cached)} of blocks, Gweights/s, ${conditions}`,
    [
      "type",
      "native",
      "int8",
      "ratio",
      "TypeScript",
      "ratio",
      "two steps",
      "ratio",
      "libggml",
      "ratio",
      "to int8",
    ],
    typesOf(cached).map((type) => {
      const speed = (side: Side) => productSpeed(results, type, side, cached);
      const [native, int8] = [speed("native"), speed("int8")];
      const others = (["typescript", "two steps", "libggml"] as const).map(speed);
      return [
        ...[type, show(native), show(int8), times(int8, native)],
        ...others.flatMap((other) => [show(other), times(native, other)]),
        times(int8, others.at(-1)),
      ];
    }),
  );
  printTable(
    `${size(memory)} of blocks, Gweights/s, ${conditions}`,
    [
      ...["type", "native", "GB/s", "of reads", "of cached", "int8", "of reads", "ratio"],
      ...["two steps", "ratio", "libggml", "ratio", "to int8"],
    ],
    typesOf(memory).map((type) => {
      const speed = (side: Side) => productSpeed(results, type, side, memory);
      const [native, int8] = [speed("native"), speed("int8")];
      const others = (["two steps", "libggml"] as const).map(speed);
      return [
        type,
        show(native),
        show(native && native * bytesPerWeight(type)),
        share(native, readSpeed(results, type, memory)),
        share(native, speed("cached")),
        show(int8),
        share(int8, readSpeed(results, type, memory)),
        times(int8, native),
        ...others.flatMap((other) => [show(other), times(native, other)]),
        times(int8, others.at(-1)),
      ];
    }),
  );
  const reads = [cached, memory].map(
    (bytes) => `${size(bytes)} ${gigabytes(bytes, readSeconds(results, bytes))}`,
  );
  if (limits) console.log(`\n  best plain reads, ${limits.width} vectors: ${reads.join(", ")} GB/s`);
  console.log("\n  int8: vectors rounded to 8 bits; its ratio is to native");
  console.log("  two steps: dequantizeSync to the cache, then a loop in JavaScript");
  if (libggmlCpu)
    console.log(`  libggml: mul_mat of ${libggmlCpu.name}, which rounds vectors to 8 bits for most types`);
}

/** Few vectors, as programs that serve several users multiply at a time; and many, as in prompts. */
const VECTORS = [1, 2, 16, 128];
export const MANY = 128;
export const VECTORS_TASK = "products by vectors";

/** A square matrix of every type and several vectors at a time, one thread. */
async function runVectors(context: Context): Promise<void> {
  const { results } = context;
  const types = chosenTypes(context);
  for (const type of types) await runVectorsOf(context, type);
  progress("");
  printTable(
    `${COLUMNS} x ${COLUMNS}, GFLOP/s by the number of vectors, one thread (${results.machine.isa})`,
    ["type", ...VECTORS.flatMap((vectors) => [`${vectors}: native`, "int8", "ratio", "libggml", "to int8"])],
    types.map((type) => [
      type,
      ...VECTORS.flatMap((vectors) => {
        const [native, int8, peer] = VECTORS_SIDES.map((side) =>
          gigaflops(results, { task: VECTORS_TASK, subject: type, side, vectors }),
        );
        return [show(native), show(int8), times(int8, native), show(peer), times(int8, peer)];
      }),
    ]),
  );
}

const VECTORS_SIDES = ["native", "int8", "libggml"] as const;

/** As many vectors as a prompt has, one thread. */
export async function runMany(context: Context, types = chosenTypes(context)): Promise<void> {
  for (const type of types) await runVectorsOf(context, type, [MANY]);
  progress("");
}

/** How many times as fast as `side` products of many vectors of 8 bits are. */
export function manyRatio(results: Results, type: string, side: "native" | "libggml"): number | undefined {
  const key = { task: VECTORS_TASK, subject: type, vectors: MANY };
  const [int8, other] = ["int8", side].map((its) => gigaflops(results, { ...key, side: its }));
  return int8 === undefined || other === undefined ? undefined : int8 / other;
}

async function runVectorsOf(context: Context, type: GgmlType, counts = VECTORS): Promise<void> {
  const memory = await makeMemory(COLUMNS * rowBytes(type));
  const matrix = { type, blocks: fillRows(memory, type), memory };
  for (const vectors of counts) {
    progress(`product of ${type}, ${vectors} vectors`);
    await compareMatrix(context, matrix, VECTORS_SIDES, { task: VECTORS_TASK, vectors, threads: 1 });
  }
}

/** From one thread to all: one vector with blocks from memory, and many vectors with a square matrix. */
async function runThreads(context: Context): Promise<void> {
  const { options, results } = context;
  const task = "products by threads";
  for (const type of chosenTypes(context, ["Q4_K"])) {
    for (const vectors of [1, MANY]) {
      const bytes = vectors === 1 ? blockSizes(options.quick)[1] : COLUMNS * rowBytes(type);
      const memory = await makeMemory(bytes);
      const matrix = { type, blocks: fillRows(memory, type), memory };
      const sides: Side[] = vectors === 1 ? ["native", "libggml", "read"] : ["native", "libggml"];
      const rows = [];
      for (const threads of threadCounts()) {
        progress(`product of ${type}, ${vectors} vectors, ${threads} threads`);
        await compareMatrix(context, matrix, sides, { task, vectors, threads });
        const speed = (side: Side, count = threads) =>
          gigaflops(results, { task, subject: type, side, vectors, threads: count });
        const native = speed("native");
        const peer = speed("libggml");
        rows.push([
          String(threads),
          show(native),
          times(native, speed("native", 1)),
          show(peer),
          times(peer, speed("libggml", 1)),
          times(native, peer),
          ...(vectors === 1 ? [show(speed("read")), share(native, speed("read"))] : []),
        ]);
      }
      progress("");
      printTable(
        `${type}, ${size(bytes)} of blocks, ${vectors} ${vectors === 1 ? "vector" : "vectors"}, GFLOP/s`,
        [
          ...["threads", "native", "scaling", "libggml", "scaling", "ratio"],
          ...(vectors === 1 ? ["plain reads", "share"] : []),
        ],
        rows,
      );
    }
  }
}

interface Matrix {
  type: GgmlType;
  blocks: Uint8Array;
  /** What `blocks` are in. */
  memory: Uint8Array;
}

async function compareMatrix(
  context: Context,
  { type, blocks, memory }: Matrix,
  sides: readonly Side[],
  { task, vectors, threads }: { task: string; vectors: number; threads: number },
): Promise<void> {
  const rows = blocks.length / rowBytes(type);
  const x = await makeVectors(vectors);
  const product = { type, blocks, x, out: await makeOut(vectors * rows * 4), threads };
  const key = (side: string): Key => {
    const weights = side === "read" ? memory.length / bytesPerWeight(type) : rows * COLUMNS;
    return { task, subject: type, side, weights, vectors, threads };
  };
  const patience = { budget: context.options.quick ? 0.2 : 0.6, minRounds: context.options.quick ? 3 : 6 };
  await compareProducts(context, product, sides, key, { memory, patience });
}

/** A weight and a number of a vector are multiplied and added: two operations. */
function gigaflops(results: Results, key: Partial<Key>): number | undefined {
  const speed = fastest(results, key);
  return speed && 2 * speed;
}
