/**
 * How long short asynchronous calls take, from the call to its result: with nothing else to do, and beside `stats` of a
 * large tensor, over and over. Several clients each make a call when the last one is done.
 */
import { writeFileSync } from "node:fs";
import { type GgufTensor, ggmlTypes, openSync } from "gguf-native";
import { writeGguf } from "../../test/support/gguf-writer";
import type { Context } from "../context";
import { temporaryFile } from "../paths";
import { duration, printTable, progress, times } from "../table";
import { gaussianBlocks } from "../weights";

const CLIENTS = [1, 8, 200];
const COLUMNS = 4096;
/** Of the matrix that clients ask; a product with one vector is 1 M multiplications. */
const ROWS = 256;
/** Rows that a client asks for at a time. */
const TAKEN = 64;
/** Rows of the tensor whose statistics are made meanwhile. */
const LARGE_ROWS = 65_536;

interface Client {
  name: string;
  call(): Promise<unknown>;
}

export async function runLatency({ options, results }: Context): Promise<void> {
  const seconds = options.quick ? 0.5 : 2;
  using file = openSync(writeTensors());
  const matrix = file.tensor("matrix");
  const large = file.tensor("large");
  const indexes = Array.from({ length: TAKEN }, (_, i) => (i * 37) % ROWS);
  const x = new Float32Array(COLUMNS).fill(0.5);
  const clients: Client[] = [
    { name: "rows", call: () => matrix.rows(indexes) },
    { name: "matmul", call: () => matrix.matmul(x) },
  ];
  const table = [];
  for (const { name, call } of clients) {
    for (const count of CLIENTS) {
      progress(`latency: ${name}, ${count} clients`);
      await timesOf(call, count, 0.2);
      const idle = await timesOf(call, count, seconds);
      const busy = await beside(large, () => timesOf(call, count, seconds));
      const line = [name, String(count)];
      for (const share of [0.5, 0.99]) {
        const [before, during] = [idle, busy].map((found) => found[Math.floor(share * found.length)]!);
        const subject = `${name}, ${count} clients, p${100 * share}`;
        const add = (side: string, time: number, rounds: number) =>
          results.add({ task: "latency", subject, side }, { best: time, median: time, rounds });
        add("idle", before!, idle.length);
        add("busy", during!, busy.length);
        line.push(duration(before)!, duration(during)!, times(during, before)!);
      }
      table.push(line);
    }
  }
  progress("");
  printTable(
    `Time of a call: ${TAKEN} rows, and the product of ${ROWS} rows with a vector, of ${COLUMNS} weights in Q4_K; busy: beside stats`,
    ["", "clients", "p50 idle", "busy", "ratio", "p99 idle", "busy", "ratio"],
    table,
  );
}

function writeTensors(): string {
  const tensor = (name: string, rows: number) => {
    const bytes = gaussianBlocks("Q4_K", COLUMNS * rows);
    return { name, type: ggmlTypes.Q4_K.id, shape: [COLUMNS, rows], bytes };
  };
  const path = temporaryFile("latency.gguf");
  writeFileSync(path, writeGguf({ tensors: [tensor("matrix", ROWS), tensor("large", LARGE_ROWS)] }));
  return path;
}

/** The times of all calls that `count` clients make in `seconds`, in seconds, ascending. */
async function timesOf(call: Client["call"], count: number, seconds: number): Promise<Float64Array> {
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
