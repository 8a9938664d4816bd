/** GgufWriter: metadata and alignment. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type GgufInput, type GgufInputType, GgufWriter, parse } from "gguf-native";
import { arr, f64, u64 } from "../support/gguf-writer";
import { bytesOf, metadataOf } from "../support/written-bytes";

describe("metadata", () => {
  /** The value, the type that is given, what it is declared as, and what is read where that is something else. */
  const cases: [value: GgufInput, type: GgufInputType | undefined, declared: string, read?: unknown][] = [
    [200, "uint8", "uint8"],
    [-100, "int8", "int8"],
    [60000, "uint16", "uint16"],
    [-30000, "int16", "int16"],
    [2 ** 32 - 1, "uint32", "uint32"],
    [-(2 ** 31), "int32", "int32"],
    [0.1, "float32", "float32", Math.fround(0.1)],
    [0.1, "float64", "float64"],
    [Number.NaN, "float32", "float32"],
    [Number.NEGATIVE_INFINITY, "float64", "float64"],
    [true, "bool", "bool"],
    ["héllo \0 🌍", "string", "string"],
    [2n ** 64n - 1n, "uint64", "uint64"],
    [-(2n ** 63n), "int64", "int64"],
    [7, "uint64", "uint64", 7n],
    [7n, "uint8", "uint8", 7],
    [[], "string[]", "string[0]"],
    [[1, 2], { type: "array", elementType: "uint8" }, "uint8[2]", Uint8Array.of(1, 2)],
    [[1, 2n], "int64[]", "int64[2]", BigInt64Array.of(1n, 2n)],
    [["a", Buffer.from("b")], "string[]", "string[2]", ["a", "b"]],
    [[[1], ["x", ""], []], "array[]", "array[3]", null],
    // Inferred.
    [5, undefined, "uint32"],
    [-5, undefined, "int32"],
    [2 ** 40, undefined, "uint64", 2n ** 40n],
    [-(2 ** 40), undefined, "int64", -(2n ** 40n)],
    [0.5, undefined, "float32"],
    [1e300, undefined, "float64"],
    [2 ** 53 + 2, undefined, "float64"],
    [-(2 ** 60), undefined, "float64"],
    [Number.NEGATIVE_INFINITY, undefined, "float32"],
    [5n, undefined, "uint64"],
    [-5n, undefined, "int64"],
    [false, undefined, "bool"],
    ["text", undefined, "string"],
    [[1, -2], undefined, "int32[2]", Int32Array.of(1, -2)],
    [[1, 2 ** 31], undefined, "uint32[2]", Uint32Array.of(1, 2 ** 31)],
    [[-1, 2 ** 31], undefined, "int64[2]", BigInt64Array.of(-1n, 2n ** 31n)],
    [[1, 0.5], undefined, "float32[2]", Float32Array.of(1, 0.5)],
    [[0.5, 2 ** 53 + 2], undefined, "float64[2]", Float64Array.of(0.5, 2 ** 53 + 2)],
    [[1, 2n ** 53n + 1n], undefined, "uint64[2]", BigUint64Array.of(1n, 2n ** 53n + 1n)],
    [[-1, 2n ** 53n + 1n], undefined, "int64[2]", BigInt64Array.of(-1n, 2n ** 53n + 1n)],
    [[true, false], undefined, "bool[2]"],
    [["a", "b"], undefined, "string[2]"],
    [[1n, 2n], undefined, "uint64[2]", BigUint64Array.of(1n, 2n)],
    [[[1, 2], [3]], undefined, "array[2]", [Int32Array.of(1, 2), Int32Array.of(3)]],
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
    cases.push([array, undefined, `${elementType}[2]`, array]);
  }
  for (const [i, [value, type, declared, read = value]] of cases.entries()) {
    const shown = Array.isArray(value) || typeof value === "object" ? `array ${i}` : String(value);
    test(`${shown} as ${typeof type === "object" ? JSON.stringify(type) : type}`, async () => {
      const { metadata } = parse(await bytesOf(new GgufWriter().set("x.y", value, type)));
      const found = metadata.typeOf("x.y")!;
      assert.equal(found.type === "array" ? `${found.elementType}[${found.length}]` : found.type, declared);
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
    const writer = new GgufWriter().set("one", bytes, "string").set("many", [bytes, "x"], "string[]");
    const { metadata } = parse(await bytesOf(writer));
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
    const source = metadataOf([
      ["a", u64(5n)],
      ["b", arr("float64", [1, 2])],
      ["c", f64(0.1)],
    ]);
    const writer = new GgufWriter();
    for (const [key, value] of source) writer.set(key, value, source.typeOf(key)!);
    const { metadata } = parse(await bytesOf(writer));
    assert.deepEqual([...metadata], [...source]);
    for (const key of source.keys()) assert.deepEqual(metadata.typeOf(key), source.typeOf(key));
  });

  test("keys that are special to JavaScript", async () => {
    const file = parse(await bytesOf(new GgufWriter().set("__proto__", 1).set("constructor", "x")));
    assert.deepEqual([...file.metadata.keys()], ["__proto__", "constructor"]);
  });

  const loop: unknown[] = [];
  loop.push(loop);
  const refused: [name: string, args: unknown[], code: string][] = [
    ["an empty key", ["", 1], "ERR_GGUF_INVALID"],
    ["a key that is too long", ["é".repeat(32768), 1], "ERR_GGUF_INVALID"],
    ["a key twice", ["twice", 1], "ERR_GGUF_INVALID"],
    ["a key with half a surrogate pair", ["\ud800", 1], "ERR_INVALID_ARG_VALUE"],
    ["a value with half a surrogate pair", ["a", "\udfff"], "ERR_INVALID_ARG_VALUE"],
    ["a number that does not fit", ["a", 256, "uint8"], "ERR_GGUF_METADATA_RANGE"],
    ["a negative one", ["a", -1, "uint64"], "ERR_GGUF_METADATA_RANGE"],
    ["a bigint that does not fit", ["a", 2n ** 63n, "int64"], "ERR_GGUF_METADATA_RANGE"],
    ["a bigint that fits nothing", ["a", 2n ** 64n], "ERR_GGUF_METADATA_RANGE"],
    ["an element that does not fit", ["a", [1, 300], "uint8[]"], "ERR_GGUF_METADATA_RANGE"],
    ["a float too large", ["a", 1e39, "float32"], "ERR_GGUF_METADATA_RANGE"],
    ["a fraction as an integer", ["a", 1.5, "int32"], "ERR_GGUF_METADATA_TYPE"],
    ["a string as a number", ["a", "1", "int32"], "ERR_GGUF_METADATA_TYPE"],
    ["a number as a bool", ["a", 1, "bool"], "ERR_GGUF_METADATA_TYPE"],
    ["a scalar as an array", ["a", 1, "int32[]"], "ERR_GGUF_METADATA_TYPE"],
    ["an array as a scalar", ["a", [1], "int32"], "ERR_GGUF_METADATA_TYPE"],
    ["mixed elements", ["a", [1, "x"]], "ERR_GGUF_METADATA_TYPE"],
    ["an empty array of no type", ["a", []], "ERR_GGUF_METADATA_TYPE"],
    ["an array that holds itself", ["a", loop], "ERR_GGUF_INVALID"],
    ["null", ["a", null], "ERR_INVALID_ARG_TYPE"],
    ["an object", ["a", {}], "ERR_INVALID_ARG_TYPE"],
    ["a date", ["a", new Date()], "ERR_INVALID_ARG_TYPE"],
    ["a key that is none", [5, 1], "ERR_INVALID_ARG_TYPE"],
    ["an unknown type", ["a", 1, "int"], "ERR_INVALID_ARG_VALUE"],
    ["an unknown element type", ["a", [1], "int[]"], "ERR_INVALID_ARG_VALUE"],
    ["an array of what", ["a", [1], "array"], "ERR_INVALID_ARG_VALUE"],
    ["a type that is none", ["a", 1, 5], "ERR_INVALID_ARG_TYPE"],
  ];
  for (const [name, args, code] of refused) {
    test(`${name} is refused`, () => {
      const writer = new GgufWriter().set("twice", 1);
      assert.throws(() => writer.set(...(args as Parameters<GgufWriter["set"]>)), { code });
    });
  }
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
      const invalid = { code: "ERR_GGUF_INVALID", message: /power of two/ };
      assert.throws(() => new GgufWriter({ alignment }), invalid);
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
    const invalid = { code: "ERR_GGUF_INVALID" };
    assert.throws(() => new GgufWriter().set("general.alignment", 32, "uint64"), invalid);
    assert.throws(() => new GgufWriter({ alignment: 32 }).set("general.alignment", 32), invalid);
  });
});
