/** The naming convention: the specification's examples, names in use, and names that are none. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type GgufFileName, parseFileName } from "gguf-native";

function parses(name: string, expected: GgufFileName | null): void {
  test(name, () => {
    assert.deepEqual(parseFileName(name), expected);
    assert.deepEqual(parseFileName(`/models/a-7B-v9.9-F32.gguf/${name}`), expected);
    assert.deepEqual(parseFileName(`C:\\models\\${name}`), expected);
  });
}

describe("the specification's examples", () => {
  parses("Mixtral-8x7B-v0.1-KQ2.gguf", {
    baseName: "Mixtral",
    sizeLabel: "8x7B",
    version: "v0.1",
    encoding: "KQ2",
  });
  parses("Hermes-2-Pro-Llama-3-8B-F16.gguf", {
    baseName: "Hermes-2-Pro-Llama-3",
    sizeLabel: "8B",
    version: "v1.0",
    encoding: "F16",
  });
  parses("Hermes-2-Pro-Llama-3-8B-v1.0-F16.gguf", {
    baseName: "Hermes-2-Pro-Llama-3",
    sizeLabel: "8B",
    version: "v1.0",
    encoding: "F16",
  });
  parses("Grok-100B-v1.0-Q4_0-00003-of-00009.gguf", {
    baseName: "Grok",
    sizeLabel: "100B",
    version: "v1.0",
    encoding: "Q4_0",
    shard: { number: 3, count: 9 },
  });
  parses("Phi-3-mini-3.8B-ContextLength4k-instruct-v1.0.gguf", {
    baseName: "Phi-3-mini",
    sizeLabel: "3.8B-ContextLength4k",
    fineTune: "instruct",
    version: "v1.0",
  });
  parses("mtp-Qwen3-27B-v1.0-Q4_K_M.gguf", {
    sidecar: "mtp",
    baseName: "Qwen3",
    sizeLabel: "27B",
    version: "v1.0",
    encoding: "Q4_K_M",
  });
  parses("mmproj-Qwen2-VL-7B-v1.0-F16.gguf", {
    sidecar: "mmproj",
    baseName: "Qwen2-VL",
    sizeLabel: "7B",
    version: "v1.0",
    encoding: "F16",
  });
  parses("not-a-known-arrangement.gguf", null);
});

describe("names in use", () => {
  parses("Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", {
    baseName: "Meta-Llama-3.1",
    sizeLabel: "8B",
    fineTune: "Instruct",
    version: "v1.0",
    encoding: "Q4_K_M",
  });
  parses("Qwen3-30B-A3B-Instruct-2507-IQ3_XXS.gguf", {
    baseName: "Qwen3",
    sizeLabel: "30B-A3B",
    fineTune: "Instruct-2507",
    version: "v1.0",
    encoding: "IQ3_XXS",
  });
  parses("gpt-oss-20b-MXFP4.gguf", {
    baseName: "gpt-oss",
    sizeLabel: "20b",
    version: "v1.0",
    encoding: "MXFP4",
  });
  parses("Mistral-7B-Instruct-v0.3-bf16.gguf", {
    baseName: "Mistral",
    sizeLabel: "7B",
    fineTune: "Instruct",
    version: "v0.3",
    encoding: "bf16",
  });
  parses("tinyllama-F16.gguf", { baseName: "tinyllama", version: "v1.0", encoding: "F16" });
  parses("Llama-3-8B-v1.0-Q8_0-LoRA.gguf", {
    baseName: "Llama-3",
    sizeLabel: "8B",
    version: "v1.0",
    encoding: "Q8_0",
    type: "LoRA",
  });
  parses("bert-vocab.GGUF", { baseName: "bert", version: "v1.0", type: "vocab" });
  parses("model-00001-of-00002.gguf", { baseName: "model", version: "v1.0", shard: { number: 1, count: 2 } });
  parses("7B.gguf", null);
});

describe("names of another form", () => {
  const none = [
    "",
    ".gguf",
    "-7B.gguf",
    "a--7B.gguf",
    "llama.gguf",
    "Mixtral-8x7B-v0.1-KQ2",
    "Mixtral-8x7B-v0.1-KQ2.bin",
    "model-00000-of-00002.gguf",
    "model-00003-of-00002.gguf",
    "7B-v1.0-F16.gguf/",
    `${"-".repeat(100_000)}.gguf`,
    `${"a1-".repeat(100_000)}`,
  ];
  for (const name of none) {
    test(name.length > 40 ? `${name.slice(0, 40)}... (${name.length})` : `'${name}'`, () =>
      assert.equal(parseFileName(name), null),
    );
  }
});
