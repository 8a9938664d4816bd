/**
 * Loading a whole model: all tensors into fresh memory, in every way that a program has, compared with filling as much
 * fresh memory. Each run is a process of its own: memory that was used before is another matter.
 */
import { fork } from "node:child_process";
import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { type GgmlType, ggmlTypes } from "gguf-native";
import { writeGguf } from "../../test/support/gguf-writer";
import { type Context, MIB } from "../context";
import { temporaryFile } from "../paths";
import { digits, duration, gigabytes, printTable, progress, times } from "../table";
import { gaussianBlocks } from "../weights";
import type { LoadAnswer, LoadRequest } from "./load-child";
import { ORDERS, OUTPUT_NAMES } from "./load-ways";

export async function runLoad({ options, results }: Context): Promise<void> {
  const layers = options.quick ? 4 : 16;
  const tensors = modelTensors(layers);
  const weights = tensors.reduce((sum, { shape }) => sum + shape.reduce(product, 1), 0);
  const bytes = 4 * weights;
  const path = temporaryFile("model.gguf");
  writeFileSync(path, writeGguf({ tensors }));

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
    const timing = { best: seconds[0]!, median: seconds[seconds.length >> 1]!, rounds: seconds.length };
    results.add({ task: "load", subject: "model", side: sideOf(request), bytes, weights }, timing);
  }
  const limit = runs[0]!.seconds[0];
  printTable(
    `${digits(weights / 1e6)} M weights in ${tensors.length} tensors, Q4_K and Q6_K, into fresh memory`,
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

const product = (a: number, b: number) => a * b;

/** The tensors of a small llama, in the types that Q4_K_M gives them. */
function modelTensors(layers: number) {
  const [embedding, feedForward, keys, vocabulary] = [1024, 2816, 512, 32_000];
  const made = new Map<string, Uint8Array>();
  const tensor = (name: string, type: GgmlType, shape: number[]) => {
    const key = `${type} ${shape}`;
    const weights = shape.reduce(product, 1);
    const bytes = made.get(key) ?? gaussianBlocks(type, weights);
    made.set(key, bytes);
    return { name, type: ggmlTypes[type].id, shape, bytes };
  };
  const tensors = [tensor("token_embd.weight", "Q4_K", [embedding, vocabulary])];
  for (let layer = 0; layer < layers; layer++) {
    const more = layer % 2 === 0 ? "Q6_K" : "Q4_K";
    const add = (name: string, type: GgmlType, shape: number[]) =>
      tensors.push(tensor(`blk.${layer}.${name}.weight`, type, shape));
    add("attn_norm", "F32", [embedding]);
    add("attn_q", "Q4_K", [embedding, embedding]);
    add("attn_k", "Q4_K", [embedding, keys]);
    add("attn_v", more, [embedding, keys]);
    add("attn_output", "Q4_K", [embedding, embedding]);
    add("ffn_norm", "F32", [embedding]);
    add("ffn_gate", "Q4_K", [embedding, feedForward]);
    add("ffn_up", "Q4_K", [embedding, feedForward]);
    add("ffn_down", more, [feedForward, embedding]);
  }
  tensors.push(tensor("output_norm.weight", "F32", [embedding]));
  tensors.push(tensor("output.weight", "Q6_K", [embedding, vocabulary]));
  return tensors;
}

function inChild(request: LoadRequest): Promise<LoadAnswer> {
  const child = fork(join(__dirname, "load-child.js"), [JSON.stringify(request)]);
  return new Promise((resolve, reject) => {
    child.once("message", (answer) => resolve(answer as LoadAnswer));
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the child process ended with ${code}`)));
  });
}
