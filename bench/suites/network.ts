/**
 * What lies between products: attention, compared with plain reads of its keys and values and with a product of as many
 * multiplications; and the cost of small calls.
 */
import { matmulSync } from "gguf-native";
import * as network from "gguf-native/network";
import { Random } from "../../test/support/random";
import { type Context, compete, makeOut, patience, threadCounts } from "../context";

const HEADS = 32;
const WIDTH = 64;
const POSITIONS = 1024;
const TOKEN = HEADS * WIDTH;
const MANY = 128;

export async function runNetwork(context: Context): Promise<void> {
  const { results } = context;
  for (const type of ["F16", "Q8_0", "F32"] as const) {
    for (const threads of threadCounts()) await measureAttention(context, type, threads);
  }
  results.compare(
    `One token over ${POSITIONS} positions, ${HEADS} heads of ${WIDTH}`,
    { task: "attention", count: 1 },
    "GB/s",
    ["attention", "read"],
  );
  results.compare(
    `${MANY} tokens over ${POSITIONS} positions, ${HEADS} heads of ${WIDTH}`,
    { task: "attention", count: MANY },
    "GFLOP/s",
    ["attention", "product of F32"],
  );
  await measureCalls(context);
}

const random = new Random(5);
const numbers = (length: number): Float32Array => Float32Array.from({ length }, () => random.gaussian());

async function measureAttention(context: Context, type: "F16" | "Q8_0" | "F32", threads: number): Promise<void> {
  const cache = new network.KvCache({ heads: HEADS, keyWidth: WIDTH, type });
  const token = numbers(TOKEN);
  for (let i = 0; i < POSITIONS; i++) cache.append(token, token);
  const bytes = 2 * POSITIONS * TOKEN * { F32: 4, F16: 2, Q8_0: 34 / 32 }[type];
  const subject = `${type}, ${threads} threads`;
  const memory = new Uint8Array(bytes).fill(1);
  const read = context.limits?.contender("read", memory, threads);
  for (const count of [1, MANY]) {
    const queries = numbers(count * TOKEN);
    const out = makeOut(4 * queries.length);
    const attention = {
      name: "attention",
      run: () => void network.attention(queries, cache, { heads: HEADS, out, threads }),
    };
    // The last tokens see half of each other.
    const rows = Math.round(2 * POSITIONS - (count - 1));
    const matrix = count === 1 ? new Float32Array() : numbers(TOKEN * rows);
    const product = {
      name: "product of F32",
      run: () => void matmulSync("F32", matrix, TOKEN, queries, { threads }),
    };
    const others = count === 1 ? (read ?? []) : product;
    const key = { task: "attention", subject, threads, count, bytes, weights: TOKEN * rows, vectors: count };
    await compete(context, key, [attention, others].flat(), patience(context, 2, 0.3));
  }
}

/** Calls that do next to nothing. */
async function measureCalls(context: Context): Promise<void> {
  const x = numbers(WIDTH);
  const y = numbers(WIDTH);
  const out = makeOut(4 * WIDTH);
  const rotations = new network.Rotations({ width: WIDTH, base: 10000, pairs: "adjacent" });
  const calls: Record<string, () => unknown> = {
    rmsNorm: () => network.rmsNorm(x, y, { epsilon: 1e-6, out }),
    add: () => network.add(out, y),
    gated: () => network.gated(x, y, "silu", { out }),
    softmax: () => network.softmax(x, WIDTH, { out }),
    rope: () => network.rope(x, WIDTH, rotations, 7, { headCount: 1, out }),
    topK: () => network.topK(x, 5),
  };
  for (const [subject, run] of Object.entries(calls)) {
    const contender = { name: "call", repeats: 2000, run: () => repeat(2000, run) };
    await compete(context, { task: "network call", subject }, [contender], patience(context, 0.5, 0.2));
  }
  context.results.compare(`Calls for ${WIDTH} numbers`, { task: "network call" }, "µs", ["call"]);
}

function repeat(times: number, run: () => unknown): void {
  for (let i = 0; i < times; i++) run();
}
