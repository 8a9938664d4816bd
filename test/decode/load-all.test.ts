/** loadAll: many tensors, one progress, a budget, and one SharedArrayBuffer. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type GgmlType, ggmlTypes, type LoadOptions, loadAll, openRemote, parse } from "gguf-native";
import { placesOf } from "#dist/file/load-all";
import { gaussianBlocks } from "../support/blocks";
import { writeGguf } from "../support/gguf-writer";
import { Random } from "../support/random";
import { rangesOf, serve } from "../support/range-server";

const random = new Random(11);
const specs: [name: string, type: GgmlType, shape: number[]][] = [
  ["a", "Q4_K", [256, 12]],
  ["b", "F32", [5]],
  ["empty", "F16", [0, 3]],
  ["c", "Q8_0", [32, 7, 2]],
  ["d", "BF16", [100_000]],
];
const bytes = writeGguf({
  tensors: specs.map(([name, type, shape]) => {
    const { id, blockSize } = ggmlTypes[type];
    const count = shape.reduce((product, dim) => product * dim, 1) / blockSize;
    return { name, type: id, shape, bytes: gaussianBlocks(type, count, random) };
  }),
});
const file = parse(bytes);
const total = [...file.tensors.values()].reduce((sum, { elementCount }) => sum + elementCount, 0);

describe("loadAll", () => {
  for (const shared of [false, true]) {
    for (const dtype of ["f32", "f16", "bf16"] as const) {
      test(`${dtype}, ${shared ? "in one SharedArrayBuffer" : "each in memory of its own"}`, async () => {
        const weights = await loadAll(file.tensors.values(), { dtype, shared });
        assert.deepEqual([...weights.keys()], [...file.tensors.keys()]);
        for (const [name, numbers] of weights) {
          assert.deepEqual(Array.from(numbers), Array.from(file.tensor(name).dequantizeSync({ dtype })), name);
          assert.equal(numbers.buffer instanceof SharedArrayBuffer, shared);
          assert.equal(numbers.byteOffset % 64, 0);
        }
        if (shared) assert.equal(new Set(Array.from(weights.values(), ({ buffer }) => buffer)).size, 1);
      });
    }
  }

  test("shared buffers, none larger than the limit unless for one result", () => {
    const cases: [sizes: number[], most: number, places: [buffer: number, offset: number][], buffers: number[]][] = [
      [[], 256, [], [0]],
      [
        [64, 1, 128, 1],
        256,
        [
          [0, 0],
          [0, 64],
          [0, 128],
          [1, 0],
        ],
        [256, 64],
      ],
      [
        [1, 300, 1],
        256,
        [
          [0, 0],
          [1, 0],
          [2, 0],
        ],
        [64, 320, 64],
      ],
      [
        [256, 0, 0, 192, 64],
        256,
        [
          [0, 0],
          [0, 256],
          [0, 256],
          [1, 0],
          [1, 192],
        ],
        [256, 256],
      ],
    ];
    for (const [sizes, most, places, buffers] of cases) {
      const found = placesOf(sizes, most);
      const shown = found.places.map(({ buffer, offset }) => [buffer, offset]);
      assert.deepEqual(shown, places);
      assert.deepEqual(found.buffers, buffers);
    }
    assert.deepEqual(placesOf([2 ** 31, 2 ** 31]).buffers, [2 ** 31, 2 ** 31]);
    assert.deepEqual(placesOf([2 ** 31, 2 ** 31 - 64]).buffers, [2 ** 32 - 64]);
    assert.deepEqual(placesOf([5 * 2 ** 30, 64]).buffers, [5 * 2 ** 30, 64]);
  });

  test("nothing, and some", async () => {
    assert.equal((await loadAll([])).size, 0);
    const weights = await loadAll([file.tensor("c"), file.tensor("a")]);
    assert.deepEqual([...weights.keys()], ["c", "a"]);
  });

  test("a budget", async () => {
    assert.equal((await loadAll(file.tensors.values(), { maxBytes: 4 * total })).size, 5);
    await assert.rejects(loadAll(file.tensors.values(), { maxBytes: 4 * total - 1 }), {
      code: "ERR_GGUF_RANGE",
      message: `5 tensors take ${4 * total} bytes as f32, more than options.maxBytes, ${4 * total - 1}: load fewer, or as f16 or bf16, which take half`,
    });
    assert.equal((await loadAll(file.tensors.values(), { dtype: "f16", maxBytes: 2 * total })).size, 5);
    await assert.rejects(loadAll(file.tensors.values(), { shared: true, maxBytes: 4 * total }), {
      code: "ERR_GGUF_RANGE",
    });
  });

  test("what is refused", async () => {
    const type = { name: "TypeError", code: "ERR_INVALID_ARG_TYPE" };
    const call = loadAll as (...args: unknown[]) => Promise<unknown>;
    for (const wrong of [undefined, null, 5, {}, [1], ["a"], file.tensors]) await assert.rejects(call(wrong), type);
    const refused: [unknown, object][] = [
      [5, type],
      [{ shared: 1 }, type],
      [{ maxBytes: "1" }, type],
      [{ maxBytes: -1 }, { code: "ERR_GGUF_RANGE" }],
      [{ maxBytes: Number.NaN }, { code: "ERR_GGUF_RANGE" }],
      [{ dtype: "f64" }, { code: "ERR_INVALID_ARG_VALUE" }],
      [{ maxByte: 1 }, { message: /Did you mean 'maxBytes'/ }],
    ];
    for (const [options, error] of refused) await assert.rejects(loadAll([], options as LoadOptions), error);
    const twice = [file.tensor("a"), file.tensor("a")];
    await assert.rejects(loadAll(twice), { name: "TypeError", code: "ERR_INVALID_ARG_VALUE" });
    const closed = parse(bytes);
    const tensors = [...closed.tensors.values()];
    closed.close();
    await assert.rejects(loadAll(tensors), { code: "ERR_GGUF_CLOSED" });
  });

  test("of a file on a server", async () => {
    const { url } = await serve(rangesOf(bytes));
    const remote = await openRemote(url);
    const weights = await loadAll(remote.tensors.values(), { shared: true });
    for (const [name, numbers] of weights) {
      assert.deepEqual(Array.from(numbers), Array.from(file.tensor(name).dequantizeSync()), name);
    }
  });
});
