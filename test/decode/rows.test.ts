/** Rows by index. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type GgufFile, type GgufTensor, ggmlTypes, openSync, parse } from "gguf-native";
import * as reference from "gguf-native/reference";
import { randomBlocks } from "../support/blocks";
import { firstDifference } from "../support/compare";
import { type TensorSpec, writeGguf } from "../support/gguf-writer";
import { ALL_TYPES } from "../support/golden";
import { temporaryFolder } from "../support/paths";
import { Random } from "../support/random";

const random = new Random(3);
const ROW = 512;
const ROWS = 20;

function matrix(type: (typeof ALL_TYPES)[number], shape: number[]): { tensor: GgufTensor; all: Float32Array } {
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
      for (const rows of [[], [0], [19], [5, 3, 3, 19, 0, 5], Array.from({ length: 100 }, () => random.below(ROWS))]) {
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
  test("indexes whose getters ask for other rows", async () => {
    const asks = (): ArrayLike<number> => ({
      length: 3,
      0: 7,
      get 1() {
        expectRows(tensor.rowsSync([1, 2, 3]), all, [1, 2, 3]);
        void tensor.rows([4, 5, 6]);
        return 8;
      },
      2: 9,
    });
    expectRows(tensor.rowsSync(asks()), all, [7, 8, 9]);
    expectRows(await tensor.rows(asks()), all, [7, 8, 9]);
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
  test("rows that do not exist", async () => {
    for (const bad of [-1, 20, 0.5, Number.NaN, Infinity, 2 ** 53]) {
      const refused = { name: "GgufError", code: "ERR_GGUF_RANGE", message: /tensor 'm': indexes\[1\]/ };
      assert.throws(() => tensor.rowsSync([0, bad]), refused);
      await assert.rejects(tensor.rows([0, bad]), refused);
    }
    assert.throws(() => tensor.rowsSync([0], { out: new Float32Array(ROW + 1) }), { code: "ERR_GGUF_RANGE" });
    assert.throws(() => tensor.rowsSync({ length: 1e15 } as never), { code: "ERR_GGUF_RANGE" });
    assert.throws(() => tensor.rowsSync({ length: -1 } as never), { code: "ERR_GGUF_RANGE" });
  });
  test("invalid indexes", async () => {
    for (const bad of [undefined, null, 5, "12", {}, { length: "1" }, ["0"], [0n], [undefined], BigInt64Array.of(0n)]) {
      assert.throws(() => tensor.rowsSync(bad as never), { name: "TypeError", code: "ERR_INVALID_ARG_TYPE" });
      await assert.rejects(tensor.rows(bad as never), { name: "TypeError", code: "ERR_INVALID_ARG_TYPE" });
    }
  });
});

describe("rows", () => {
  const rows = Array.from({ length: 3000 }, () => random.below(ROWS));
  const content = writeGguf({
    tensors: ALL_TYPES.map((type): TensorSpec => {
      const { id, blockSize } = ggmlTypes[type];
      const bytes = randomBlocks(type, (ROW * ROWS) / blockSize, random);
      return { name: type, type: id, shape: [ROW, ROWS], bytes };
    }),
  });
  const path = join(temporaryFolder(), "rows.gguf");
  writeFileSync(path, content);
  const shared = new Uint8Array(new SharedArrayBuffer(content.length));
  shared.set(content);
  const files: Record<string, () => GgufFile> = {
    mmap: () => openSync(path),
    read: () => openSync(path, { access: "read" }),
    parse: () => parse(content),
    "parse, shared memory": () => parse(shared),
  };

  for (const [how, openFile] of Object.entries(files)) {
    test(`${how}: every type and output, any order, with repeats`, async () => {
      const file = openFile();
      for (const type of ALL_TYPES) {
        const tensor = file.tensor(type);
        for (const some of [[], [19], rows.slice(0, 50)]) {
          for (const dtype of ["f32", "f16", "bf16"] as const) {
            const expected = tensor.rowsSync(some, { dtype });
            assert.equal(firstDifference(await tensor.rows(some, { dtype }), expected, dtype), -1, type);
          }
        }
      }
      file.close();
    });
    test(`${how}: more rows than one thread takes, closed during the work`, async () => {
      const file = openFile();
      const expected = file.tensor("Q4_K").rowsSync(rows);
      const running = file.tensor("Q4_K").rows(rows);
      file.close();
      assert.equal(firstDifference(await running, expected), -1);
    });
  }

  const tensor = parse(content).tensor("Q5_K");
  const expected = tensor.rowsSync(rows);

  test("out: ordinary and shared memory", async () => {
    const { length } = expected;
    for (const memory of [new ArrayBuffer(length * 4), new SharedArrayBuffer(length * 4)]) {
      const out = new Float32Array(memory);
      assert.equal(await tensor.rows(rows, { out }), out);
      assert.equal(firstDifference(out, expected), -1);
    }
    await assert.rejects(tensor.rows(rows, { out: new Float32Array(1) }), { code: "ERR_GGUF_RANGE" });
  });
  test("an out that is detached during the work", async () => {
    const out = new Float32Array(expected.length);
    const running = tensor.rows(rows, { out });
    structuredClone(out.buffer, { transfer: [out.buffer] });
    await assert.rejects(running, { code: "ERR_GGUF_RANGE" });
  });
  test("indexes and memory may change after the call", async () => {
    const bytes = content.slice();
    const indexes = Int32Array.from(rows);
    const running = parse(bytes).tensor("Q5_K").rows(indexes);
    indexes.fill(-1);
    bytes.fill(0);
    assert.equal(firstDifference(await running, expected), -1);
  });
  test("rows without elements, and tensors without rows", async () => {
    const empty = parse(
      writeGguf({
        tensors: [
          { name: "a", type: 12, shape: [0, 3], bytes: new Uint8Array(0) },
          { name: "b", type: 12, shape: [256, 0], bytes: new Uint8Array(0) },
        ],
      }),
    );
    assert.equal((await empty.tensor("a").rows([2, 0])).length, 0);
    assert.equal((await empty.tensor("b").rows([])).length, 0);
    await assert.rejects(empty.tensor("b").rows([0]), { code: "ERR_GGUF_RANGE", message: /no rows/ });
  });
});
