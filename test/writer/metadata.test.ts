/** GgufWriter: metadata and alignment. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type GgufInput, type GgufInputType, GgufWriter, parse } from "gguf-native";
import { arr, f64, u64, writeGguf } from "../support/gguf-writer";
import { bytesOf } from "../support/written-bytes";

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
