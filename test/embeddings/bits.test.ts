/** gguf-native/embeddings gives the same bits on every instruction set, in browsers, alone and together. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { cpu } from "gguf-native";
import { bundleForBrowser, noChromium, runInChromium } from "../support/browser";
import { resultOf } from "../support/child";
import { type EmbeddingsRun, TEXTS } from "../support/embeddings-run";
import { emulated } from "../support/emulated";
import { sha256 } from "../support/model-facts";
import { temporaryFolder, writeIn } from "../support/paths";
import { sampleBert } from "../support/sample-bert";
import { needsModule } from "../support/wasm";

/** SHA-256 of the model, and of all vectors: the same on every processor. */
const MODEL = "bc079ff55fed5a5aa95f93a5a8a1b49550cb36d08ea8b0a17a227f632f2dafac";
const DIGESTS: Record<EmbeddingsRun["activations"], string> = {
  int8: "5189936fd5120cb8c94675551f027f61e6f17f0bc52f42bcd80899053f73ecff",
  f32: "58730c803a485b529c22b38fffe1d774d5405f4914cd9f45c4fd9b2023d67505",
};

const bytes = sampleBert();
const model = writeIn(temporaryFolder(), "sample.gguf", bytes);

interface Result {
  isa: string;
  runs: EmbeddingsRun[];
}

function assertBits({ isa, runs }: Result, expectedIsa: string): void {
  assert.equal(isa, expectedIsa);
  for (const { activations, together, alone } of runs) {
    assert.equal(together.length, TEXTS.length);
    assert.deepEqual(alone, together);
    assert.equal(sha256(new Uint8Array(Uint32Array.from(together.flat()).buffer)), DIGESTS[activations]);
  }
}

/** Runs the child with the kernels that `env` asks for. */
const runWith = (env: Record<string, string>) => resultOf<Result>("embeddings", [model], env);

describe("vectors have the same bits, alone and together", () => {
  test("with the same model", () => {
    assert.equal(sha256(bytes), MODEL);
  });

  for (const isa of cpu().available) {
    test(`on ${isa}, with one and with two threads`, async () => {
      assertBits(await runWith({ GGUF_NATIVE_ISA: isa }), isa);
    });
  }

  // An emulator takes a minute for it, and its instructions are the same everywhere.
  const skip = needsModule.skip || (emulated && "not on an emulated processor");
  test("on WebAssembly", { skip }, async () => {
    assertBits(await runWith({ GGUF_NATIVE_WASM: "1" }), "wasm");
  });

  test("in Chromium", { skip: skip || noChromium }, async () => {
    const { outputFiles, warnings } = bundleForBrowser("embeddings-page");
    assert.deepEqual(warnings, []);
    const input = Buffer.from(bytes).toString("base64");
    assertBits((await runInChromium(outputFiles[0]!.contents, input)) as Result, "wasm");
  });
});
