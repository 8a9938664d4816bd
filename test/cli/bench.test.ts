/** `gguf-native bench`: that it measures what it says; not how much. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { cpu, ggmlTypes } from "gguf-native";
import { blocks, expectTidy, floats, json, output, writeModel } from "../support/cli";
import { emulated } from "../support/emulated";

const unknown = { name: "u", type: 99, shape: [4], bytes: new Uint8Array(16) };
const tensors = [blocks("a", "Q4_K", [256, 8], 1), blocks("b", "Q4_K", [512], 2), floats("c", [1, 2]), unknown];
writeModel("model.gguf", { tensors });

interface Rate {
  type: string;
  tensors: number;
  elements: number;
  oneThread: number;
  allThreads: number;
}

function expectRates(rates: Rate[]): void {
  for (const { type, oneThread, allThreads } of rates) {
    for (const rate of [oneThread, allThreads]) assert.ok(rate > 1e3 && rate < 1e13, `${type}: ${rate}`);
  }
}

describe("bench", () => {
  test("of a file", async () => {
    const begin = performance.now();
    const { path, isa, threads, opening, types } = await json("bench model.gguf");
    const elapsed = performance.now() - begin;
    const { isa: expectedIsa, threads: expectedThreads } = cpu();
    assert.deepEqual([path, isa, threads], ["model.gguf", expectedIsa, expectedThreads]);
    // Milliseconds: opening a file of a few kilobytes takes more than one thousandth.
    assert.ok(opening.best > 1e-3, JSON.stringify(opening));
    assert.ok(opening.first + 10 * opening.best < elapsed, `${JSON.stringify(opening)} in ${elapsed} ms`);
    const counts = types.map(({ type, tensors, elements }: Rate) => [type, tensors, elements]);
    assert.deepEqual(counts, [
      ["Q4_K", 2, 2560],
      ["F32", 1, 2],
    ]);
    expectRates(types);
  });
  test("of a file, for people", async () => {
    const stdout = await output("bench model.gguf");
    expectTidy(stdout);
    assert.match(stdout, /^open +[\d.]+ ms, [\d.]+ ms the first time\nkernels +\w+, \d+ threads?\n\nmodel\.gguf\n/);
    assert.match(stdout, /\n {2}type +tensors +weights +GB\/s, 1 thread +GB\/s, \d+ threads?\n {2}Q4_K +2 +2\.56 K /);
  });
  test("without a file, of every type", {
    skip: emulated && "it takes minutes on an emulated processor",
  }, async () => {
    const { opening, types } = await json("bench");
    assert.equal(opening, undefined);
    const found = types.map(({ type }: Rate) => type);
    assert.deepEqual(found, Object.keys(ggmlTypes));
    expectRates(types);
  });
});
