/** The TypeScript reference against ggml's own results, and its rounding against exact arithmetic. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { dequantizeSync, ggmlTypes } from "gguf-native/reference";
import { firstDifference } from "../support/compare";
import { ALL_TYPES, hashOfNumbers, readGolden, WITHOUT_GOLDEN } from "../support/golden";

const golden = readGolden();

describe("reference: golden", () => {
  for (const { name, type, blocks, hash } of golden) {
    if (hash === undefined) continue;
    test(name, () => {
      const expected = dequantizeSync(type, blocks);
      assert.equal(hashOfNumbers(expected), hash);
      const shifted = new Uint8Array(blocks.length + 3).subarray(3);
      shifted.set(blocks);
      assert.equal(firstDifference(dequantizeSync(type, shifted), expected), -1, "unaligned");
    });
  }

  test("every type has a golden result, except those that can have none", () => {
    for (const type of ALL_TYPES) {
      assert.equal(golden.filter((c) => c.type === type && c.hash).length, WITHOUT_GOLDEN.includes(type) ? 0 : 2, type);
    }
  });

  test("F32 is copied bit for bit", () => {
    const { blocks } = golden.find(({ name }) => name === "F32.random_bits")!;
    const result = dequantizeSync("F32", blocks);
    assert.deepEqual(Buffer.from(result.buffer), Buffer.from(blocks));
  });
});

describe("reference: ranges and outputs", () => {
  const { blocks } = golden.find(({ name }) => name === "Q4_K.gaussian")!;
  const expected = dequantizeSync("Q4_K", blocks);

  test("start and end take part of the result", () => {
    const part = dequantizeSync("Q4_K", blocks, { start: 256, end: 768 });
    assert.deepEqual(part, expected.subarray(256, 768));
  });

  test("out is filled and returned", () => {
    const out = new Float32Array(new SharedArrayBuffer(2048 * 4));
    assert.equal(dequantizeSync("Q4_K", blocks, { out }), out);
    assert.equal(firstDifference(out, expected), -1);
  });

  test("16-bit outputs of more than one chunk", () => {
    const many = new Uint8Array(blocks.length * 5);
    for (let i = 0; i < 5; i++) many.set(blocks, i * blocks.length);
    const result = dequantizeSync("Q4_K", many, { dtype: "bf16" });
    const once = dequantizeSync("Q4_K", blocks, { dtype: "bf16" });
    assert.equal(result.length, 5 * 2048);
    for (let i = 0; i < 5; i++) assert.deepEqual(result.subarray(i * 2048, (i + 1) * 2048), once);
  });
});

describe("reference: rounding to 16 bits", () => {
  /** The value of binary16 or bfloat16 bits, by definition. */
  const value16 = (bits: number, exponentBits: number, fractionBits: number) => {
    const bias = 2 ** (exponentBits - 1) - 1;
    const exponent = (bits >> fractionBits) & (2 ** exponentBits - 1);
    const fraction = bits & (2 ** fractionBits - 1);
    if (exponent === 0) return fraction * 2 ** (1 - bias - fractionBits);
    return (2 ** fractionBits + fraction) * 2 ** (exponent - bias - fractionBits);
  };

  for (const [dtype, exponentBits, fractionBits] of [
    ["f16", 5, 10],
    ["bf16", 8, 7],
  ] as const) {
    const infinity = (2 ** exponentBits - 1) << fractionBits;
    const round = (values: Float32Array) =>
      dequantizeSync("F32", new Uint8Array(values.buffer, values.byteOffset, values.byteLength), { dtype });

    test(`${dtype}: every value is itself, midpoints go to even, neighbours of midpoints to the nearer`, () => {
      const inputs: number[] = [];
      const results: number[] = [];
      const next = new Float32Array(1);
      const nextBits = new Uint32Array(next.buffer);
      for (let bits = 0; bits < infinity; bits++) {
        const value = value16(bits, exponentBits, fractionBits);
        const above = value16(bits + 1, exponentBits, fractionBits);
        const middle = (value + above) / 2;
        inputs.push(value);
        results.push(bits);
        next[0] = middle;
        if (next[0] !== middle) continue; // below the smallest binary32
        inputs.push(middle);
        results.push(bits + (bits & 1));
        nextBits[0]!--;
        inputs.push(next[0]);
        results.push(bits);
        nextBits[0]! += 2;
        inputs.push(next[0]);
        results.push(bits + 1);
      }
      const positive = Float32Array.from(inputs);
      assert.deepEqual(round(positive), Uint16Array.from(results));
      assert.deepEqual(
        round(positive.map((x) => -x)),
        Uint16Array.from(results, (bits) => bits | 0x8000),
      );
    });

    test(`${dtype}: infinities, overflow, NaN`, () => {
      const [a, b, c, d, e] = round(Float32Array.of(Infinity, -Infinity, 3.4e38, NaN, 1e-45));
      assert.deepEqual([a, b, c, e], [infinity, infinity | 0x8000, infinity, 0]);
      assert.ok((d! & 0x7fff) > infinity);
      const payload = new Uint8Array(Uint32Array.of(0x7f800001, 0xff800001).buffer);
      for (const bits of dequantizeSync("F32", payload, { dtype })) assert.ok((bits & 0x7fff) > infinity);
    });
  }
});

test("ggmlTypes is frozen and has unique ids", () => {
  assert.ok(Object.isFrozen(ggmlTypes) && Object.isFrozen(ggmlTypes.Q4_K));
  assert.equal(new Set(Object.values(ggmlTypes).map(({ id }) => id)).size, Object.keys(ggmlTypes).length);
});
