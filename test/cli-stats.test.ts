/** `gguf-native stats`. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { openSync } from "gguf-native";
import {
  at,
  blocks,
  EVIL,
  expectFailure,
  expectTidy,
  floats,
  json,
  leftovers,
  output,
  run,
  writeModel,
} from "./support/cli";
import { sampleModel } from "./support/sample-model";

writeFileSync(at("sample.gguf"), sampleModel());
const { NaN: nan } = Number;
writeModel("numbers.gguf", {
  tensors: [
    floats("simple", [0, -0, 1, 2, 3, 4, -2, 8]),
    floats("special", [nan, Infinity, Infinity, -Infinity, 1, 3]),
    floats("none", [nan, Infinity]),
    floats("empty", [], [0]),
    floats("constant", [7, 7, 7]),
    floats("zeros", [-0, -0]),
    floats(`<&"'${EVIL}>`, [1, 2]),
  ],
});

describe("numbers", () => {
  const only = async (name: string, ...args: string[]) =>
    (await json(["stats", "numbers.gguf", name, ...args])).tensors[0];
  test("of a few values, by hand", async () => {
    const { mean, std, ...rest } = await only("simple", "--bins", "5");
    assert.deepEqual(rest, {
      ...{ name: "simple", type: "F32", shape: [8], elements: 8, nan: 0, positiveInfinity: 0 },
      ...{ negativeInfinity: 0, zeros: 2, min: -2, max: 8 },
      histogram: { min: -2, max: 8, counts: [1, 3, 2, 1, 1] },
    });
    assert.equal(mean, 2);
    assert.equal(std, Math.sqrt(66 / 8));
  });
  test("infinities and NaNs are counted and left out", async () => {
    const { mean, std, nan, positiveInfinity, negativeInfinity, histogram } = await only(
      "special",
      "--bins",
      "2",
    );
    assert.deepEqual([mean, std, nan, positiveInfinity, negativeInfinity], [2, 1, 1, 2, 1]);
    assert.deepEqual(histogram.counts, [1, 1]);
  });
  test("of a tensor without finite values, an empty one, one of equal values", async () => {
    assert.deepEqual(
      [(await only("none")).nan, (await only("none")).min, (await only("none")).histogram],
      [1, undefined, undefined],
    );
    assert.deepEqual([(await only("empty")).elements, (await only("empty")).mean], [0, undefined]);
    const { min, max, std, histogram } = await only("constant", "--bins", "3");
    assert.deepEqual([min, max, std, histogram.counts], [7, 7, 0, [3, 0, 0]]);
  });
  test("zero has no sign", async () => {
    const { min, max, histogram } = await only("zeros", "--bins", "2");
    assert.deepEqual([min, max, histogram], [0, 0, { min: 0, max: 0, counts: [2, 0] }]);
  });
  for (const [name, type, count] of [
    ["small", "Q4_K", 2 ** 16],
    ["on several threads", "Q1_0", 2 ** 25 + 2 ** 20],
  ] as const) {
    test(`of a ${type} tensor, against a plain computation: ${name}`, async () => {
      writeModel(`${type}.gguf`, { tensors: [blocks("t", type, [count], 4)] });
      using file = openSync(at(`${type}.gguf`));
      const values = file.tensor("t").dequantizeSync();
      let [min, max, sum, squares, zeros] = [Infinity, -Infinity, 0, 0, 0];
      for (const value of values) {
        min = Math.min(min, value);
        max = Math.max(max, value);
        sum += value;
        if (value === 0) zeros++;
      }
      const mean = sum / count;
      for (const value of values) squares += (value - mean) ** 2;
      const found = (await json(["stats", `${type}.gguf`, "t"])).tensors[0];
      assert.deepEqual([found.min, found.max, found.zeros, found.elements], [min, max, zeros, count]);
      assert.ok(Math.abs(found.mean - mean) < 1e-9);
      assert.ok(Math.abs(found.std - Math.sqrt(squares / count)) < 1e-9);
      const counted = found.histogram.counts.reduce((a: number, b: number) => a + b);
      assert.equal(counted, count);
    });
  }
});

describe("for people", () => {
  test("one tensor with its histogram", async () => {
    const stdout = await output("stats", "sample.gguf", "blk.0.attn_q.weight");
    expectTidy(stdout);
    assert.match(stdout, /^blk\.0\.attn_q\.weight\n {2}type +Q4_K\n {2}shape +512 x 512\n/);
    assert.match(stdout, /\n {2}std +1\.\d+\n {2}zeros +/);
    assert.equal(
      stdout.split("\n").filter((line) => /^ +-?[\d.e-]+ +[▏▎▍▌▋▊▉█]* +[\d,]+$/.test(line)).length,
      20,
    );
    expectTidy((await run(["stats", "sample.gguf", "blk.0.attn_q.weight"], { COLUMNS: "40" })).stdout, 40);
  });
  test("bars are as long as their counts, and never empty for a value", async () => {
    const values = [...Array(800).fill(0), ...Array(400).fill(1), 2];
    writeModel("bars.gguf", { tensors: [floats("t", values)] });
    const stdout = (await run(["stats", "bars.gguf", "t", "--bins", "3"], { COLUMNS: "60" })).stdout;
    const [all, half, one] = stdout
      .split("\n")
      .slice(-4, -1)
      .map((line) => line.match(/[▏▎▍▌▋▊▉█]+/)![0]);
    assert.match(all!, /^█+$/);
    assert.equal(half!.replace(/[^█]$/, "").length, Math.floor(all!.length / 2));
    assert.equal(one, "▏");
  });
  test("equal values have one bar", async () => {
    const stdout = await output("stats", "numbers.gguf", "constant");
    assert.match(stdout, /\n {2}infinite +0\n\n {2}7 {2}█+ {2}3\n$/);
  });
  test("several tensors as a table", async () => {
    const stdout = await output("stats", "numbers.gguf", "*");
    expectTidy(stdout);
    assert.match(stdout, /^ {2}name .* min .* max .* mean .* std .* zeros .* not finite\n/);
    assert.match(
      stdout,
      /\n {2}simple +-2 +8 +2 +2\.87 +2 +0\n {2}special +1 +3 +2 +1 +0 +4\n {2}none +- +- +- +- +0 +2\n/,
    );
  });
  test("a tensor without finite values", async () => {
    const stdout = await output("stats", "numbers.gguf", "none");
    assert.match(stdout, /\n {2}NaN +1 \(50 %\)\n {2}infinite +1 \(50 %\)\n$/);
  });
});

describe("--svg", () => {
  test("draws a picture with a bar for each bin, whatever the name", async () => {
    await output("stats", "numbers.gguf", "<*", "--svg", "picture.svg", "--bins", "7");
    const svg = readFileSync(at("picture.svg"), "utf8");
    assert.match(svg, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" viewBox=/);
    assert.equal(svg.match(/<rect x=/g)!.length, 7);
    assert.match(
      svg,
      /<title>&#60;&#38;&#34;&#39;evil\\x1b\[31m\\n\\u202ename\\x07&#62; \(F32, 2\)<\/title>/,
    );
    expectTidy(svg, Infinity);
    // Every element is closed, in order.
    const open: string[] = [];
    for (const [, end, name, alone] of svg.matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g)) {
      if (end) assert.equal(open.pop(), name);
      else if (!alone) open.push(name!);
    }
    assert.deepEqual(open, []);
  });
  test("fails for several tensors, and for one without finite values", async () => {
    await expectFailure(
      ["stats", "numbers.gguf", "*", "--svg", "no.svg"],
      2,
      /--svg draws one tensor, not 7/,
    );
    await expectFailure(["stats", "numbers.gguf", "none", "--svg", "no.svg"], 1, /no finite values to draw/);
    assert.ok(!existsSync(at("no.svg")));
    assert.deepEqual(leftovers(), []);
  });
});

test("wrong usage", async () => {
  await expectFailure(["stats", "sample.gguf"], 2, /missing TENSOR/);
  for (const bins of ["0", "1001", "x", "1.5", ""]) {
    await expectFailure(
      ["stats", "sample.gguf", "*", `--bins=${bins}`],
      2,
      /--bins must be a whole number from 1 to 1000/,
    );
  }
  await expectFailure(["stats", "sample.gguf", "none"], 1, /no tensor is named 'none'/);
});
