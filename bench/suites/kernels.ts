/**
 * The native kernels compared with the TypeScript reference, with ggml, and with the machine's limits. All contenders run
 * in turns, in one process, on one thread, into reused memory.
 */
import { freemem } from "node:os";
import { dequantizeSync, type GgmlType, openSync } from "gguf-native";
import * as reference from "gguf-native/reference";
import { inChild } from "../child";
import { type Context, chosenTypes, compete, GIB, KIB, MIB, makeOut, patience, threadCounts } from "../context";
import type { Limit } from "../limits";
import type { Contender } from "../measure";
import type { Key, Measurement } from "../results";
import { progress, size } from "../table";
import { bytesOf, gaussianBlocks, writeTensors } from "../weights";
import type { ThreadsRequest } from "./threads-child";

/** Outputs that fit in the first-level cache, in the second-level cache, and only in memory. */
export function outputSizes(quick: boolean): [first: number, second: number, memory: number] {
  return [16 * KIB, 256 * KIB, quick ? 64 * MIB : 256 * MIB];
}

/** Small outputs are made of the parts of so many weights, one after the other. */
const SOURCE_ELEMENTS = 256 * KIB;

export async function runKernels(context: Context): Promise<void> {
  const { results, options } = context;
  const sizes = outputSizes(options.quick);
  await measureKernels(context, chosenTypes(context), sizes);
  for (const bytes of sizes) {
    const calls = bytes <= 16 * KIB ? ", without the time of the call" : "";
    const limit = limitOf(bytes);
    results.compare(
      `Dequantizing to ${size(bytes)}${calls}`,
      { task: "dequantize", bytes },
      "GB/s",
      ["native", "typescript", "libggml"],
      { [`of ${limit.side}s`]: limit },
    );
  }
}

/** Measures and prints nothing. `alone`: only the addon and the limits. */
export async function measureKernels(
  context: Context,
  types: readonly GgmlType[],
  sizes: readonly number[],
  alone = false,
): Promise<void> {
  for (const bytes of sizes) {
    const [out, source] = [makeOut(bytes), makeOut(bytes)];
    for (const type of types) {
      progress(`${type}, ${size(bytes)}`);
      const limits: Limit[] = context.options.suites.has("machine") ? ["store", "stream", "copy"] : [];
      await compareDecoders(context, "dequantize", type, out, source, limits, alone);
    }
  }
  progress("");
}

/** The limit that outputs of this size are compared with: of all types, since one that was disturbed would be too low. */
export function limitOf(bytes: number): Partial<Key> & { side: Limit } {
  return { task: "limit", side: bytes > MIB ? "stream" : "store", bytes };
}

async function compareDecoders(
  context: Context,
  task: string,
  type: GgmlType,
  out: Float32Array,
  source: Float32Array,
  limits: readonly Limit[],
  alone = false,
): Promise<void> {
  const { options, results, libggml } = context;
  const bytes = out.byteLength;
  const peer = alone ? undefined : libggml?.dequantizer(type);
  type Decode = (blocks: Uint8Array, out: Float32Array) => unknown;
  const decoders: Record<string, Decode> = { native: (blocks, out) => dequantizeSync(type, blocks, { out }) };
  if (options.suites.has("native-vs-ts") && task === "dequantize" && !alone) {
    decoders.typescript = (blocks, out) => reference.dequantizeSync(type, blocks, { out });
  }
  if (peer) decoders.libggml = peer;
  const windows = windowsOf(type, out.length);
  expectSameResult(type, decoders, windows[0]!, out);

  const contenders = Object.entries(decoders).map(([name, decode]): Contender => {
    let next = 0;
    const run = () => decode(windows[next++ % windows.length]!, out);
    return { name, run, ...(name === "typescript" && bytes > MIB && { maxRounds: 2 }) };
  });
  contenders.push(...limits.map((limit) => context.limits?.contender(limit, out, 1, source)).filter((one) => !!one));
  const spent = bytes > MIB ? patience(context, 2, 0.6) : patience(context, 0.6, 0.2);
  const isLimit = (side: string): side is Limit => (limits as string[]).includes(side);
  const key = (side: string) => ({ task: isLimit(side) ? "limit" : task, subject: type, side, bytes });
  const first = results.measurements.length;
  await compete(context, key, contenders, spent);
  if (bytes <= 16 * KIB) await subtractCalls(context, results.measurements.slice(first), decoders);
}

/** Takes the time of a call for no weights away, where it would be a large part of the time. */
async function subtractCalls(
  context: Context,
  measured: readonly Measurement[],
  decoders: Record<string, (blocks: Uint8Array, out: Float32Array) => unknown>,
): Promise<void> {
  const [blocks, out] = [new Uint8Array(0), new Float32Array(0)];
  const contenders = Object.entries(decoders).map(([name, decode]) => ({
    name,
    run: () => decode(blocks, out),
  }));
  const [{ subject } = { subject: "" }] = measured;
  const calls = await compete(context, { task: "empty call", subject }, contenders, patience(context, 0.1, 0.02));
  for (const measurement of measured) {
    const call = calls.get(measurement.side)?.best ?? 0;
    measurement.best = Math.max(measurement.best - call, measurement.best / 100);
  }
}

/** Checks that all results have the same bits. If not, prints an error and sets exit code 1. */
function expectSameResult(
  type: GgmlType,
  decoders: Record<string, (blocks: Uint8Array, out: Float32Array) => unknown>,
  blocks: Uint8Array,
  out: Float32Array,
): void {
  const bits = new Uint32Array(out.buffer, out.byteOffset, Math.min(out.length, SOURCE_ELEMENTS));
  let expected: Uint32Array | undefined;
  for (const [name, decode] of Object.entries(decoders)) {
    bits.fill(0);
    decode(blocks, out);
    expected ??= bits.slice();
    if (bits.every((value, i) => value === expected![i])) continue;
    console.error(`${type}: ${name} and native give different results`);
    process.exitCode = 1;
  }
}

/** Blocks of `elements` weights each, no two alike: a processor would learn the branches for the same few. */
function windowsOf(type: GgmlType, elements: number): Uint8Array[] {
  const source = gaussianBlocks(type, Math.max(elements, SOURCE_ELEMENTS));
  const length = bytesOf(type, elements);
  return Array.from({ length: source.length / length }, (_, i) => source.subarray(i * length, (i + 1) * length));
}

/** Large outputs with different sources of blocks and different kinds of output. */
export async function runInAndOut(context: Context): Promise<void> {
  const { results, options, limits } = context;
  const bytes = outputSizes(options.quick)[2];
  for (const type of chosenTypes(context, ["Q4_K"])) {
    const path = writeTensors(`${type}.gguf`, [{ name: "t", type, shape: [4096, bytes / 4 / 4096] }]);
    using mapped = openSync(path);
    using read = openSync(path, { access: "read" });
    const blocks = mapped.tensor("t").bytes().slice();
    const out = makeOut(bytes);
    const halves = new Uint16Array(out.buffer, out.byteOffset, out.length);
    const contenders: Contender[] = [
      { name: "blocks in memory", run: () => dequantizeSync(type, blocks, { out }) },
      { name: "mapped file", run: () => mapped.tensor("t").dequantizeSync({ out }) },
      { name: "reads", run: () => read.tensor("t").dequantizeSync({ out }) },
      { name: "no out", run: () => dequantizeSync(type, blocks) },
      { name: "to f16", run: () => dequantizeSync(type, blocks, { dtype: "f16", out: halves }) },
      { name: "to bf16", run: () => dequantizeSync(type, blocks, { dtype: "bf16", out: halves }) },
      ...(limits ? [limits.contender("stream", out)] : []),
    ];
    const key = { task: "in and out", subject: type, bytes, weights: bytes / 4 };
    await compete(context, key, contenders, patience(context, 4, 0.5));
  }
  const sides = ["blocks in memory", "mapped file", "reads", "no out", "to f16", "to bf16", "stream"];
  results.compare(`Around the kernel, ${size(bytes)} of binary32`, { task: "in and out" }, "Gweights/s", sides);
}

/** By the size of the output, and by threads. */
export async function runScaling(context: Context): Promise<void> {
  const { results, options } = context;
  const types = chosenTypes(context, ["Q4_K"]);
  const most = Math.min(options.quick ? 64 * MIB : GIB, freemem() / 4); // blocks and other programs need room, too
  for (const type of types) {
    for (let bytes = 16 * KIB; bytes <= most; bytes *= 4) {
      progress(`${type}, ${size(bytes)}`);
      const out = makeOut(bytes);
      await compareDecoders(context, "scaling by size", type, out, out, ["store", "stream"]);
    }
    progress("");
    const of = (task: string, side: string, bytes: number) => ({
      ...(task !== "limit" && { subject: type }),
      task,
      side,
      bytes,
    });
    const sides = [
      ["scaling by size", "native"],
      ["scaling by size", "libggml"],
      ["limit", "store"],
      ["limit", "stream"],
    ] as const;
    const sizes = [...new Set(results.all({ task: "scaling by size", subject: type }).map(({ bytes = 0 }) => bytes))];
    results.table(
      `${type} by the size of the output, GB/s`,
      ["output", "native", "libggml", "plain stores", "streaming stores"],
      sizes.map((bytes) => [size(bytes), ...sides.map(([task, side]) => results.speed("GB/s", of(task, side, bytes)))]),
    );
    const bytes = Math.min(options.quick ? 64 * MIB : 256 * MIB, 2 ** Math.floor(Math.log2(most)));
    await runThreads(context, type, bytes);
  }
  const sides = ["dequantize", "dequantizeSync", "stream"];
  results.compare("Large outputs in shared memory by threads", { task: BY_THREADS }, "GB/s", sides);
}

const BY_THREADS = "scaling by threads";

/** Starts a process for each number of threads, because it is fixed when a process starts. */
async function runThreads({ options, results }: Context, type: GgmlType, bytes: number): Promise<void> {
  for (const threads of threadCounts()) {
    const request: ThreadsRequest = { type, bytes, threads, quick: options.quick };
    // The library uses one thread less than the pool has.
    const env = { ...process.env, UV_THREADPOOL_SIZE: String(threads + 1) };
    for (const { side, ...timing } of await inChild<Measurement[]>("threads-child", request, env)) {
      results.add({ task: BY_THREADS, subject: `${type}, threads: ${threads}`, side, bytes, threads }, timing);
    }
  }
}
