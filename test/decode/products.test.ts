/** Products of weights with vectors: to the bit of the reference, wherever the blocks are and however work is split. */
import assert from "node:assert/strict";
import { truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import * as native from "gguf-native";
import { allocate, ggmlTypes, matmul, matmulSync, openRemote, openSync, parse } from "gguf-native";
import * as reference from "gguf-native/reference";
import { gaussianBlocks } from "../support/blocks";
import { resultOf, runNode } from "../support/child";
import { firstDifference } from "../support/compare";
import { comparedIsas, sameElsewhere } from "../support/emulated";
import { writeGguf } from "../support/gguf-writer";
import { ALL_TYPES } from "../support/golden";
import { temporaryFolder } from "../support/paths";
import { Random } from "../support/random";
import { rangesOf, serve } from "../support/range-server";
import { tooLongCode } from "../support/too-long";

const random = new Random(12);
const COLUMNS = 512;
const ROWS = 700; // more than a helper thread is worth
const blocks = gaussianBlocks("Q4_K", (ROWS * COLUMNS) / 256, random);
const vectors = (n: number) => Float32Array.from({ length: n * COLUMNS }, () => random.gaussian());
const x = vectors(2);
const expected = matmulSync("Q4_K", blocks, COLUMNS, x, { threads: 1 });
const matrix = { name: "m", type: ggmlTypes.Q4_K.id, shape: [COLUMNS, ROWS], bytes: blocks };
const folder = temporaryFolder();
const path = join(folder, "matrix.gguf");
writeFileSync(path, writeGguf({ tensors: [matrix] }));

function assertSame(actual: Float32Array, wanted: Float32Array = expected): void {
  assert.equal(firstDifference(actual, wanted), -1);
}

describe("every type against the reference", () => {
  for (const isa of comparedIsas) {
    test(`on ${isa}`, async () => {
      const result = await resultOf("products", [folder], { GGUF_NATIVE_ISA: isa });
      assert.deepEqual(result, { isa, cases: ALL_TYPES.length * 2 * 2 * (5 + 3 + 4 * 5), failures: [] });
    });
  }
});

test("blocks in a typed array of any kind", async () => {
  const numbers = vectors(7);
  const wanted = reference.matmulSync("F32", new Uint8Array(numbers.buffer, 4 * COLUMNS), COLUMNS, x);
  const kinds = [Int8Array, Uint16Array, Int32Array, Float32Array, Float64Array, BigInt64Array, Uint8ClampedArray];
  for (const Kind of kinds) {
    const part = new Kind(numbers.buffer, 4 * COLUMNS);
    assertSame(matmulSync("F32", part as Float32Array, COLUMNS, x), wanted);
    assertSame(await matmul("F32", part as Float32Array, COLUMNS, x), wanted);
    assertSame(reference.matmulSync("F32", part as Float32Array, COLUMNS, x), wanted);
    for (const { dequantizeSync } of [native, reference])
      assertSame(dequantizeSync("F32", part as Float32Array), numbers.subarray(COLUMNS));
    assertSame(await native.dequantize("F32", part as Float32Array), numbers.subarray(COLUMNS));
  }
  assert.throws(() => matmulSync("F32", new DataView(numbers.buffer) as never, COLUMNS, x), {
    code: "ERR_INVALID_ARG_TYPE",
  });
});

describe("activations of 8 bits", () => {
  const options = { activations: "int8" } as const;
  const expectedInt8 = matmulSync("Q4_K", blocks, COLUMNS, x, { ...options, threads: 1 });

  test("a vector with a number that is not finite: all its products are NaN", () => {
    for (const number of [Number.NaN, Infinity, -Infinity]) {
      const bad = x.slice();
      bad[COLUMNS + 100] = number;
      const wanted = expectedInt8.slice();
      wanted.fill(Number.NaN, ROWS);
      assertSame(matmulSync("Q4_K", blocks, COLUMNS, bad, options), wanted);
      const rows = blocks.subarray(0, (COLUMNS * 144) / 256);
      const first = Float32Array.of(wanted[0]!, Number.NaN);
      assertSame(reference.matmulSync("Q4_K", rows, COLUMNS, bad, options), first);
    }
  });
  test("rows that are prepared: the same bits, in a file and in memory", async () => {
    using file = openSync(path);
    for (const tensor of [file.tensor("m"), parse(writeGguf({ tensors: [matrix] })).tensor("m")]) {
      const seen: number[] = [];
      const wanted = [1, 2, 4, 33].map((n) => [vectors(n), n] as const);
      const before = wanted.map(([some]) => tensor.matmulSync(some, options));
      const part = tensor.matmulSync(x, { ...options, start: 64, end: 133 });
      assert.equal(await tensor.prepare({ onProgress: (done) => seen.push(done), threads: 2 }), undefined);
      await tensor.prepare({ onProgress: () => assert.fail("was done already") });
      if (!process.env.GGUF_NATIVE_WASM) assert.equal(seen.at(-1), ROWS * COLUMNS);
      for (const [i, [some]] of wanted.entries()) {
        assertSame(tensor.matmulSync(some, options), before[i]);
        assertSame(await tensor.matmul(some, options), before[i]);
        assertSame(native.matmulAllSync([tensor, tensor], some, options)[1]!, before[i]);
      }
      assertSame(tensor.matmulSync(x, { ...options, start: 64, end: 133 }), part);
      assertSame(tensor.matmulSync(x, { ...options, start: 63, end: 132 }).subarray(1, 69), part.subarray(0, 68));
      assertSame(tensor.matmulSync(x));
    }
  });
  test("what was written to a view is prepared", async () => {
    using file = openSync(path);
    const tensor = file.tensor("m");
    tensor.bytes().copyWithin(0, blocks.length / 2);
    const some = vectors(4);
    const wanted = tensor.matmulSync(some, options);
    await tensor.prepare();
    assertSame(tensor.matmulSync(some, options), wanted);
  });
  test("what cannot be prepared", async () => {
    const file = openSync(path);
    const tensor = file.tensor("m");
    await assert.rejects(tensor.prepare({ thread: 1 } as never), /no option 'thread'/);
    await assert.rejects(tensor.prepare({ threads: 0 }), { code: "ERR_GGUF_RANGE" });
    await assert.rejects(tensor.prepare({ signal: AbortSignal.abort("enough") }), (reason) => reason === "enough");
    assertSame(tensor.matmulSync(x, options), expectedInt8);
    const started = tensor.prepare();
    file.close();
    await started;
    await assert.rejects(tensor.prepare(), { code: "ERR_GGUF_CLOSED" });
    const unknown = writeGguf({ tensors: [{ ...matrix, type: 999, shape: [32] }] });
    await assert.rejects(parse(unknown).tensor("m").prepare(), { code: "ERR_GGUF_UNSUPPORTED_TYPE" });
    const numbers = { ...matrix, type: ggmlTypes.F32.id, shape: [4], bytes: new Uint8Array(16) };
    await parse(writeGguf({ tensors: [numbers] }))
      .tensor("m")
      .prepare();
  });
  test("are close to those of binary32", () => {
    let error = 0;
    let size = 0;
    for (const [i, y] of expected.entries()) {
      error += (expectedInt8[i]! - y) ** 2;
      size += y ** 2;
    }
    assert.ok(error > 0 && error < 0.02 ** 2 * size, `${Math.sqrt(error / size)}`);
  });
  test("change nothing for types that store numbers, and are f32 if they are not asked for", () => {
    const numbers = gaussianBlocks("F16", 3 * 64, random);
    const vector = x.subarray(0, 64);
    for (const multiply of [matmulSync, reference.matmulSync]) {
      assertSame(multiply("F16", numbers, 64, vector, options), multiply("F16", numbers, 64, vector));
    }
    assertSame(matmulSync("Q4_K", blocks, COLUMNS, x, { activations: "f32" }));
    assertSame(matmulSync("Q4_K", blocks, COLUMNS, x, { activations: undefined }));
  });
});

describe("a matrix that several threads multiply", sameElsewhere, () => {
  for (const activations of ["f32", "int8"] as const) {
    test(`${activations}: the bits do not depend on the threads, nor on what is asked for at a time`, async () => {
      const multiply = (vectors: Float32Array, threads?: number) =>
        matmulSync("Q4_K", blocks, COLUMNS, vectors, { activations, threads });
      const five = vectors(5); // of which a tile has several
      const wanted = multiply(x, 1);
      const ofFive = multiply(five, 1);
      for (const threads of [1, 2, 3, 2 ** 40, undefined]) {
        for (let round = 0; round < 20; round++) assertSame(multiply(x, threads), wanted);
        assertSame(multiply(five, threads), ofFive);
      }
      using file = openSync(path);
      const tensor = file.tensor("m");
      assertSame(tensor.matmulSync(x, { activations, threads: 2 }), wanted);
      assertSame(await tensor.matmul(x, { activations }), wanted);
      const one = x.subarray(COLUMNS);
      assertSame(tensor.matmulSync(one, { activations }), wanted.subarray(ROWS));
      const second = { activations, start: 1, end: 2 };
      assertSame(tensor.matmulSync(one, second), wanted.subarray(ROWS + 1, ROWS + 2));
      assertSame(await tensor.matmul(one, { activations, start: 100 }), wanted.subarray(ROWS + 100));
      assert.equal(tensor.matmulSync(one, { start: 5, end: 5 }).length, 0);
      const out = new Float32Array(wanted.length);
      assert.equal(tensor.matmulSync(x, { activations, out }), out);
      assertSame(out, wanted);
    });
  }
  test("many jobs at the same time", async () => {
    using file = openSync(path, { access: "read" });
    const tensor = file.tensor("m");
    for (const y of await Promise.all(Array.from({ length: 12 }, () => tensor.matmul(x)))) assertSame(y);
    const ofBlocks = Array.from({ length: 12 }, () => matmul("Q4_K", blocks, COLUMNS, x));
    for (const y of await Promise.all(ofBlocks)) assertSame(y);
  });
  test("in four dimensions: all but the first are rows", () => {
    const tensors = [{ ...matrix, shape: [COLUMNS, 7, 10, 10] }];
    assertSame(parse(writeGguf({ tensors })).tensor("m").matmulSync(x));
  });
  test("a convolution's weights: several dimensions are columns", async () => {
    const type = ggmlTypes.Q8_0;
    const bytes = gaussianBlocks("Q8_0", (COLUMNS * ROWS) / type.blockSize, random);
    const conv = (name: string, shape: number[]) => ({ name, type: type.id, shape, bytes });
    const data = writeGguf({ tensors: [conv("m", [32, 4, 4, ROWS]), conv("experts", [32, 16, ROWS])] });
    const file = parse(data);
    const remote = await openRemote((await serve(rangesOf(data))).url);
    const wanted = (columns: number) => reference.matmulSync("Q8_0", bytes, columns, x);
    for (const name of ["m", "experts"]) {
      const [local, there] = [file.tensor(name), remote.tensor(name)];
      for (const columns of new Set([32, 32 * (local.shape[1] as number), COLUMNS, COLUMNS * ROWS])) {
        if (x.length % columns !== 0) {
          assert.throws(() => local.matmulSync(x, { columns }), /options\.columns 32 or/);
          continue;
        }
        assertSame(local.matmulSync(x, { columns }), wanted(columns));
        assertSame(await local.matmul(x, { columns, activations: "f32" }), wanted(columns));
        assertSame(await there.matmul(x, { columns }), wanted(columns));
        const part = { columns, start: 2, end: 5 };
        const rows = wanted(columns).subarray(2, 5);
        for (const y of [local.matmulSync(x, part), await there.matmul(x, part)]) {
          assertSame(y.subarray(0, 3), rows);
        }
      }
    }
    const tensor = file.tensor("m");
    const range = { code: "ERR_GGUF_RANGE" };
    assert.throws(() => tensor.matmulSync(x), { ...range, message: /give options\.columns, 32 or 512/ });
    assertSame(tensor.matmulSync(x.subarray(0, 96)), wanted(32).subarray(0, 3 * 16 * ROWS));
    for (const columns of [0, 1, 31, 64, -32, 512.5, Number.NaN, 2 ** 60]) {
      const message = new RegExp(`one of 32, 128, 512, ${COLUMNS * ROWS}; found ${columns}`);
      assert.throws(() => tensor.matmulSync(x, { columns }), { ...range, message });
      await assert.rejects(remote.tensor("m").matmul(x, { columns }), { ...range, message });
    }
    assert.throws(() => tensor.matmulSync(x, { columns: 512, end: ROWS + 1 }), range);
    assert.throws(() => tensor.matmulSync(x, { columns: "512" } as never), { code: "ERR_INVALID_ARG_TYPE" });
    const empty = parse(writeGguf({ tensors: [{ ...conv("m", [32, 0, 3]), bytes: new Uint8Array(0) }] })).tensor("m");
    assert.equal(empty.matmulSync(new Float32Array(0), { columns: 0 }).length, 0);
    assert.throws(() => empty.matmulSync(x, { columns: 0 }), range);
    await remote.close();
  });
});

describe("x and out", sameElsewhere, () => {
  const shared = (length: number) => new Float32Array(new SharedArrayBuffer(length * 4));
  test("in memory of every kind", async () => {
    using file = openSync(path);
    for (const make of [shared, allocate, (length: number) => new Float32Array(length)]) {
      const given = make(x.length) as Float32Array;
      given.set(x);
      const out = make(expected.length) as Float32Array;
      assert.equal(file.tensor("m").matmulSync(given, { out }), out);
      assertSame(out);
      out.fill(0);
      assert.equal(await file.tensor("m").matmul(given, { out }), out);
      assertSame(out);
      out.fill(0);
      assert.equal(matmulSync("Q4_K", blocks, COLUMNS, given, { out }), out);
      assertSame(out);
      out.fill(0);
      assert.equal(await matmul("Q4_K", blocks, COLUMNS, given, { out }), out);
      assertSame(out);
    }
  });
  test("that overlap", async () => {
    using file = openSync(path);
    const memory = new Float32Array(expected.length + 3);
    for (const shift of [0, 3]) {
      memory.set(x, shift);
      const out = memory.subarray(3 - shift, 3 - shift + expected.length);
      assertSame(file.tensor("m").matmulSync(memory.subarray(shift, shift + x.length), { out }));
      memory.set(x, shift);
      assertSame(await file.tensor("m").matmul(memory.subarray(shift, shift + x.length), { out }));
      memory.set(x, shift);
      assertSame(await matmul("Q4_K", blocks, COLUMNS, memory.subarray(shift, shift + x.length), { out }));
    }
  });
  test("x may change, and be detached, once matmul has returned", async () => {
    using file = openSync(path);
    for (const multiply of [
      (x: Float32Array) => file.tensor("m").matmul(x),
      (x: Float32Array) => matmul("Q4_K", blocks, COLUMNS, x),
    ]) {
      const given = x.slice();
      const promise = multiply(given);
      given.fill(Number.NaN);
      structuredClone(given, { transfer: [given.buffer] });
      assertSame(await promise);
    }
  });
  test("an x without numbers, such as a detached one, gives none", async () => {
    using file = openSync(path);
    const detached = x.slice();
    structuredClone(detached, { transfer: [detached.buffer] });
    assert.equal(file.tensor("m").matmulSync(detached).length, 0);
    assert.equal((await file.tensor("m").matmul(new Float32Array(0))).length, 0);
    assert.equal(matmulSync("Q4_K", blocks, COLUMNS, detached).length, 0);
    assert.equal((await matmul("Q4_K", blocks, COLUMNS, detached)).length, 0);
    assert.equal(reference.matmulSync("Q4_K", blocks, COLUMNS, detached).length, 0);
    const out = new Float32Array(expected.length);
    assert.throws(() => file.tensor("m").matmulSync(detached, { out }), { code: "ERR_GGUF_RANGE" });
  });
  test("an out that is detached meanwhile rejects", async () => {
    using file = openSync(path);
    const out = new Float32Array(expected.length);
    const promise = file.tensor("m").matmul(x, { accumulate: true, out });
    structuredClone(out, { transfer: [out.buffer] });
    await assert.rejects(promise, { code: "ERR_GGUF_RANGE", message: /out was detached/ });
    const other = new Float32Array(expected.length);
    const ofBlocks = matmul("Q4_K", blocks, COLUMNS, x, { out: other });
    structuredClone(other, { transfer: [other.buffer] });
    await assert.rejects(ofBlocks, { code: "ERR_GGUF_RANGE" });
  });
  test("blocks that are detached before all of them were copied reject", async () => {
    const many = new Uint8Array(144 * 2 * 60_000); // more than is copied at once
    const shared = new Uint8Array(new SharedArrayBuffer(blocks.length));
    shared.set(blocks);
    assertSame(await matmul("Q4_K", shared, COLUMNS, x));
    const promise = matmul("Q4_K", many, COLUMNS, x);
    structuredClone(many, { transfer: [many.buffer] });
    await assert.rejects(promise, { code: "ERR_GGUF_RANGE" });
  });
});

describe("what becomes of products: factor, bias, accumulate", () => {
  const part = { start: 3, end: 9 };
  const rows = blocks.subarray((3 * COLUMNS * 144) / 256, (9 * COLUMNS * 144) / 256);
  const plain = matmulSync("Q4_K", rows, COLUMNS, x);
  const bias = Float32Array.from(plain.subarray(0, 6), () => random.gaussian());
  const sums = Float32Array.from(plain, () => random.gaussian());
  const tensor = parse(writeGguf({ tensors: [matrix] })).tensor("m");
  for (const options of [
    { factor: 0.3 },
    { bias },
    { factor: -2, bias },
    { factor: 1, bias, accumulate: true },
    { accumulate: true },
  ]) {
    test(Object.keys(options).join(", "), async () => {
      const { factor = 1, accumulate } = options as { factor?: number; accumulate?: boolean };
      const wanted = plain.map((product, i) => {
        let y = Math.fround(product * Math.fround(factor));
        if ("bias" in options) y = Math.fround(y + bias[i % 6]!);
        return accumulate ? Math.fround(sums[i]! + y) : y;
      });
      const remote = await openRemote((await serve(rangesOf(writeGguf({ tensors: [matrix] })))).url);
      type Given = { out: Float32Array };
      const ways: [string, (given: Given) => Float32Array | Promise<Float32Array>][] = [
        ["matmulSync", (given) => matmulSync("Q4_K", rows, COLUMNS, x, { ...options, ...given })],
        ["matmul", (given) => matmul("Q4_K", rows, COLUMNS, x, { ...options, ...given })],
        ["of a tensor", (given) => tensor.matmulSync(x, { ...part, ...options, ...given })],
        ["later", (given) => tensor.matmul(x, { ...part, ...options, ...given })],
        ["remote", (given) => remote.tensor("m").matmul(x, { ...part, ...options, ...given })],
        ["reference", (given) => reference.matmulSync("Q4_K", rows, COLUMNS, x, { ...options, ...given })],
      ];
      for (const [name, multiply] of ways) {
        const out = sums.slice();
        assert.equal(await multiply({ out }), out, name);
        assert.equal(firstDifference(out, wanted), -1, name);
        if (!accumulate) assertSame(await multiply({} as Given), wanted);
      }
    });
  }
  test("bias is read when the call is made, also where it is part of out", async () => {
    const wanted = tensor.matmulSync(x, { ...part, bias });
    const given = bias.slice();
    const later = tensor.matmul(x, { ...part, bias: given });
    given.fill(0);
    assertSame(await later, wanted);
    const out = new Float32Array(plain.length);
    out.set(bias, 4);
    assertSame(tensor.matmulSync(x, { ...part, bias: out.subarray(4, 10), out }), wanted);
  });
});

test("a matrix without numbers", () => {
  const tensors = [
    { ...matrix, name: "rows", shape: [COLUMNS, 0], bytes: new Uint8Array(0) },
    { ...matrix, name: "columns", shape: [0, 5], bytes: new Uint8Array(0) },
  ];
  const file = parse(writeGguf({ tensors }));
  assert.equal(file.tensor("rows").matmulSync(x).length, 0);
  assert.equal(file.tensor("columns").matmulSync(new Float32Array(0)).length, 0);
  assert.throws(() => file.tensor("columns").matmulSync(x), { code: "ERR_GGUF_RANGE" });
  assert.equal(matmulSync("Q4_K", new Uint8Array(0), COLUMNS, x).length, 0);
});

describe("wrong arguments", () => {
  const tensor = parse(writeGguf({ tensors: [matrix] })).tensor("m");
  const wrong: [string, string, unknown, object?][] = [
    ["x of another type", "ERR_INVALID_ARG_TYPE", new Float64Array(COLUMNS)],
    ["x that is an array", "ERR_INVALID_ARG_TYPE", [1, 2]],
    ["x that is no whole vector", "ERR_GGUF_RANGE", new Float32Array(COLUMNS + 1)],
    ["out of another length", "ERR_GGUF_RANGE", x, { out: new Float32Array(5) }],
    ["out of another type", "ERR_INVALID_ARG_TYPE", x, { out: new Uint16Array(expected.length) }],
    ["activations of another name", "ERR_INVALID_ARG_VALUE", x, { activations: "int4" }],
    ["activations that are no name", "ERR_INVALID_ARG_TYPE", x, { activations: 8 }],
    ["a factor that is no number", "ERR_INVALID_ARG_TYPE", x, { factor: "2" }],
    ["a bias of another type", "ERR_INVALID_ARG_TYPE", x, { bias: [1] }],
    ["a bias of another length", "ERR_GGUF_RANGE", x, { bias: new Float32Array(ROWS - 1) }],
    ["accumulate that is no boolean", "ERR_INVALID_ARG_TYPE", x, { accumulate: 1 }],
    ["accumulate without out", "ERR_GGUF_RANGE", x, { accumulate: true }],
    ["options that are none", "ERR_INVALID_ARG_TYPE", x, 5 as never],
    ["no threads", "ERR_GGUF_RANGE", x, { threads: 0 }],
    ["half a thread", "ERR_GGUF_RANGE", x, { threads: 0.5 }],
    ["threads that are no number", "ERR_INVALID_ARG_TYPE", x, { threads: "2" }],
  ];
  const wrongOfTensor: typeof wrong = [
    ["start beyond the rows", "ERR_GGUF_RANGE", x, { start: ROWS + 1 }],
    ["start past end", "ERR_GGUF_RANGE", x, { start: 2, end: 1 }],
    ["end that is no whole number", "ERR_GGUF_RANGE", x, { end: 1.5 }],
    ["start that is no number", "ERR_INVALID_ARG_TYPE", x, { start: "1" }],
  ];
  for (const [name, code, vector, options] of [...wrong, ...wrongOfTensor]) {
    test(name, async () => {
      assert.throws(() => tensor.matmulSync(vector as never, options), { code });
      await assert.rejects(tensor.matmul(vector as never, options), { code });
    });
  }
  for (const [name, code, vector, options] of wrong) {
    test(`${name}, for blocks`, async () => {
      await assert.rejects(matmul("Q4_K", blocks, COLUMNS, vector as never, options), { code });
      assert.throws(() => matmulSync("Q4_K", blocks, COLUMNS, vector as never, options), { code });
      assert.throws(() => reference.matmulSync("Q4_K", blocks, COLUMNS, vector as never, options), { code });
    });
  }
  test("columns, blocks and type", async () => {
    for (const multiply of [matmulSync, reference.matmulSync, matmul]) {
      const rejects = (code: string, ...args: unknown[]): Promise<void> =>
        assert.rejects(async () => (multiply as (...args: unknown[]) => unknown)(...args), { code });
      for (const columns of [0, 100, -256, 256.5, Number.NaN, 2 ** 60, 3 * 256]) {
        await rejects("ERR_GGUF_RANGE", "Q4_K", blocks, columns, x);
      }
      await rejects("ERR_INVALID_ARG_TYPE", "Q4_K", blocks, "512", x);
      await rejects("ERR_GGUF_RANGE", "Q4_K", blocks.subarray(1), COLUMNS, x);
      await rejects("ERR_GGUF_UNSUPPORTED_TYPE", "Q9_9", blocks, COLUMNS, x);
      await rejects("ERR_INVALID_ARG_TYPE", "Q4_K", [], COLUMNS, x);
    }
  });
  test("a result that no array holds", () => {
    const tensors = [{ name: "m", type: 24, shape: [1, 2 ** 20], bytes: new Uint8Array(2 ** 20) }];
    const tall = parse(writeGguf({ tensors })).tensor("m");
    const error = { code: tooLongCode(2 ** 45), message: /start and end/ };
    assert.throws(() => tall.matmulSync(new Float32Array(2 ** 22 * 8)), error);
  });
});

test("a closed file", async () => {
  const file = openSync(path);
  const tensor = file.tensor("m");
  const begun = tensor.matmul(x);
  file.close();
  assertSame(await begun);
  assert.throws(() => tensor.matmulSync(x), { code: "ERR_GGUF_CLOSED" });
  await assert.rejects(tensor.matmul(x), { code: "ERR_GGUF_CLOSED" });
});

test("a truncated file", async () => {
  // Windows refuses to change files that are mapped.
  for (const access of process.platform === "win32" ? (["read"] as const) : (["mmap", "read"] as const)) {
    const short = join(folder, `short-${access}.gguf`);
    writeFileSync(short, writeGguf({ tensors: [matrix] }));
    using file = openSync(short, { access });
    const tensor = file.tensor("m");
    truncateSync(short, tensor.offset + tensor.byteLength / 2);
    assert.throws(() => tensor.matmulSync(x), { code: "ERR_GGUF_TRUNCATED", path: short });
    await assert.rejects(tensor.matmul(x), { code: "ERR_GGUF_TRUNCATED", path: short });
    assertSame(tensor.matmulSync(x.subarray(0, COLUMNS), { end: 10 }), expected.subarray(0, 10));
  }
});

test("helper threads end with the process, however it ends", sameElsewhere, () => {
  const program = `
    const { openSync } = require("gguf-native");
    const x = new Float32Array(${2 * COLUMNS}).fill(1);
    const run = () => openSync(process.argv[1]).tensor("m").matmulSync(x, { threads: 2 });
    const { Worker, isMainThread } = require("node:worker_threads");
    run();`;
  const inWorker = `new (require("node:worker_threads").Worker)(${JSON.stringify(
    `process.argv[1] = require("node:worker_threads").workerData; ${program}`,
  )}, { eval: true, workerData: process.argv[1] }).on("exit", (code) => { process.exitCode = code; });`;
  for (const source of [program, `${program} process.exit(0);`, inWorker]) {
    const { status, signal, stderr } = runNode(["-e", source, path]);
    assert.deepEqual({ status, signal, stderr }, { status: 0, signal: null, stderr: "" });
  }
});
