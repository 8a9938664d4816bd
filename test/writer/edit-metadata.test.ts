/** Changing the metadata of files: setMetadata and parseMetadataValue. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { type MetadataChange, openSync, parse, parseMetadataValue, setMetadata, splitModel } from "gguf-native";
import { contentsOf, folder, metadata, read, root, written } from "../support/edited-model";
import { type GgufSpec, type TypedValue, u64, writeGguf } from "../support/gguf-writer";

describe("setMetadata", () => {
  const variants: [string, GgufSpec][] = [
    ["version 3", {}],
    ["version 2", { version: 2 }],
    ["version 1", { version: 1 }],
    ["big-endian", { byteOrder: "big" }],
    ["alignment 256", { alignment: 256 }],
  ];
  for (const [name, spec] of variants) {
    test(`in place, ${name}`, async () => {
      const path = written(spec);
      const before = readFileSync(path);
      const { ino } = statSync(path);
      const key = "test.context_length";
      assert.deepEqual(await setMetadata(path, { [key]: 4096n }), { inPlace: true });
      assert.equal(statSync(path).ino, ino);
      assert.equal(readFileSync(path).length, before.length);
      const file = openSync(path);
      assert.equal(file.metadata.get(key), 4096n);
      assert.deepEqual(contentsOf(file, [key]), contentsOf(parse(before), [key]));
      assert.ok(readFileSync(path).filter((byte, i) => byte !== before[i]).length <= 2);
    });

    test(`as a copy, ${name}`, async () => {
      const path = written(spec);
      const before = contentsOf(parse(readFileSync(path)), ["test.scale"]);
      const long = "x".repeat(1000);
      const changes = { "general.description": long, "test.scale": undefined };
      assert.deepEqual(await setMetadata(path, changes), { inPlace: false });
      const file = openSync(path);
      assert.equal(file.metadata.get("general.description"), long);
      assert.deepEqual([...file.metadata.keys()].at(-1), "general.description");
      assert.equal(file.metadata.has("test.scale"), false);
      assert.deepEqual(contentsOf(file, ["general.description"]), before);
      assert.deepEqual(readdirSync(join(path, "..")), ["model.gguf"]);
    });
  }

  test("a longer string goes into the padding, and out of it again", async () => {
    const path = written({ alignment: 1024 });
    const { length } = readFileSync(path);
    const before = read(path);
    const longer = { "general.architecture": "a much longer name" };
    assert.deepEqual(await setMetadata(path, longer), { inPlace: true });
    assert.equal(openSync(path).metadata.architecture, "a much longer name");
    assert.deepEqual(await setMetadata(path, { "general.architecture": "test" }), { inPlace: true });
    assert.equal(readFileSync(path).length, length);
    assert.deepEqual(read(path), before);
    assert.deepEqual(readFileSync(path), readFileSync(written({ alignment: 1024 })));
  });

  test("to another file, which leaves the first alone", async () => {
    const path = written();
    const before = readFileSync(path);
    const output = join(folder(), "other.gguf");
    const changes = new Map([["test.scale", 2]]);
    assert.deepEqual(await setMetadata(pathToFileURL(path), changes, { output: pathToFileURL(output) }), {
      inPlace: false,
    });
    assert.deepEqual(readFileSync(path), before);
    assert.equal(openSync(output).metadata.get("test.scale"), 2);
    assert.deepEqual(read(output, ["test.scale"]), read(path, ["test.scale"]));
  });

  test("types: the key's own, the one given, the known one, the one that fits", async () => {
    const path = written();
    const cases: [key: string, change: MetadataChange, type: string, value: unknown][] = [
      ["test.context_length", 5, "uint64", 5n],
      ["test.scale", { value: 3, type: "uint8" }, "uint8", 3],
      ["test.block_count", 7, "uint32", 7],
      ["mine.number", -7, "int32", -7],
      ["from.text", { text: "8" }, "uint32", 8],
      ["test.embedding_length", { text: "9" }, "uint32", 9],
      ["test.rope.freq_base", { text: "1e6" }, "float32", 1e6],
      ["nested", { text: '["a", "b"]', type: "string[]" }, "string[]", ["a", "b"]],
      ["tokenizer.ggml.tokens", { text: '["x"]' }, "string[]", ["x"]],
      ["general.name", { text: "123" }, "string", "123"],
    ];
    await setMetadata(path, [...cases.map(([key, change]) => [key, change] as const), ["absent", undefined]]);
    const { metadata } = openSync(path);
    for (const [key, , type, value] of cases) {
      const found = metadata.typeOf(key)!;
      assert.equal(found.type === "array" ? `${found.elementType}[]` : found.type, type, key);
      assert.deepEqual(metadata.get(key), value, key);
    }
  });

  test("a file with a tensor of an unknown type, and one without tensors", async () => {
    const tensors = [{ name: "odd", type: 4, shape: [32], bytes: new Uint8Array(64).fill(7) }];
    const odd = written({ tensors });
    const before = readFileSync(odd);
    await setMetadata(odd, { "general.description": "x".repeat(500) });
    assert.deepEqual(readFileSync(odd).subarray(-64), before.subarray(-64));
    const file = openSync(odd);
    assert.equal(file.tensor("odd").type, "unknown(4)");
    file.close();

    const bare = written({ tensors: [] });
    for (const content of [writeGguf({ metadata }), writeGguf()]) {
      for (const cut of [0, 1, 8]) {
        const end = content.length - cut;
        if (content.subarray(end).some((byte) => byte !== 0)) continue;
        writeFileSync(bare, content.subarray(0, end));
        await setMetadata(bare, { x: 1 });
        await setMetadata(bare, { x: 2 });
        using changed = openSync(bare);
        assert.equal(changed.metadata.get("x"), 2);
      }
    }
  });

  test("in place without tensors, with padding and without", async () => {
    const entry: [string, TypedValue] = ["a", u64(1n)];
    const other = writeGguf({ metadata: [["a", u64(2n)]] });
    const headerBytes = 24 + 8 + 1 + 4 + 8;
    const path = join(folder(), "bare.gguf");
    for (const length of [headerBytes, 64]) {
      const content = Buffer.alloc(length);
      content.set(writeGguf({ metadata: [entry] }).subarray(0, headerBytes));
      writeFileSync(path, content);
      assert.deepEqual(await setMetadata(path, { a: 2n }), { inPlace: true });
      const contents = readFileSync(path).subarray(0, headerBytes);
      assert.deepEqual(contents, Buffer.from(other.subarray(0, headerBytes)));
      assert.equal(statSync(path).size, length);
      // One more key takes the padding, where there is any.
      assert.deepEqual(await setMetadata(path, { b: true }), { inPlace: length === 64 });
      assert.equal(statSync(path).size, 64);
      using file = openSync(path);
      assert.deepEqual([...file.metadata].flat(), ["a", 2n, "b", true]);
    }
  });

  test("one shard of a split model alone", async () => {
    const dir = folder();
    const [first, second] = (await splitModel(written(), join(dir, "m"), { maxTensors: 2 })) as [string, string];
    await setMetadata(first, { "test.scale": 4 });
    const before = readFileSync(second);
    assert.equal(openSync(second).metadata.get("test.scale"), 4);
    assert.deepEqual(readFileSync(second), before);
  });

  test("what is refused leaves the file as it was", async () => {
    const path = written();
    const before = readFileSync(path);
    const refuses = (changes: unknown, code: string, options?: object) =>
      assert.rejects(setMetadata(path, changes as never, options), { code });
    await refuses({ "general.alignment": 64 }, "ERR_GGUF_INVALID");
    await refuses({ "test.scale": "x" }, "ERR_GGUF_METADATA_TYPE");
    await refuses({ "test.scale": { text: "x" } }, "ERR_GGUF_METADATA_TYPE");
    await refuses({ "test.context_length": -1 }, "ERR_GGUF_METADATA_RANGE");
    await refuses({ "": 1 }, "ERR_GGUF_INVALID");
    await refuses({ a: { text: 5 } }, "ERR_INVALID_ARG_TYPE");
    await refuses({ a: {} }, "ERR_INVALID_ARG_TYPE");
    await refuses({ a: null }, "ERR_INVALID_ARG_TYPE");
    await refuses({ a: { value: 1, type: "int" } }, "ERR_INVALID_ARG_VALUE");
    await refuses(5, "ERR_INVALID_ARG_TYPE");
    await refuses({ a: 1 }, "ERR_INVALID_ARG_TYPE", { output: 5 });
    await refuses({ a: "x".repeat(999) }, "ERR_GGUF_WRITE", { output: join(root, "missing", "x.gguf") });
    const reason = new Error("enough");
    const aborted = { signal: AbortSignal.abort(reason) };
    await assert.rejects(setMetadata(path, { a: 1 }, aborted), reason);
    assert.deepEqual(readFileSync(path), before);
    assert.deepEqual(readdirSync(join(path, "..")), ["model.gguf"]);
    await assert.rejects(setMetadata(join(root, "missing.gguf"), {}), { code: "ERR_GGUF_OPEN" });
    await setMetadata(path, { "general.alignment": 32 });
    await setMetadata(path, { "general.alignment": undefined });
    assert.deepEqual(contentsOf(openSync(path)), contentsOf(parse(before)));
  });
});

describe("parseMetadataValue", () => {
  const cases: [text: string, type: Parameters<typeof parseMetadataValue>[1], value: unknown][] = [
    ["true", undefined, true],
    ["12", undefined, 12],
    ["-1.5e3", undefined, -1500],
    ["18446744073709551615", undefined, 2n ** 64n - 1n],
    ["hello", undefined, "hello"],
    ["[1, 2]", undefined, [1, 2]],
    ["[INST] x", undefined, "[INST] x"],
    ["", undefined, ""],
    ["12", "string", "12"],
    [" 12 ", "uint8", 12],
    ["nan", undefined, Number.NaN],
    ["NaN", undefined, Number.NaN],
    ["inf", undefined, Number.POSITIVE_INFINITY],
    ["-Infinity", undefined, Number.NEGATIVE_INFINITY],
    ["inf", "string", "inf"],
    ["[9007199254740993, 1]", "uint64[]", [2n ** 53n + 1n, 1]],
    ["[-9007199254740993]", undefined, [-(2n ** 53n) - 1n]],
    ["[18446744073709551615]", "uint64[]", [2n ** 64n - 1n]],
    [
      '[["9007199254740993, \\" 5", 9007199254740993], [1e3, -0, 0.5]]',
      "array[]",
      [
        ['9007199254740993, " 5', 2n ** 53n + 1n],
        [1000, -0, 0.5],
      ],
    ],
    ["[9007199254740993, 0.5]", "float64[]", [2 ** 53, 0.5]],
    ["9007199254740993", "float32", 2 ** 53],
    ["[1, 2", undefined, "[1, 2"],
    ["inf", "float32", Number.POSITIVE_INFINITY],
    ["NaN", "float64", Number.NaN],
    [".5", "float32", 0.5],
    ["false", "bool", false],
    ['["18446744073709551615", 1]', "uint64[]", [2n ** 64n - 1n, 1]],
    ['["a"]', { type: "array", elementType: "string" }, ["a"]],
    ['[["a"], [1]]', "array[]", [["a"], [1]]],
  ];
  for (const [text, type, value] of cases) {
    test(`'${text}' as ${JSON.stringify(type)}`, () => assert.deepEqual(parseMetadataValue(text, type), value));
  }
  for (const [text, type] of [
    ["x", "uint8"],
    ["1.5", "uint8"],
    ["0x10", "uint8"],
    ["", "float32"],
    ["1", "bool"],
    ["1", "int32[]"],
    ["[1", "int32[]"],
    ["{}", "int32[]"],
  ] as const) {
    test(`'${text}' is no ${type}`, () =>
      assert.throws(() => parseMetadataValue(text, type), { code: "ERR_GGUF_METADATA_TYPE" }));
  }
  for (const [text, type] of [
    ["1e999", undefined],
    ["-1e999", "float64"],
    ["[1, 1e999]", undefined],
    ["[1e999]", "float32[]"],
    ['["1e999"]', "float32[]"],
    [`[${"9".repeat(400)}]`, "float64[]"],
  ] as const) {
    test(`'${text.slice(0, 20)}' as ${type} is too large`, () =>
      assert.throws(() => parseMetadataValue(text, type), { code: "ERR_GGUF_METADATA_RANGE" }));
  }
  test("arrays far too deep for metadata", () => {
    const text = "[".repeat(100_000) + "]".repeat(100_000);
    assert.throws(() => parseMetadataValue(text, "array[]"), { code: "ERR_GGUF_METADATA_TYPE" });
  });
  test("wrong arguments", () => {
    assert.throws(() => parseMetadataValue(5 as never), { code: "ERR_INVALID_ARG_TYPE" });
    assert.throws(() => parseMetadataValue("5", "int" as never), { code: "ERR_INVALID_ARG_VALUE" });
  });
});
