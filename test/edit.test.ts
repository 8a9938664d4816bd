/** setMetadata, splitModel, mergeModel: what changes, what does not, and what they refuse. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { gguf } from "@huggingface/gguf";
import {
  type GgufError,
  type GgufFile,
  type MetadataChange,
  mergeModel,
  open,
  openSync,
  parse,
  parseMetadataValue,
  setMetadata,
  splitModel,
} from "gguf-native";
import { arr, f32, type GgufSpec, str, type TypedValue, u64, writeGguf } from "./support/gguf-writer";
import { temporaryFolder } from "./support/paths";
import { sampleModel } from "./support/sample-model";
import { needsShared, sharedPath, tinyLlama } from "./support/shared-data";

const root = temporaryFolder();
const folder = () => mkdtempSync(join(root, "edit-"));
const notUtf8 = Uint8Array.of(0x80, 0xff);

const metadata: [string | Uint8Array, TypedValue][] = [
  ["general.architecture", str("test")],
  [notUtf8, str(notUtf8)],
  ["test.context_length", u64(100n)],
  ["test.scale", f32(0.5)],
  ["tokenizer.ggml.tokens", arr("string", ["<s>", notUtf8])],
  ["nested", arr("array", [arr("string", [notUtf8]), arr("uint8", [1])])],
];
const tensors = [
  { name: "a", type: 0, shape: [2], bytes: new Uint8Array(Float32Array.of(1, 2).buffer) },
  { name: notUtf8, type: 24, shape: [1, 2, 3], bytes: Uint8Array.of(1, 2, 3, 4, 5, 6) },
  { name: "b", type: 0, shape: [], bytes: new Uint8Array(Float32Array.of(3).buffer) },
];

function written(spec: GgufSpec = {}, dir = folder()): string {
  const path = join(dir, "model.gguf");
  writeFileSync(path, writeGguf({ metadata, tensors, ...spec }));
  return path;
}

/** Everything of a file but the keys in `without`: values, types and raw strings, tensors and their bytes. */
function contentsOf(file: GgufFile, without: readonly string[] = []) {
  const keys = [...file.metadata.keys()].filter((key) => !without.includes(key));
  const entries = keys.map((key) => {
    const type = file.metadata.typeOf(key)!;
    const isText = type.type === "string" || (type.type === "array" && type.elementType === "string");
    return [key, type, isText ? file.metadata.bytes(key) : file.metadata.get(key)];
  });
  const all = [...file.tensors.values()].map((tensor) => {
    const { name, type, shape, elementCount, byteLength } = tensor;
    const hash = createHash("sha256").update(tensor.bytes()).digest("hex");
    return { name, type, shape, elementCount, byteLength, hash };
  });
  const contents = { byteOrder: file.byteOrder, version: file.version, entries, tensors: all };
  file.close();
  return structuredClone(contents);
}
const read = (path: string, without: readonly string[] = []) => contentsOf(openSync(path), without);

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
      assert.deepEqual(await setMetadata(path, { "general.description": long, "test.scale": undefined }), {
        inPlace: false,
      });
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
    assert.deepEqual(await setMetadata(path, { "general.architecture": "a much longer name" }), {
      inPlace: true,
    });
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
    const changes: Record<string, MetadataChange> = {
      "test.context_length": 5,
      "test.scale": { value: 3, type: "uint8" },
      "test.block_count": 7,
      "mine.number": -7,
      "from.text": { text: "8" },
      "test.embedding_length": { text: "9" },
      "test.rope.freq_base": { text: "1e6" },
      nested: { text: '["a", "b"]', type: "string[]" },
      "tokenizer.ggml.tokens": { text: '["x"]' },
      "general.name": { text: "123" },
      __proto__: undefined,
    };
    await setMetadata(path, Object.entries(changes));
    const { metadata } = openSync(path);
    const typeOf = (key: string) => {
      const type = metadata.typeOf(key)!;
      return [type.type === "array" ? `${type.elementType}[]` : type.type, metadata.get(key)];
    };
    assert.deepEqual(typeOf("test.context_length"), ["uint64", 5n]);
    assert.deepEqual(typeOf("test.scale"), ["uint8", 3]);
    assert.deepEqual(typeOf("test.block_count"), ["uint32", 7]);
    assert.deepEqual(typeOf("mine.number"), ["int32", -7]);
    assert.deepEqual(typeOf("from.text"), ["uint32", 8]);
    assert.deepEqual(typeOf("test.embedding_length"), ["uint32", 9]);
    assert.deepEqual(typeOf("test.rope.freq_base"), ["float32", 1e6]);
    assert.deepEqual(typeOf("nested"), ["string[]", ["a", "b"]]);
    assert.deepEqual(typeOf("tokenizer.ggml.tokens"), ["string[]", ["x"]]);
    assert.deepEqual(typeOf("general.name"), ["string", "123"]);
  });

  test("a file with a tensor of an unknown type, and one without tensors", async () => {
    const odd = written({
      tensors: [{ name: "odd", type: 4, shape: [32], bytes: new Uint8Array(64).fill(7) }],
    });
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
      assert.deepEqual(
        readFileSync(path).subarray(0, headerBytes),
        Buffer.from(other.subarray(0, headerBytes)),
      );
      assert.equal(statSync(path).size, length);
      // One more key takes the padding, where there is any.
      assert.deepEqual(await setMetadata(path, { b: true }), { inPlace: length === 64 });
      assert.equal(statSync(path).size, 64);
      assert.deepEqual(
        [...openSync(path).metadata],
        [
          ["a", 2n],
          ["b", true],
        ],
      );
    }
  });

  test("one shard of a split model alone", async () => {
    const dir = folder();
    const [first, second] = (await splitModel(written(), join(dir, "m"), { maxTensors: 2 })) as [
      string,
      string,
    ];
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
    test(`'${text}' as ${JSON.stringify(type)}`, () =>
      assert.deepEqual(parseMetadataValue(text, type), value));
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

describe("splitModel and mergeModel", () => {
  const SPLIT = ["split.no", "split.count", "split.tensors.count"];
  const model = join(root, "sample.gguf");
  writeFileSync(model, sampleModel());
  const whole = read(model);

  test("by number of tensors: shards that are one model, and its parts", async () => {
    const dir = folder();
    const seen: [number, number][] = [];
    const paths = await splitModel(model, join(dir, "m.gguf"), {
      maxTensors: 7,
      onProgress: (...args) => seen.push(args),
    });
    assert.deepEqual(
      paths.map((path) => basename(path)),
      [1, 2, 3].map((n) => `m-0000${n}-of-00003.gguf`),
    );
    assert.deepEqual(readdirSync(dir).sort(), paths.map((path) => basename(path)).sort());
    for (const path of paths) assert.deepEqual(read(path, SPLIT), whole);
    const parts = paths.map((path) => openSync(path, { splits: false }));
    assert.deepEqual(
      parts.map(({ tensors }) => tensors.size),
      [7, 7, 6],
    );
    assert.deepEqual(
      parts.map(({ metadata }) => SPLIT.map((key) => [metadata.typeOf(key)!.type, metadata.get(key)])),
      [0, 1, 2].map((no) => [
        ["uint16", no],
        ["uint16", 3],
        ["int32", 20],
      ]),
    );
    assert.deepEqual([...parts[1]!.metadata.keys()], SPLIT);
    for (const part of parts) part.close();
    const total = paths.reduce((sum, path) => sum + statSync(path).size, 0);
    assert.deepEqual(seen.at(-1), [total, total]);

    const first = await gguf(paths[0]!, { allowLocalFile: true });
    assert.equal(first.tensorInfos.length, 7);

    const merged = join(dir, "merged.gguf");
    await mergeModel(paths[2]!, merged);
    assert.deepEqual(read(merged), whole);
    assert.deepEqual(readFileSync(merged).length, openSync(merged).byteLength);
  });

  test("by size: as many as fit, no file larger", async () => {
    const dir = folder();
    for (const maxBytes of [300_000, 1_000_000, 2_000_000, 1e12]) {
      const paths = await splitModel(model, join(dir, String(maxBytes)), { maxBytes });
      const parts = paths.map((path) => openSync(path, { splits: false }));
      for (const [i, path] of paths.entries()) {
        const { size } = statSync(path);
        const alone = parts[i]!.tensors.size <= 1;
        assert.ok(size <= maxBytes || alone, `${path}: ${size} bytes`);
        const next = parts[i + 1] && [...parts[i + 1]!.tensors.values()][0]!;
        if (next !== undefined) assert.ok(size + next.byteLength + 32 > maxBytes, `${path} has room`);
      }
      for (const part of parts) part.close();
      assert.deepEqual(read(paths.at(-1)!, SPLIT), whole);
      if (maxBytes === 1e12) assert.equal(paths.length, 1);
    }
  });

  test("a file of exactly the size that is allowed", async () => {
    const [first] = await splitModel(model, join(folder(), "m"), { maxTensors: 7 });
    const { size } = statSync(first!);
    for (const [maxBytes, tensorCount] of [
      [size, 7],
      [size - 1, 6],
    ] as const) {
      const [path] = await splitModel(model, join(folder(), "m"), { maxBytes });
      using part = openSync(path!, { splits: false });
      assert.equal(part.tensors.size, tensorCount);
      if (maxBytes === size) assert.equal(part.byteLength, maxBytes);
    }
  });

  test("both limits, and a limit that only the metadata fit", async () => {
    const paths = await splitModel(model, join(folder(), "m"), { maxBytes: 1, maxTensors: 5 });
    assert.equal(paths.length, 21);
    assert.equal(openSync(paths[0]!, { splits: false }).tensors.size, 0);
    assert.deepEqual(read(paths[7]!, SPLIT), whole);
  });

  for (const [name, spec] of [
    ["version 1", { version: 1 }],
    ["big-endian", { byteOrder: "big" }],
    ["alignment 128", { alignment: 128 }],
    ["no tensors", { tensors: [] }],
  ] as [string, GgufSpec][]) {
    test(name, async () => {
      const path = written(spec);
      const dir = folder();
      const paths = await splitModel(pathToFileURL(path), pathToFileURL(join(dir, "m")), { maxTensors: 1 });
      assert.equal(paths.length, spec.tensors ? 1 : 3);
      assert.deepEqual(read(paths[0]!, SPLIT), read(path));
      if (spec.alignment) for (const each of paths) assert.equal(openSync(each).alignment, 128);
      const merged = join(dir, "merged.gguf");
      await mergeModel(paths[0]!, merged);
      assert.deepEqual(read(merged), read(path));
    });
  }

  test("splitting again, over the files that are split", async () => {
    const dir = folder();
    await splitModel(model, join(dir, "m"), { maxTensors: 10 });
    const paths = await splitModel(join(dir, "m-00001-of-00002.gguf"), join(dir, "m"), { maxTensors: 12 });
    assert.equal(paths.length, 2);
    assert.equal(readdirSync(dir).length, 2);
    assert.deepEqual(read(paths[0]!, SPLIT), whole);
    const first = openSync(paths[0]!, { splits: false });
    assert.equal(first.tensors.size, 12);
  });

  test("merging over one of the shards", async () => {
    const dir = folder();
    const paths = await splitModel(model, join(dir, "m"), { maxTensors: 10 });
    await mergeModel(paths[0]!, paths[0]!);
    assert.deepEqual(contentsOf(await open(paths[0]!)), whole);
  });

  test("a real model, there and back", needsShared(tinyLlama), async () => {
    const dir = folder();
    const source = sharedPath(tinyLlama);
    const paths = await splitModel(source, join(dir, "m"), { maxBytes: 2_000_000 });
    assert.ok(paths.length > 1);
    await mergeModel(paths.at(-1)!, join(dir, "merged.gguf"));
    assert.deepEqual(read(join(dir, "merged.gguf")), read(source));
  });

  test("what is refused leaves nothing behind", async () => {
    const dir = folder();
    const prefix = join(dir, "m");
    const refuses = (promise: Promise<unknown>, code: string) => assert.rejects(promise, { code });
    await refuses(splitModel(model, prefix, {}), "ERR_INVALID_ARG_VALUE");
    await refuses(splitModel(model, prefix, undefined as never), "ERR_INVALID_ARG_VALUE");
    await refuses(splitModel(model, prefix, { maxTensors: 0 }), "ERR_GGUF_RANGE");
    await refuses(splitModel(model, prefix, { maxBytes: Number.NaN }), "ERR_GGUF_RANGE");
    await refuses(splitModel(model, prefix, { maxBytes: "1" as never }), "ERR_INVALID_ARG_TYPE");
    await refuses(splitModel(5 as never, prefix, { maxTensors: 1 }), "ERR_INVALID_ARG_TYPE");
    await refuses(splitModel(model, 5 as never, { maxTensors: 1 }), "ERR_INVALID_ARG_TYPE");
    for (const output of [".gguf", "", `${dir}/`, `${dir}\\`, `${dir}/.gguf`, pathToFileURL(`${dir}/`)]) {
      await refuses(splitModel(model, output, { maxTensors: 1 }), "ERR_INVALID_ARG_VALUE");
    }
    await refuses(mergeModel(model, ""), "ERR_INVALID_ARG_VALUE");
    await refuses(splitModel(join(dir, "none.gguf"), prefix, { maxTensors: 1 }), "ERR_GGUF_OPEN");
    await refuses(mergeModel(join(dir, "none.gguf"), prefix), "ERR_GGUF_OPEN");
    await refuses(mergeModel(model, 5 as never), "ERR_INVALID_ARG_TYPE");
    await refuses(splitModel(model, join(dir, "missing", "m"), { maxTensors: 1 }), "ERR_GGUF_WRITE");
    const odd = written({ tensors: [{ name: "odd", type: 4, shape: [32], bytes: new Uint8Array(64) }] });
    await refuses(splitModel(odd, prefix, { maxTensors: 1 }), "ERR_GGUF_UNSUPPORTED_TYPE");

    const reason = new Error("enough");
    const stop = new AbortController();
    let calls = 0;
    const onProgress = () => {
      if (++calls === 30) stop.abort(reason);
    };
    await assert.rejects(
      splitModel(model, prefix, { maxTensors: 1, signal: stop.signal, onProgress }),
      reason,
    );
    assert.deepEqual(readdirSync(dir), []);
  });

  test("a shard that is missing is said to be", async () => {
    const dir = folder();
    const [first] = await splitModel(model, join(dir, "m"), { maxTensors: 10 });
    const alone = join(folder(), basename(first!));
    copyFileSync(first!, alone);
    await assert.rejects(mergeModel(alone, join(dir, "x.gguf")), {
      code: "ERR_GGUF_OPEN",
      message: /shard 2 of 2/,
    });
  });
});

describe("a file that changes while it is copied", () => {
  const content = readFileSync(written());
  const other = writeGguf({
    metadata,
    tensors: tensors.map((each) => ({ ...each, bytes: each.bytes.map(() => 9) })),
  });
  assert.equal(other.length, content.length);

  const replace = (path: string) => {
    writeFileSync(`${path}.new`, other);
    renameSync(`${path}.new`, path);
  };
  const changes: [name: string, change: (path: string) => void, message: RegExp][] = [
    ["replaced by another of the same size", replace, /another file has taken its place/],
    [
      "written to",
      (path) => {
        writeFileSync(path, other);
        utimesSync(path, 1, 1);
      },
      /it was modified on/,
    ],
    ["grown", (path) => appendFileSync(path, "x"), /its size was \d+ and is \d+/],
    ["cut off", (path) => truncateSync(path, 100), /its size was|it ends at/],
    ["removed", (path) => rmSync(path), /it was removed/],
  ];
  type Work = (path: string, output: string, onProgress: () => void) => Promise<unknown>;
  const works: [name: string, work: Work][] = [
    [
      "setMetadata",
      (path, _, onProgress) => setMetadata(path, { "general.description": "x".repeat(500) }, { onProgress }),
    ],
    [
      "setMetadata to another file",
      (path, output, onProgress) => setMetadata(path, { "test.scale": 2 }, { output, onProgress }),
    ],
    ["splitModel", (path, output, onProgress) => splitModel(path, output, { maxTensors: 1, onProgress })],
    ["mergeModel", (path, output, onProgress) => mergeModel(path, output, { onProgress })],
  ];
  for (const [workName, work] of works) {
    for (const [changeName, change, message] of changes) {
      test(`${workName}: ${changeName}`, async () => {
        const path = join(folder(), "model.gguf");
        writeFileSync(path, content);
        const output = join(folder(), "output");
        let after: Buffer | undefined;
        let calls = 0;
        const onProgress = () => {
          if (calls++ > 0) return;
          change(path);
          after = existsSync(path) ? readFileSync(path) : undefined;
        };
        await assert.rejects(work(path, output, onProgress), { code: "ERR_GGUF_CHANGED", path, message });
        assert.deepEqual(existsSync(path) ? readFileSync(path) : undefined, after);
        assert.deepEqual(readdirSync(join(path, "..")), after === undefined ? [] : ["model.gguf"]);
        assert.deepEqual(readdirSync(join(output, "..")), []);
      });
    }
  }

  for (const [changeName, change, message] of changes) {
    test(`setMetadata in place: ${changeName}`, async () => {
      const path = join(folder(), "model.gguf");
      writeFileSync(path, content);
      function* onTheWay(): Generator<[string, MetadataChange]> {
        change(path);
        yield ["test.scale", 2];
      }
      await assert.rejects(setMetadata(path, onTheWay()), { code: "ERR_GGUF_CHANGED", path, message });
      if (change === replace) assert.deepEqual(readFileSync(path), Buffer.from(other));
    });
  }

  test("one of the shards that are merged", async () => {
    const dir = folder();
    const paths = await splitModel(written(), join(dir, "m"), { maxTensors: 1 });
    const before = readdirSync(dir);
    const onProgress = () => utimesSync(paths[1]!, 1, 1);
    await assert.rejects(mergeModel(paths[0]!, join(dir, "merged.gguf"), { onProgress }), {
      code: "ERR_GGUF_CHANGED",
      path: paths[1]!,
    });
    assert.deepEqual(readdirSync(dir), before);
  });
});

test("what is no regular file is refused at once", async () => {
  const dir = folder();
  const places: [path: string, code: string][] = [[dir, "EISDIR"]];
  if (process.platform !== "win32") {
    execFileSync("mkfifo", [join(dir, "fifo")]);
    places.push([join(dir, "fifo"), "EINVAL"]);
  }
  for (const [path, code] of places) {
    const is = (error: GgufError) =>
      error.code === "ERR_GGUF_OPEN" && (error.cause as NodeJS.ErrnoException).code === code;
    await assert.rejects(setMetadata(path, { a: 1 }), is);
    await assert.rejects(mergeModel(path, join(dir, "x")), is);
  }
});
