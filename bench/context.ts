/** The parts that all suites use. */
import { availableParallelism } from "node:os";
import * as native from "gguf-native";
import { dequantizeSync, type GgmlType } from "gguf-native";
import * as reference from "gguf-native/reference";
import { Libggml } from "./libggml";
import { LibggmlCpu } from "./libggml-cpu";
import { MachineLimits } from "./limits";
import type { Contender, Patience, Timing } from "./measure";
import { race } from "./measure";
import { loadKoffi } from "./optional";
import type { Options, Suite } from "./options";
import { type Key, Results } from "./results";
import { gaussianBlocks, WEIGHT_TYPES } from "./weights";

export const KIB = 1024;
export const MIB = 1024 * KIB;
export const GIB = 1024 * MIB;

export interface Context {
  options: Options;
  results: Results;
  /** Undefined unless a suite needs it and it is installed. */
  libggml: Libggml | undefined;
  /** ggml's products. Undefined unless a suite needs them and they are installed. */
  libggmlCpu: LibggmlCpu | undefined;
  /** Undefined unless a suite needs them and they can be measured. */
  limits: MachineLimits | undefined;
}

export async function makeContext(options: Options): Promise<Context> {
  const results = new Results();
  const wants = (...suites: Suite[]) => suites.some((suite) => options.suites.has(suite));
  const libggml = wants("peers", "scaling", "quantize") ? await Libggml.load(results) : undefined;
  const libggmlCpu = wants("products", "accuracy") ? await LibggmlCpu.load(results) : undefined;
  const limits = wants("machine", "scaling", "products") ? await MachineLimits.load(results) : undefined;
  return { options, results, libggml, libggmlCpu, limits };
}

/** The types that the options name, or else `usual`, without those that the addon has no kernel for. */
export function chosenTypes({ options, results }: Context, usual = WEIGHT_TYPES): GgmlType[] {
  return (options.types ?? usual).filter((type) => {
    const has = decodes(dequantizeSync, type);
    if (!has) results.miss(`${type}: no kernel`);
    return has;
  });
}

/** Whether the TypeScript reference has a decoder for a type. */
export function hasReference(type: GgmlType): boolean {
  return decodes(reference.dequantizeSync, type);
}

function decodes(decode: typeof dequantizeSync, type: GgmlType): boolean {
  try {
    decode(type, gaussianBlocks(type, native.ggmlTypes[type].blockSize));
    return true;
  } catch (error) {
    if ((error as { code?: unknown }).code === "ERR_GGUF_UNSUPPORTED_TYPE") return false;
    throw error;
  }
}

/** 1, 2, 4 ... and the number of processors. */
export function threadCounts(): number[] {
  const all = availableParallelism();
  const counts = [];
  for (let threads = 1; threads < all; threads *= 2) counts.push(threads);
  return [...counts, all];
}

/**
 * An output of `bytes` bytes. Its memory was already written, because the first write to fresh memory takes several
 * times as long as a kernel. It starts at a cache line, because stores across two lines are slower, and an array that
 * Node allocates may or may not start at one. Uses the package's own `allocate` if it has one.
 */
export async function makeOut(bytes: number): Promise<Float32Array> {
  const { allocate } = native as { allocate?: (length: number) => Float32Array };
  return (allocate?.(bytes / 4) ?? (await alignedArray(bytes))).fill(1);
}

const CACHE_LINE = 64;

/** Only koffi can tell the address of an array. Without koffi, the array has Node's alignment. */
async function alignedArray(bytes: number): Promise<Float32Array> {
  const koffi = await loadKoffi();
  const buffer = new ArrayBuffer(bytes + CACHE_LINE);
  const address = koffi?.address(new Uint8Array(buffer)) ?? 0n;
  return new Float32Array(buffer, Number(-address & BigInt(CACHE_LINE - 1)), bytes / 4);
}

/** Runs contenders in turns, and adds each timing to `results` under the key of the contender's name. */
export async function compete(
  results: Results,
  key: (side: string) => Key,
  contenders: readonly Contender[],
  patience: Patience,
): Promise<Map<string, Timing>> {
  const timings = await race(contenders, patience);
  for (const [side, timing] of timings) results.add(key(side), timing);
  return timings;
}
