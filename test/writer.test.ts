/** GgufWriter: what it writes is read back by this library and by another, and what it refuses. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  createReadStream,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { gguf } from "@huggingface/gguf";
import {
  type GgmlType,
  type GgufInput,
  type GgufInputType,
  GgufWriter,
  ggmlTypes,
  openSync,
  parse,
  type TensorData,
} from "gguf-native";
import { gaussianBlocks } from "./support/blocks";
import { emulated } from "./support/emulated";
import { arr, f32, f64, str, u32, u64, writeGguf } from "./support/gguf-writer";
import { projectRoot, temporaryFolder } from "./support/paths";
import { Random } from "./support/random";

const folder = temporaryFolder();
let counter = 0;
const newPath = () => join(folder, `${counter++}.gguf`);

async function bytesOf(writer: GgufWriter): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of writer.chunks()) chunks.push(Uint8Array.from(chunk));
  return Buffer.concat(chunks);
}

async function* pieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

describe("metadata", () => {
  const cases: [value: GgufInput, type: GgufInputType | undefined, declared: object, read?: unknown][] = [
    [200, "uint8", { type: "uint8" }],
    [-100, "int8", { type: "int8" }],
    [60000, "uint16", { type: "uint16" }],
    [-30000, "int16", { type: "int16" }],
    [2 ** 32 - 1, "uint32", { type: "uint32" }],
    [-(2 ** 31), "int32", { type: "int32" }],
    [0.1, "float32", { type: "float32" }, Math.fround(0.1)],
    [0.1, "float64", { type: "float64" }],
    [Number.NaN, "float32", { type: "float32" }],
    [Number.NEGATIVE_INFINITY, "float64", { type: "float64" }],
    [true, "bool", { type: "bool" }],
    ["héllo \0 🌍", "string", { type: "string" }],
    [2n ** 64n - 1n, "uint64", { type: "uint64" }],
    [-(2n ** 63n), "int64", { type: "int64" }],
    [7, "uint64", { type: "uint64" }, 7n],
    [7n, "uint8", { type: "uint8" }, 7],
    [[], "string[]", { type: "array", elementType: "string", length: 0 }],
    [
      [1, 2],
      { type: "array", elementType: "uint8" },
      { type: "array", elementType: "uint8", length: 2 },
      Uint8Array.of(1, 2),
    ],
    [[1, 2n], "int64[]", { type: "array", elementType: "int64", length: 2 }, BigInt64Array.of(1n, 2n)],
    [["a", Buffer.from("b")], "string[]", { type: "array", elementType: "string", length: 2 }, ["a", "b"]],
    [[[1], ["x", ""], []], "array[]", { type: "array", elementType: "array", length: 3 }, null],
    // Inferred.
    [5, undefined, { type: "uint32" }],
    [-5, undefined, { type: "int32" }],
    [2 ** 40, undefined, { type: "uint64" }, 2n ** 40n],
    [-(2 ** 40), undefined, { type: "int64" }, -(2n ** 40n)],
    [0.5, undefined, { type: "float32" }],
    [1e300, undefined, { type: "float64" }],
    [2 ** 53 + 2, undefined, { type: "float64" }],
    [-(2 ** 60), undefined, { type: "float64" }],
    [Number.NEGATIVE_INFINITY, undefined, { type: "float32" }],
    [5n, undefined, { type: "uint64" }],
    [-5n, undefined, { type: "int64" }],
    [false, undefined, { type: "bool" }],
    ["text", undefined, { type: "string" }],
    [[1, -2], undefined, { type: "array", elementType: "int32", length: 2 }, Int32Array.of(1, -2)],
    [
      [1, 2 ** 31],
      undefined,
      { type: "array", elementType: "uint32", length: 2 },
      Uint32Array.of(1, 2 ** 31),
    ],
    [
      [-1, 2 ** 31],
      undefined,
      { type: "array", elementType: "int64", length: 2 },
      BigInt64Array.of(-1n, 2n ** 31n),
    ],
    [[1, 0.5], undefined, { type: "array", elementType: "float32", length: 2 }, Float32Array.of(1, 0.5)],
    [
      [0.5, 2 ** 53 + 2],
      undefined,
      { type: "array", elementType: "float64", length: 2 },
      Float64Array.of(0.5, 2 ** 53 + 2),
    ],
    [
      [1, 2n ** 53n + 1n],
      undefined,
      { type: "array", elementType: "uint64", length: 2 },
      BigUint64Array.of(1n, 2n ** 53n + 1n),
    ],
    [
      [-1, 2n ** 53n + 1n],
      undefined,
      { type: "array", elementType: "int64", length: 2 },
      BigInt64Array.of(-1n, 2n ** 53n + 1n),
    ],
    [[true, false], undefined, { type: "array", elementType: "bool", length: 2 }],
    [["a", "b"], undefined, { type: "array", elementType: "string", length: 2 }],
    [[1n, 2n], undefined, { type: "array", elementType: "uint64", length: 2 }, BigUint64Array.of(1n, 2n)],
    [
      [[1, 2], [3]],
      undefined,
      { type: "array", elementType: "array", length: 2 },
      [Int32Array.of(1, 2), Int32Array.of(3)],
    ],
  ];
  for (const array of [
    Uint8Array.of(1, 255),
    Int8Array.of(-1, 127),
    Uint16Array.of(1, 65535),
    Int16Array.of(-1, 5),
    Uint32Array.of(1, 2 ** 32 - 1),
    Int32Array.of(-1, 5),
    Float32Array.of(0.5, Number.NaN),
    Float64Array.of(0.1, -0),
    BigUint64Array.of(1n, 2n ** 64n - 1n),
    BigInt64Array.of(-1n, 5n),
  ]) {
    const elementType = array.constructor.name
      .replace(/Big|Array/g, "")
      .replace(/Uint|Int|Float/, (name) => name.toLowerCase());
    cases.push([array, undefined, { type: "array", elementType, length: 2 }, array]);
  }
  for (const [i, [value, type, declared, read = value]] of cases.entries()) {
    const shown = Array.isArray(value) || typeof value === "object" ? `array ${i}` : String(value);
    test(`${shown} as ${typeof type === "object" ? JSON.stringify(type) : type}`, async () => {
      const { metadata } = parse(await bytesOf(new GgufWriter().set("x.y", value, type)));
      assert.deepEqual(metadata.typeOf("x.y"), declared);
      if (read !== null) assert.deepEqual(metadata.get("x.y"), read);
    });
  }

  test("long arrays of fractions, in arrays too", async () => {
    const values = new Array<number>(300_000).fill(0.5);
    const { metadata } = parse(await bytesOf(new GgufWriter().set("flat", values).set("nested", [values])));
    assert.deepEqual(metadata.get("flat"), Float32Array.from(values));
    assert.deepEqual(metadata.get("nested"), [Float32Array.from(values)]);
  });

  test("strings that are not UTF-8", async () => {
    const bytes = Uint8Array.of(0xff, 0xfe, 0);
    const { metadata } = parse(
      await bytesOf(new GgufWriter().set("one", bytes, "string").set("many", [bytes, "x"], "string[]")),
    );
    assert.deepEqual(new Uint8Array(metadata.bytes("one") as Uint8Array), bytes);
    assert.deepEqual(new Uint8Array((metadata.bytes("many") as Uint8Array[])[0]!), bytes);
  });

  test("known keys are declared as loaders want them", async () => {
    const writer = new GgufWriter()
      .set("general.architecture", "llama")
      .set("llama.rope.freq_base", 10000)
      .set("llama.attention.layer_norm_rms_epsilon", 1e-5)
      .set("llama.context_length", 4096n)
      .set("llama.attention.head_count", 32)
      .set("llama.attention.head_count_kv", [4, 8])
      .set("tokenizer.ggml.scores", [0, -1, -2])
      .set("tokenizer.ggml.tokens", [])
      .set("general.base_model.0.name", "Base")
      .set("general.context_length", 1.5);
    const { metadata } = parse(await bytesOf(writer));
    assert.deepEqual(
      [...metadata.keys()].map((key) => {
        const type = metadata.typeOf(key)!;
        return type.type === "array" ? `${type.elementType}[]` : type.type;
      }),
      [
        ...["string", "float32", "float32", "uint32", "uint32", "int32[]", "float32[]", "string[]"],
        ...["string", "float32"],
      ],
    );
    assert.throws(() => new GgufWriter().set("llama.context_length", 2 ** 32), {
      code: "ERR_GGUF_METADATA_RANGE",
      message: "metadata key 'llama.context_length': 4294967296 does not fit in a uint32",
    });
    assert.throws(() => new GgufWriter().set("general.architecture", 5), {
      code: "ERR_GGUF_METADATA_TYPE",
      message: "metadata key 'general.architecture': it is declared as string, but the value is number 5",
    });
  });

  test("typeOf of another file is taken as a type", async () => {
    const source = parse(
      writeGguf({
        metadata: [
          ["a", u64(5n)],
          ["b", arr("float64", [1, 2])],
          ["c", f64(0.1)],
        ],
      }),
    );
    const writer = new GgufWriter();
    for (const [key, value] of source.metadata) writer.set(key, value, source.metadata.typeOf(key)!);
    const copy = parse(await bytesOf(writer));
    assert.deepEqual([...copy.metadata], [...source.metadata]);
    for (const key of source.metadata.keys()) {
      assert.deepEqual(copy.metadata.typeOf(key), source.metadata.typeOf(key));
    }
  });

  test("keys that are special to JavaScript", async () => {
    const file = parse(await bytesOf(new GgufWriter().set("__proto__", 1).set("constructor", "x")));
    assert.deepEqual([...file.metadata.keys()], ["__proto__", "constructor"]);
  });

  const refused: [name: string, run: () => unknown, code: string][] = [
    ["an empty key", () => new GgufWriter().set("", 1), "ERR_GGUF_INVALID"],
    ["a key that is too long", () => new GgufWriter().set("é".repeat(32768), 1), "ERR_GGUF_INVALID"],
    ["a key twice", () => new GgufWriter().set("a", 1).set("a", 1), "ERR_GGUF_INVALID"],
    ["a key with half a surrogate pair", () => new GgufWriter().set("\ud800", 1), "ERR_INVALID_ARG_VALUE"],
    [
      "a value with half a surrogate pair",
      () => new GgufWriter().set("a", "\udfff"),
      "ERR_INVALID_ARG_VALUE",
    ],
    ["a number that does not fit", () => new GgufWriter().set("a", 256, "uint8"), "ERR_GGUF_METADATA_RANGE"],
    ["a negative one", () => new GgufWriter().set("a", -1, "uint64"), "ERR_GGUF_METADATA_RANGE"],
    [
      "a bigint that does not fit",
      () => new GgufWriter().set("a", 2n ** 63n, "int64"),
      "ERR_GGUF_METADATA_RANGE",
    ],
    ["a bigint that fits nothing", () => new GgufWriter().set("a", 2n ** 64n), "ERR_GGUF_METADATA_RANGE"],
    [
      "an element that does not fit",
      () => new GgufWriter().set("a", [1, 300], "uint8[]"),
      "ERR_GGUF_METADATA_RANGE",
    ],
    ["a float too large", () => new GgufWriter().set("a", 1e39, "float32"), "ERR_GGUF_METADATA_RANGE"],
    ["a fraction as an integer", () => new GgufWriter().set("a", 1.5, "int32"), "ERR_GGUF_METADATA_TYPE"],
    ["a string as a number", () => new GgufWriter().set("a", "1", "int32"), "ERR_GGUF_METADATA_TYPE"],
    ["a number as a bool", () => new GgufWriter().set("a", 1, "bool"), "ERR_GGUF_METADATA_TYPE"],
    ["a scalar as an array", () => new GgufWriter().set("a", 1, "int32[]"), "ERR_GGUF_METADATA_TYPE"],
    ["an array as a scalar", () => new GgufWriter().set("a", [1], "int32"), "ERR_GGUF_METADATA_TYPE"],
    ["mixed elements", () => new GgufWriter().set("a", [1, "x"] as never), "ERR_GGUF_METADATA_TYPE"],
    ["an empty array of no type", () => new GgufWriter().set("a", []), "ERR_GGUF_METADATA_TYPE"],
    ["an array that holds itself", () => new GgufWriter().set("a", loop() as never), "ERR_GGUF_INVALID"],
    ["null", () => new GgufWriter().set("a", null as never), "ERR_INVALID_ARG_TYPE"],
    ["an object", () => new GgufWriter().set("a", {} as never), "ERR_INVALID_ARG_TYPE"],
    ["a date", () => new GgufWriter().set("a", new Date() as never), "ERR_INVALID_ARG_TYPE"],
    ["a key that is none", () => new GgufWriter().set(5 as never, 1), "ERR_INVALID_ARG_TYPE"],
    ["an unknown type", () => new GgufWriter().set("a", 1, "int" as never), "ERR_INVALID_ARG_VALUE"],
    [
      "an unknown element type",
      () => new GgufWriter().set("a", [1], "int[]" as never),
      "ERR_INVALID_ARG_VALUE",
    ],
    ["an array of what", () => new GgufWriter().set("a", [1], "array"), "ERR_INVALID_ARG_VALUE"],
    ["a type that is none", () => new GgufWriter().set("a", 1, 5 as never), "ERR_INVALID_ARG_TYPE"],
  ];
  function loop(): unknown[] {
    const array: unknown[] = [];
    array.push(array);
    return array;
  }
  for (const [name, run, code] of refused) test(`${name} is refused`, () => assert.throws(run, { code }));
  test("long arrays of plain numbers", async () => {
    const values = Array.from({ length: 200_000 }, (_, i) => i + 0.5);
    const { metadata } = parse(await bytesOf(new GgufWriter().set("a", values)));
    assert.deepEqual(metadata.get("a"), Float32Array.from(values));
  });
});

describe("alignment", () => {
  for (const alignment of [1, 8, 32, 64, 4096, 65536]) {
    test(`${alignment}`, async () => {
      const writer = new GgufWriter({ alignment })
        .addTensor("a", "I8", [3], Int8Array.of(1, 2, 3))
        .addTensor("b", "I8", [1], Int8Array.of(4));
      const bytes = await bytesOf(writer);
      assert.equal(bytes.length, writer.byteLength);
      const file = parse(bytes);
      assert.equal(file.alignment, alignment);
      for (const tensor of file.tensors.values()) assert.equal(tensor.offset % alignment, 0);
      assert.deepEqual(file.tensor("b").dequantizeSync(), Float32Array.of(4));
      assert.equal(bytes.length % alignment, 0);
    });
  }
  test("set as metadata", async () => {
    const writer = new GgufWriter().set("general.alignment", 128).addTensor("a", "I8", [1], Int8Array.of(4));
    assert.equal(parse(await bytesOf(writer)).tensor("a").offset % 128, 0);
  });
  for (const alignment of [0, -32, 3, 48, 1.5, Number.NaN, 2 ** 32]) {
    test(`${alignment} is refused`, () => {
      assert.throws(() => new GgufWriter({ alignment }), {
        code: "ERR_GGUF_INVALID",
        message: /power of two/,
      });
      assert.throws(() => new GgufWriter().set("general.alignment", alignment), { code: "ERR_GGUF_INVALID" });
    });
  }
  for (const value of ["64", [64], true, Int32Array.of(64)] as GgufInput[]) {
    test(`${typeof value} ${value} is refused, and changes nothing`, async () => {
      const writer = new GgufWriter();
      assert.throws(() => writer.set("general.alignment", value), { code: "ERR_GGUF_INVALID" });
      writer.addTensor("a", "I8", [1], Int8Array.of(1)).addTensor("b", "I8", [1], Int8Array.of(2));
      const file = parse(await bytesOf(writer));
      assert.equal(file.alignment, 32);
      assert.deepEqual(file.tensor("b").dequantizeSync(), Float32Array.of(2));
    });
  }
  test("as a bigint", async () => {
    assert.equal(parse(await bytesOf(new GgufWriter().set("general.alignment", 64n))).alignment, 64);
  });
  test("of another type is refused", () => {
    assert.throws(() => new GgufWriter({ alignment: "32" as never }), { code: "ERR_INVALID_ARG_TYPE" });
    assert.throws(() => new GgufWriter().set("general.alignment", 32, "uint64"), {
      code: "ERR_GGUF_INVALID",
    });
    assert.throws(() => new GgufWriter({ alignment: 32 }).set("general.alignment", 32), {
      code: "ERR_GGUF_INVALID",
    });
  });
});

describe("tensors", () => {
  test("of every type, as another reader sees them", async () => {
    const random = new Random(3);
    const writer = new GgufWriter()
      .set("general.architecture", "llama")
      .set("general.quantization_version", 2);
    const expected: { name: string; type: GgmlType; blocks: Uint8Array }[] = [];
    for (const type of Object.keys(ggmlTypes) as GgmlType[]) {
      const blocks = gaussianBlocks(type, 6, random);
      const name = `${type}.weight`;
      expected.push({ name, type, blocks });
      const data = expected.length % 2 === 0 ? blocks : () => pieces(blocks, 7);
      writer.addTensor(name, type, [ggmlTypes[type].blockSize * 3, 2], data);
    }
    const path = newPath();
    await writer.write(path);
    assert.equal(statSync(path).size, writer.byteLength);

    const file = openSync(path);
    assert.equal(file.version, 3);
    assert.equal(file.byteOrder, "little");
    assert.deepEqual(
      [...file.tensors.keys()],
      expected.map(({ name }) => name),
    );
    for (const { name, type, blocks } of expected) {
      const tensor = file.tensor(name);
      assert.equal(tensor.type, type);
      assert.deepEqual(tensor.shape, [ggmlTypes[type].blockSize * 3, 2]);
      assert.deepEqual(Buffer.from(tensor.bytes()), Buffer.from(blocks), name);
    }
    const other = await gguf(path, { allowLocalFile: true, typedMetadata: true });
    assert.equal(other.metadata["general.architecture"], "llama");
    assert.deepEqual(
      other.tensorInfos.map(({ name, dtype, offset, shape }) => [
        name,
        dtype as number,
        Number(other.tensorDataOffset + offset),
        shape.map(Number),
      ]),
      [...file.tensors.values()].map(({ name, type, offset, shape }) => [
        name,
        ggmlTypes[type as GgmlType].id as number,
        offset,
        [...shape],
      ]),
    );
    file.close();
    const verified = spawnSync(
      process.execPath,
      [join(projectRoot, "dist", "cli", "main.js"), "verify", path],
      { encoding: "utf8" },
    );
    assert.equal(verified.status, 0, verified.stdout + verified.stderr);
  });

  test("from typed arrays of the type's elements", async () => {
    const data: [GgmlType, TensorData][] = [
      ["F32", Float32Array.of(1, 2)],
      ["F64", Float64Array.of(1, 2)],
      ["F16", Uint16Array.of(0x3c00, 0x4000)],
      ["BF16", Uint16Array.of(0x3f80, 0x4000)],
      ["I8", Int8Array.of(1, 2)],
      ["I16", Int16Array.of(1, 2)],
      ["I32", Int32Array.of(1, 2)],
      ["I64", BigInt64Array.of(1n, 2n)],
      ["F32", Float32Array.of(9, 1, 2, 9).subarray(1, 3)],
      ["F32", Float32Array.of(1, 2).buffer],
      ["F32", Readable.from([Buffer.from(Float32Array.of(1, 2).buffer)])],
      ["F32", [Buffer.from(Float32Array.of(1).buffer), Buffer.from(Float32Array.of(2).buffer)]],
      ["F32", new Blob([Float32Array.of(1, 2)]).stream() as never],
      ["F32", async () => pieces(new Uint8Array(Float32Array.of(1, 2).buffer), 3)],
      ["F32", () => Float32Array.of(1, 2)],
      ["F32", async () => Float32Array.of(1, 2).buffer],
      ["F16", () => new Uint8Array(Uint16Array.of(0x3c00, 0x4000).buffer)],
    ];
    const writer = new GgufWriter();
    for (const [i, [type, values]] of data.entries()) writer.addTensor(`t${i}`, type, [2], values);
    const file = parse(await bytesOf(writer));
    for (const tensor of file.tensors.values()) {
      assert.deepEqual(tensor.dequantizeSync(), Float32Array.of(1, 2), `${tensor.name} ${tensor.type}`);
    }
  });

  test("empty ones, and none at all", async () => {
    const writer = new GgufWriter().addTensor("a", "Q4_0", [32, 0], new Uint8Array(0));
    assert.equal(parse(await bytesOf(writer)).tensor("a").elementCount, 0);
    assert.equal(parse(await bytesOf(new GgufWriter())).tensors.size, 0);
    const sources: TensorData[] = [[], () => []];
    for (const data of sources) {
      assert.equal(parse(await bytesOf(new GgufWriter().addTensor("a", "F32", [0], data))).tensors.size, 1);
    }
  });

  test("the file is what the tests' own writer writes", async () => {
    const bytes = gaussianBlocks("Q6_K", 3, new Random(1));
    const writer = new GgufWriter()
      .set("general.architecture", "llama")
      .set("llama.block_count", 1)
      .set("x", 0.5)
      .addTensor("a", "F32", [3], Float32Array.of(1, 2, 3))
      .addTensor("b", "Q6_K", [256, 3, 1], bytes);
    const expected = writeGguf({
      metadata: [
        ["general.architecture", str("llama")],
        ["llama.block_count", u32(1)],
        ["x", f32(0.5)],
      ],
      tensors: [
        { name: "a", type: 0, shape: [3], bytes: new Uint8Array(Float32Array.of(1, 2, 3).buffer) },
        { name: "b", type: 14, shape: [256, 3, 1], bytes },
      ],
    });
    const written = await bytesOf(writer);
    assert.deepEqual(Buffer.from(written.subarray(0, expected.length)), Buffer.from(expected));
    assert.ok(written.subarray(expected.length).every((byte) => byte === 0));
  });

  const add =
    (...[name, type, shape, data]: unknown[]) =>
    () =>
      new GgufWriter().addTensor(name as string, type as GgmlType, shape as number[], data as TensorData);
  const four = new Float32Array(4);
  const refused: [name: string, run: () => unknown, code: string][] = [
    ["an empty name", add("", "F32", [4], four), "ERR_GGUF_INVALID"],
    ["a name that ggml does not read", add("n".repeat(64), "F32", [4], four), "ERR_GGUF_INVALID"],
    ["half a surrogate pair", add("\ud800", "F32", [4], four), "ERR_INVALID_ARG_VALUE"],
    ["a name twice", () => add("a", "F32", [4], four)().addTensor("a", "F32", [4], four), "ERR_GGUF_INVALID"],
    ["an unknown type", add("a", "Q9_0", [4], four), "ERR_GGUF_UNSUPPORTED_TYPE"],
    ["no dimensions", add("a", "F32", [], four), "ERR_GGUF_INVALID"],
    ["five dimensions", add("a", "F32", [4, 1, 1, 1, 1], four), "ERR_GGUF_INVALID"],
    ["a negative dimension", add("a", "F32", [-4], four), "ERR_GGUF_INVALID"],
    ["half a dimension", add("a", "F32", [1.5], four), "ERR_GGUF_INVALID"],
    ["a part of a block", add("a", "Q4_0", [48], new Uint8Array(27)), "ERR_GGUF_INVALID"],
    ["a shape that overflows", add("a", "F32", [2 ** 30, 2 ** 30], four), "ERR_GGUF_INVALID"],
    ["an empty shape that overflows", add("a", "F32", [2 ** 30, 2 ** 30, 0], four), "ERR_GGUF_INVALID"],
    ["too few bytes", add("a", "F32", [5], four), "ERR_GGUF_RANGE"],
    ["too many bytes", add("a", "F32", [3], four), "ERR_GGUF_RANGE"],
    [
      "floats for a type that nothing is rounded to",
      add("a", "Q4_K", [256], new Float32Array(256)),
      "ERR_INVALID_ARG_TYPE",
    ],
    ["doubles for F32", add("a", "F32", [4], new Float64Array(2)), "ERR_INVALID_ARG_TYPE"],
    ["text as data", add("a", "F32", [4], "0000000000000000"), "ERR_INVALID_ARG_TYPE"],
    ["nothing as data", add("a", "F32", [4], null), "ERR_INVALID_ARG_TYPE"],
    ["a promise as data", add("a", "F32", [4], Promise.resolve(four)), "ERR_INVALID_ARG_TYPE"],
    ["an array of too few bytes", add("a", "F32", [4], [new Uint8Array(15)]), "ERR_GGUF_RANGE"],
    ["a name that is none", add(5, "F32", [4], four), "ERR_INVALID_ARG_TYPE"],
    ["a type that is none", add("a", 0, [4], four), "ERR_INVALID_ARG_TYPE"],
    ["a shape that is none", add("a", "F32", 4, four), "ERR_INVALID_ARG_TYPE"],
    ["dimensions that are none", add("a", "F32", ["4"], four), "ERR_INVALID_ARG_TYPE"],
  ];
  for (const [name, run, code] of refused) test(`${name} is refused`, () => assert.throws(run, { code }));

  test("what is refused says for which tensor", async () => {
    const refuses = (data: unknown, message: string) =>
      assert.rejects(
        async () => bytesOf(new GgufWriter().addTensor("blk.0.x", "F32", [3], data as TensorData)),
        { name: "TypeError", code: "ERR_INVALID_ARG_TYPE", message },
      );
    const piece =
      "The \"data\" argument must be made of instances of Uint8Array or Float32Array, for tensor 'blk.0.x'. Received type number (1)";
    await refuses([1, 2, 3], piece);
    await refuses(() => [1, 2, 3], piece);
    await refuses(new Set([1]), piece);
    const bytes = "bytes (Uint8Array, Float32Array for type F32) or an iterable of them";
    await refuses(
      null,
      `The "data" argument must be ${bytes}, or a function that returns them, for tensor 'blk.0.x'. Received null`,
    );
    await refuses(
      () => null,
      `The "data" argument must be a function that returns ${bytes}, for tensor 'blk.0.x'. Received null`,
    );
    assert.throws(() => add("a", "F32", [3], [1, 2, 3])(), { code: "ERR_INVALID_ARG_TYPE" });
    await assert.rejects(bytesOf(add("a", "F32", [3], () => new Float32Array(2))()), {
      code: "ERR_GGUF_RANGE",
      message: "tensor 'a': its data are 8 bytes, its type and shape take 12",
    });
  });
});

describe("writing to disk", () => {
  const zeros = (count: number) =>
    (async function* () {
      for (let i = 0; i < count; i++) yield new Uint8Array(1024);
    })();
  const filesIn = (path: string) => readdirSync(path);

  function inFolder(): { path: string; dir: string } {
    const dir = join(folder, `dir${counter++}`);
    mkdirSync(dir);
    return { dir, path: join(dir, "model.gguf") };
  }

  test("to a URL, with progress, replacing what is there and keeping its mode", async () => {
    const { dir, path } = inFolder();
    writeFileSync(path, "old");
    chmodSync(path, 0o640);
    const writer = new GgufWriter().addTensor("a", "I8", [4096], () => zeros(4));
    const seen: [number, number][] = [];
    await writer.write(pathToFileURL(path), { onProgress: (...args) => seen.push(args) });
    assert.deepEqual(filesIn(dir), ["model.gguf"]);
    const file = openSync(path);
    assert.equal(file.tensors.size, 1);
    file.close(); // Windows replaces no file that is open
    if (process.platform !== "win32") assert.equal(statSync(path).mode & 0o777, 0o640);
    assert.deepEqual(seen.at(-1), [writer.byteLength, writer.byteLength]);
    assert.ok(seen.length > 3 && seen.every(([done], i) => i === 0 || done > seen[i - 1]![0]));
    await writer.write(path);
  });

  test("through a link", { skip: process.platform === "win32" && "links need rights there" }, async () => {
    const { dir, path } = inFolder();
    writeFileSync(path, "old");
    symlinkSync("model.gguf", join(dir, "link.gguf"));
    await new GgufWriter().write(join(dir, "link.gguf"));
    openSync(path).close();
    assert.equal(readFileSync(path).length, new GgufWriter().byteLength);
    assert.deepEqual(filesIn(dir).sort(), ["link.gguf", "model.gguf"]);
  });

  test("through links to what is not there yet", {
    skip: process.platform === "win32" && "links need rights there",
  }, async () => {
    const { dir } = inFolder();
    mkdirSync(join(dir, "a", "b"), { recursive: true });
    symlinkSync("../new.gguf", join(dir, "a", "b", "second.gguf"));
    symlinkSync("a/b", join(dir, "short"));
    symlinkSync("short/second.gguf", join(dir, "first.gguf"));
    await new GgufWriter().write(join(dir, "first.gguf"));
    openSync(join(dir, "a", "new.gguf")).close();
    assert.ok(lstatSync(join(dir, "first.gguf")).isSymbolicLink());
    assert.deepEqual(filesIn(join(dir, "a", "b")), ["second.gguf"]);
    symlinkSync("circle.gguf", join(dir, "circle.gguf"));
    await assert.rejects(new GgufWriter().write(join(dir, "circle.gguf")), {
      code: "ERR_GGUF_WRITE",
      message: /ELOOP/,
    });
  });

  test("a write-protected file stays", async () => {
    const { dir, path } = inFolder();
    writeFileSync(path, "old", { mode: 0o444 });
    for (const open of [folder, dir]) chmodSync(open, 0o777);
    // Nothing is protected from root, which some tests run as: this one gives that up once everything is loaded.
    const program = `const { GgufWriter } = require("gguf-native");
      if (process.getuid?.() === 0) process.setuid(65534);
      new GgufWriter().write(process.argv[1]).catch(({ code, cause }) => console.log(code, cause.code));`;
    const { stdout } = spawnSync(process.execPath, ["-e", program, path], {
      cwd: projectRoot,
      encoding: "utf8",
    });
    assert.match(stdout, /^ERR_GGUF_WRITE (EACCES|EPERM)\n$/);
    assert.equal(readFileSync(path, "utf8"), "old");
    assert.deepEqual(filesIn(dir), ["model.gguf"]);
    chmodSync(path, 0o666);
  });

  const failures: [name: string, data: () => TensorData, error: object | RegExp][] = [
    [
      "a stream that is too short",
      () => zeros(3),
      { code: "ERR_GGUF_RANGE", message: /'a': its data are 3072 bytes/ },
    ],
    ["a stream that is too long", () => zeros(5), { code: "ERR_GGUF_RANGE", message: /at least 5120/ }],
    ["an endless stream", () => zeros(Number.POSITIVE_INFINITY), { code: "ERR_GGUF_RANGE" }],
    [
      "a stream of something else",
      () => Readable.from(["x"]),
      { code: "ERR_INVALID_ARG_TYPE", message: /for tensor 'a'/ },
    ],
    [
      "a stream that fails",
      () =>
        // biome-ignore lint/correctness/useYield: it fails before it would
        (async function* (): AsyncGenerator<Uint8Array> {
          throw new Error("no more data");
        })(),
      /no more data/,
    ],
  ];
  for (const [name, data, error] of failures) {
    test(`${name} leaves the old file and nothing else`, async () => {
      const { dir, path } = inFolder();
      writeFileSync(path, "old");
      const writer = new GgufWriter().addTensor("a", "I8", [4096], data());
      await assert.rejects(writer.write(path), error);
      assert.deepEqual(filesIn(dir), ["model.gguf"]);
      assert.equal(readFileSync(path, "utf8"), "old");
    });
  }

  const streams: [name: string, open: () => Readable, error: object | RegExp][] = [
    ["a file that is missing", () => createReadStream(join(folder, "missing.bin")), { code: "ENOENT" }],
    [
      "a stream that breaks off",
      () => {
        const stream = new PassThrough();
        stream.write(new Uint8Array(2048));
        setTimeout(() => stream.destroy(new Error("no more data")), 20);
        return stream;
      },
      /no more data/,
    ],
  ];
  for (const [name, open, error] of streams) {
    test(`${name}, before its turn`, async () => {
      const { dir, path } = inFolder();
      const stream = open();
      const closed = new Promise((resolve) => stream.on("close", resolve));
      const slow = async function* () {
        await closed;
        yield new Uint8Array(4096);
      };
      const writer = new GgufWriter().addTensor("a", "I8", [4096], slow).addTensor("b", "I8", [4096], stream);
      await assert.rejects(writer.write(path), error);
      assert.deepEqual(filesIn(dir), []);
    });
  }

  test("what is added meanwhile is not written", async () => {
    const { path } = inFolder();
    const writer = new GgufWriter().addTensor("a", "I8", [4096], () => zeros(4));
    const chunks = writer.chunks();
    const seen: [number, number][] = [];
    const written = writer.write(path, { onProgress: (...args) => seen.push(args) });
    writer.set("late", 1).addTensor("b", "I8", [4096], () => zeros(4));
    await written;
    const file = openSync(path);
    assert.deepEqual([[...file.tensors.keys()], file.metadata.has("late")], [["a"], false]);
    assert.deepEqual(seen.at(-1), [statSync(path).size, statSync(path).size]);
    assert.ok(writer.byteLength > file.byteLength);
    let length = 0;
    for await (const chunk of chunks) length += chunk.length;
    assert.equal(length, file.byteLength);
    file.close();
  });

  test("an empty path, before anything is written", async () => {
    let calls = 0;
    const data = () => {
      calls++;
      return zeros(4);
    };
    const writer = new GgufWriter().addTensor("a", "I8", [4096], data);
    await assert.rejects(writer.write(""), { code: "ERR_INVALID_ARG_VALUE", message: /must not be empty/ });
    assert.equal(calls, 0);
  });

  test("aborting before, while it runs, and while it waits for data", async () => {
    const { dir, path } = inFolder();
    const reason = new Error("enough");
    const writer = (data: TensorData) => new GgufWriter().addTensor("a", "I8", [4096], data);
    await assert.rejects(writer(() => zeros(4)).write(path, { signal: AbortSignal.abort(reason) }), reason);
    const running = new AbortController();
    const onProgress = () => running.abort(reason);
    await assert.rejects(writer(() => zeros(4)).write(path, { signal: running.signal, onProgress }), reason);
    const waiting = new AbortController();
    const never = async function* () {
      await new Promise(() => undefined);
      yield new Uint8Array(4096);
    };
    const written = writer(never).write(path, { signal: waiting.signal });
    setTimeout(() => waiting.abort(reason), 20);
    await assert.rejects(written, reason);
    assert.deepEqual(filesIn(dir), []);
  });

  test("an exception from onProgress", async () => {
    const { dir, path } = inFolder();
    const failure = new Error("mine");
    const onProgress = () => {
      throw failure;
    };
    await assert.rejects(new GgufWriter().write(path, { onProgress }), failure);
    assert.deepEqual(filesIn(dir), []);
  });

  test("what the system refuses", async () => {
    const { dir } = inFolder();
    const refuses = (path: string, code: string) =>
      assert.rejects(new GgufWriter().write(path), (error: Error & { code: string; path: string }) => {
        assert.equal(error.code, "ERR_GGUF_WRITE");
        assert.equal((error.cause as NodeJS.ErrnoException).code, code);
        assert.equal(error.path, path);
        assert.ok(error.message.startsWith(`${path}: cannot be written: `));
        return true;
      });
    await refuses(join(dir, "missing", "x.gguf"), "ENOENT");
    await refuses(dir, "EINVAL");
    await refuses(join(dir, "new/"), "EINVAL");
    if (process.platform !== "win32") await refuses("/dev/null", "EINVAL");
    if (process.platform !== "win32") await refuses("/dev/fd/1", "EINVAL");
    if (process.platform === "linux") await refuses("/proc/x.gguf", "ENOENT");
  });

  test("wrong arguments", async () => {
    const wrong = { code: "ERR_INVALID_ARG_TYPE" };
    await assert.rejects(new GgufWriter().write(5 as never), wrong);
    await assert.rejects(new GgufWriter().write(newPath(), 5 as never), wrong);
    await assert.rejects(new GgufWriter().write(newPath(), { signal: 5 as never }), wrong);
    await assert.rejects(new GgufWriter().write(newPath(), { onProgress: 5 as never }), wrong);
    assert.throws(() => new GgufWriter(5 as never), wrong);
  });

  const skip = emulated && "an emulated processor takes gigabytes for this";
  test("half a gigabyte takes no more memory than its pieces", { skip }, async () => {
    const program = `
      const { GgufWriter } = require(${JSON.stringify(projectRoot)});
      const piece = new Uint8Array(1 << 20);
      async function* data() { for (let i = 0; i < 256; i++) yield piece; }
      let peak = 0;
      const timer = setInterval(() => { peak = Math.max(peak, process.memoryUsage().rss); }, 5);
      const before = process.memoryUsage().rss;
      new GgufWriter()
        .addTensor("a", "I8", [1 << 20, 256], data)
        .addTensor("b", "I8", [1 << 20, 256], data)
        .write(${JSON.stringify(newPath())})
        .then(() => { clearInterval(timer); console.log(peak - before); });`;
    const { stdout, stderr } = spawnSync(process.execPath, ["-e", program], { encoding: "utf8" });
    assert.ok(Number(stdout) > 0 && Number(stdout) < 100e6, `${stdout} bytes more ${stderr}`);
  });
});
