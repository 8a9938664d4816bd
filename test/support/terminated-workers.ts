/**
 * Starts workers that decode, multiply and quantize without end, and terminates each at another moment of its work: for any runtime that has
 * worker threads. `node terminated-workers.js 200` prints "200 workers terminated"; a crash ends the process instead.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { writeGguf } from "./gguf-writer";

const AT_ONCE = 4;
const ROWS = 2 ** 10;
const count = Number(process.argv[2] ?? 200);
const root = join(__dirname, "..", "..", "..");
const folder = mkdtempSync(join(tmpdir(), "gguf-native-workers-"));
const path = join(folder, "workers.gguf");
const bytes = new Uint8Array((1024 / 32) * 18 * ROWS);
writeFileSync(path, writeGguf({ tensors: [{ name: "t", type: 2, shape: [1024, ROWS], bytes }] }));

// Every kind of source and of output of what decodes: of the file and in memory; new (small and large), given, shared and allocate()'s.
const source = `
  const { parentPort, workerData: { root, path, index } } = require("node:worker_threads");
  const { allocate, dequantize, open, openSync, parse, quantize } = require(root);
  const { readFileSync } = require("node:fs");
  const file = index % 2 === 0 ? openSync(path) : parse(readFileSync(path));
  const blocks = new Uint8Array(18 * 2 ** 17);
  const t = file.tensor("t");
  const n = 1024 * ${ROWS};
  const numbers = Float32Array.from({ length: 2 ** 16 }, (_, i) => Math.sin(i));
  const vectors = numbers.subarray(0, 1024 * 4);
  const ways = [
    () => t.dequantize(),
    () => t.dequantize({ dtype: "f16", onProgress() {} }),
    () => t.dequantize({ out: new Float32Array(n) }),
    () => t.dequantize({ out: new Float32Array(new SharedArrayBuffer(4 * n)) }),
    () => t.dequantize({ out: allocate(n) }),
    () => t.rows(Array.from({ length: 200 }, (_, i) => i * 5)),
    () => dequantize("Q4_0", blocks),
    () => dequantize("Q4_0", blocks.subarray(0, 18 * 2 ** 12)),
    () => t.matmul(vectors),
    () => t.matmul(vectors, { activations: "int8" }),
    () => quantize("Q4_K", numbers, { columns: 256, onProgress() {} }),
    () => quantize("Q6_K", numbers, { columns: 256, importance: numbers.subarray(0, 256).map(Math.abs), threads: 2 }),
    async () => (await open(path)).close(),
  ];
  const again = (way) => ways[way]().then(() => again((way + 1) % ways.length));
  Promise.all([0, 3, 6, 9].map((first) => again((first + index) % ways.length)));
  parentPort.postMessage("begun");`;

async function terminateOne(index: number) {
  const worker = new Worker(source, { eval: true, workerData: { root, path, index } });
  const failed = new Promise<never>((_, reject) => worker.once("error", reject));
  await Promise.race([failed, new Promise((resolve) => worker.once("message", resolve))]);
  await Promise.race([failed, new Promise((resolve) => setTimeout(resolve, (index * 7) % 23))]);
  await worker.terminate();
}

async function main() {
  let next = 0;
  const line = async () => {
    while (next < count) await terminateOne(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, line));
  // What the last ones left behind has its time to come back.
  await new Promise((resolve) => setTimeout(resolve, 500));
  console.log(`${count} workers terminated`);
}

main()
  .catch((error) => {
    console.error(error);
    process.exitCode = 1;
  })
  .finally(() => rmSync(folder, { recursive: true, force: true }));
