/** Reading importance matrices, in both of llama.cpp's formats, and what is wrong with some. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type GgmlType, GgufWriter, openSync, quantizeModel, quantizeSync } from "gguf-native";
import { ImportanceMatrix } from "#dist/quantize-model/importance-matrix";
import { temporaryFolder } from "../support/paths";
import { Random } from "../support/random";

const folder = temporaryFolder();
const at = (name: string): string => join(folder, name);

interface Sums {
  name: string;
  sums: number[];
  counts: number[];
  type?: GgmlType;
}

async function writeGguf(name: string, entries: readonly Sums[], datasets = ["some.txt", "more.txt"]): Promise<string> {
  const writer = new GgufWriter()
    .set("general.type", "imatrix")
    .set("imatrix.datasets", datasets)
    .set("imatrix.chunk_count", 7)
    .set("imatrix.chunk_size", 512);
  for (const { name, sums, counts, type = "F32" } of entries) {
    const shape = [sums.length / counts.length, counts.length];
    const isWhole = Number.isInteger(shape[0]);
    writer.addTensor(`${name}.in_sum2`, type, isWhole ? shape : [sums.length], new Float32Array(sums));
    writer.addTensor(`${name}.counts`, "F32", [1, counts.length], new Float32Array(counts));
  }
  await writer.write(at(name));
  return at(name);
}

interface OldEntry {
  name: string;
  calls: number;
  sums: number[];
}

function oldFormat(entries: readonly OldEntry[], ...end: Buffer[]): Buffer {
  const parts = [int(entries.length)];
  for (const { name, calls, sums } of entries) {
    parts.push(int(Buffer.byteLength(name)), Buffer.from(name), int(calls), int(sums.length));
    const bytes = Buffer.alloc(4 * sums.length);
    for (const [i, sum] of sums.entries()) bytes.writeFloatLE(sum, 4 * i);
    parts.push(bytes);
  }
  return Buffer.concat([...parts, ...end]);
}

function int(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return bytes;
}

function write(name: string, bytes: Uint8Array): string {
  writeFileSync(at(name), bytes);
  return at(name);
}

async function weights(path: string, name: string, shape: number[]): Promise<number[][] | undefined> {
  const matrix = await ImportanceMatrix.open(path);
  try {
    const found = matrix.weights({ name, shape });
    if (found === undefined) return undefined;
    const all: number[][] = [];
    for (let i = 0; i < (shape[2] ?? 1); i++) all.push([...(await found.of(i))]);
    return all;
  } finally {
    await matrix.close();
  }
}

describe("importance matrices", () => {
  test("in GGUF: sums by counts, for each expert", async () => {
    const path = await writeGguf("good.gguf", [
      { name: "blk.0.attn_q.weight", sums: [1, 2, 3, 4], counts: [3] },
      { name: "blk.0.ffn_up_exps.weight", sums: [2, 4, 5, 6, 9, 0], counts: [2, 0, 2.6] },
      { name: "token_embd.weight", sums: [1, 1], counts: [1] },
    ]);
    const matrix = await ImportanceMatrix.open(path);
    assert.deepEqual(matrix.datasets, ["some.txt", "more.txt"]);
    assert.deepEqual([matrix.chunkCount, matrix.size, matrix.path], [7, 3, path]);
    await matrix.close();
    const third = (value: number): number => Math.fround(value / 3);
    assert.deepEqual(await weights(path, "blk.0.attn_q.weight", [4, 10]), [[third(1), third(2), 1, third(4)]]);
    const experts = [
      [1, 2],
      [1, 1],
      [3, 0],
    ];
    assert.deepEqual(await weights(path, "blk.0.ffn_up_exps.weight", [2, 5, 3]), experts);
    assert.equal(await weights(path, "blk.0.attn_k.weight", [4, 10]), undefined);
    assert.equal(await weights(path, "token_embd.weight", [4, 10]), undefined, "embeddings are looked up");
  });

  test("in a model that is open", async () => {
    const path = await writeGguf("open.gguf", [{ name: "a.weight", sums: [8, 4], counts: [4] }]);
    using file = openSync(path);
    const matrix = await ImportanceMatrix.open(file);
    assert.deepEqual([...((await matrix.weights({ name: "a.weight", shape: [2, 1] })?.of(0)) ?? [])], [2, 1]);
    await matrix.close();
    assert.equal(file.closed, false);
  });

  test("in the older format, with and without its end", async () => {
    const entries = [
      { name: "blk.0.attn_q.weight", calls: 2, sums: [1, 2, 3] },
      { name: "blk.0.ffn_up_exps.weight", calls: 0, sums: [5, 6, 7, 8] },
    ];
    const end = [int(12), int(8), Buffer.from("some.txt")];
    const path = write("good.dat", oldFormat(entries, ...end));
    assert.deepEqual(await weights(path, "blk.0.attn_q.weight", [3, 2]), [[0.5, 1, 1.5]]);
    const experts = [
      [5, 6],
      [7, 8],
    ];
    assert.deepEqual(await weights(path, "blk.0.ffn_up_exps.weight", [2, 3, 2]), experts);
    const matrix = await ImportanceMatrix.open(path);
    assert.deepEqual([matrix.datasets, matrix.chunkCount], [["some.txt"], 12]);
    await matrix.close();
    const without = await ImportanceMatrix.open(write("no-end.dat", oldFormat(entries)));
    assert.deepEqual([without.datasets, without.chunkCount, without.size], [[], 0, 2]);
    await without.close();
  });

  test("matrices of a fourth dimension have the weights of those of the third", async () => {
    const random = new Random(5);
    const [numbers, sums] = [6 * 64, 2 * 32].map((length) =>
      Float32Array.from({ length }, () => random.gaussian() ** 2),
    ) as [Float32Array, Float32Array];
    const name = "a.weight";
    await new GgufWriter().addTensor(name, "F32", [32, 2, 2, 3], numbers).write(at("4.gguf"));
    const importance = await writeGguf("importance.gguf", [{ name, sums: [...sums], counts: [1, 1] }]);
    await quantizeModel(at("4.gguf"), at("out.gguf"), { type: "Q4_0", tensors: { [name]: "Q4_0" }, importance });
    const blocks = openSync(at("out.gguf")).tensor(name).bytes();
    for (let matrix = 0; matrix < 6; matrix++) {
      const expected = quantizeSync("Q4_0", numbers.subarray(64 * matrix, 64 * (matrix + 1)), {
        columns: 32,
        importance: sums.subarray(32 * (matrix % 2), 32 * (matrix % 2) + 32),
      });
      assert.deepEqual(blocks.subarray(36 * matrix, 36 * (matrix + 1)), expected, `matrix ${matrix}`);
    }
  });

  test("texts about it have 127 bytes at most, in whole characters", async () => {
    const model = at("model.gguf");
    await new GgufWriter().addTensor("a.weight", "F32", [32, 1], new Float32Array(32)).write(model);
    const entry = { name: "a.weight", sums: Array(32).fill(1), counts: [1] };
    for (const [dataset, kept] of [
      ["x".repeat(128), "x".repeat(127)],
      ["ä".repeat(200), "ä".repeat(63)],
      [`x${"ä".repeat(200)}`, `x${"ä".repeat(63)}`],
      [`${"x".repeat(126)}\u{1f600}`, "x".repeat(126)],
      [`${"x".repeat(123)}\u{1f600}!`, `${"x".repeat(123)}\u{1f600}`],
    ] as const) {
      const importance = await writeGguf(`${"\u{1f600}".repeat(40)}.gguf`, [entry], [dataset]);
      await quantizeModel(model, at("out.gguf"), { type: "Q8_0", importance });
      const { metadata } = openSync(at("out.gguf"));
      assert.equal(metadata.get("quantize.imatrix.dataset"), kept);
      assert.equal(metadata.get("quantize.imatrix.file"), "\u{1f600}".repeat(31));
    }
  });

  test("weights of another model", async () => {
    const path = await writeGguf("other.gguf", [{ name: "a.weight", sums: [8, 4], counts: [4] }]);
    await assert.rejects(weights(path, "a.weight", [3, 1]), {
      code: "ERR_GGUF_INVALID",
      message: /tensor 'a.weight': it has 2 weights for this tensor, which has 3 columns in 1 matrices/,
    });
  });

  for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, -1]) {
    test(`a weight of ${bad}`, async () => {
      const path = await writeGguf("nan.gguf", [{ name: "a.weight", sums: [8, bad], counts: [4] }]);
      await assert.rejects(weights(path, "a.weight", [2, 1]), {
        code: "ERR_GGUF_INVALID",
        message: /its weights must be finite and not negative, found .* for column 1/,
      });
    });
  }

  const invalidGguf: [string, Sums[], RegExp][] = [
    ["sums that are no whole matrices", [{ name: "a", sums: [1, 2, 3], counts: [1, 1] }], /its 3 sums cannot be/],
    ["sums of another type", [{ name: "a", sums: [1, 2], counts: [1], type: "F16" }], /must be of type F32, not F16/],
    ["no sums", [], /it is no importance matrix: no tensor's name ends in '.in_sum2'/],
  ];
  for (const [what, entries, message] of invalidGguf) {
    test(`GGUF with ${what}`, async () => {
      const path = await writeGguf("bad.gguf", entries);
      await assert.rejects(ImportanceMatrix.open(path), { code: "ERR_GGUF_INVALID", message });
    });
  }

  test("GGUF without counts", async () => {
    await new GgufWriter().addTensor("a.in_sum2", "F32", [1], new Float32Array(1)).write(at("counts.gguf"));
    await assert.rejects(ImportanceMatrix.open(at("counts.gguf")), /there is no tensor 'a.counts' beside it/);
  });

  const good = oldFormat([{ name: "a.weight", calls: 1, sums: [1, 2] }], int(3), int(1), Buffer.from("x"));
  test("the older format, cut off anywhere", async () => {
    // It may end before the number of pieces, or after it.
    const whole = [good.length - 9, good.length - 5];
    for (let length = 0; length < good.length; length++) {
      if (whole.includes(length)) continue;
      const opened = ImportanceMatrix.open(write("cut.dat", good.subarray(0, length)));
      await assert.rejects(opened, { code: /^ERR_GGUF_(TRUNCATED|INVALID)$/ }, `${length} bytes`);
    }
  });

  const invalidOld: [string, Buffer, RegExp][] = [
    ["no entries", int(0), /the number of entries must be from 1 to 65536, found 0/],
    ["too many", int(2 ** 30), /the number of entries must be from 1 to 65536/],
    ["a name without end", Buffer.concat([int(1), int(2 ** 31 - 1)]), /the length of a name must be/],
    ["a negative length", Buffer.concat([int(1), int(-1)]), /the length of a name must be/],
    [
      "more sums than bytes",
      Buffer.concat([int(1), int(1), Buffer.from("a"), int(1), int(2 ** 31 - 1)]),
      /the number of sums must be/,
    ],
  ];
  for (const [what, bytes, message] of invalidOld) {
    test(`the older format with ${what}`, async () => {
      const opened = ImportanceMatrix.open(write("bad.dat", bytes));
      await assert.rejects(opened, { code: "ERR_GGUF_INVALID", message });
    });
  }

  test("what is not there", async () => {
    await assert.rejects(ImportanceMatrix.open(at("nothing.dat")), { code: "ERR_GGUF_OPEN" });
    await assert.rejects(ImportanceMatrix.open(1 as unknown as string), { code: "ERR_INVALID_ARG_TYPE" });
  });
});
