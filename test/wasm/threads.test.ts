/** Products in WebAssembly by several threads over one memory: the addon's bits, and the calling thread alone where there are none. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { type GgmlType, ggmlTypes, matmulSync } from "gguf-native";
import type { NativeCache } from "#dist/backend/native-surface";
import { threadsOfNode } from "#dist/backend/wasm/in-node";
import { multiply } from "#dist/backend/wasm/kernels";
import { network } from "#dist/backend/wasm/network";
import { products } from "#dist/backend/wasm/products";
import * as threads from "#dist/backend/wasm/threads";
import { inThreads, mostThreads, setThreading, type Threading } from "#dist/backend/wasm/threads";
import { gaussianBlocks } from "../support/blocks";
import { childProgram, runNode } from "../support/child";
import { firstDifference } from "../support/compare";
import { ALL_TYPES } from "../support/golden";
import { modulePath } from "../support/paths";
import { Random } from "../support/random";
import { outcomeOf } from "../support/raw-addon";
import { needsModule } from "../support/wasm";

const ofNode = threadsOfNode(modulePath);
/** Threads whether or not there are processors for them. */
const three: Threading = { ...ofNode, processors: () => 3 };

interface Product {
  readonly type: GgmlType;
  readonly columns: number;
  readonly blocks: Uint8Array;
  readonly x: Float32Array;
}

function newProduct(type: GgmlType, columns: number, rows: number, n: number): Product {
  const random = new Random(columns + n);
  const blocks = gaussianBlocks(type, (rows * columns) / ggmlTypes[type].blockSize, random);
  return { type, columns, blocks, x: Float32Array.from({ length: n * columns }, () => random.gaussian()) };
}

const SOME = newProduct("Q4_K", 512, 1000, 5);

function expectBits({ type, columns, blocks, x }: Product, threads?: number): void {
  for (const activations of ["f32", "int8"] as const) {
    const expected = matmulSync(type, blocks, columns, x, { activations });
    const y = new Float32Array(expected.length);
    multiply(ggmlTypes[type].id, blocks, false, columns, x, y, activations === "int8", undefined, threads);
    assert.equal(firstDifference(y, expected), -1, `${type}, ${columns} columns, ${activations}`);
  }
}

/** As in pages. Threads that start do not keep a process of Node.js alive. */
async function useThreads(most: number): Promise<number> {
  const waiting = setInterval(() => undefined, 1000);
  try {
    return await threads.useThreads(most);
  } finally {
    clearInterval(waiting);
  }
}

/** How many threads work on what is large. */
const threadsAtWork = (most?: number): number => inThreads(2 ** 30, most, (_, { threads }) => threads);

describe("threads of the WebAssembly module", needsModule, () => {
  beforeEach(() => setThreading(three));
  afterEach(async () => {
    setThreading(undefined);
    await useThreads(Number.POSITIVE_INFINITY);
  });

  for (const type of ALL_TYPES) {
    test(`${type}: the addon's bits`, async () => {
      assert.equal(await useThreads(3), 3);
      const { blockSize } = ggmlTypes[type];
      for (const [columns, n] of [
        [4096 + blockSize, 1],
        [blockSize < 256 ? 544 : 512, 9],
      ] as const) {
        expectBits(newProduct(type, Math.ceil(columns / blockSize) * blockSize, 200, n));
      }
    });
  }

  test("what lies between products: the reference's bits, in a process that ends", () => {
    const env = { ...process.env, GGUF_NATIVE_WASM: "1" };
    const result = JSON.parse(runNode([childProgram("network")], { env, limit: 60_000 }).stdout);
    assert.deepEqual(result, { isa: "wasm", threads: 3, cases: result.cases, failures: [] });
  });

  test("caches stay when threads come and go", async () => {
    const { x } = newProduct("F32", 1024, 1, 200);
    const caches = [undefined, three, three].map((threading) => {
      setThreading(threading);
      const cache = network.newCache(4, 64, 32, ggmlTypes.F16.id);
      network.cacheAppend(cache, x, x.subarray(x.length / 2));
      return cache;
    });
    await useThreads(3);
    const attend = (cache: NativeCache): Float32Array => {
      const out = new Float32Array(x.length / 2);
      network.attention(x, cache, 16, 0.2, true, 300, 0, undefined, out, undefined);
      return out;
    };
    const shared = caches.map(attend);
    setThreading(undefined);
    for (const found of [...shared, ...caches.map(attend)]) assert.equal(firstDifference(found, shared[0]!), -1);
  });

  test("memory grows while they work", async () => {
    await useThreads(3);
    const bytes = () => inThreads(0, 1, ({ byteLength }) => byteLength);
    expectBits(SOME);
    const before = bytes();
    expectBits(newProduct("Q6_K", 8192, 300, 256));
    assert.ok(bytes() > before + 2 ** 23, `${before} bytes, then ${bytes()}`);
    expectBits(SOME);
  });

  test("jobs and calls in turns", async () => {
    await useThreads(3);
    const { type, columns, blocks, x } = newProduct("Q5_K", 2048, 2000, 3);
    const { id } = ggmlTypes[type];
    const jobs = [true, false].map(
      (int8) =>
        products.matmulBlocksAsync(id, blocks, columns, x, undefined, int8, undefined, undefined, false).promise,
    );
    expectBits(SOME);
    const [int8, f32] = await Promise.all(jobs);
    assert.equal(firstDifference(int8!, matmulSync(type, blocks, columns, x, { activations: "int8" })), -1);
    assert.equal(firstDifference(f32!, matmulSync(type, blocks, columns, x)), -1);
  });

  test("they start by themselves, once work was large", async () => {
    let count = 0;
    const start: Threading["start"] = (data) => {
      count++;
      return three.start(data);
    };
    setThreading({ ...three, start });
    const { type, columns, blocks, x } = newProduct("Q8_0", 1024, 1000, 16);
    const out = new Float32Array(16_000);
    const started: number[] = [];
    for (let i = 0; i < 6; i++) {
      multiply(ggmlTypes[type].id, blocks, false, columns, x, out, true);
      started.push(count);
    }
    assert.deepEqual(started, [0, 0, 0, 0, 2, 2]);
    assert.equal(firstDifference(out, matmulSync(type, blocks, columns, x, { activations: "int8" })), -1);
  });

  test("a limit holds for all calls, or for one", async () => {
    assert.equal(await useThreads(2), 2);
    assert.deepEqual([mostThreads(), threadsAtWork(), threadsAtWork(1)], [2, 2, 1]);
    expectBits(SOME, 1);
    assert.equal(await useThreads(3), 3);
    assert.deepEqual([threadsAtWork(), threadsAtWork(2)], [3, 2]);
    assert.deepEqual([await useThreads(1), threadsAtWork()], [1, 1]);
    expectBits(SOME);
  });

  test("where they cannot start, or shall not, the calling thread does all", async () => {
    const forbidden = () => assert.fail("forbidden");
    // The place of the list is no memory.
    const broken: Threading["start"] = (data) => three.start({ ...data, list: 2 ** 40 });
    for (const start of [forbidden, broken]) {
      setThreading({ ...three, start });
      assert.equal(await useThreads(3), 1);
      expectBits(SOME);
    }
    let calls = 0;
    setThreading({ ...three, start: () => assert.fail(`started ${++calls}`) });
    assert.equal(await useThreads(1), 1);
    for (let i = 0; i < 6; i++) expectBits(newProduct("Q8_0", 1024, 1000, 16));
    assert.equal(calls, 0);
  });

  test("a trap in one is an error, after which others start", async () => {
    let isBad = true;
    // Every call overflows its stack.
    const start: Threading["start"] = (data) => three.start(isBad ? { ...data, stacks: 0, stackBytes: 0 } : data);
    setThreading({ ...three, start });
    await useThreads(3);
    const { type, columns, blocks, x } = newProduct("Q4_K", 1024, 2000, 8);
    const call = () => multiply(ggmlTypes[type].id, blocks, false, columns, x, new Float32Array(16_000), true);
    let outcome = outcomeOf(call);
    for (let i = 0; i < 1000 && !("error" in outcome); i++) outcome = outcomeOf(call);
    assert.deepEqual(outcome, { error: { code: "ERR_GGUF_OUT_OF_MEMORY", detail: "out of memory" } });
    isBad = false;
    expectBits(SOME);
    assert.equal(await useThreads(3), 3);
    expectBits(SOME);
  });
});
