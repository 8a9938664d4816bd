/** The parts that all suites use. */
import { availableParallelism } from "node:os";
import { allocateArray, type GgmlType } from "gguf-native";
import { Libggml } from "./libggml";
import { LibggmlCpu } from "./libggml-cpu";
import { MachineLimits } from "./limits";
import { type Contender, type Patience, race, type Timing } from "./measure";
import type { Options, Suite } from "./options";
import { type Key, Results } from "./results";
import { WEIGHT_TYPES } from "./weights";

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
  const results = options.from === undefined ? new Results() : Results.read(options.from);
  const wants = (...suites: Suite[]) => options.from === undefined && suites.some((suite) => options.suites.has(suite));
  const libggml = wants("peers", "scaling", "quantize") ? await Libggml.load(results) : undefined;
  const libggmlCpu = wants("products") ? await LibggmlCpu.load(results) : undefined;
  const limits = wants("machine", "scaling", "products", "network") ? await MachineLimits.load(results) : undefined;
  return { options, results, libggml, libggmlCpu, limits };
}

/** The types that the options name, or else `usual`. */
export function chosenTypes({ options }: Context, usual = WEIGHT_TYPES): readonly GgmlType[] {
  return options.types ?? usual;
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
 * times as long as a kernel. It starts at a cache line, because stores across two lines are slower.
 */
export function makeOut(bytes: number): Float32Array {
  return allocateArray(bytes / 4).fill(1);
}

/** Less time for each measurement if the run is to be quick. */
export function patience({ options }: Context, budget: number, quickBudget: number, minRounds = 5): Patience {
  return options.quick ? { budget: quickBudget, minRounds: 3 } : { budget, minRounds };
}

/** Runs contenders in turns, and adds each timing to the results under the key of the contender's name. */
export async function compete(
  { results }: Context,
  key: Omit<Key, "side"> | ((side: string) => Key),
  contenders: readonly Contender[],
  patience: Patience,
): Promise<Map<string, Timing>> {
  const timings = await race(contenders, patience);
  for (const [side, timing] of timings) {
    results.add(typeof key === "function" ? key(side) : { ...key, side }, timing);
  }
  return timings;
}
