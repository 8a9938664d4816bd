/**
 * The kernels compiled for WebAssembly: the same bits as the addon's. What the library makes of them is tested by its own
 * tests with GGUF_NATIVE_WASM=1 (.ci/run), which compare every type with the reference and with ggml's blocks.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, test } from "node:test";
import { dequantizeSync, ggmlTypes, matmulSync } from "gguf-native";
import { encoding } from "#dist/backend/wasm/encoding";
import { compare, dequantize, formats, multiply, stats, swapBytes } from "#dist/backend/wasm/kernels";
import { type Instance, inModule, setModule } from "#dist/backend/wasm/module";
import { relaxedTiles, tilesAreRight } from "#dist/backend/wasm/relaxed";
import { gaussianBlocks, randomBlocks } from "../support/blocks";
import { ALL_TYPES } from "../support/golden";
import { projectRoot } from "../support/paths";
import { Random } from "../support/random";
import { outcomeOf, rawAddon } from "../support/raw-addon";
import { compiledModule, Module, needsModule } from "../support/wasm";

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

/** The bits are the same, where numbers are NaN the payload aside. */
function assertSame(actual: ArrayBufferView, expected: ArrayBufferView, what = ""): void {
  if (Buffer.compare(bytesOf(actual), bytesOf(expected)) === 0) return;
  assert.ok(actual instanceof Float32Array && expected instanceof Float32Array, `${what}: the bits differ`);
  assert.equal(actual.length, expected.length, what);
  for (const [i, value] of expected.entries()) assert.ok(Object.is(actual[i], value), `${what}: number ${i}`);
}

const shared = <T extends Uint8Array | Float32Array>(array: T): T => {
  const copy = new (array.constructor as new (buffer: SharedArrayBuffer) => T)(new SharedArrayBuffer(array.byteLength));
  copy.set(array);
  return copy;
};

const FINITE_TOTALS = new Float64Array(4);
const TOTALS = Float64Array.of(0, 0, 0, 0, 0, Infinity, -Infinity, 0, 0);
const withBins = (low: number, high: number, bins: number) =>
  Float64Array.of(...TOTALS, low, high, ...new Array<number>(bins + 2).fill(0));

describe("the WebAssembly module", needsModule, () => {
  test("imports nothing", () => assert.deepEqual(Module.imports(compiledModule!), []));

  test("has the addon's formats", () => assert.deepEqual(formats(), rawAddon.formats()));

  for (const type of ALL_TYPES) {
    const { id, blockSize, typeSize } = ggmlTypes[type];
    const random = new Random(id);

    test(`${type}: the addon's statistics and comparisons`, async () => {
      // Two chunks and a bit, so that the results of chunks are joined.
      const count = Math.ceil((2 ** 19 + 1024) / blockSize);
      const blocks = randomBlocks(type, count, random);
      const others = gaussianBlocks(type, count, random);
      for (const totals of [FINITE_TOTALS, TOTALS, withBins(-1, 2, 37)]) {
        for (const [bytes, bigEndian] of [
          [blocks, false],
          [shared(swapBytes(id, blocks)), true],
        ] as const) {
          const expected = await rawAddon.statsBlocksAsync(id, bytes, bigEndian, totals, undefined).promise;
          assert.deepEqual(stats(id, bytes, bigEndian, totals), expected);
        }
        // In two calls, the second of which continues.
        const half = (2 ** 18 / blockSize) * typeSize;
        const first = stats(id, blocks.subarray(0, half), false, totals);
        const whole = await rawAddon.statsBlocksAsync(id, blocks, false, totals, undefined).promise;
        assert.deepEqual(stats(id, blocks.subarray(half), false, first), whole);
      }
      const numbers = bytesOf(dequantizeSync(type, others));
      for (const [typeB, blocksB] of [
        [id, others],
        [ggmlTypes.F32.id, numbers],
      ] as const) {
        const totals = new Float64Array(7);
        const { promise } = rawAddon.compareBlocksAsync(id, blocks, typeB, blocksB, 0, totals);
        const a = { type: id, blocks, bigEndian: false };
        const b = { type: typeB, blocks: shared(swapBytes(typeB, blocksB)), bigEndian: true };
        assert.deepEqual(compare(a, b, totals), await promise);
      }
    });
  }

  test("products in pieces of rows and vectors: the addon's", () => {
    const random = new Random(4);
    for (const [type, columns, rows, n] of [
      ["Q4_K", 8192, 300, 1],
      ["Q4_K", 8192, 300, 5],
      ["Q8_0", 65_536, 30, 70],
      ["F16", 128, 9000, 17],
      ["Q6_K", 3_145_728, 2, 2],
    ] as const) {
      const { id, blockSize } = ggmlTypes[type];
      const blocks = gaussianBlocks(type, (rows * columns) / blockSize, random);
      const x = Float32Array.from({ length: n * columns }, () => random.gaussian());
      const y = new Float32Array(n * rows);
      for (const activations of ["f32", "int8"] as const) {
        multiply(id, blocks, false, columns, x, y, activations === "int8");
        const expected = matmulSync(type, blocks, columns, x, { activations });
        assertSame(y, expected, `${type} ${columns} x ${rows}, ${n} vectors, ${activations}`);
      }
    }
  });

  describe("products with vectors of 8 bits", () => {
    const options = { activations: "int8" } as const;
    // Node.js 20 has relaxed SIMD behind a flag, and its first compiler makes wrong code of it.
    const hasRelaxed = Number(process.versions.node.split(".")[0]) >= 22;
    const hasTiles = () => inModule((instance) => instance.hasTiles, true);
    const relaxed = relaxedTiles(() => readFileSync(join(projectRoot, "dist", "wasm", "relaxed.wasm")));
    afterEach(() => setModule(() => compiledModule!));

    for (const [type, add] of ALL_TYPES.flatMap((type) => [[type] as const, [type, relaxed] as const])) {
      const { id, blockSize } = ggmlTypes[type];
      test(`${type}: the addon's, whatever the instructions and the byte order${add ? ", relaxed" : ""}`, () => {
        setModule(() => compiledModule!, add);
        assert.equal(hasTiles(), add !== undefined && hasRelaxed);
        const random = new Random(id);
        const rows = 13;
        for (const blocksOfRow of [1, Math.ceil(192 / blockSize), Math.ceil(4352 / blockSize)]) {
          const columns = blocksOfRow * blockSize;
          const blocks = gaussianBlocks(type, rows * blocksOfRow, random);
          for (const n of [1, 2, 4, 9]) {
            const x = Float32Array.from({ length: n * columns }, () => random.gaussian());
            const expected = matmulSync(type, blocks, columns, x, options);
            const what = `${columns} columns, ${n} vectors`;
            const y = new Float32Array(n * rows);
            multiply(id, blocks, false, columns, x, y, true);
            assertSame(y, expected, what);
            multiply(id, swapBytes(id, blocks), true, columns, x, y.fill(0), true);
            assertSame(y, expected, `${what}, big-endian`);
            inModule(({ exports }) => exports.use_scalar(1));
            multiply(id, blocks, false, columns, x, y.fill(0), true);
            inModule(({ exports }) => exports.use_scalar(0));
            assertSame(y, expected, `${what}, without SIMD`);
          }
        }
      });
    }

    test("tiles that compute something else are noticed", { skip: !hasRelaxed && "there are none" }, () => {
      let wasRight = false;
      const swapped = (instance: Instance): boolean => {
        wasRight = relaxed(instance);
        const last = instance.exports.__indirect_function_table.length - 1;
        instance.exports.use_tiles(last, last - 1);
        return tilesAreRight(instance);
      };
      setModule(() => compiledModule!, swapped);
      assert.deepEqual([hasTiles(), wasRight], [false, true]);
    });
  });

  test("a product goes where it should among those of other rows", () => {
    const random = new Random(5);
    const blocks = gaussianBlocks("Q4_0", 8 * 5, random);
    const x = Float32Array.from({ length: 2 * 256 }, () => random.gaussian());
    const expected = matmulSync("Q4_0", blocks, 256, x);
    const y = new Float32Array(2 * 5);
    multiply(ggmlTypes.Q4_0.id, blocks.subarray(0, 8 * 18 * 2), false, 256, x, y, false, 5);
    multiply(ggmlTypes.Q4_0.id, blocks.subarray(8 * 18 * 2), false, 256, x, y.subarray(2), false, 5);
    assertSame(y, expected);
  });

  test("errors are the addon's", () => {
    const bad = new Float32Array(96);
    bad.set([Number.NaN, Number.POSITIVE_INFINITY], 70);
    for (const [type, numbers] of [
      [999, new Float32Array(0)],
      [ggmlTypes.I32.id, new Float32Array(0)],
      [ggmlTypes.Q8_0.id, bad],
      [ggmlTypes.Q4_1.id, bad.map((value) => -value).reverse()],
    ] as const) {
      const addon = outcomeOf(() => void rawAddon.quantize(type, numbers, 32, undefined, undefined, undefined));
      assert.deepEqual(
        outcomeOf(() => void encoding.quantize(type, numbers, 32, undefined, undefined, undefined)),
        addon,
      );
      assert.ok("error" in addon);
    }
    for (const totals of [3, 5, 10, 12].map((length) => new Float64Array(length))) {
      const addon = outcomeOf(() => void rawAddon.statsBlocksAsync(0, new Uint8Array(4), false, totals, undefined));
      const found = outcomeOf(() => stats(0, new Uint8Array(4), false, totals));
      assert.deepEqual(found, addon);
      assert.ok("error" in addon);
    }
  });

  test("nothing is done with no blocks", () => {
    const none = new Uint8Array(0);
    dequantize(0, none, false, 0, new Float32Array(0));
    assert.deepEqual(swapBytes(0, none), none);
    assert.deepEqual(stats(0, none, false, TOTALS), TOTALS);
    const no = { type: 0, blocks: none, bigEndian: false };
    assert.deepEqual(compare(no, no, new Float64Array(7)), new Float64Array(7));
    multiply(0, none, false, 32, new Float32Array(64), new Float32Array(0), false);
  });

  describe("where memory ends", () => {
    const OUT_OF_MEMORY = { error: { code: "ERR_GGUF_OUT_OF_MEMORY", detail: "out of memory" } };
    const works = () => {
      const out = new Float32Array(1);
      dequantize(ggmlTypes.F32.id, Uint8Array.of(0, 0, 128, 63), false, 0, out);
      assert.equal(out[0], 1);
    };

    test("there is an error, and the next call works", () => {
      for (const bytes of [2 ** 32 - 1, 2 ** 32, 2 ** 40]) {
        const shown = outcomeOf(() => inModule((module) => module.allocate(bytes)));
        assert.deepEqual(shown, OUT_OF_MEMORY);
        works();
      }
    });

    test("a trap is the same error", () => {
      // Its packed vectors have no place; then a format that is not one.
      for (const work of [
        () => inModule(({ exports }) => exports.new_products(0, 0, 2 ** 31, 2, 1, 1)),
        () => inModule(({ exports }) => exports.quantize_step(999, 32, 0, 0)),
      ]) {
        assert.deepEqual(outcomeOf(work), OUT_OF_MEMORY);
        works();
      }
    });

    test("memory that was needed once is given back", () => {
      inModule((module) => module.allocate(2 ** 28));
      assert.ok(inModule((module) => module.byteLength) < 2 ** 24);
    });
  });
});
