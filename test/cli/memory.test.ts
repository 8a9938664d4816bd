/** `gguf-native inspect --memory`: what a model takes to run, by the rules of llama.cpp. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { blocks, EVIL, expectFailure, expectTidy, json, output, run, writeModel } from "../support/cli";
import { arr, bool, f32, i32, str, type TypedValue, u32, u64 } from "../support/gguf-writer";
import { needsShared, sharedPath, tinyLlama } from "../support/shared-data";

const KiB = 1024;
const MiB = 1024 * KiB;

describe("the tiny llama, as llama.cpp itself reports it", needsShared(tinyLlama), () => {
  /** "model buffer size" and "KV buffer size", in MiB to two digits. */
  const near = (bytes: number, mebibytes: number) => assert.ok(Math.abs(bytes / MiB - mebibytes) <= 0.01 * mebibytes);

  test("weights and caches", async () => {
    const path = sharedPath(tinyLlama);
    const at = async (context: number) =>
      (await json(["inspect", "--memory", "--context", String(context), path])).memory;
    const { weights, cache } = await at(512);
    near(weights.bytes, 5.3);
    near(cache.bytes.f16, 0.5);
    assert.deepEqual([cache.cells, cache.isAtMost], [512, false]);
    // llama.cpp makes room for 1024 tokens.
    const more = (await at(1000)).cache;
    near(more.bytes.f16, 1);
    near(more.bytes.q8_0, 0.53);
    assert.deepEqual([more.context, more.cells], [1000, 1024]);
  });
});

/** The cache of a model with these keys, by their names after the architecture's. */
async function cacheOf(keys: Record<string, TypedValue>, architecture = "llama", context?: number) {
  const metadata = Object.entries(keys).map(
    ([key, value]) => [`${architecture}.${key}`, value] as [string, TypedValue],
  );
  writeModel("model.gguf", { metadata: [["general.architecture", str(architecture)], ...metadata] });
  const more = context === undefined ? [] : ["--context", String(context)];
  return (await json(["inspect", "--memory", "model.gguf", ...more])).memory.cache;
}

const base = {
  block_count: u32(4),
  context_length: u32(8192),
  embedding_length: u32(1024),
  "attention.head_count": u32(8),
};

describe("the cache", () => {
  test("as many heads for keys and values as for queries, where the file does not say", async () => {
    const { perToken, bytes, remarks } = await cacheOf(base);
    assert.deepEqual(perToken, { f16: 4 * 2 * 1024 * 2, q8_0: (4 * 2 * 1024 * 34) / 32 });
    assert.equal(bytes.f16, 8192 * perToken.f16);
    assert.deepEqual(remarks, []);
  });
  test("heads of their own number and length, for each layer", async () => {
    const { perToken } = await cacheOf({
      ...base,
      "attention.head_count_kv": arr("int32", [2, 0, 1, 4]),
      "attention.key_length": u32(96),
      "attention.value_length": u32(64),
    });
    assert.equal(perToken.f16, (2 + 0 + 1 + 4) * (96 + 64) * 2);
  });
  test("no layers that only guess further tokens", async () => {
    const { perToken } = await cacheOf({ ...base, nextn_predict_layers: u32(1) });
    assert.equal(perToken.f16, 3 * 2 * 1024 * 2);
  });
  test("rows that q8_0 does not hold", async () => {
    const { perToken, remarks } = await cacheOf({ ...base, "attention.key_length": u32(10) });
    assert.equal(perToken.q8_0, null);
    assert.match(remarks.join(), /cannot be q8_0/);
  });
  test("layers with a window, by the pattern of the file or of the architecture", async () => {
    const window = { ...base, "attention.sliding_window": u32(1000) };
    const row = 2 * 1024 * 2;
    // 1000 tokens and a batch of 512, as a multiple of 256.
    for (const [architecture, pattern, windowed] of [
      ["gemma2", undefined, 2],
      ["gemma3", undefined, 4],
      ["gpt-oss", undefined, 2],
      ["other", u32(4), 3],
      ["other", arr("bool", [false, true, false, false]), 1],
    ] as const) {
      const keys = pattern === undefined ? window : { ...window, "attention.sliding_window_pattern": pattern };
      const { bytes, isAtMost, remarks } = await cacheOf(keys, architecture);
      assert.equal(bytes.f16, row * (windowed * 1536 + (4 - windowed) * 8192), architecture);
      assert.equal(isAtMost, false);
      assert.match(remarks.join(), new RegExp(`${windowed} of 4 layers keep only the last 1000 tokens`));
    }
    // A window that is larger than the context takes no more than the context.
    assert.equal((await cacheOf(window, "gemma2", 256)).bytes.f16, 4 * row * 256);
  });
  test("what is not known is a limit, and said", async () => {
    const full = 4 * 2 * 1024 * 2 * 8192;
    for (const [architecture, keys, message] of [
      ["other", { "attention.sliding_window": u32(1000) }, /which layers see only a window/],
      ["gemma2", {}, /which layers see only a window/],
      ["other", { "ssm.state_size": u32(16) }, /which layers are recurrent/],
      ["deepseek2", { "attention.key_length_mla": u32(192) }, /latent attention/],
      ["gemma4", { "attention.shared_kv_layers": u32(2) }, /share what they keep/],
    ] as const) {
      const { bytes, isAtMost, remarks } = await cacheOf({ ...base, ...keys }, architecture);
      assert.deepEqual([bytes.f16, isAtMost], [full, true]);
      assert.match(remarks.join(), message);
      assert.match(await output("inspect --memory model.gguf"), /≤ 128 MiB/);
    }
  });
  test("recurrent layers keep nothing of a token; their state is not counted", async () => {
    const mamba = { ...base, "attention.head_count": u32(0), "ssm.state_size": u32(16) };
    const { bytes, isAtMost, remarks } = await cacheOf(mamba, "mamba");
    assert.deepEqual([bytes, isAtMost], [{ f16: 0, q8_0: 0 }, false]);
    assert.match(remarks.join(), /a state of fixed size for recurrent layers, which is not counted/);
  });
  test("models that read a text at once have none", async () => {
    const { bytes, remarks } = await cacheOf({ ...base, "attention.causal": bool(false) }, "bert");
    assert.deepEqual(bytes, { f16: 0, q8_0: 0 });
    assert.match(remarks.join(), /none: the model reads a text all at once/);
  });
  test("headers that do not tell, and ones that lie", async () => {
    const without = (key: keyof typeof base) =>
      Object.fromEntries(Object.entries(base).filter(([name]) => name !== key));
    for (const [keys, message] of [
      [{}, /no usable llama\.block_count/],
      [without("attention.head_count"), /no usable llama\.attention\.head_count/],
      [without("embedding_length"), /no usable llama\.attention\.key_length/],
      [{ ...base, block_count: u32(2 ** 32 - 1) }, /no usable llama\.block_count/],
      [{ ...base, block_count: f32(2.5) }, /no usable llama\.block_count/],
      [{ ...base, block_count: arr("uint32", [4]) }, /no usable llama\.block_count/],
      [{ ...base, nextn_predict_layers: u32(9) }, /no usable llama\.block_count/],
      [{ ...base, "attention.head_count": i32(-1) }, /no usable llama\.attention\.head_count/],
      [{ ...base, "attention.head_count": str("8") }, /no usable llama\.attention\.head_count/],
    ] as const) {
      const { perToken, bytes, remarks } = await cacheOf(keys);
      assert.deepEqual(
        [perToken, bytes],
        [
          { f16: null, q8_0: null },
          { f16: null, q8_0: null },
        ],
      );
      assert.match(remarks.join(), message);
      assert.match(await output("inspect --memory model.gguf"), /\n {2}f16 +\? +\? +\?\n/);
    }
    const { context, bytes } = await cacheOf(without("context_length"));
    assert.deepEqual([context, bytes.f16], [null, null]);
    const huge = {
      ...base,
      "attention.key_length": u64(2n ** 62n),
      "attention.value_length": u64(2n ** 52n),
    };
    assert.equal(typeof (await cacheOf(huge)).isAtMost, "boolean");
    await cacheOf({ ...base, context_length: u64(2n ** 64n - 1n) });
    expectTidy(await output("inspect --memory model.gguf"));
    await cacheOf(base, EVIL);
    for (const columns of ["40", "80"]) {
      expectTidy((await run("inspect --memory model.gguf", { COLUMNS: columns })).stdout, Number(columns));
    }
  });
});

test("weights by type, those of unknown types not counted", async () => {
  writeModel("types.gguf", {
    tensors: [blocks("a", "Q4_K", [256, 2], 1), { name: "u", type: 99, shape: [4], bytes: new Uint8Array(16) }],
  });
  const { weights } = (await json("inspect --memory types.gguf")).memory;
  assert.deepEqual(weights.types.Q4_K, { tensors: 1, elements: 512, bytes: 288 });
  assert.deepEqual([weights.bytes, weights.types["unknown(99)"].bytes], [288, null]);
  const printed = await output("inspect --memory types.gguf");
  assert.match(printed, /unknown\(99\) +1 +\?\n {2}- without tensors of types/);
});
test("wrong usage", async () => {
  await expectFailure("inspect --context 5 x.gguf", 2, /--context is for --memory/);
  for (const context of ["0", "x", "-1", "1e3"]) {
    await expectFailure(
      ["inspect", "--memory", `--context=${context}`, "x.gguf"],
      2,
      /--context must be a whole number/,
    );
  }
  await expectFailure("inspect --markdown --json x.gguf", 2, /either --markdown or --json/);
});
