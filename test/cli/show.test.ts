/** `gguf-native show`: values at a glance. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { openSync } from "gguf-native";
import { at, blocks, EVIL, expectFailure, floats, json, output, run, writeModel } from "../support/cli";
import { answerRange, serve } from "../support/range-server";

const counting = Array.from({ length: 24 }, (_, i) => i - 12);
writeModel("model.gguf", {
  tensors: [
    blocks("q", "Q4_K", [512, 40], 1),
    floats("matrix", counting, [4, 3, 2]),
    floats("odd", [Number.NaN, Infinity, -Infinity, -0, 1.5, 0.001]),
    floats("large", [1e20, -3, 0]),
    floats("small", [1.5e-7, 0, -0]),
    floats("empty", [], [0, 3]),
    floats(EVIL, [1]),
    { name: "unknown", type: 99, shape: [4], bytes: new Uint8Array(16) },
  ],
});

describe("show", () => {
  test("the values that dequantize gives", async () => {
    using file = openSync(at("model.gguf"));
    const all = file.tensor("q").dequantizeSync();
    for (const [rows, columns, [r0, r1], [c0, c1]] of [
      ["3:5", "250:270", [3, 5], [250, 270]],
      ["39", ":1", [39, 40], [0, 1]],
      ["38:", "500:", [38, 40], [500, 512]],
      ["38:1000", "511", [38, 40], [511, 512]],
    ] as const) {
      const found = await json(["show", "model.gguf", "q", "--rows", rows, "--columns", columns]);
      assert.deepEqual(
        [found.rows, found.columns],
        [
          [r0, r1],
          [c0, c1],
        ],
      );
      const expected = Array.from({ length: r1 - r0 }, (_, i) =>
        Array.from(all.subarray((r0 + i) * 512 + c0, (r0 + i) * 512 + c1)),
      );
      assert.deepEqual(found.values, expected);
    }
    const { rows, columns } = await json("show model.gguf q");
    assert.deepEqual(
      [rows, columns],
      [
        [0, 8],
        [0, 8],
      ],
    );
  });
  test("values that are no number, very large and very small ones", async () => {
    const printed = await output("show model.gguf odd");
    assert.match(printed, /\n {4}0 +NaN +Infinity +-Infinity +-0\.000 +1\.500 +0\.001\n/);
    assert.match(await output("show model.gguf large"), /\n {4}0 +1\.000e\+20 +-3\.000e\+0 +0\n/);
    assert.match(await output("show model.gguf small"), /\n {4}0 +1\.500e-7 +0 +-0\n/);
    assert.deepEqual((await json("show model.gguf odd")).values[0].slice(0, 4), ["NaN", "Infinity", "-Infinity", "-0"]);
    assert.match(await output("show model.gguf empty"), /rows none of 0, columns none of 0\n$/);
  });
  test("of a URL fetches only what it shows", async () => {
    const content = readFileSync(at("model.gguf"));
    const { url } = await serve((request, response) => answerRange(request, response, content));
    const local = (await output("show model.gguf q --json")).replace('"model.gguf"', JSON.stringify(url));
    assert.equal((await run(["show", url, "q", "--json"])).stdout, local);
  });
  test("wrong usage, and tensors that cannot be shown", async () => {
    await expectFailure("show model.gguf", 2, /missing TENSOR/);
    for (const range of ["x", "", "1:2:3", "-1:2", "1.5", "99999999999999999999"]) {
      await expectFailure(["show", "model.gguf", "q", `--rows=${range}`], 2, /--rows must be a range such as 0:8/);
    }
    await expectFailure("show model.gguf q --rows 3:3", 2, /--rows 3:3 is empty/);
    await expectFailure("show model.gguf q --rows 40", 2, /--rows begins at 40, but there are 40 rows/);
    await expectFailure("show model.gguf empty --rows 0:1", 2, /there are 0 rows/);
    await expectFailure("show model.gguf none", 1, /no tensor is named 'none'/);
    await expectFailure("show model.gguf unknown", 1, /unknown/);
    writeModel("wide.gguf", { tensors: [blocks("wide", "Q1_0", [2 ** 17], 1)] });
    await expectFailure("show wide.gguf wide --columns :", 2, /more than 65,536 values/);
  });
});
