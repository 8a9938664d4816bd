/** quantizeSync, natively and in the reference: ggml's own blocks to the byte (test/quantize/oracle.test.ts has their hashes), and what is refused. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { dequantizeSync, quantizeSync } from "gguf-native";
import * as reference from "gguf-native/reference";
import { firstDifference } from "../support/compare";
import { assertSameBlocks } from "../support/libggml";
import { Random } from "../support/random";

type QuantizableType = reference.QuantizableType;

const TYPES: readonly QuantizableType[] = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"];
const ways = { native: quantizeSync, reference: reference.quantizeSync };

const LARGEST = 2 ** 128 - 2 ** 104;

/** Blocks that are hard to round, reproducibly. */
function* hardNumbers(blocks: number, seed: number): Generator<Float32Array> {
  const random = new Random(seed);
  const sign = (): number => (random.below(2) === 0 ? 1 : -1);
  const bits = new Uint32Array(1);
  const float = new Float32Array(bits.buffer);
  const kinds: ((scale: number) => number)[] = [
    (scale) => random.gaussian() * scale,
    (scale) => (sign() * random.below(256) * scale) / 2,
    (scale) => sign() * 2 ** (random.below(40) - 20) * scale,
    (scale) => (random.below(4) === 0 ? sign() * 0 : random.unit() * scale),
    () => {
      do bits[0] = random.bits();
      while (!Number.isFinite(float[0]));
      return float[0] as number;
    },
    () => sign() * random.below(1 << 20) * 2 ** -149,
  ];
  for (let i = 0; i < blocks; i++) {
    const kind = kinds[i % kinds.length] as (scale: number) => number;
    const scale = 2 ** (random.below(260) - 130);
    yield Float32Array.from({ length: 32 }, () => Math.max(-LARGEST, Math.min(kind(scale), LARGEST)));
  }
}

const BLOCKS = 4000;
const hard = new Float32Array(BLOCKS * 32);
let filled = 0;
for (const block of hardNumbers(BLOCKS, 17)) hard.set(block, 32 * filled++);

for (const type of TYPES) {
  test(`${type}: the reference makes the same blocks`, () => {
    assertSameBlocks(type, quantizeSync(type, hard), reference.quantizeSync(type, hard), hard, "hard numbers");
  });
}

describe("numbers without blocks", () => {
  test("F32 keeps every bit", () => {
    assert.deepEqual(Buffer.from(quantizeSync("F32", hard)), Buffer.from(hard.buffer));
  });

  for (const [type, dtype] of [
    ["F16", "f16"],
    ["BF16", "bf16"],
  ] as const) {
    test(`${type} rounds as dequantizing to ${dtype} does`, () => {
      const bytes = new Uint8Array(hard.buffer);
      const expected = dequantizeSync("F32", bytes, { dtype });
      const blocks = quantizeSync(type, hard);
      assert.equal(firstDifference(new Uint16Array(blocks.buffer), expected, dtype), -1);
    });
  }

  test("NaN and infinities stay what they are in F16 and BF16, and numbers that do not fit become infinite", () => {
    const odd = Float32Array.of(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 65519, 65520, 3e38);
    const [, ...halves] = dequantizeSync("F16", quantizeSync("F16", odd));
    const infinity = Number.POSITIVE_INFINITY;
    assert.deepEqual(halves, [infinity, -infinity, 65504, infinity, infinity]);
    assert.ok(Number.isNaN(dequantizeSync("F16", quantizeSync("F16", odd))[0]));
    assert.ok(Number.isNaN(dequantizeSync("BF16", quantizeSync("BF16", odd))[0]));
  });
});

for (const [way, quantize] of Object.entries(ways)) {
  describe(`${way}: arguments`, () => {
    const values = new Float32Array(64);

    test("memory of any kind", () => {
      const shared = new Float32Array(new SharedArrayBuffer(4 * 64)).fill(2);
      const out = new Uint8Array(new SharedArrayBuffer(68));
      assert.equal(quantize("Q8_0", shared, { out }), out);
      assert.deepEqual(Buffer.from(out), Buffer.from(quantize("Q8_0", Float32Array.from(shared))));
      assert.equal(quantize("Q4_0", new Float32Array(0)).length, 0);
      const part = hard.subarray(32, 96);
      assert.deepEqual(quantize("Q4_1", part), quantize("Q4_1", part.slice()));
    });

    test("what is refused", () => {
      const call = quantize as (...args: unknown[]) => unknown;
      const type = { name: "TypeError", code: "ERR_INVALID_ARG_TYPE" };
      assert.throws(() => call(7, values), type);
      assert.throws(() => call("Q8_0", [1, 2]), type);
      assert.throws(() => call("Q8_0", new Float64Array(32)), type);
      assert.throws(() => call("Q8_0", values, 5), type);
      assert.throws(() => call("Q8_0", values, { out: new Float32Array(17) }), type);
      assert.throws(() => call("Q8_0", values, { outt: new Uint8Array(68) }), {
        name: "TypeError",
        message: /^There is no option 'outt'. Did you mean 'out'\? The options are: /,
      });
      assert.throws(() => call("Q8_0", values, { out: new Uint8Array(67) }), { code: "ERR_GGUF_RANGE" });
      assert.throws(() => call("Q8_0", new Float32Array(33)), { code: "ERR_GGUF_RANGE" });
      assert.throws(() => call("I32", new Float32Array(256)), {
        code: "ERR_GGUF_UNSUPPORTED_TYPE",
        message: /type I32, only of F32, F16, .*\bQ8_0\b/,
      });
      assert.throws(() => call("q8_0", values), {
        code: "ERR_GGUF_UNSUPPORTED_TYPE",
        message: /did you mean Q8_0\?$/,
      });
    });
  });
}
