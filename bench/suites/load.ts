/**
 * Loading a whole model: all tensors into fresh memory, in every way that a program has, compared with filling as much
 * fresh memory. Each run is a process of its own: memory that was used before is another matter.
 */
import { fork } from "node:child_process";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { type Context, MIB } from "../context";
import { summary } from "../measure";
import { QUICK_SHAPE, SHAPE, writeModel } from "../model";
import { digits, duration, gigabytes, printTable, progress, times } from "../table";
import type { LoadAnswer, LoadRequest } from "./load-child";
import { ORDERS, OUTPUT_NAMES } from "./load-ways";

export async function runLoad({ options, results }: Context): Promise<void> {
  const { path, weights, tensorCount } = writeModel(options.quick ? QUICK_SHAPE : SHAPE);
  const bytes = 4 * weights;

  const threads = availableParallelism();
  const fill: LoadRequest = { path, way: undefined, threads };
  const ways = OUTPUT_NAMES.flatMap((outputs) => {
    // Parts of one array are memory like any other: one order of calls shows it.
    const orders = outputs.startsWith("one ") ? ORDERS.slice(0, 1) : ORDERS;
    return orders.map((order): LoadRequest => ({ path, way: { outputs, order }, threads }));
  });
  const runs = [fill, ...ways].map((request) => ({ request, seconds: [] as number[], mostMemory: 0 }));
  for (let round = 0; round < (options.quick ? 3 : 9); round++) {
    for (const run of runs) {
      progress(`loading a model: ${sideOf(run.request)}, round ${round + 1}`);
      const { seconds, mostMemory } = await inChild(run.request);
      if (seconds === undefined) continue;
      run.seconds.push(seconds);
      run.mostMemory = Math.max(run.mostMemory, mostMemory);
    }
  }
  progress("");
  for (const { request, seconds } of runs) {
    if (seconds.length === 0) {
      results.miss("filling fresh memory: see the limits of the machine");
      continue;
    }
    seconds.sort((a, b) => a - b);
    results.add({ task: "load", subject: "model", side: sideOf(request), bytes, weights }, summary(seconds));
  }
  const limit = runs[0]!.seconds[0];
  printTable(
    `${digits(weights / 1e6)} M weights in ${tensorCount} tensors, Q4_K and Q6_K, into fresh memory`,
    ["results, order of calls", "time", "median", "GB/s", "x the limit", "memory used"],
    runs.map(({ request, seconds, mostMemory }) => [
      sideOf(request),
      duration(seconds[0]),
      duration(seconds[seconds.length >> 1]),
      gigabytes(bytes, seconds[0]),
      request.way && times(seconds[0], limit)?.replace("x", ""),
      `${digits(mostMemory / MIB / 1024)} GiB`,
    ]),
  );
}

function sideOf({ way, threads }: LoadRequest): string {
  return way === undefined ? `filled by ${threads} threads` : `${way.outputs}, ${way.order}`;
}

function inChild(request: LoadRequest): Promise<LoadAnswer> {
  const child = fork(join(__dirname, "load-child.js"), [JSON.stringify(request)]);
  return new Promise((resolve, reject) => {
    child.once("message", (answer) => resolve(answer as LoadAnswer));
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the child process ended with ${code}`)));
  });
}
