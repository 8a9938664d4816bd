/** Results that are handed to other threads: the same at every size. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { MessageChannel, Worker } from "node:worker_threads";
import { allocate, dequantize, dequantizeSync, type GgufTensor, matmulSync, openRemote, openSync } from "gguf-native";
import * as reference from "gguf-native/reference";
import { manyBlocks } from "../support/blocks";
import { emulated } from "../support/emulated";
import { writeGguf } from "../support/gguf-writer";
import { needsAddon } from "../support/needs-addon";
import { temporaryFolder } from "../support/paths";
import { rangesOf, serve } from "../support/range-server";
import { sanitized } from "../support/sanitized";

const sizes: Record<string, number> = {
  "4 KiB": 2 ** 12,
  "1 MiB": 2 ** 20,
  // Sanitizers and emulators take gigabytes and minutes for more.
  ...(sanitized || emulated ? {} : { "64 MiB": 2 ** 26 }),
};
const path = join(temporaryFolder(), "model.gguf");
let content: Uint8Array;

before(() => {
  const tensors = Object.entries(sizes).flatMap(([size, bytes]) => [
    { name: size, type: 8, shape: [32, bytes / 4 / 32], bytes: manyBlocks("Q8_0", bytes / 4 / 32) },
    { name: `${size} of bytes`, type: 24, shape: [bytes], bytes: new Uint8Array(bytes).fill(7) },
  ]);
  content = writeGguf({ tensors });
  writeFileSync(path, content);
});

type Result = Float32Array<ArrayBuffer> | Uint16Array<ArrayBuffer> | Uint8Array<ArrayBuffer>;

/** What makes a result of so many bytes from tensors of that size. */
const makers: Record<string, (size: string) => Result | Promise<Result>> = {
  dequantizeSync: (size) => using(size, (tensor) => tensor.dequantizeSync()),
  dequantize: (size) => using(size, (tensor) => tensor.dequantize()),
  "dequantize to 16 bits": (size) => using(size, (tensor) => tensor.dequantize({ dtype: "bf16" })),
  "dequantizeSync of blocks": (size) => using(size, (tensor) => dequantizeSync("Q8_0", tensor.bytes().slice())),
  "dequantize of blocks": (size) => using(size, async (tensor) => dequantize("Q8_0", tensor.bytes().slice())),
  rowsSync: (size) => using(size, (tensor) => tensor.rowsSync(allRows(size))),
  rows: (size) => using(size, (tensor) => tensor.rows(allRows(size))),
  matmulSync: (size) => using(size, (tensor) => tensor.matmulSync(new Float32Array(32).fill(1))),
  "matmulSync with many vectors": (size) =>
    using(size, (tensor) => tensor.matmulSync(new Float32Array(32 * 32).fill(1))),
  matmul: (size) => using(size, (tensor) => tensor.matmul(new Float32Array(32 * 32).fill(1))),
  "matmulSync of blocks": (size) =>
    using(size, (tensor) => matmulSync("Q8_0", tensor.bytes().slice(), 32, new Float32Array(32 * 32).fill(1))),
  read: (size) => using(`${size} of bytes`, (tensor) => tensor.read()),
  "the reference": (size) => using(size, (tensor) => reference.dequantizeSync("Q8_0", tensor.bytes().slice())),
};

async function using<T>(name: string, run: (tensor: GgufTensor) => T | Promise<T>): Promise<T> {
  using file = openSync(path);
  return await run(file.tensor(name));
}

const allRows = (size: string) => Uint32Array.from({ length: sizes[size]! / 4 / 32 }, (_, row) => row);

const sameBytes = (a: Result, b: Result) =>
  Buffer.compare(
    Buffer.from(a.buffer, a.byteOffset, a.byteLength),
    Buffer.from(b.buffer, b.byteOffset, b.byteLength),
  ) === 0;

/** Checks that `result`, whose bytes equal those of `copy`, can be moved, as messages and by structuredClone. */
async function expectToTravel(result: Result, copy: Result): Promise<void> {
  assert.equal(result.byteLength, copy.byteLength);
  assert.equal(result.buffer.byteLength, result.byteLength, "a buffer of its own");
  const cloned = structuredClone(result, { transfer: [result.buffer] });
  assert.equal(result.length, 0);
  const { port1, port2 } = new MessageChannel();
  port1.postMessage(cloned, [cloned.buffer]);
  assert.equal(cloned.length, 0);
  const [received] = (await once(port2, "message")) as [Result];
  port1.close();
  assert.ok(received instanceof copy.constructor);
  assert.ok(sameBytes(received, copy));
}

for (const [name, make] of Object.entries(makers)) {
  describe(`the result of ${name} can be transferred`, () => {
    for (const size of Object.keys(sizes)) {
      test(size, async () => expectToTravel(await make(size), await make(size)));
    }
  });
}

test("results of a remote tensor can be transferred", async () => {
  const { url } = await serve(rangesOf(content));
  using file = await openRemote(url);
  for (const size of Object.keys(sizes)) {
    const tensor = file.tensor(size);
    const local = await makers.dequantize!(size);
    await expectToTravel(await tensor.dequantize(), local);
    await expectToTravel(await tensor.rows(allRows(size)), local);
    await expectToTravel(await file.tensor(`${size} of bytes`).read(), await makers.read!(size));
  }
});

test("a worker ends, and the results that it made stay with the thread that got them", async () => {
  const program = `
    const { parentPort, workerData } = require("node:worker_threads");
    const { openSync } = require("gguf-native");
    const file = openSync(workerData.path);
    (async () => {
      for (const size of workerData.sizes) {
        const results = [file.tensor(size).dequantizeSync(), await file.tensor(size).dequantize()];
        parentPort.postMessage(results, results.map(({ buffer }) => buffer));
      }
    })();`;
  const worker = new Worker(program, { eval: true, workerData: { path, sizes: Object.keys(sizes) } });
  const received: [string, Result[]][] = [];
  for (const size of Object.keys(sizes)) {
    const [results] = (await once(worker, "message")) as [Result[]];
    received.push([size, results]);
  }
  await worker.terminate();
  globalThis.gc?.();
  for (const [size, results] of received) {
    const expected = await makers.dequantize!(size);
    for (const result of results) assert.ok(sameBytes(result, expected));
  }
});

describe("memory of the addon stays in its thread, at every size", needsAddon, () => {
  /** Whether it was refused; Node 20 clones it without a word. */
  const isRefused = (array: Float32Array | Uint8Array): boolean => {
    const { length } = array;
    try {
      structuredClone(array, { transfer: [array.buffer as ArrayBuffer] });
    } catch (error) {
      assert.equal((error as Error).name, "DataCloneError");
      assert.equal(array.length, length);
      return true;
    }
    assert.equal(array.length, length, "a copy");
    return false;
  };
  const refuses = Number(process.versions.node.split(".")[0]) >= 22;
  for (const [size, bytes] of Object.entries(sizes)) {
    test(`allocate(): ${size}`, () => assert.equal(isRefused(allocate(bytes / 4)), refuses));
    test(`bytes(): ${size}`, () => {
      using file = openSync(path);
      assert.equal(isRefused(file.tensor(size).bytes()), refuses);
    });
  }
});
