/** `gguf-native stats`. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import {
  at,
  EVIL,
  expectFailure,
  expectPicture,
  expectTidy,
  floats,
  json,
  leftovers,
  output,
  run,
  writeModel,
} from "../support/cli";
import { sampleModel } from "../support/sample-model";

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
  test("of a tensor without finite values, an empty one, one of equal values", async () => {
    const shown = [(await only("none")).nan, (await only("none")).min, (await only("none")).histogram];
    assert.deepEqual(shown, [1, undefined, undefined]);
    assert.deepEqual([(await only("empty")).elements, (await only("empty")).mean], [0, undefined]);
    const { min, max, std, histogram } = await only("constant", "--bins", "3");
    assert.deepEqual([min, max, std, histogram.counts], [7, 7, 0, [3, 0, 0]]);
  });
});

describe("for people", () => {
  test("equal values have one bar", async () => {
    const stdout = await output("stats numbers.gguf constant");
    assert.match(stdout, /\n {2}infinite +0\n\n {2}7 {2}█+ {2}3\n$/);
  });
  test("a tensor without finite values", async () => {
    const stdout = await output("stats numbers.gguf none");
    assert.match(stdout, /\n {2}NaN +1 \(50 %\)\n {2}infinite +1 \(50 %\)\n$/);
  });
});

/** Draws a picture, which is said on standard error. */
async function drawn(...args: string[]): Promise<string> {
  const { status, stdout, stderr } = await run(["stats", ...args]);
  assert.equal(status, 0, stderr);
  assert.match(stderr, /^[\w-]+\.svg: [\d.]+ KiB\n$/);
  return stdout;
}

describe("without a tensor", () => {
  test("all of them, in a table, and in JSON", async () => {
    assert.equal(await output("stats sample.gguf"), await output("stats sample.gguf *"));
    assert.equal((await json("stats sample.gguf")).tensors.length, 20);
  });
});

describe("--svg", () => {
  test("draws a picture with a bar for each bin, whatever the name", async () => {
    await drawn("numbers.gguf", "<*", "--svg", "picture.svg", "--bins", "7");
    const svg = readFileSync(at("picture.svg"), "utf8");
    assert.match(svg, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" viewBox=/);
    assert.equal(svg.match(/<rect x=/g)!.length, 7);
    const expected = /<title>&#60;&#38;&#34;&#39;evil\\x1b\[31m\\n\\u202ename\\x07&#62; \(F32, 2\)<\/title>/;
    assert.match(svg, expected);
    expectTidy(svg, Infinity);
    expectPicture(svg);
  });
  test("the middle of a symmetric range is 0", async () => {
    for (const [i, [low, high]] of [
      [-0.1, 0.1],
      [-0.3, Math.fround(0.3) + 2e-8],
      [-3e38, 3e38],
    ].entries()) {
      writeModel("middle.gguf", { tensors: [floats("t", [low!, 0, high!])] });
      await drawn("middle.gguf", "t", "--svg", `middle-${i}.svg`);
      const svg = readFileSync(at(`middle-${i}.svg`), "utf8");
      assert.deepEqual(ticks(svg)[2], "0");
      expectPicture(svg);
    }
  });
  test("labels have room, whatever they say", async () => {
    const name = "W漢".repeat(300);
    const values = [-1.234e-38, ...Array(2 ** 20).fill(1.234e-38)];
    writeModel("long-labels.gguf", { tensors: [floats(name, values)] });
    await drawn("long-labels.gguf", name, "--svg", "long-labels.svg");
    expectPicture(readFileSync(at("long-labels.svg"), "utf8"));
  });
  test("of several tensors: a strip for each, those of a kind together", async () => {
    const even = Array.from({ length: 64 }, (_, i) => (i - 31.5) / 100);
    const ordinary = [0, 1, 2].flatMap((i) => [
      floats(`blk.${i}.a`, even),
      floats(
        `blk.${i}.b`,
        even.map((x) => x * (i === 1 ? 1000 : 1)),
      ),
    ]);
    const odd = [
      floats(EVIL, [Number.NaN, 1]),
      floats("none", [Number.NaN]),
      floats("empty", [], [0]),
      floats("x".repeat(500), [-1e30, 1e30]),
    ];
    const unknown = { name: "unknown", type: 99, shape: [4], bytes: new Uint8Array(16) };
    writeModel("strips.gguf", { tensors: [...ordinary, ...odd, unknown] });
    const { status, stdout, stderr } = await run("stats strips.gguf --svg strips.svg");
    const found = [status, stderr];
    assert.deepEqual(found, [0, "gguf-native: 1 tensor of unknown types left out\nstrips.svg: 5.99 KiB\n"]);
    assert.equal(stdout.split("\n").length, 1 + 10 + 1);
    const svg = readFileSync(at("strips.svg"), "utf8");
    expectPicture(svg);
    const names = Array.from(svg.matchAll(/>(blk[^<:]*)<\/text>/g), ([, name]) => name);
    assert.deepEqual(names, ["blk.0.a", "blk.1.a", "blk.2.a", "blk.0.b", "blk.1.b", "blk.2.b"]);
    assert.match(svg, /<title>strips\.gguf: 10 tensors<\/title>/);
    assert.equal(svg.match(/>1 not finite</g)!.length, 2);
    assert.equal(svg.match(/>empty</g)!.length, 2); // the name, and what it is
    assert.match(svg, /<title>blk\.1\.b: min -315, max 315, mean 0, std 184\.7<\/title>/);
    // Without a limit of the scale, -1e30 is at its left end, 1e30 at its right, and 0 in the middle.
    const [, from, to] = /x{500}: [^<]*<\/title>\n?<path d="M([\d.]+) [\d.]+H([\d.]+)"/.exec(svg)!;
    const zero = /<text x="([\d.]+)"[^>]*>0<\/text>/.exec(svg)![1];
    assert.ok(Math.abs((Number(from) + Number(to)) / 2 - Number(zero)) < 0.02);
    await drawn("strips.gguf", "blk.*.b", "--svg", "some.svg");
    assert.equal(readFileSync(at("some.svg"), "utf8").match(/<g><title>/g)!.length, 3);
  });
  test("of tensors that have no magnitude", async () => {
    writeModel("flat.gguf", {
      tensors: [floats("zeros", [0, 0]), floats("none", [Number.NaN]), floats("e", [], [0])],
    });
    await drawn("flat.gguf", "*", "--svg", "flat.svg");
    expectPicture(readFileSync(at("flat.svg"), "utf8"));
  });
  test("fails for a tensor without finite values, and for a model without tensors", async () => {
    await expectFailure("stats numbers.gguf none --svg no.svg", 1, /no finite values to draw/);
    writeModel("bare.gguf", {});
    await expectFailure("stats bare.gguf --svg no.svg", 1, /bare\.gguf has no tensors to look at/);
    assert.ok(!existsSync(at("no.svg")));
    assert.deepEqual(leftovers(), []);
  });
});

/** The labels under a histogram. */
function ticks(svg: string): string[] {
  return Array.from(svg.matchAll(/text-anchor="middle"[^>]*>([^<]*)<\/text>/g), ([, text]) => text!).slice(1);
}

test("wrong usage", async () => {
  await expectFailure("stats", 2, /missing FILE/);
  for (const bins of ["0", "1001", "x", "1.5", ""]) {
    await expectFailure(
      ["stats", "sample.gguf", "*", `--bins=${bins}`],
      2,
      /--bins must be a whole number from 1 to 1000/,
    );
  }
  await expectFailure("stats sample.gguf none", 1, /no tensor is named 'none'/);
});

test("several tensors in another order", async () => {
  const order = async (sort: string) =>
    (await json(["stats", "numbers.gguf", "[scz]*", "none", "--sort", sort])).tensors.map(
      ({ name }: { name: string }) => name,
    );
  assert.deepEqual(await order("std"), ["simple", "special", "constant", "zeros", "none"]);
  assert.deepEqual(await order("max"), ["simple", "constant", "special", "zeros", "none"]);
  assert.deepEqual((await order("zeros")).slice(0, 2), ["zeros", "simple"]);
  await expectFailure("stats numbers.gguf --sort mean", 2, /--sort must be std, max or zeros/);
});
