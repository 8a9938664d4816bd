/** Rows by index. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type GgufTensor, ggmlTypes, parse } from "gguf-native";
import * as reference from "gguf-native/reference";
import { randomBlocks } from "./support/blocks";
import { firstDifference } from "./support/compare";
import { writeGguf } from "./support/gguf-writer";
import { ALL_TYPES } from "./support/golden";
import { Random } from "./support/random";

const random = new Random(3);
const ROW = 512;
const ROWS = 20;

function matrix(
  type: (typeof ALL_TYPES)[number],
  shape: number[],
): { tensor: GgufTensor; all: Float32Array } {
  const count = shape.reduce((a, b) => a * b, 1) / ggmlTypes[type].blockSize;
  const bytes = randomBlocks(type, count, random);
  const tensors = [{ name: "m", type: ggmlTypes[type].id, shape, bytes }];
  return { tensor: parse(writeGguf({ tensors })).tensor("m"), all: reference.dequantizeSync(type, bytes) };
}

function expectRows(actual: Float32Array, all: Float32Array, rows: ArrayLike<number>): void {
  assert.equal(actual.length, rows.length * ROW);
  for (let i = 0; i < rows.length; i++) {
    const expected = all.subarray(rows[i]! * ROW, (rows[i]! + 1) * ROW);
    assert.equal(firstDifference(actual.subarray(i * ROW, (i + 1) * ROW), expected), -1, `row ${rows[i]}`);
  }
}

describe("rowsSync", () => {
  for (const type of ALL_TYPES) {
    test(`${type}: any order, with repeats`, () => {
      const { tensor, all } = matrix(type, [ROW, ROWS]);
      for (const rows of [
        [],
        [0],
        [19],
        [5, 3, 3, 19, 0, 5],
        Array.from({ length: 100 }, () => random.below(ROWS)),
      ]) {
        expectRows(tensor.rowsSync(rows), all, rows);
      }
    });
  }
  const { tensor, all } = matrix("Q6_K", [ROW, ROWS]);

  test("indexes from typed arrays and array-likes", () => {
    for (const rows of [Int32Array.of(3, 1), Uint8Array.of(7), Float64Array.of(2, 2), { length: 1, 0: 4 }]) {
      expectRows(tensor.rowsSync(rows), all, rows);
    }
  });
  test("a tensor of three dimensions has all their rows", () => {
    const cube = matrix("Q8_0", [ROW, 4, 5]);
    expectRows(cube.tensor.rowsSync([0, 7, 19]), cube.all, [0, 7, 19]);
    assert.throws(() => cube.tensor.rowsSync([20]), { code: "ERR_GGUF_RANGE" });
  });
  test("a tensor of one dimension has one row", () => {
    const vector = matrix("F16", [ROW]);
    expectRows(vector.tensor.rowsSync([0, 0]), vector.all, [0, 0]);
    assert.throws(() => vector.tensor.rowsSync([1]), { code: "ERR_GGUF_RANGE" });
  });
  test("dtype and out", () => {
    const out = new Float32Array(2 * ROW);
    assert.equal(tensor.rowsSync([4, 2], { out }), out);
    expectRows(out, all, [4, 2]);
    const shared = new Float32Array(new SharedArrayBuffer(2 * ROW * 4));
    expectRows(tensor.rowsSync([4, 2], { out: shared }), all, [4, 2]);
    const bits = tensor.rowsSync([9], { dtype: "bf16" });
    assert.ok(bits instanceof Uint16Array && bits.length === ROW);
    assert.equal(tensor.rowsSync([9], { dtype: "bf16", out: bits }), bits);
  });
  test("rows that are not there", () => {
    for (const bad of [-1, 20, 0.5, Number.NaN, Infinity, 2 ** 53]) {
      const refused = { name: "GgufError", code: "ERR_GGUF_RANGE", message: /tensor 'm': indexes\[1\]/ };
      assert.throws(() => tensor.rowsSync([0, bad]), refused);
    }
    assert.throws(() => tensor.rowsSync([0], { out: new Float32Array(ROW + 1) }), { code: "ERR_GGUF_RANGE" });
    assert.throws(() => tensor.rowsSync({ length: 1e15 } as never), { code: "ERR_GGUF_RANGE" });
    assert.throws(() => tensor.rowsSync({ length: -1 } as never), { code: "ERR_GGUF_RANGE" });
  });
  test("indexes that are none", () => {
    for (const bad of [
      undefined,
      null,
      5,
      "12",
      {},
      { length: "1" },
      ["0"],
      [0n],
      [undefined],
      BigInt64Array.of(0n),
    ]) {
      assert.throws(() => tensor.rowsSync(bad as never), { name: "TypeError", code: "ERR_INVALID_ARG_TYPE" });
    }
  });
});
