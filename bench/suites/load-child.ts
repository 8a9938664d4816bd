/** A child process of `load.ts`: loads a model once, or fills as much fresh memory, and sends the seconds. */
import { performance } from "node:perf_hooks";
import { openSync } from "gguf-native";
import { MachineLimits } from "../limits";
import { Results } from "../results";
import { load, type Order, type OutputName } from "./load-ways";

export interface LoadRequest {
  path: string;
  /** Undefined: fill memory. */
  way: { outputs: OutputName; order: Order } | undefined;
  /** How many threads fill memory. */
  threads: number;
}

export interface LoadAnswer {
  /** Undefined if it cannot be measured. */
  seconds: number | undefined;
  /** Of memory that the process used at most, in bytes. */
  mostMemory: number;
}

async function measure({ path, way, threads }: LoadRequest): Promise<number | undefined> {
  const model = openSync(path);
  const tensors = [...model.tensors.values()];
  if (way === undefined) {
    const bytes = 4 * tensors.reduce((sum, { elementCount }) => sum + elementCount, 0);
    return (await MachineLimits.load(new Results()))?.secondsToFill(bytes, threads);
  }
  const begin = performance.now();
  const results = await load(tensors, way.outputs, way.order);
  const seconds = (performance.now() - begin) / 1000;
  if (results.length !== tensors.length) throw new Error("not all tensors were loaded");
  return seconds;
}

measure(JSON.parse(process.argv[2]!) as LoadRequest).then(
  (seconds) => {
    const answer: LoadAnswer = { seconds, mostMemory: process.resourceUsage().maxRSS * 1024 };
    process.send!(answer, () => process.exit());
  },
  (error) => {
    console.error(error);
    process.exitCode = 1;
  },
);
