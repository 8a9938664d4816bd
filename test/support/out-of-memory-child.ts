/**
 * Run by itself, with an addon that fails when it is told to (test/native/failing_system.cc). What the addon does
 * either succeeds or fails with ERR_GGUF_OUT_OF_MEMORY, whichever allocation of it finds no memory, on whichever thread;
 * afterwards it works as before. Arguments: the part to run, and a folder for files.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import {
  allocateArray,
  dequantize,
  dequantizeSync,
  GgufError,
  type GgufFile,
  open,
  openSync,
  parse,
  quantizeSync,
  releaseMemory,
} from "gguf-native";
import { arr, str, writeGguf } from "./gguf-writer";

/** What failing_system.cc adds to the addon. */
interface FailingSystem {
  inject(kinds: number, after: number, times: number, where: number): number;
  liveBytes(): number;
  liveWork(): number;
}
const system = createRequire(__filename)(process.env.GGUF_NATIVE_ADDON as string) as FailingSystem;
const Memory = 1;
const Pages = 2;
const Threads = 4;
const Queue = 8;
const OnAllThreads = 0;
const OnOtherThreads = 2;
const Always = 2 ** 40;

const ROWS = 192;
const COLUMNS = 1024;
const ELEMENTS = ROWS * COLUMNS;

/** Blocks of Q8_0 with the scale 1, whose numbers are those of the function. */
function blocksOf(elements: number, number: (index: number) => number): Uint8Array {
  const blocks = new Uint8Array((elements / 32) * 34);
  for (let i = 0; i < elements; i++) {
    const block = Math.floor(i / 32) * 34;
    blocks[block + 1] = 0x3c;
    blocks[block + 2 + (i % 32)] = number(i);
  }
  return blocks;
}
const numberAt = (i: number) => (i * 7) % 120;
const blocks = blocksOf(ELEMENTS, numberAt);
const numbers = Float32Array.from({ length: ELEMENTS }, (_, i) => numberAt(i));
const content = writeGguf({
  metadata: [
    ["general.name", str("memory that ends")],
    ["tokens", arr("string", ["a", "b", "c"])],
  ],
  tensors: [
    { name: "a", type: 8, shape: [COLUMNS, ROWS], bytes: blocks },
    { name: "b", type: 8, shape: [COLUMNS, ROWS], bytes: blocksOf(ELEMENTS, (i) => numberAt(i + 1)) },
  ],
});
const equal = (a: ArrayLike<number>, b: Float32Array) =>
  assert.equal(a instanceof Float32Array && Buffer.compare(bytesOf(a), bytesOf(b)), 0);
const bytesOf = (array: Float32Array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

type Scene = readonly [name: string, play: () => unknown];

/** Everything that the addon does, with an open file. */
function scenesOf(file: GgufFile, path: string, access: "mmap" | "read"): Scene[] {
  const a = file.tensor("a");
  const b = file.tensor("b");
  const x = new Float32Array(COLUMNS).fill(1);
  const products = (y: Float32Array) => {
    assert.equal(y.length, ROWS);
    const expected = numbers.subarray(COLUMNS, 2 * COLUMNS).reduce((sum, number) => sum + number);
    assert.equal(y[1], expected);
  };
  const rows = (out: Float32Array) => {
    equal(out.subarray(COLUMNS, 2 * COLUMNS), numbers.subarray(7 * COLUMNS, 8 * COLUMNS));
  };
  const chosen = Float64Array.from({ length: 150 }, (_, i) => (i === 1 ? 7 : i));
  const large = new Float32Array(3 * 2 ** 20);
  const largeBlocks = blocksOf(large.length, (i) => i % 100);
  return [
    ["openSync", () => openSync(path, { access }).close()],
    ["open", async () => (await open(path, { access })).close()],
    ["parse", () => assert.equal(parse(content).metadata.string("general.name"), "memory that ends")],
    [
      "views",
      () => {
        const other = openSync(path, { access });
        const views = ["a", "b"].map((name) => other.tensor(name).bytes());
        assert.equal(views[0]?.[2], numberAt(0));
        other.close();
      },
    ],
    ["metadata", () => assert.deepEqual(file.metadata.get("tokens"), ["a", "b", "c"])],
    ["bytes of metadata", () => file.metadata.bytes("tokens")],
    ["dequantizeSync", () => equal(a.dequantizeSync(), numbers)],
    ["rowsSync", () => rows(a.rowsSync(chosen))],
    ["matmulSync", () => products(a.matmulSync(x, { threads: 2 }))],
    ["statsSync", () => assert.equal(a.statsSync({ bins: 5 }).max, 119)],
    ["quantizeSync", () => quantizeSync("Q8_0", numbers)],
    ["allocateArray", () => assert.equal(allocateArray(2 ** 20)[5], 0)],
    ["dequantize", async () => equal(await a.dequantize(), numbers)],
    ["dequantize with progress", async () => equal(await a.dequantize({ onProgress() {} }), numbers)],
    [
      "dequantize into an array",
      async () => {
        equal(await a.dequantize({ out: new Float32Array(ELEMENTS) }), numbers);
      },
    ],
    [
      "dequantize copied blocks into a large array",
      async () => {
        large.fill(-1);
        const out = await dequantize("Q8_0", largeBlocks, { out: large });
        assert.equal(out[large.length - 1], (large.length - 1) % 100);
      },
    ],
    [
      "many jobs",
      async () => {
        const outcomes = await Promise.allSettled(
          Array.from({ length: 8 }, () => dequantize("Q8_0", blocks, { out: new Float32Array(ELEMENTS) })),
        );
        for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
        for (const outcome of outcomes) equal((outcome as PromiseFulfilledResult<Float32Array>).value, numbers);
      },
    ],
    [
      "aborted jobs",
      async () => {
        const controller = new AbortController();
        const running = Promise.allSettled([
          a.dequantize({ signal: controller.signal }),
          dequantize("Q8_0", blocks, { signal: controller.signal, out: new Float32Array(ELEMENTS) }),
        ]);
        controller.abort();
        for (const { reason } of (await running) as PromiseRejectedResult[]) {
          if (reason instanceof GgufError) throw reason;
          assert.equal(reason?.name, "AbortError");
        }
      },
    ],
    [
      "blocks that go away",
      async () => {
        const copied = largeBlocks.slice();
        const running = dequantize("Q8_0", copied, { out: large });
        running.catch(() => {});
        structuredClone(copied.buffer, { transfer: [copied.buffer] });
        try {
          await running;
        } catch (error) {
          if ((error as GgufError).code !== "ERR_GGUF_RANGE") throw error;
        }
      },
    ],
    ["rows", async () => rows(await a.rows(chosen))],
    ["matmul", async () => products(await a.matmul(x))],
    ["stats", async () => assert.equal((await a.stats({ bins: 5 })).max, 119)],
    ["compare", async () => assert.equal((await a.compare(b)).count, ELEMENTS)],
    ["compare with itself", async () => assert.equal((await a.compare(a)).sameBytes, true)],
    ["a range of memory", () => equal(dequantizeSync("Q8_0", blocks), numbers)],
    ["releaseMemory", () => releaseMemory()],
  ]; // prettier-ignore
}

/** Plays a scene in which calls of these kinds fail; whether any did. */
async function playFailing(
  [name, play]: Scene,
  ...failing: [kinds: number, after: number, times: number, where: number]
) {
  system.inject(...failing);
  let failure: unknown;
  try {
    await play();
  } catch (error) {
    failure = error;
  }
  const injected = system.inject(0, 0, 0, 0);
  if (failure !== undefined) {
    const { code } = failure as GgufError;
    const isMemory = failure instanceof GgufError && code === "ERR_GGUF_OUT_OF_MEMORY";
    const isQueue = (failing[0] & Queue) !== 0 && !(failure instanceof assert.AssertionError);
    if (!isMemory && !isQueue) throw new Error(`${name}, ${failing}: ${failure}`, { cause: failure });
    assert.notEqual(injected, 0, `${name} failed, though nothing was made to fail`);
  }
  return injected > 0;
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

async function everyStep(kinds: number, where: number): Promise<void> {
  const path = join(process.argv[3] as string, "model.gguf");
  writeFileSync(path, content);
  for (const access of ["mmap", "read"] as const) {
    const file = openSync(path, { access });
    const scenes = scenesOf(file, path, access);
    for (const [, play] of scenes) await play();
    for (const scene of scenes) {
      for (const times of [1, Always]) {
        let steps = 0;
        while (await playFailing(scene, kinds, steps, times, where)) steps++;
        await scene[1]();
        if (process.env.GGUF_NATIVE_TEST_VERBOSE) console.error(access, scene[0], times, steps);
      }
    }
    file.close();
  }
}

/** What the addon holds once all that JavaScript has dropped is collected. */
async function held(): Promise<number> {
  releaseMemory();
  for (let i = 0; i < 4; i++) {
    globalThis.gc?.();
    await turn();
  }
  return system.liveBytes();
}

const parts: Record<string, () => Promise<void>> = {
  memory: () => everyStep(Memory, OnAllThreads),
  "memory and pages": () => everyStep(Memory | Pages, OnAllThreads),
  "memory of other threads": () => everyStep(Memory | Pages | Threads, OnOtherThreads),

  async queue() {
    await everyStep(Queue, OnAllThreads);
    assert.equal(system.liveWork(), 0, "work that could not be queued was not deleted");
  },

  async leaks() {
    const growth: number[] = [];
    let before = await held();
    for (let i = 0; i < 5; i++) {
      await everyStep(Memory, OnAllThreads);
      const now = await held();
      growth.push(now - before);
      before = now;
    }
    // What leaks does so each time. A thread keeps its scratch memory from the first time on that it gets work.
    assert.ok(Math.min(...growth) < 2 ** 12, `${growth.join(", ")} bytes were not freed`);
  },

  /** Rows of 8 MiB are read into memory for each thread, which is too much to keep for the next call. */
  async "scratch that is large"() {
    const columns = 2 ** 21;
    const path = join(process.argv[3] as string, "rows.gguf");
    const bytes = new Uint8Array(4 * columns * 3);
    writeFileSync(path, writeGguf({ tensors: [{ name: "w", type: 0, shape: [columns, 3], bytes }] }));
    const file = openSync(path, { access: "read" });
    const tensor = file.tensor("w");
    const x = new Float32Array(columns);
    const before = await held();
    const checkHeld = async (what: string) => {
      const more = (await held()) - before;
      assert.ok(more < 2 ** 22, `${more} bytes are kept after ${what}`);
    };
    tensor.matmulSync(x, { threads: 1 });
    await checkHeld("a call");
    await tensor.matmul(x);
    await checkHeld("a job");
    file.close();
  },

  /** Workers load the addon with no memory from some step on, and end in the middle of work without any. */
  async workers() {
    const path = join(process.argv[3] as string, "model.gguf");
    writeFileSync(path, content);
    const begin = async (program: string) => {
      const worker = new Worker(`const { parentPort, workerData } = require("node:worker_threads");${program}`, {
        eval: true,
        workerData: path,
      });
      const message = await new Promise((resolve, reject) => {
        worker.once("message", resolve).once("error", reject);
      });
      return { worker, message };
    };
    let steps = 0;
    for (let injected = 1; injected > 0; steps++) {
      system.inject(Memory, steps, Always, OnAllThreads);
      const { worker, message } = await begin(`
        try {
          require("gguf-native");
          parentPort.postMessage("loaded");
        } catch (error) {
          parentPort.postMessage(error.message);
        }`);
      injected = system.inject(0, 0, 0, 0);
      assert.match(message as string, injected > 0 ? /out of memory/ : /^loaded$/);
      await worker.terminate();
    }
    assert.ok(steps > 1, "loading the addon takes memory");
    for (let after = 0; after < 20; after++) {
      const { worker } = await begin(`
        const { openSync, allocateArray } = require("gguf-native");
        const tensor = openSync(workerData).tensor("a");
        globalThis.kept = [tensor.bytes(), allocateArray(2 ** 20), allocateArray(2 ** 20)];
        const again = () => tensor.dequantize({ out: new Float32Array(tensor.elementCount) }).then(again, again);
        for (let i = 0; i < 20; i++) again();
        setTimeout(() => parentPort.postMessage("working"), 5);`);
      system.inject(Memory | Pages | Threads, after, Always, OnAllThreads);
      await worker.terminate();
      system.inject(0, 0, 0, 0);
    }
  },
};

const part = parts[process.argv[2] as string];
assert.ok(part !== undefined);
void part().then(() => console.log("done"));
