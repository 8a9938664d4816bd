/**
 * How long short asynchronous calls take, from the call to its result: with nothing else to do, and beside `stats` of a
 * large tensor, over and over. Several clients each make a call when the last one is done.
 */
import { type GgufTensor, openSync } from "gguf-native";
import type { Context } from "../context";
import { digits, duration, progress } from "../table";
import { writeTensors } from "../weights";

const CLIENTS = [1, 8, 200];
const COLUMNS = 4096;
/** Of the matrix that clients ask; a product with one vector is 1 M multiplications. */
const ROWS = 256;
/** Rows that a client asks for at a time. */
const TAKEN = 64;
/** Rows of the tensor whose statistics are made meanwhile. */
const LARGE_ROWS = 65_536;

export async function runLatency({ options, results }: Context): Promise<void> {
  const seconds = options.quick ? 0.5 : 2;
  const tensor = (name: string, rows: number) => ({ name, type: "Q4_K" as const, shape: [COLUMNS, rows] });
  using file = openSync(writeTensors("latency.gguf", [tensor("matrix", ROWS), tensor("large", LARGE_ROWS)]));
  const matrix = file.tensor("matrix");
  const indexes = Array.from({ length: TAKEN }, (_, i) => (i * 37) % ROWS);
  const x = new Float32Array(COLUMNS).fill(0.5);
  const calls = { rows: () => matrix.rows(indexes), matmul: () => matrix.matmul(x) };
  const table = [];
  for (const [name, call] of Object.entries(calls)) {
    for (const count of CLIENTS) {
      progress(`latency: ${name}, ${count} clients`);
      await timesOf(call, count, 0.2);
      const found = {
        idle: await timesOf(call, count, seconds),
        busy: await beside(file.tensor("large"), () => timesOf(call, count, seconds)),
      };
      const line = [`${name}, ${count} clients`];
      for (const share of [0.5, 0.99]) {
        const [idle, busy] = Object.entries(found).map(([side, times]) => {
          const time = times[Math.floor(share * times.length)]!;
          const subject = `${name}, ${count} clients, p${100 * share}`;
          results.add({ task: "latency", subject, side }, { best: time, median: time, rounds: times.length });
          return time;
        });
        line.push(duration(idle)!, duration(busy)!, digits(busy! / idle!));
      }
      table.push(line);
    }
  }
  progress("");
  results.table(
    `Time of a call: ${TAKEN} rows, and ${ROWS} rows by a vector, of ${COLUMNS} weights in Q4_K; busy: beside stats`,
    ["", "p50 idle", "busy", "×", "p99 idle", "busy", "×"],
    table,
  );
}

/** The times of all calls that `count` clients make in `seconds`, in seconds, ascending. */
async function timesOf(call: () => Promise<unknown>, count: number, seconds: number): Promise<Float64Array> {
  const found: number[] = [];
  const end = performance.now() + 1000 * seconds;
  const client = async () => {
    for (let start = performance.now(); start < end; ) {
      await call();
      const now = performance.now();
      found.push((now - start) / 1000);
      start = now;
    }
  };
  await Promise.all(Array.from({ length: count }, client));
  return Float64Array.from(found).sort();
}

/** Does `work` while statistics of a tensor are made, one after the other. */
async function beside<T>(tensor: GgufTensor, work: () => Promise<T>): Promise<T> {
  let isDone = false;
  const stats = (async () => {
    while (!isDone) await tensor.stats();
  })();
  try {
    return await work();
  } finally {
    isDone = true;
    await stats;
  }
}
