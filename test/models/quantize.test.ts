/**
 * A real model quantized here and by llama.cpp itself: the same bytes, so llama.cpp writes the same text with both, and
 * `verify --from` finds both to be made of the original.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { openSync, quantizeModel } from "gguf-native";
import { MIXES } from "#dist/quantize-model/mixes";
import { output } from "../support/cli";
import { LlamaCpp, llamaQuantize, noLlamaCpp } from "../support/libllama";
import { temporaryFolder } from "../support/paths";
import { modelPath, needsModel, SMOLLM2 } from "./support";

const folder = temporaryFolder();
const original = join(folder, "f16.gguf");
const PROMPT = "The capital of France is";
const WRITTEN = 16;

async function write(path: string): Promise<number[]> {
  const llama = await LlamaCpp.load(path, 64);
  const written: number[] = [];
  let tokens = llama.vocabulary.tokens(PROMPT);
  llama.clear();
  while (written.length < WRITTEN) {
    const logits = llama.forward(tokens);
    tokens = [logits.indexOf(Math.max(...logits))];
    written.push(...tokens);
  }
  return written;
}

describe("SmolLM2", { skip: noLlamaCpp || needsModel(SMOLLM2).skip }, () => {
  before(() => quantizeModel(modelPath(SMOLLM2), original, { type: "F16" }));

  for (const name of ["Q8_0", "Q4_0", "Q4_K_M", "Q5_K_M", "Q6_K"] as const) {
    test(name, async () => {
      const ours = join(folder, "ours.gguf");
      const theirs = join(folder, "theirs.gguf");
      await quantizeModel(original, ours, { type: name });
      const { isDone, log } = await llamaQuantize(original, theirs, { fileType: MIXES[name].fileType });
      assert.ok(isDone, log);
      {
        using a = openSync(ours);
        using b = openSync(theirs);
        assert.equal(a.tensors.size, b.tensors.size);
        for (const [tensor, { type }] of b.tensors) {
          assert.equal(a.tensor(tensor).type, type, tensor);
          assert.ok(Buffer.compare(a.tensor(tensor).bytes(), b.tensor(tensor).bytes()) === 0, tensor);
        }
      }
      const text = await write(ours);
      assert.equal(text.length, WRITTEN);
      assert.deepEqual(text, await write(theirs));
      assert.match(await output("verify", theirs, "--from", original), /^ok /);
    });
  }
});
