/** Metadata: every type, typed access, raw bytes, the map interface, JSON. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type GgufMetadata, parse } from "gguf-native";
import {
  arr,
  bool,
  f32,
  f64,
  i32,
  i64,
  str,
  type TypedValue,
  u8,
  u16,
  u32,
  u64,
  writeGguf,
} from "../support/gguf-writer";
import { metadataOf } from "../support/written-bytes";

const BROKEN = Uint8Array.of(0xe2, 0x96, 0x41); // a cut-off code point, then "A"

const values: [string, TypedValue, unknown][] = [
  ["u8", u8(255), 255],
  ["i8", { type: "int8", value: -128 }, -128],
  ["u16", u16(65535), 65535],
  ["i16", { type: "int16", value: -32768 }, -32768],
  ["u32", u32(2 ** 32 - 1), 2 ** 32 - 1],
  ["i32", i32(-(2 ** 31)), -(2 ** 31)],
  ["f32", f32(0.1), Math.fround(0.1)],
  ["f64", f64(0.1), 0.1],
  ["nan", f32(Number.NaN), Number.NaN],
  ["-0", f64(-0), -0],
  ["inf", f64(-Infinity), -Infinity],
  ["true", bool(true), true],
  ["false", bool(false), false],
  ["u64", u64(2n ** 64n - 1n), 2n ** 64n - 1n],
  ["i64", i64(-(2n ** 63n)), -(2n ** 63n)],
  ["small u64", u64(7n), 7n],
  ["2^53", u64(2n ** 53n), 2n ** 53n],
  ["2^53+1", u64(2n ** 53n + 1n), 2n ** 53n + 1n],
  ["empty", str(""), ""],
  ["text", str("Grüße, 世界 🦙\0!"), "Grüße, 世界 🦙\0!"],
  ["bom", str("\ufeffx"), "\ufeffx"],
  ["long text", str("é".repeat(100_000)), "é".repeat(100_000)],
  ["broken", str(BROKEN), "\ufffdA"],
  ["u8s", arr("uint8", [0, 255]), Uint8Array.of(0, 255)],
  ["i8s", arr("int8", [-128, 127]), Int8Array.of(-128, 127)],
  ["u16s", arr("uint16", [0, 65535]), Uint16Array.of(0, 65535)],
  ["i16s", arr("int16", [-32768]), Int16Array.of(-32768)],
  ["u32s", arr("uint32", [1, 2 ** 32 - 1]), Uint32Array.of(1, 2 ** 32 - 1)],
  ["i32s", arr("int32", [-5]), Int32Array.of(-5)],
  ["f32s", arr("float32", [0.1, -0]), Float32Array.of(0.1, -0)],
  ["f64s", arr("float64", [0.1]), Float64Array.of(0.1)],
  ["u64s", arr("uint64", [2n ** 64n - 1n]), BigUint64Array.of(2n ** 64n - 1n)],
  ["i64s", arr("int64", [-1n]), BigInt64Array.of(-1n)],
  ["bools", arr("bool", [true, false]), [true, false]],
  ["strings", arr("string", ["a", "", "ü"]), ["a", "", "ü"]],
  ["broken strings", arr("string", ["ok", BROKEN]), ["ok", "\ufffdA"]],
  ["no u32s", arr("uint32", []), new Uint32Array(0)],
  ["no strings", arr("string", []), []],
  ["no bools", arr("bool", []), []],
  ["no arrays", arr("array", []), []],
  [
    "nested",
    arr("array", [arr("uint8", [1, 2]), arr("array", [arr("string", ["x"])]), arr("bool", [])]),
    [Uint8Array.of(1, 2), [["x"]], []],
  ],
  ["__proto__", str("data"), "data"],
  ["constructor", u32(1), 1],
  ["toString", u32(2), 2],
];

function read(byteOrder: "little" | "big" = "little", version: 1 | 2 | 3 = 3): GgufMetadata {
  return parse(writeGguf({ byteOrder, version, metadata: values.map(([key, value]) => [key, value]) })).metadata;
}

describe("values", () => {
  for (const [version, order] of [
    [3, "little"],
    [3, "big"],
    [2, "little"],
    [1, "little"],
  ] as const) {
    test(`every type, version ${version}, ${order}-endian`, () => {
      const metadata = read(order, version);
      for (const [key, , expected] of values) assert.deepStrictEqual(metadata.get(key), expected, key);
    });
  }

  test("an array is the caller's own", () => {
    const metadata = read();
    const first = metadata.numbers("u32s")!;
    first[0] = 99;
    (metadata.get("strings") as string[]).length = 0;
    assert.deepEqual(metadata.get("u32s"), Uint32Array.of(1, 2 ** 32 - 1));
    assert.deepEqual(metadata.get("strings"), ["a", "", "ü"]);
  });

  test("bytes", () => {
    const metadata = read();
    assert.deepEqual(Buffer.from(metadata.bytes("broken") as Uint8Array), Buffer.from(BROKEN));
    const all = metadata.bytes("broken strings") as Uint8Array[];
    const found = all.map((bytes) => Buffer.from(bytes));
    assert.deepEqual(found, [Buffer.from("ok"), Buffer.from(BROKEN)]);
    assert.equal((metadata.bytes("empty") as Uint8Array).length, 0);
    assert.deepEqual(metadata.bytes("no strings"), []);
    assert.equal(metadata.bytes("none"), undefined);
    assert.throws(() => metadata.bytes("u32"), { code: "ERR_GGUF_METADATA_TYPE" });
    (metadata.bytes("text") as Uint8Array).fill(0);
    assert.equal(metadata.string("text"), "Grüße, 世界 🦙\0!");
  });
});

describe("the map", () => {
  const metadata = read();
  const keys = values.map(([key]) => key);

  test("size, keys, values, entries, iteration in file order", () => {
    assert.equal(metadata.size, values.length);
    assert.deepEqual([...metadata.keys()], keys);
    assert.deepEqual(
      [...metadata.values()],
      values.map(([, , value]) => value),
    );
    const expected = values.map(([key, , value]) => [key, value]);
    for (const found of [metadata, metadata.entries()]) assert.deepEqual([...found], expected);
    assert.equal(metadata.keys().next().value, "u8");
  });
  test("forEach", () => {
    const seen: string[] = [];
    const self = {};
    metadata.forEach(function (this: unknown, _value, key, map) {
      assert.equal(this, self);
      assert.equal(map, metadata);
      seen.push(key);
    }, self);
    assert.deepEqual(seen, keys);
  });
  test("has and get of what is not there", () => {
    assert.ok(metadata.has("__proto__") && metadata.has("constructor"));
    assert.ok(!metadata.has("hasOwnProperty") && !metadata.has("") && !metadata.has("U8"));
    assert.equal(metadata.get("hasOwnProperty"), undefined);
    assert.equal(metadata.typeOf("valueOf"), undefined);
  });
  test("typeOf", () => {
    assert.deepEqual(metadata.typeOf("u8"), { type: "uint8" });
    assert.deepEqual(metadata.typeOf("true"), { type: "bool" });
    assert.deepEqual(metadata.typeOf("u64"), { type: "uint64" });
    assert.deepEqual(metadata.typeOf("strings"), { type: "array", elementType: "string", length: 3 });
    assert.deepEqual(metadata.typeOf("no arrays"), { type: "array", elementType: "array", length: 0 });
    assert.deepEqual(metadata.typeOf("nested"), { type: "array", elementType: "array", length: 3 });
  });
});

describe("typed access", () => {
  const metadata = read();
  const wrongType = { name: "GgufError", code: "ERR_GGUF_METADATA_TYPE" };

  test("string", () => {
    assert.equal(metadata.string("empty"), "");
    assert.equal(metadata.string("none"), undefined);
    assert.throws(() => metadata.string("u8"), wrongType);
    const ofStrings = { ...wrongType, message: /'strings' is an array of 3 string/ };
    assert.throws(() => metadata.string("strings"), ofStrings);
  });
  test("number", () => {
    for (const key of ["u8", "i8", "u16", "i16", "u32", "i32", "f32", "f64", "nan", "-0", "inf"]) {
      assert.ok(Object.is(metadata.number(key), metadata.get(key)), key);
    }
    assert.equal(metadata.number("small u64"), 7);
    assert.equal(metadata.number("2^53"), 2 ** 53);
    assert.equal(metadata.number("none"), undefined);
    for (const key of ["u64", "i64", "2^53+1"]) {
      assert.throws(() => metadata.number(key), { name: "GgufError", code: "ERR_GGUF_METADATA_RANGE" }, key);
    }
    for (const key of ["true", "text", "u8s"]) assert.throws(() => metadata.number(key), wrongType, key);
  });
  test("boolean", () => {
    assert.equal(metadata.boolean("false"), false);
    assert.equal(metadata.boolean("none"), undefined);
    assert.throws(() => metadata.boolean("u8"), wrongType);
  });
  test("strings", () => {
    assert.deepEqual(metadata.strings("strings"), ["a", "", "ü"]);
    assert.deepEqual(metadata.strings("no strings"), []);
    assert.equal(metadata.strings("none"), undefined);
    for (const key of ["text", "u8s", "bools", "nested"]) assert.throws(() => metadata.strings(key), wrongType, key);
  });
  test("numbers", () => {
    for (const key of ["u8s", "i8s", "u16s", "i16s", "u32s", "i32s", "f32s", "f64s", "u64s", "i64s", "no u32s"]) {
      assert.deepEqual(metadata.numbers(key), metadata.get(key), key);
    }
    assert.equal(metadata.numbers("none"), undefined);
    for (const key of ["u8", "strings", "bools", "nested"]) assert.throws(() => metadata.numbers(key), wrongType, key);
  });
  test("architecture and arch", () => {
    const llama = metadataOf([
      ["general.architecture", str("llama")],
      ["llama.context_length", u32(4096)],
      ["llama.x", str("")],
    ]);
    assert.equal(llama.architecture, "llama");
    assert.equal(llama.arch("context_length"), 4096);
    assert.equal(llama.arch("none"), undefined);
    assert.throws(() => llama.arch("x"), wrongType);
    assert.equal(metadata.architecture, undefined);
    assert.equal(metadata.arch("context_length"), undefined);
    const odd = metadataOf([["general.architecture", u32(1)]]);
    assert.throws(() => odd.architecture, wrongType);
  });
});

test("toJSON", () => {
  const long = Array.from({ length: 65 }, (_, i) => i);
  const metadata = metadataOf([
    ...values.map(([key, value]) => [key, value] as const),
    ["long", arr("uint32", long)],
    ["not long", arr("uint32", long.slice(1))],
    ["long inside", arr("array", [arr("string", long.map(String)), arr("int8", [1])])],
  ]);
  const json = JSON.parse(JSON.stringify(metadata)) as Record<string, unknown>;
  assert.equal(json.u64, "18446744073709551615");
  assert.deepEqual(json.i64s, ["-1"]);
  assert.equal(json.nan, "NaN");
  assert.equal(json.inf, "-Infinity");
  assert.deepEqual(json.u8s, [0, 255]);
  assert.deepEqual(json.nested, [[1, 2], [["x"]], []]);
  assert.deepEqual(json.long, { type: "array", elementType: "uint32", length: 65 });
  assert.deepEqual(json["not long"], long.slice(1));
  assert.deepEqual(json["long inside"], [{ type: "array", elementType: "string", length: 65 }, [1]]);
  assert.ok(Object.hasOwn(json, "__proto__"));
  assert.equal(Object.getOwnPropertyDescriptor(json, "__proto__")!.value, "data");
  assert.deepEqual(Object.keys(json).slice(0, 5), ["u8", "i8", "u16", "i16", "u32"]);
});

test("a hundred thousand names that look alike", () => {
  const name = (i: number) => Uint8Array.of(0x80 | (i & 63), 0x80 | ((i >> 6) & 63), 0x80 | (i >> 12));
  const keys = [...metadataOf(Array.from({ length: 100_000 }, (_, i) => [name(i), u32(i)] as const)).keys()];
  const shown = "\ufffd\ufffd\ufffd";
  assert.deepEqual([keys.length, keys[0], keys[1]], [100_000, shown, `${shown} (2)`]);
  assert.equal(keys.at(-1), `${shown} (100000)`);
});
