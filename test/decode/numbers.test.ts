/** The types that store plain numbers, against exact arithmetic: one rounding to binary32, to nearest even. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { dequantizeSync, type GgmlType } from "gguf-native";
import * as reference from "gguf-native/reference";
import { firstDifference } from "../support/compare";
import { Random } from "../support/random";

/** An integer as binary32, from whole numbers alone. */
function toBinary32(value: bigint): number {
  const magnitude = value < 0n ? -value : value;
  const excess = Math.max(0, magnitude.toString(2).length - 24);
  const unit = 1n << BigInt(excess);
  const rest = magnitude % unit;
  let quotient = magnitude / unit;
  if (rest * 2n > unit || (rest * 2n === unit && quotient % 2n === 1n)) quotient++;
  return Number(quotient * unit) * (value < 0n ? -1 : 1); // at most 25 bits: exact
}

/** Integers at and around every power of two, halfway points between binary32 values, and their neighbours. */
function interestingIntegers(): bigint[] {
  const random = new Random(64);
  const found = new Set<bigint>([0n, 2n ** 63n - 1n, -(2n ** 63n)]);
  for (let bits = 1n; bits < 63n; bits++) {
    for (let i = 0; i < 20; i++) {
      const top = (1n << 24n) | (BigInt(random.bits()) & 0xffffffn);
      const scaled = bits >= 25n ? top << (bits - 25n) : top >> (25n - bits);
      for (let delta = -2n; delta <= 2n; delta++) found.add(scaled + delta);
      // Just above and below a halfway point, by so little that binary64 cannot tell.
      const halfway = bits >= 26n ? (scaled >> (bits - 24n)) * (1n << (bits - 24n)) + (1n << (bits - 25n)) : 0n;
      for (let delta = -2n; delta <= 2n; delta++) found.add(halfway + delta);
    }
  }
  for (const value of [...found]) found.add(-value);
  return [...found].filter((value) => BigInt.asIntN(64, value) === value);
}

const runs = { native: dequantizeSync, reference: reference.dequantizeSync };
const inMemory = (array: ArrayBufferView) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

function expectRounded(type: GgmlType, stored: ArrayBufferView, expected: number[]): void {
  for (const [name, run] of Object.entries(runs)) {
    test(`${type}: ${name}`, () => {
      const actual = run(type, inMemory(stored));
      const at = firstDifference(actual, Float32Array.from(expected));
      assert.equal(at, -1, `element ${at}: ${actual[at]} instead of ${expected[at]}`);
    });
  }
}

describe("numbers", () => {
  const integers = interestingIntegers();
  test("there are integers that rounding twice gets wrong", () => {
    assert.ok(integers.some((value) => Math.fround(Number(value)) !== toBinary32(value)));
  });
  expectRounded("I64", BigInt64Array.from(integers), integers.map(toBinary32));

  const small = integers.filter((value) => BigInt.asIntN(32, value) === value);
  expectRounded("I32", Int32Array.from(small, Number), small.map(toBinary32));
  const all16 = Array.from({ length: 65536 }, (_, i) => i - 32768);
  expectRounded("I16", Int16Array.from(all16), all16);
  const all8 = Array.from({ length: 256 }, (_, i) => i - 128);
  expectRounded("I8", Int8Array.from(all8), all8);

  // Halfway points of binary32 are exact in binary64: normal, subnormal, at the end of the range.
  const halfway = [1 + 2 ** -24, 1 + 3 * 2 ** -24, 2 ** -150, 3 * 2 ** -150, 2 ** 128 - 2 ** 103];
  const above = halfway.map((value) => value * (1 + 2 ** -50));
  const below = halfway.map((value) => value * (1 - 2 ** -50));
  const special = [0, -0, Infinity, -Infinity, Number.NaN, 5e-324, 1e300];
  const positive = [...halfway, ...above, ...below];
  const results = [
    ...[1, 1 + 2 ** -22, 0, 2 ** -148, Infinity],
    ...[1 + 2 ** -23, 1 + 2 ** -22, 2 ** -149, 2 ** -148, Infinity],
    ...[1, 1 + 2 ** -23, 0, 2 ** -149, 2 ** 128 - 2 ** 104],
  ];
  expectRounded("F64", Float64Array.from([...positive, ...positive.map((value) => -value), ...special]), [
    ...results,
    ...results.map((value) => -value),
    ...[0, -0, Infinity, -Infinity, Number.NaN, 0, Infinity],
  ]);
});
