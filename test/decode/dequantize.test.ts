/** Ranges, outputs and number types of synchronous dequantization: native and reference behave the same. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type DequantizeOptions, dequantizeSync, type GgmlType, ggmlTypes, parse } from "gguf-native";
import * as reference from "gguf-native/reference";
import { gaussianBlocks, randomBlocks } from "../support/blocks";
import { firstDifference } from "../support/compare";
import { writeGguf } from "../support/gguf-writer";
import { ALL_TYPES } from "../support/golden";
import { Random } from "../support/random";

const random = new Random(42);
const BLOCKS = 12;

/** The same blocks through the free function, the reference, and a tensor of a file in memory. */
function ways(type: GgmlType, blocks: Uint8Array) {
  const { id, blockSize, typeSize } = ggmlTypes[type];
  const shape = [(blocks.length / typeSize) * blockSize];
  const tensor = parse(writeGguf({ tensors: [{ name: "t", type: id, shape, bytes: blocks }] })).tensor("t");
  return {
    native: (options?: DequantizeOptions) => dequantizeSync(type, blocks, options),
    reference: (options?: DequantizeOptions) => reference.dequantizeSync(type, blocks, options),
    tensor: (options?: DequantizeOptions) => tensor.dequantizeSync(options),
  };
}

describe("ranges", () => {
  for (const type of ALL_TYPES) {
    test(`${type}: every start and end of ${BLOCKS} blocks`, () => {
      const { blockSize } = ggmlTypes[type];
      const blocks = randomBlocks(type, BLOCKS, random);
      const whole = reference.dequantizeSync(type, blocks);
      const { native, tensor } = ways(type, blocks);
      for (const dtype of ["f16", "bf16"] as const) {
        const expected = reference.dequantizeSync(type, blocks, { dtype });
        assert.equal(firstDifference(native({ dtype }), expected, dtype), -1, dtype);
      }
      for (let first = 0; first <= BLOCKS; first++) {
        for (let last = first; last <= BLOCKS; last++) {
          const options = { start: first * blockSize, end: last * blockSize };
          const expected = whole.subarray(options.start, options.end);
          for (const run of [native, tensor]) {
            assert.equal(firstDifference(run(options) as Float32Array, expected), -1, JSON.stringify(options));
          }
        }
      }
    });
  }
});

const blocks = gaussianBlocks("Q4_K", 4, random);
const whole = reference.dequantizeSync("Q4_K", blocks);

for (const [name, run] of Object.entries(ways("Q4_K", blocks))) {
  describe(`outputs and errors: ${name}`, () => {
    test("out is filled and returned", () => {
      const out = new Float32Array(1024).fill(Number.NaN);
      assert.equal(run({ out }), out);
      assert.deepEqual(out, whole);
      const bits = new Uint16Array(256);
      assert.equal(run({ dtype: "bf16", start: 512, end: 768, out: bits }), bits);
      assert.ok(bits.some((value) => value !== 0));
    });
    test("out may be part of a larger array, unaligned to anything but its elements", () => {
      const larger = new Float32Array(1030).fill(7);
      run({ out: larger.subarray(3, 1027) });
      assert.deepEqual(larger.subarray(3, 1027), whole);
      assert.deepEqual([...larger.subarray(0, 3), ...larger.subarray(1027)], [7, 7, 7, 7, 7, 7]);
    });
    test("out may be shared memory", () => {
      const out = new Float32Array(new SharedArrayBuffer(4096));
      run({ out });
      assert.equal(firstDifference(out, whole), -1);
    });
    test("an empty range is an empty array", () => {
      assert.equal(run({ start: 256, end: 256 }).length, 0);
      assert.equal(run({ start: 1024 }).length, 0);
      assert.equal(run({ end: 0 }).length, 0);
    });
    test("undefined options are the same as absent ones", () => {
      const none = { dtype: undefined, start: undefined, end: undefined, out: undefined };
      assert.deepEqual(run(none), whole);
      assert.deepEqual(run(undefined), whole);
    });
    test("ERR_GGUF_RANGE", () => {
      const refused = (options: DequantizeOptions, message: RegExp) =>
        assert.throws(() => run(options), { name: "GgufError", code: "ERR_GGUF_RANGE", message });
      for (const bad of [-1, -256, 1.5, 1280, Number.NaN, Infinity, -Infinity, 2 ** 53, 2 ** 64]) {
        refused({ start: bad }, /options\.start/);
        refused({ end: bad }, /options\.end/);
      }
      for (const bad of [1, 32, 255, 1023]) {
        refused({ start: bad }, /multiple of the block size 256/);
        refused({ end: bad }, /multiple of the block size 256/);
      }
      refused({ start: 512, end: 256 }, /options\.start \(512\) is past options\.end \(256\)/);
      for (const length of [0, 1023, 1025]) refused({ out: new Float32Array(length) }, /options\.out/);
      refused({ dtype: "f16", out: new Uint16Array(5) }, /options\.out/);
      refused({ end: 256, out: new Float32Array(1024) }, /options\.out has 1024 elements, but the result has 256/);
    });
    test("out of another type", () => {
      const wrong = { name: "TypeError", code: "ERR_INVALID_ARG_TYPE", message: /options\.out/ };
      assert.throws(() => run({ out: new Uint16Array(1024) }), wrong);
      assert.throws(() => run({ dtype: "f16", out: new Float32Array(1024) }), wrong);
      for (const out of [
        [],
        new Float64Array(1024),
        new ArrayBuffer(4096),
        new DataView(new ArrayBuffer(4096)),
        null,
        5,
      ]) {
        assert.throws(() => run({ out: out as never }), wrong);
      }
    });
    test("a detached out", () => {
      const out = new Float32Array(1024);
      structuredClone(out.buffer, { transfer: [out.buffer] });
      assert.throws(() => run({ out }), { code: "ERR_GGUF_RANGE" });
    });
  });
}

describe("free functions", () => {
  for (const [name, run] of Object.entries({ native: dequantizeSync, reference: reference.dequantizeSync })) {
    test(`${name}: bytes that are not whole blocks`, () => {
      const refused = {
        name: "GgufError",
        code: "ERR_GGUF_RANGE",
        message: /143 bytes are not a whole number of Q4_K/,
      };
      assert.throws(() => run("Q4_K", new Uint8Array(143)), refused);
    });
    test(`${name}: unknown types`, () => {
      for (const type of ["Q9_9", "q4_k", "", "__proto__", "unknown(4)"]) {
        assert.throws(() => run(type as GgmlType, blocks), { code: "ERR_GGUF_UNSUPPORTED_TYPE" });
      }
    });
    test(`${name}: no blocks`, () => assert.equal(run("Q6_K", new Uint8Array(0)).length, 0));
    test(`${name}: the blocks are not changed`, () => {
      const before = blocks.slice();
      run("Q4_K", blocks, { start: 256 });
      assert.deepEqual(blocks, before);
    });
  }
  test("blocks in shared memory", () => {
    const shared = new Uint8Array(new SharedArrayBuffer(blocks.length));
    shared.set(blocks);
    assert.deepEqual(dequantizeSync("Q4_K", shared), whole);
  });
});
