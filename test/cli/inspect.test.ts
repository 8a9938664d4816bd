/** `gguf-native inspect`. */
import assert from "node:assert/strict";
import { truncateSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { openSync } from "gguf-native";
import { at, EVIL, json, output, run, writeModel } from "../support/cli";
import { arr, f32, f64, str, u64 } from "../support/gguf-writer";
import { sampleModel } from "../support/sample-model";

writeFileSync(at("sample.gguf"), sampleModel());
writeModel("evil.gguf", {
  metadata: [
    ["general.architecture", str(EVIL)],
    ["general.name", str("x".repeat(500))],
    ["__proto__", str("data")],
    [EVIL, arr("string", [EVIL, "漢字".repeat(50)])],
    ["big", u64(2n ** 64n - 1n)],
    ["bigs", arr("uint64", [2n ** 64n - 1n])],
    ["floats", arr("float64", [Number.NaN, -Infinity, -0, 0.1])],
    ["f32", f32(0.1)],
    ["negative zero", f64(-0)],
    ["broken", str(Uint8Array.of(0xe2, 0x96))],
    ["broken list", arr("string", ["ok", Uint8Array.of(0xff, 0x41), "\ufffd"])],
    ["nested", arr("array", [arr("uint8", [1, 2]), arr("array", [])])],
    [
      "long",
      arr(
        "uint32",
        Array.from({ length: 1000 }, (_, i) => i),
      ),
    ],
  ],
  tensors: [
    { name: EVIL, type: 0, shape: [1], bytes: new Uint8Array(4) },
    { name: "n".repeat(200), type: 99, shape: [2 ** 40, 2, 3, 4], bytes: new Uint8Array(4) },
  ],
});

describe("inspect", () => {
  test("--tensors and --metadata show only that", async () => {
    const offsets = (await run("inspect --offsets sample.gguf", { COLUMNS: "50" })).stdout;
    using file = openSync(at("sample.gguf"));
    for (const { name, offset } of file.tensors.values()) {
      assert.ok(
        offsets.split("\n").some((line) => line.includes(` ${name}`) && line.endsWith(` ${offset}`)),
        name,
      );
    }
    assert.match((await run("inspect --tensors sample.gguf")).stdout, /^Tensors \(20\)\n/);
    assert.doesNotMatch((await run("inspect --tensors sample.gguf")).stdout, /Metadata|architecture/);
    assert.match((await run("inspect --metadata sample.gguf")).stdout, /^Metadata \(16\)\n/);
    assert.match((await run("inspect --metadata --tensors sample.gguf")).stdout, /^Metadata[\s\S]*\nTensors/);
  });
  test("what a model was made from, where the file says it", async () => {
    writeModel("made.gguf", {
      metadata: [
        ["general.quantized_by", str("me")],
        ["general.base_model.count", u64(2)],
        ["general.base_model.0.name", str("One")],
        ["general.base_model.1.repo_url", str("https://hf.co/a/b")],
        ["quantize.imatrix.file", str("calib.gguf")],
        ["quantize.imatrix.chunks_count", u64(1)],
      ],
    });
    const facts = /made from +One, https:\/\/hf.co\/a\/b\n +quantized by +me\n +importance +calib.gguf, 1 chunk\n/;
    assert.match(await output("inspect made.gguf"), facts);
  });
  test("a file without tensors and keys", async () => {
    writeModel("empty.gguf", {});
    const printed = (await run("inspect empty.gguf")).stdout;
    assert.match(printed, / 0 in 0 tensors\n[^\n]*\n[^\n]*\n\nMetadata \(0\)\n\nTensors \(0\)\n$/);
    assert.deepEqual(JSON.parse((await run("inspect --json empty.gguf")).stdout).metadata, {});
  });
  test("a file that is cut off is shown; the exit code is 1", async () => {
    writeFileSync(at("cut.gguf"), sampleModel());
    truncateSync(at("cut.gguf"), 1_000_000);
    const { status, stdout, stderr } = await run("inspect cut.gguf");
    assert.equal(status, 1);
    assert.match(stdout, /blk\.0 to blk\.1: 9 tensors each/);
    assert.match(stderr, /^gguf-native: cut\.gguf: incomplete: .* needs [\d,]+;.*\n$/);
  });
});

describe("inspect --json", () => {
  test("loses nothing", async () => {
    const { status, stdout } = await run("inspect --json evil.gguf");
    assert.equal(status, 0);
    const json = JSON.parse(stdout);
    assert.deepEqual(Object.keys(json.metadata).length, 13);
    assert.deepEqual(Object.getOwnPropertyDescriptor(json.metadata, "__proto__")!.value, {
      type: "string",
      value: "data",
    });
    assert.deepEqual(json.metadata[EVIL].value, [EVIL, "漢字".repeat(50)]);
    assert.deepEqual(json.metadata.big, { type: "uint64", value: "18446744073709551615" });
    assert.deepEqual(json.metadata.bigs.value, ["18446744073709551615"]);
    assert.deepEqual(json.metadata.floats.value, ["NaN", "-Infinity", "-0", 0.1]);
    assert.deepEqual(json.metadata.f32, { type: "float32", value: Math.fround(0.1) });
    assert.deepEqual(json.metadata["negative zero"], { type: "float64", value: "-0" });
    assert.deepEqual(json.metadata.broken, { type: "string", value: "\ufffd", bytes: "e296" });
    assert.deepEqual(json.metadata["broken list"], {
      ...{ type: "array", elementType: "string", length: 3 },
      ...{ value: ["ok", "\ufffdA", "\ufffd"], bytes: { 1: "ff41" } },
    });
    assert.deepEqual(json.metadata.nested.value, [[1, 2], []]);
    assert.equal(json.metadata.long.value.length, 1000);
    assert.deepEqual(json.tensors[1], {
      ...{ name: "n".repeat(200), type: "unknown(99)", shape: [2 ** 40, 2, 3, 4] },
      ...{ elementCount: 24 * 2 ** 40, byteLength: null, offset: json.tensors[0].offset + 32 },
    });
    assert.deepEqual(json.types["unknown(99)"], { tensors: 1, elements: 24 * 2 ** 40, bytes: null });
  });
  test("has the whole file", async () => {
    const json = JSON.parse((await run("inspect --json sample.gguf")).stdout);
    const file = openSync(at("sample.gguf"));
    assert.deepEqual(json.tensors, JSON.parse(JSON.stringify([...file.tensors.values()])));
    const found = json.metadata["tokenizer.ggml.tokens"].value;
    assert.deepEqual(found, file.metadata.strings("tokenizer.ggml.tokens"));
    const shown = [json.version, json.byteOrder, json.byteLength, json.alignment, json.tensorCount];
    assert.deepEqual(shown, [3, "little", file.byteLength, 32, 20]);
    assert.equal(json.types.Q8_0.bytes, file.tensor("blk.0.ffn_down.weight").byteLength);
    assert.deepEqual(Object.keys(JSON.parse((await run("inspect --json --tensors sample.gguf")).stdout)), ["tensors"]);
  });
});

describe("inspect --filter", () => {
  test("shows the tensors and keys that match, and of how many", async () => {
    const stdout = await output("inspect sample.gguf --filter *.attn_[qk].weight --tensors");
    assert.match(stdout, /^Tensors \(4 of 20\)\n +name .*\n +blk\.0\.attn_q\.weight .*\n +blk\.0\.attn_k/);
    const printed = await output("inspect sample.gguf --filter llama.*");
    assert.match(printed, /\nMetadata \(8 of 16\)\n[\s\S]*\nTensors \(0 of 20\)\n$/);
    const text = await output("inspect sample.gguf --filter llama.*");
    assert.match(text, /^sample\.gguf\n[\s\S]*7\.08 M in 20 tensors/);
  });
  test("in JSON as well", async () => {
    const { tensorCount, tensors, metadata } = await json("inspect sample.gguf --filter output*");
    assert.deepEqual([tensorCount, tensors.length, tensors[0].name], [20, 1, "output_norm.weight"]);
    assert.deepEqual(metadata, {});
    assert.deepEqual(Object.keys((await json("inspect sample.gguf --filter *.token? --metadata")).metadata), [
      "tokenizer.ggml.tokens",
    ]);
  });
});
