/** A child process of `load.ts`: loads a model once, or fills as much fresh memory, and answers the seconds. */
import { allocateArray, type GgufTensor, openSync } from "gguf-native";
import { answer } from "../child";
import { MachineLimits } from "../limits";
import { Results } from "../results";

const shared = (length: number) => new Float32Array(new SharedArrayBuffer(4 * length));

/** Where the results of a model lie: the names with "one" are of an array of which each tensor gets a part. */
export const OUTPUTS = {
  "no out": () => undefined,
  "allocateArray() for each": allocateArray,
  "one allocateArray()": allocateArray,
  "SharedArrayBuffer for each": shared,
  "one SharedArrayBuffer": shared,
  "new Float32Array for each": (length: number) => new Float32Array(length),
};
export const ORDERS = ["Promise.all", "one await each", "dequantizeSync"] as const;

export interface LoadRequest {
  path: string;
  /** Undefined: fill memory. */
  way: { outputs: keyof typeof OUTPUTS; order: (typeof ORDERS)[number] } | undefined;
  /** How many threads fill memory. */
  threads: number;
}

/** Loads all tensors. Returns the results, so that none is freed meanwhile. */
async function load(tensors: readonly GgufTensor[], { outputs, order }: NonNullable<LoadRequest["way"]>) {
  const whole = tensors.reduce((sum, { elementCount }) => sum + elementCount, 0);
  const all = outputs.startsWith("one ") ? OUTPUTS[outputs](whole) : undefined;
  let at = 0;
  const next = (length: number) => {
    at += length;
    return all === undefined ? OUTPUTS[outputs](length) : all.subarray(at - length, at);
  };
  if (order === "Promise.all") {
    return await Promise.all(tensors.map((tensor) => tensor.dequantize({ out: next(tensor.elementCount) })));
  }
  const results = [];
  for (const tensor of tensors) {
    const out = next(tensor.elementCount);
    results.push(order === "dequantizeSync" ? tensor.dequantizeSync({ out }) : await tensor.dequantize({ out }));
  }
  return results;
}

if (require.main === module) {
  answer(async ({ path, way, threads }: LoadRequest) => {
    const tensors = [...openSync(path).tensors.values()];
    if (way === undefined) {
      const bytes = 4 * tensors.reduce((sum, { elementCount }) => sum + elementCount, 0);
      return (await MachineLimits.load(new Results()))?.secondsToFill(bytes, threads);
    }
    const begin = performance.now();
    const results = await load(tensors, way);
    const seconds = (performance.now() - begin) / 1000;
    if (results.length !== tensors.length) throw new Error("not all tensors were loaded");
    return seconds;
  });
}
