/** quantizeSync and quantize: rows, importance, threads, jobs, and what is refused. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import {
  allocate,
  dequantizeSync,
  ggmlTypes,
  type QuantizableType,
  type QuantizeOptions,
  quantize,
  quantizeSync,
} from "gguf-native";
import { encodedTypes } from "../support/encoded-types";
import { needsAddon } from "../support/needs-addon";
import { Random } from "../support/random";

const random = new Random(3);
const columns = 1024;
const importance = Float32Array.from({ length: columns }, () => random.unit() * 4);
const weightsOf = (length: number): Float32Array =>
  Float32Array.from({ length }, () => (random.unit() + random.unit() - 1) * 0.1);
const small = weightsOf(3 * columns);
const large = weightsOf(600 * columns);
const names = encodedTypes().map(({ name }) => name);

test("every type that can be encoded is listed", () => {
  // What is left out of QuantizableType cannot be named here.
  const listed: Record<QuantizableType, true> = {
    ...{ F32: true, F16: true, BF16: true, Q4_0: true, Q4_1: true, Q5_0: true, Q5_1: true, Q8_0: true },
    ...{ Q2_K: true, Q3_K: true, Q4_K: true, Q5_K: true, Q6_K: true, Q8_K: true },
    ...{ IQ2_XXS: true, IQ2_XS: true, IQ2_S: true, IQ3_XXS: true, IQ3_S: true, IQ1_S: true, IQ1_M: true },
    ...{ IQ4_NL: true, IQ4_XS: true, TQ1_0: true, TQ2_0: true, MXFP4: true, NVFP4: true },
    ...{ Q1_0: true, Q2_0: true },
  };
  assert.deepEqual([...names].sort(), Object.keys(listed).sort());
});

describe("any number of threads, now or later", () => {
  for (const type of names) {
    test(type, async () => {
      const numbers = large.subarray(0, (type.startsWith("IQ") ? 20 : 600) * columns);
      const expected = quantizeSync(type, numbers, { columns, importance, threads: 1 });
      for (const threads of [undefined, 2, 3]) {
        const now = quantizeSync(type, numbers, { columns, importance, threads });
        assert.deepEqual(now, expected, `${threads} threads`);
        const later = await quantize(type, numbers, { columns, importance, threads });
        assert.deepEqual(later, expected, `${threads} threads, later`);
      }
      const perRow = Array.from({ length: numbers.length / columns }, (_, row) =>
        quantizeSync(type, numbers.subarray(row * columns, (row + 1) * columns), { importance }),
      );
      assert.deepEqual(Buffer.concat(perRow), Buffer.from(expected), "row by row");
    });
  }
});

// As docs/quantize.md says.
describe("numbers of blocks become the same blocks again", () => {
  for (const type of [
    ...(["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"] as const),
    ...(["TQ1_0", "TQ2_0", "MXFP4", "NVFP4", "Q1_0", "Q2_0"] as const),
  ]) {
    test(type, () => {
      const blocks = quantizeSync(type, large);
      assert.deepEqual(quantizeSync(type, dequantizeSync(type, blocks)), blocks);
    });
  }
});

describe("memory of any kind", () => {
  const expected = quantizeSync("Q4_K", large, { columns });
  const sharedBytes = (length: number): Uint8Array => new Uint8Array(new SharedArrayBuffer(length));

  test("numbers and out", async () => {
    const shared = new Float32Array(new SharedArrayBuffer(large.byteLength));
    shared.set(large);
    const own = allocate(large.length);
    own.set(large);
    for (const numbers of [large, shared, own]) {
      for (const make of [() => undefined, () => new Uint8Array(expected.length), () => sharedBytes(expected.length)]) {
        const [nowOut, laterOut] = [make(), make()];
        const now = quantizeSync("Q4_K", numbers, { columns, out: nowOut as Uint8Array });
        const later = await quantize("Q4_K", numbers, { columns, out: laterOut as Uint8Array });
        if (nowOut !== undefined) assert.equal(now, nowOut);
        if (laterOut !== undefined) assert.equal(later, laterOut);
        assert.deepEqual(Buffer.from(now), Buffer.from(expected));
        assert.deepEqual(Buffer.from(later), Buffer.from(expected));
      }
    }
    assert.equal((await quantize("Q4_K", new Float32Array(0))).length, 0);
    assert.equal(quantizeSync("IQ4_NL" as QuantizableType, new Float32Array(0), {}).length, 0);
  });

  test("numbers that are taken away are an error, not a crash", needsAddon, async () => {
    const numbers = new Float32Array(2 ** 23);
    const done = quantize("Q6_K", numbers);
    structuredClone(numbers.buffer, { transfer: [numbers.buffer] });
    await assert.rejects(done, { code: "ERR_GGUF_RANGE", message: /detached/ });
  });

  test("importance may change after the call", async () => {
    const weights = importance.slice();
    const done = quantize("Q2_K", large, { columns, importance: weights });
    weights.fill(Number.NaN);
    assert.deepEqual(await done, quantizeSync("Q2_K", large, { columns, importance }));
  });
});

test("many jobs at once all end", async () => {
  const expected = quantizeSync("Q5_K", small, { columns });
  const all = Array.from({ length: 40 }, (_, i) => quantize("Q5_K", small, { columns, threads: 1 + (i % 3) }));
  const long = quantize("Q2_K", large, { columns, importance, threads: 2 });
  await setImmediate();
  for (const blocks of await Promise.all(all)) assert.deepEqual(blocks, expected);
  assert.deepEqual(await long, quantizeSync("Q2_K", large, { columns, importance }));
});

describe("what is refused", () => {
  const call = quantizeSync as (...args: unknown[]) => unknown;
  const later = quantize as (...args: unknown[]) => Promise<unknown>;
  const range = (message: RegExp | string) => ({ code: "ERR_GGUF_RANGE", message });
  const cases: [what: string, options: unknown, error: object][] = [
    ["columns that are none", { columns: "256" }, { code: "ERR_INVALID_ARG_TYPE" }],
    ["columns of no whole blocks", { columns: 100 }, range(/positive multiple of the block size 256, found 100$/)],
    ["no columns", { columns: 0 }, range(/found 0$/)],
    ["no whole rows", { columns: 2048 }, range("3072 numbers are not whole rows of 2048 columns")],
    ["importance that is none", { importance: [1] }, { code: "ERR_INVALID_ARG_TYPE" }],
    ["importance of another length", { importance }, range(/has 1024 weights, but a row has 3072 columns$/)],
    [
      "negative importance",
      { columns, importance: importance.map((weight, i) => (i === 77 ? -weight : weight)) },
      range(/^options.importance\[77\] must be finite and not negative, found -/),
    ],
    [
      "importance that is no number",
      { columns, importance: new Float32Array(columns).fill(Number.NaN) },
      range(/importance\[0\] must be finite and not negative, found NaN$/),
    ],
    ["a search that is none", { search: "worst" }, { code: "ERR_INVALID_ARG_VALUE" }],
    ["no threads", { threads: 0 }, range(/threads must be a positive whole number, found 0$/)],
    ["an out of another length", { out: new Uint8Array(5) }, range(/has 5 bytes, but the blocks have 1728$/)],
    ["an option that is none", { colums: 5 }, { code: "ERR_INVALID_ARG_VALUE", message: /mean 'columns'/ }],
  ];
  for (const [what, options, error] of cases) {
    test(what, async () => {
      assert.throws(() => call("Q4_K", small, options), error);
      await assert.rejects(later("Q4_K", small, options), error);
    });
  }

  for (const { name, needsImportance } of encodedTypes()) {
    if (ggmlTypes[name].blockSize === 1) continue;
    test(`numbers that are not finite, of ${name}`, async () => {
      const numbers = large.slice(0, 64 * columns);
      // The first counts, whichever thread finds which.
      const at = 33 * columns + 5;
      numbers.fill(Number.POSITIVE_INFINITY, at + 1);
      numbers[at] = Number.NaN;
      const options: QuantizeOptions = { columns, importance };
      const message = `numbers[${at}] (row 33, column 5) is NaN, which ${name} blocks cannot hold`;
      assert.throws(() => quantizeSync(name, numbers, options), range(message));
      await assert.rejects(quantize(name, numbers, options), range(message));
      numbers[at] = Number.NEGATIVE_INFINITY;
      assert.throws(() => quantizeSync(name, numbers, options), range(message.replace("NaN", "-Infinity")));
    });
    if (needsImportance) {
      test(`${name} without importance`, async () => {
        const error = { code: "ERR_GGUF_UNSUPPORTED_TYPE", message: /without importance/ };
        assert.throws(() => quantizeSync(name, small), error);
        await assert.rejects(quantize(name, small), error);
      });
    }
  }
});
