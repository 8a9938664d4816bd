/** Asynchronous dequantization: results, exceptions, blocks that go away. async-options has progress and aborting. */
import assert from "node:assert/strict";
import { createHook } from "node:async_hooks";
import { before, describe, test } from "node:test";
import { type AsyncOptions, type DequantizeOptions, dequantize, type GgufFile, parse } from "gguf-native";
import * as reference from "gguf-native/reference";
import { manyBlocks } from "../support/blocks";
import { lineOf } from "../support/child";
import { firstDifference } from "../support/compare";
import { writeGguf } from "../support/gguf-writer";
import { projectRoot } from "../support/paths";

// Enough for several pieces on several threads.
const ELEMENTS = 2 ** 23;
let blocks: Uint8Array;
let whole: Float32Array;
let file: GgufFile;

before(() => {
  blocks = manyBlocks("Q4_0", ELEMENTS / 32);
  whole = reference.dequantizeSync("Q4_0", blocks);
  file = parse(writeGguf({ tensors: [{ name: "t", type: 2, shape: [ELEMENTS], bytes: blocks }] }));
});

type Run = (options?: DequantizeOptions & AsyncOptions) => Promise<Float32Array | Uint16Array>;
const ways: Record<string, Run> = {
  "free function": (options) => dequantize("Q4_0", blocks, options),
  tensor: (options) => file.tensor("t").dequantize(options),
};

for (const [name, run] of Object.entries(ways)) {
  describe(name, () => {
    test("gives what the reference gives", async () => {
      assert.equal(firstDifference((await run()) as Float32Array, whole), -1);
    });
    test("f16", async () => {
      const expected = reference.dequantizeSync("Q4_0", blocks, { dtype: "f16", end: 65536 });
      assert.deepEqual(await run({ dtype: "f16", end: 65536 }), expected);
    });
    test("out: ordinary memory, part of an array, shared memory", async () => {
      const out = new Float32Array(ELEMENTS + 2).subarray(1, ELEMENTS + 1);
      assert.equal(await run({ out }), out);
      assert.equal(firstDifference(out, whole), -1);
      const shared = new Float32Array(new SharedArrayBuffer(ELEMENTS * 4));
      assert.equal(await run({ out: shared }), shared);
      assert.equal(firstDifference(shared, whole), -1);
    });
    test("many at once", async () => {
      const results = await Promise.all(
        Array.from({ length: 20 }, (_, i) => run({ start: i * 32, end: i * 32 + 2 ** 20 })),
      );
      results.forEach((result, i) => {
        const expected = whole.subarray(i * 32, i * 32 + 2 ** 20);
        assert.equal(firstDifference(result as Float32Array, expected), -1);
      });
    });
    test("an exception in onProgress stops the work", async () => {
      const out = new Float32Array(new SharedArrayBuffer(ELEMENTS * 4)).fill(Number.NaN);
      let doneThen = 0;
      const onProgress = (done: number) => {
        doneThen = done;
        // What is in flight then goes on for a few milliseconds.
        throw new RangeError("mine, not the addon's");
      };
      await assert.rejects(run({ out, onProgress }), {
        name: "RangeError",
        message: "mine, not the addon's",
      });
      if (doneThen < ELEMENTS / 2) assert.ok(out.some(Number.isNaN), `${doneThen} were done`);
    });
  });
}

describe("blocks that JavaScript can take away", () => {
  // Copied in several parts, between turns of the event loop.
  const bytes = manyBlocks("Q8_0", 2 ** 19);
  const parsed = (data: Uint8Array) =>
    parse(writeGguf({ tensors: [{ name: "t", type: 8, shape: [2 ** 24], bytes: data }] }));
  const refused = { code: "ERR_GGUF_RANGE", message: /detached/ };

  test("are read to the end", async () => {
    const expected = reference.dequantizeSync("Q8_0", bytes);
    assert.equal(firstDifference(await dequantize("Q8_0", bytes), expected), -1);
    const tensor = parsed(bytes).tensor("t");
    assert.equal(firstDifference(await tensor.dequantize(), expected), -1);
    const [first, second] = await Promise.all([tensor.dequantize(), dequantize("Q8_0", bytes)]);
    assert.equal(firstDifference(first, expected), -1);
    assert.equal(firstDifference(second, expected), -1);
    const part = await dequantize("Q8_0", bytes, { start: 64, end: 2 ** 24 - 32 });
    assert.equal(firstDifference(part, expected.subarray(64, 2 ** 24 - 32)), -1);
  });
  test("taken away with too few threads for all jobs: each rejects", async () => {
    const program = `
      const { dequantize } = require("gguf-native");
      const all = Array.from({ length: 4 }, () => new Uint8Array(64 << 20));
      const running = all.map((blocks) => dequantize("F32", blocks));
      for (const { buffer } of all) structuredClone(buffer, { transfer: [buffer] });
      Promise.allSettled(running).then((ends) => console.log(ends.map(({ reason }) => reason.code).join()));`;
    for (const threads of ["1", "2", "4"]) {
      const env = { ...process.env, UV_THREADPOOL_SIZE: threads };
      const line = await lineOf(["-e", program], { cwd: projectRoot, env });
      assert.equal(line, `${Array(4).fill("ERR_GGUF_RANGE").join()}\n`);
    }
  });
  test("shortened during the work: rejects", async () => {
    const buffer = new (ArrayBuffer as unknown as ResizableArrayBuffer)(bytes.length, {
      maxByteLength: bytes.length,
    });
    const copy = new Uint8Array(buffer);
    copy.set(bytes);
    const running = dequantize("Q8_0", copy);
    buffer.resize(5 << 20);
    await assert.rejects(running, refused);
  });
  test("cancelled before all was copied", async () => {
    const controller = new AbortController();
    const running = dequantize("Q8_0", bytes, { signal: controller.signal });
    controller.abort();
    await assert.rejects(running, { name: "AbortError" });
  });
});

interface ResizableArrayBuffer {
  new (length: number, options: { maxByteLength: number }): ArrayBuffer & { resize(length: number): void };
}

test("work that starts while a promise is being made", async () => {
  // Which of the promises of a call is the addon's own is its own affair.
  let inner: Promise<Float32Array> | undefined;
  for (let nth = 1; nth === 1 || inner !== undefined; nth++) {
    let promises = 0;
    inner = undefined;
    const hook = createHook({
      init: (_id, type) => {
        if (type === "PROMISE" && ++promises === nth) inner = dequantize("Q4_0", blocks);
      },
    });
    hook.enable();
    const outer = dequantize("Q4_0", blocks);
    hook.disable();
    assert.equal(firstDifference(await outer, whole), -1);
    assert.equal(firstDifference(await (inner ?? whole), whole), -1);
    assert.ok(inner !== undefined || nth > 1);
  }
});

test("the event loop runs during the work", async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  const all = Promise.all(Array.from({ length: 10 }, () => file.tensor("t").dequantize()));
  await all;
  clearInterval(timer);
  assert.ok(turns > 0);
});
