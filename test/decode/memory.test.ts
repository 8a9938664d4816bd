/** Where results lie: allocateArray(), large results in a loop, releaseMemory(). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { allocate, allocateArray, dequantizeSync, releaseMemory, trim } from "gguf-native";
import { gaussianBlocks } from "../support/blocks";
import { lineOf } from "../support/child";
import { emulated } from "../support/emulated";
import { needsAddon } from "../support/needs-addon";
import { Random } from "../support/random";
import { sanitized } from "../support/sanitized";

const megabyte = 2 ** 20;

describe("allocateArray", () => {
  test("gives zeroed arrays of every type and size", () => {
    for (const length of [0, 1, 1000, megabyte, 3 * megabyte + 5]) {
      const f32 = allocateArray(length);
      assert.ok(f32 instanceof Float32Array);
      assert.equal(f32.length, length);
      assert.ok(f32.every((x) => x === 0));
      f32.fill(1); // the next one of this size may be the same memory
      for (const dtype of ["f16", "bf16"] as const) {
        const bits = allocateArray(length, dtype);
        assert.ok(bits instanceof Uint16Array);
        assert.equal(bits.length, length);
        assert.ok(bits.every((x) => x === 0));
      }
    }
  });

  test("rejects invalid arguments", () => {
    for (const length of ["1", null, undefined, {}, 1n]) {
      assert.throws(() => allocateArray(length as number), { code: "ERR_INVALID_ARG_TYPE" });
    }
    for (const length of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 52, 2 ** 60]) {
      assert.throws(() => allocateArray(length), { code: "ERR_GGUF_RANGE" });
    }
    assert.throws(() => allocateArray(1, "f64" as "f32"), { code: "ERR_INVALID_ARG_VALUE" });
  });
});

// Under an emulator these take more memory than machines have, for reasons of the emulator's.
const skip =
  (emulated && "an emulated processor takes gigabytes for this") || (sanitized && "sanitizers take gigabytes for this");

describe("large results", { skip }, () => {
  const blocks = gaussianBlocks("Q8_0", megabyte / 8, new Random(5)); // 16 MiB of numbers
  const expected = dequantizeSync("Q8_0", blocks);

  test("that are kept keep their values while others are made", () => {
    const kept = Array.from({ length: 20 }, () => dequantizeSync("Q8_0", blocks));
    const others = gaussianBlocks("Q4_0", megabyte / 8, new Random(6));
    for (let i = 0; i < 20; ++i) {
      dequantizeSync("Q4_0", others);
      globalThis.gc?.();
    }
    for (const array of kept) assert.ok(Buffer.from(array.buffer).equals(Buffer.from(expected.buffer)));
  });

  test("whose view is dropped and whose buffer is kept stay as they are", () => {
    const buffers = Array.from({ length: 4 }, () => dequantizeSync("Q8_0", blocks).buffer);
    const parts = Array.from({ length: 4 }, () => dequantizeSync("Q8_0", blocks).subarray(7, 1007));
    const others = gaussianBlocks("Q4_0", megabyte / 8, new Random(7));
    for (let i = 0; i < 10; ++i) {
      globalThis.gc?.();
      dequantizeSync("Q4_0", others);
    }
    for (const buffer of buffers) assert.ok(Buffer.from(buffer).equals(Buffer.from(expected.buffer)));
    for (const part of parts) assert.deepEqual(part, expected.subarray(7, 1007));
  });

  test("into ordinary arrays, all at once, take little memory besides them", async () => {
    const program = `
      const { dequantize } = require("gguf-native");
      const blocks = new Uint8Array(new SharedArrayBuffer(34 * 2 ** 17)).fill(60); // 16 MiB of numbers
      const before = process.memoryUsage().rss;
      Promise.all(
        Array.from({ length: 40 }, () => dequantize("Q8_0", blocks, { out: new Float32Array(2 ** 22) })),
      ).then((results) => {
        const expected = Buffer.from(results[0].buffer);
        if (!results.every(({ buffer }) => Buffer.from(buffer).equals(expected))) throw new Error("results differ");
        console.log(process.resourceUsage().maxRSS * 1024 - before);
      });`;
    const text = await lineOf(["-e", program]);
    const most = Number(text) / megabyte;
    // Twice the 640 MiB of the results, if each were made in memory of its own and copied.
    assert.ok(most < 1000, `${most} MiB for 640 MiB of results`);
  });

  test("in a loop do not pile up", async () => {
    const program = `
      const { dequantizeSync } = require("gguf-native");
      const blocks = new Uint8Array(34 * 2 ** 19); // 64 MiB of numbers
      for (let i = 0; i < 60; ++i) dequantizeSync("Q8_0", blocks);
      console.log(process.resourceUsage().maxRSS);`;
    const kilobytes = Number(await lineOf(["-e", program]));
    assert.ok(kilobytes < 1400 * 1024, `at most ${kilobytes / 1024} MiB`);
  });
});

test("releaseMemory gives memory of allocateArray() back that was kept", {
  skip: skip || needsAddon.skip,
}, async () => {
  const program = `
    const { allocateArray, releaseMemory } = require("gguf-native");
    for (let i = 0; i < 8; ++i) allocateArray(2 ** 24).fill(1);
    gc();
    setTimeout(() => {
      const before = process.memoryUsage().rss;
      releaseMemory();
      console.log(JSON.stringify({ before, after: process.memoryUsage().rss }));
    }, 50);`;
  const env = { ...process.env, GGUF_NATIVE_POOL_MB: "512" };
  const text = await lineOf(["--expose-gc", "-e", program], { env });
  const { before, after } = JSON.parse(text) as { before: number; after: number };
  assert.ok(before - after > 400 * megabyte, `${before / megabyte} MiB, then ${after / megabyte} MiB`);
});

test("releaseMemory may be called at any time", () => {
  releaseMemory();
  releaseMemory();
});

test("the old names are there until 1.0", () => {
  assert.deepEqual([allocate, trim], [allocateArray, releaseMemory]);
});
