/** The llama example writes the same text, with the same bits, on every instruction set and with any number of threads. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { cpu } from "gguf-native";
import { resultOf } from "../support/child";
import { emulated } from "../support/emulated";
import { type LlamaRun, WRITTEN } from "../support/llama-run";
import { sha256 } from "../support/model-facts";
import { temporaryFolder, writeIn } from "../support/paths";
import { sampleModel } from "../support/sample-model";
import { needsModule } from "../support/wasm";

/** SHA-256 of the model, and of all logits: the same on every processor. */
const MODEL = "86d55866c484a57b200506eb7ff789ba9aa5b86afb699775fdf31c64968c45f6";
const DIGESTS: Record<LlamaRun["activations"], string> = {
  int8: "e2c316defbb6b39ba97879b6775614fb2e62ec317e27860af64336ae58df5ced",
  f32: "08d5c38d315ca134d81e3fe9ef73ba7de3c973aba16b886fdb5fc81e41547c8d",
};

const bytes = sampleModel();
const model = writeIn(temporaryFolder(), "sample.gguf", bytes);

/** Runs the child with the kernels that `env` asks for. */
async function runsWith(isa: string, env: Record<string, string>): Promise<LlamaRun[]> {
  const result = await resultOf<{ isa: string; runs: LlamaRun[] }>("llama", [model], env);
  assert.equal(result.isa, isa);
  return result.runs;
}

describe("the llama example has the same bits", () => {
  test("with the same model", () => {
    assert.equal(sha256(bytes), MODEL);
  });

  const kernels = cpu().available.map((isa): [string, Record<string, string>] => [isa, { GGUF_NATIVE_ISA: isa }]);
  if (!needsModule.skip && cpu().isa !== "wasm") kernels.push(["wasm", { GGUF_NATIVE_WASM: "1" }]);
  const texts = new Map<string, number[]>();
  for (const [isa, env] of kernels) {
    // An emulator takes a minute for it, and its instructions are the same everywhere.
    const skip = isa === "wasm" && emulated && "not on an emulated processor";
    test(`on ${isa}, with one and with two threads`, { skip }, async () => {
      const runs = await runsWith(isa, env);
      assert.deepEqual(
        runs.map(({ activations, threads }) => [activations, threads]),
        [
          ["int8", 1],
          ["int8", 2],
          ["f32", 1],
          ["f32", 2],
        ],
      );
      for (const { activations, tokens, digest } of runs) {
        assert.equal(tokens.length, WRITTEN);
        assert.deepEqual(tokens, texts.get(activations) ?? tokens);
        texts.set(activations, tokens);
        assert.equal(digest, DIGESTS[activations], activations);
      }
    });
  }
});
