/** The benchmark of a whole model: that it measures what it says, with a tiny model; not how fast it is. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeContext, threadCounts } from "../../bench/context";
import { type Options, parseOptions } from "../../bench/options";
import { LLAMA_SIDES, llamaSubject, runLlama } from "../../bench/suites/llama";
import { emulated } from "../support/emulated";
import { noLlamaCpp } from "../support/libllama";

test("the llama example and llama.cpp read and write with the same model", {
  skip: emulated && "it takes minutes on an emulated processor",
}, async () => {
  const options = parseOptions(["--quick", "--suite", "llama"]) as Options;
  const context = await makeContext(options);
  const { results } = context;
  const shape = { layers: 2, embedding: 256, feedForward: 512, heads: 4, kvHeads: 2, vocabulary: 1000 };
  const work = { shape, prompt: 20, long: 70, written: 3, rounds: 2 };
  await runLlama(context, work);
  // What it finds wrong with the logits of a side.
  assert.equal(process.exitCode, undefined);

  const sides = LLAMA_SIDES.filter((side) => side !== "llama.cpp" || !noLlamaCpp);
  const subjects = [llamaSubject.reading(20), llamaSubject.writing(20), llamaSubject.writing(70)];
  assert.deepEqual(results.missing, noLlamaCpp ? [noLlamaCpp] : []);
  assert.equal(results.measurements.length, sides.length * subjects.length * threadCounts().length);
  for (const { rounds } of results.measurements) assert.equal(rounds, work.rounds);
  for (const side of sides) {
    for (const subject of subjects) {
      for (const threads of threadCounts()) {
        const speed = 1 / results.best({ task: "llama", subject, side, threads })!;
        assert.ok(speed > 1 && speed < 1e7, `${side}, ${subject}: ${speed} tokens per second`);
      }
    }
  }
});
