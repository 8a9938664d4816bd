/** What TypeScript believes, compared with what is there. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  allocate,
  dequantizeSync,
  type GgufError,
  type GgufErrorCode,
  type GgufTensor,
  type GgufValue,
  ggmlTypes,
  isGgmlType,
  type OwnNumericArray,
  parse,
} from "gguf-native";
import * as reference from "gguf-native/reference";
import { arr, bool, f32, str, u32, writeGguf } from "../support/gguf-writer";
import { metadataOf } from "../support/written-bytes";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** Compiles where the type of `value` is exactly `Expected`. */
function typed<Expected>() {
  return <Actual>(value: Actual, ..._same: Same<Actual, Expected> extends true ? [] : [never]): Actual => value;
}

const metadata = metadataOf([
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
]);

test("the typed methods give what the keys of the specification promise", () => {
  assert.equal(typed<string | undefined>()(metadata.string("general.architecture")), "llama");
  assert.deepEqual(typed<string[] | undefined>()(metadata.strings("general.tags")), ["a", "b"]);
  assert.equal(metadata.string("general.base_model.0.name"), "Base");
  assert.equal(typed<number | undefined>()(metadata.number("llama.context_length")), 4096);
  assert.equal(metadata.number("qwen3moe.expert_count"), undefined);
  assert.equal(metadata.number("llama.rope.freq_base"), 10000);
  const heads = metadata.numbers("llama.attention.head_count_kv");
  assert.deepEqual(typed<OwnNumericArray | undefined>()(heads), Int32Array.of(4, 4, 8));
  assert.deepEqual(metadata.numbers("tokenizer.ggml.scores"), Float32Array.of(0.5));
  assert.equal(typed<boolean | undefined>()(metadata.boolean("tokenizer.ggml.add_bos_token")), true);
});

test("get gives what is in the file, whatever a known key should be", () => {
  const hostile = metadataOf([
    ["general.architecture", u32(7)],
    ["llama.context_length", str("many")],
  ]);
  assert.equal(typed<GgufValue | undefined>()(hostile.get("general.architecture")), 7);
  assert.equal(typed<GgufValue | undefined>()(hostile.get("llama.context_length")), "many");
  // @ts-expect-error: it may be of another type
  const text: string | undefined = hostile.get("general.architecture");
  assert.equal(text, 7);
  assert.throws(() => hostile.string("general.architecture"), { code: "ERR_GGUF_METADATA_TYPE" });
  assert.throws(() => hostile.number("llama.context_length"), { code: "ERR_GGUF_METADATA_TYPE" });
  assert.throws(() => hostile.architecture, { code: "ERR_GGUF_METADATA_TYPE" });
});

test("other keys, and keys that are computed, have any type", () => {
  typed<GgufValue | undefined>()(metadata.get("mine.own"));
  const key: string = "general.architecture";
  typed<GgufValue | undefined>()(metadata.get(key));
  assert.equal(metadata.string("mine.own"), "x");
});

test("arch reads one number, and refuses an array", () => {
  assert.equal(metadata.arch("context_length"), 4096);
  assert.equal(metadata.arch("something.else"), undefined);
  assert.throws(() => metadata.arch("attention.head_count_kv"), {
    code: "ERR_GGUF_METADATA_TYPE",
    message: "metadata key 'llama.attention.head_count_kv' is an array of 3 int32, not a number",
  });
  const heads = metadata.numbers(`${metadata.architecture}.attention.head_count_kv`);
  assert.deepEqual(heads, Int32Array.of(4, 4, 8));
});

test("a type that isGgmlType knows is a key of ggmlTypes", () => {
  const type: GgufTensor["type"] = JSON.parse('"Q4_K"');
  // @ts-expect-error: it may be unknown(7)
  assert.equal(ggmlTypes[type].blockSize, 256);
  assert.ok(isGgmlType(type));
  assert.equal(ggmlTypes[type].blockSize, 256);
  const tensor = { type };
  if (isGgmlType(tensor.type)) assert.equal(ggmlTypes[tensor.type].typeSize, 144);
  for (const other of ["unknown(7)", "q4_k", "toString", ""]) assert.ok(!isGgmlType(other));
});

test("an error's code is one of a list", () => {
  const code = (error: GgufError): boolean => {
    // @ts-expect-error: no such code
    error.code === "ERR_GGUF_NONE";
    return error.code === "ERR_GGUF_CLOSED";
  };
  assert.throws(
    () => metadata.string("llama.context_length"),
    (error: GgufError) => !code(error) && typed<GgufErrorCode>()(error.code) === "ERR_GGUF_METADATA_TYPE",
  );
});

test("results that the package makes are over memory that is not shared", async () => {
  const { id } = ggmlTypes.F32;
  const bytes = new Uint8Array(4);
  const tensor = parse(writeGguf({ tensors: [{ name: "t", type: id, shape: [1], bytes }] })).tensor("t");
  typed<Float32Array<ArrayBuffer>>()(tensor.dequantizeSync());
  typed<Uint16Array<ArrayBuffer>>()(tensor.rowsSync([0], { dtype: "f16" }));
  typed<Float32Array<ArrayBuffer>>()(await tensor.dequantize());
  typed<Uint16Array<ArrayBuffer>>()(await tensor.rows([0], { dtype: "bf16" }));
  typed<Float32Array<ArrayBuffer>>()(dequantizeSync("F32", bytes));
  typed<Float32Array<ArrayBuffer>>()(reference.dequantizeSync("F32", bytes));
  typed<Float32Array<ArrayBuffer>>()(allocate(1));
  typed<Uint8Array<ArrayBuffer>>()(await tensor.read());
  const shared = new Float32Array(new SharedArrayBuffer(4));
  typed<Float32Array<SharedArrayBuffer>>()(tensor.dequantizeSync({ out: shared }));
  for (const { buffer } of [tensor.dequantizeSync(), await tensor.read(), allocate(1)]) {
    assert.ok(buffer instanceof ArrayBuffer);
  }
});
