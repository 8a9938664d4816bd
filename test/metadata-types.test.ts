/** The types of known metadata keys: what TypeScript believes, compared with what files hold. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type KnownKey, type NumericArray, openSync, parse } from "gguf-native";
import { arr, bool, f32, str, u32, writeGguf } from "./support/gguf-writer";
import { needsShared, sharedPath, tinyLlama } from "./support/shared-data";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** Compiles where the type of `value` is exactly `Expected`. */
function typed<Expected>() {
  return <Actual>(value: Actual, ..._same: Same<Actual, Expected> extends true ? [] : [never]): Actual =>
    value;
}

const { metadata } = parse(
  writeGguf({
    metadata: [
      ["general.architecture", str("llama")],
      ["general.tags", arr("string", ["a", "b"])],
      ["general.base_model.0.name", str("Base")],
      ["llama.context_length", u32(4096)],
      ["llama.rope.freq_base", f32(10000)],
      ["llama.attention.head_count_kv", arr("int32", [4, 4, 8])],
      ["tokenizer.ggml.tokens", arr("string", ["<s>"])],
      ["tokenizer.ggml.scores", arr("float32", [0.5])],
      ["tokenizer.ggml.add_bos_token", bool(true)],
      ["mine.own", str("x")],
    ],
  }),
);

test("known keys have the types of their values", () => {
  assert.equal(typed<string | undefined>()(metadata.get("general.architecture")), "llama");
  assert.deepEqual(typed<string[] | undefined>()(metadata.get("general.tags")), ["a", "b"]);
  assert.equal(typed<string | undefined>()(metadata.get("general.base_model.0.name")), "Base");
  assert.equal(typed<number | undefined>()(metadata.get("llama.context_length")), 4096);
  assert.equal(typed<number | undefined>()(metadata.get("qwen3moe.expert_count")), undefined);
  assert.equal(typed<number | undefined>()(metadata.get("llama.rope.freq_base")), 10000);
  assert.deepEqual(
    typed<number | NumericArray | undefined>()(metadata.get("llama.attention.head_count_kv")),
    Int32Array.of(4, 4, 8),
  );
  assert.deepEqual(typed<string[] | undefined>()(metadata.get("tokenizer.ggml.tokens")), ["<s>"]);
  assert.deepEqual(
    typed<NumericArray | undefined>()(metadata.get("tokenizer.ggml.scores")),
    Float32Array.of(0.5),
  );
  assert.equal(typed<boolean | undefined>()(metadata.get("tokenizer.ggml.add_bos_token")), true);
});

test("other keys, and keys that are computed, have any type", () => {
  typed<ReturnType<Map<string, import("gguf-native").GgufValue>["get"]>>()(metadata.get("mine.own"));
  const key: string = "general.architecture";
  typed<ReturnType<Map<string, import("gguf-native").GgufValue>["get"]>>()(metadata.get(key));
  assert.equal(metadata.string("mine.own"), "x");
  assert.equal(metadata.arch("context_length"), 4096);
  assert.equal(metadata.arch("something.else"), undefined);
});

test("a real model's values are of the types that are promised", needsShared(tinyLlama), () => {
  const file = openSync(sharedPath(tinyLlama));
  const expected: Partial<Record<KnownKey, string>> = {
    "general.architecture": "string",
    "llama.context_length": "number",
    "llama.embedding_length": "number",
    "llama.block_count": "number",
    "llama.feed_forward_length": "number",
    "llama.attention.head_count": "number",
    "llama.attention.layer_norm_rms_epsilon": "number",
    "tokenizer.ggml.model": "string",
    "tokenizer.ggml.tokens": "object",
    "tokenizer.ggml.bos_token_id": "number",
  };
  for (const [key, type] of Object.entries(expected)) assert.equal(typeof file.metadata.get(key), type, key);
  assert.ok(Array.isArray(file.metadata.get("tokenizer.ggml.tokens")));
  file.close();
});
