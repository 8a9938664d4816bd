/** GgufWriter.from: everything of a model is copied, and can be changed; and numbers as data of tensors. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import {
  type GgmlType,
  type GgufFile,
  GgufWriter,
  ggmlTypes,
  openRemote,
  openSync,
  parse,
  type QuantizableType,
  quantizeSync,
  splitModel,
  type TensorData,
} from "gguf-native";
import { gaussianBlocks } from "../support/blocks";
import { swapBlocks } from "../support/byte-order";
import { arr, type GgufSpec, i32, str, u8, u32, u64, writeGguf } from "../support/gguf-writer";
import { ALL_TYPES } from "../support/golden";
import { temporaryFolder } from "../support/paths";
import { Random } from "../support/random";
import { rangesOf, serve } from "../support/range-server";
import { bytesOf } from "../support/written-bytes";

const folder = temporaryFolder();
let counter = 0;
const newPath = (): string => join(folder, `${counter++}.gguf`);

const notUtf8 = Uint8Array.of(0x66, 0x80, 0xff);
const random = new Random(3);
const blocks = (type: GgmlType, count: number): Uint8Array => gaussianBlocks(type, count, random);

const spec: GgufSpec = {
  metadata: [
    ["general.architecture", str("llama")],
    ["general.name", str(notUtf8)],
    [notUtf8, str("a key that is not UTF-8")],
    ["tokenizer.ggml.tokens", arr("string", ["<s>", notUtf8, ""])],
    ["nested", arr("array", [arr("string", [notUtf8]), arr("uint8", []), arr("array", [arr("int32", [1, -1])])])],
    ["llama.context_length", u32(4096)],
    ["small", u8(7)],
    ["large", u64(2n ** 63n)],
  ],
  tensors: [
    { name: "token_embd.weight", type: ggmlTypes.Q4_K.id, shape: [256, 3], bytes: blocks("Q4_K", 3) },
    { name: notUtf8, type: ggmlTypes.I8.id, shape: [5], bytes: Uint8Array.of(1, 2, 3, 4, 5) },
    { name: "empty", type: ggmlTypes.F32.id, shape: [0, 4], bytes: new Uint8Array(0) },
    { name: "blk.0.attn_q.weight", type: ggmlTypes.Q8_0.id, shape: [32, 2, 2], bytes: blocks("Q8_0", 4) },
  ],
};
/** A file that ends with padding, as those of GgufWriter do. */
const padded = (bytes: Uint8Array, alignment = 32): Buffer =>
  Buffer.concat([bytes, Buffer.alloc(-bytes.length & (alignment - 1))]);
const original = padded(writeGguf(spec));

/** What a model is, to compare with another one. */
function contents({ metadata, tensors }: GgufFile): unknown {
  return {
    metadata: Array.from(metadata, ([key, value]) => [key, metadata.typeOf(key), value]),
    keys: Array.from(metadata.keys(), (key) => Buffer.from(metadata.keyBytes(key) as Uint8Array)),
    strings: ["general.name", "tokenizer.ggml.tokens"].map((key) => metadata.bytes(key)),
    tensors: Array.from(tensors.values(), (tensor) => {
      const { name, type, shape } = tensor;
      return { name, type, shape, bytes: Buffer.from(tensor.bytes()) };
    }),
  };
}

describe("GgufWriter.from", () => {
  test("copies a file byte for byte", async () => {
    assert.deepEqual(await bytesOf(GgufWriter.from(parse(original))), original);
  });

  test("copies another alignment, and removing it brings back the usual one", async () => {
    const aligned = padded(writeGguf({ ...spec, alignment: 128 }), 128);
    const copy = GgufWriter.from(parse(aligned));
    assert.deepEqual(Buffer.from(await bytesOf(copy)), Buffer.from(aligned));
    const usual = parse(await bytesOf(copy.removeMetadata("general.alignment")));
    assert.equal(usual.alignment, 32);
    assert.deepEqual(contents(usual), contents(parse(original)));
    assert.equal(parse(await bytesOf(GgufWriter.from(parse(aligned)).set("general.alignment", 64))).alignment, 64);
  });

  for (const version of [1, 2, 3] as const) {
    for (const byteOrder of ["little", "big"] as const) {
      test(`version ${version}, ${byteOrder}-endian, becomes version 3, little-endian`, async () => {
        const swapped = spec.tensors?.map((tensor) => {
          const type = Object.entries(ggmlTypes).find(([, { id }]) => id === tensor.type)?.[0] as GgmlType;
          return byteOrder === "big" ? { ...tensor, bytes: swapBlocks(type, tensor.bytes) } : tensor;
        });
        const file = parse(writeGguf({ ...spec, tensors: swapped ?? [], version, byteOrder }));
        const copy = parse(await bytesOf(GgufWriter.from(file)));
        assert.deepEqual([copy.version, copy.byteOrder], [3, "little"]);
        assert.deepEqual(contents(copy), contents(parse(original)));
      });
    }
  }

  test("in the other byte order and back, every type", async () => {
    const tensors = ALL_TYPES.map((type) => ({
      name: type,
      type: ggmlTypes[type].id,
      shape: [ggmlTypes[type].blockSize * 3],
      bytes: blocks(type, 3),
    }));
    const little = padded(writeGguf({ ...spec, tensors }));
    const swapped = tensors.map((each) => ({ ...each, bytes: swapBlocks(each.name, each.bytes) }));
    const big = padded(writeGguf({ ...spec, tensors: swapped, byteOrder: "big" }));
    const found = Buffer.from(await bytesOf(GgufWriter.from(parse(little), { byteOrder: "big" })));
    assert.deepEqual(found, Buffer.from(big));
    const shown = Buffer.from(await bytesOf(GgufWriter.from(parse(big), { byteOrder: "big" })));
    assert.deepEqual(shown, Buffer.from(big));
    assert.deepEqual(Buffer.from(await bytesOf(GgufWriter.from(parse(big)))), Buffer.from(little));
  });

  test("data for a big-endian file is given little-endian, in pieces of any size", async () => {
    const data = blocks("Q4_K", 8);
    const shared = new Uint8Array(new SharedArrayBuffer(data.length));
    shared.set(data);
    const odd = [data.subarray(0, 1), data.subarray(1, 500), new Uint8Array(0), data.subarray(500)];
    const writer = new GgufWriter({ byteOrder: "big" })
      .set("general.architecture", "test")
      .set("a", 1.5, "float64")
      .addTensor("odd", "Q4_K", [256, 8], odd)
      .addTensor("shared", "Q4_K", [256, 8], shared)
      .addTensor("numbers", "F32", [2], Float32Array.of(1, -2));
    const file = parse(await bytesOf(writer));
    assert.deepEqual([file.byteOrder, file.metadata.get("a")], ["big", 1.5]);
    for (const name of ["odd", "shared"])
      assert.deepEqual(Buffer.from(file.tensor(name).bytes()), Buffer.from(swapBlocks("Q4_K", new Uint8Array(data))));
    assert.deepEqual([...file.tensor("numbers").dequantizeSync()], [1, -2]);
    assert.throws(() => new GgufWriter({ byteOrder: "middle" as "big" }), /must be "little" or "big"/);
  });

  test("tensors get other names, all at once, and keep their places", async () => {
    const names = (spec.tensors ?? []).map(({ name }) => String(name)) as [string, string, string, string];
    const [first, , third, fourth] = names;
    const renamed = { [first]: fourth, [fourth]: first, [third]: third };
    const writer = GgufWriter.from(parse(original)).renameTensors(renamed);
    const { tensors } = parse(await bytesOf(writer));
    assert.deepEqual([...tensors.keys()], [fourth, "f\ufffd\ufffd", third, first]);
    const bytes = Buffer.from(spec.tensors?.[3]?.bytes as Uint8Array);
    assert.deepEqual(Buffer.from(tensors.get(first)?.bytes() ?? []), bytes);
    writer.renameTensors(new Map([["empty", "other"]])).removeTensor("other");
    assert.throws(() => writer.renameTensors({ empty: "x" }), { code: "ERR_GGUF_TENSOR_NOT_FOUND" });
    for (const [to, message] of [
      [first, /two tensors would have this name/],
      ["", /must not be empty/],
      ["x".repeat(64), /64 bytes/],
    ] as const)
      assert.throws(() => writer.renameTensors({ [fourth]: to }), { code: "ERR_GGUF_INVALID", message });
    assert.throws(() => writer.renameTensors({ [fourth]: 1 as never }), TypeError);
    assert.throws(() => writer.renameTensors(1 as never), TypeError);
  });

  test("a split model, and a file on a server, become one file", async () => {
    const path = newPath();
    writeFileSync(path, original);
    const [first] = await splitModel(path, join(folder, "split"), { maxTensors: 1 });
    using split = openSync(first as string);
    assert.equal(split.paths.length, 4);
    using remote = await openRemote((await serve(rangesOf(original))).url);
    for (const file of [split, remote]) assert.deepEqual(await bytesOf(GgufWriter.from(file)), original);
  });

  const noWindows = { skip: process.platform === "win32" && "Windows replaces no file that is open" };
  test("over the file itself", noWindows, async () => {
    const path = newPath();
    writeFileSync(path, original);
    using file = openSync(path);
    await GgufWriter.from(file).set("general.name", "changed").write(path);
    using again = openSync(path);
    assert.equal(again.metadata.string("general.name"), "changed");
  });

  test("what is changed keeps its place, and its type unless another is given", async () => {
    const copy = GgufWriter.from(parse(original))
      .set("small", 8)
      .set("llama.context_length", 1, "int32")
      .set("new", 1)
      .removeMetadata("large")
      .removeMetadata("f\ufffd\ufffd")
      .addTensor("f\ufffd\ufffd", "F32", [1], Float32Array.of(5))
      .removeTensor("empty")
      .addTensor("last", "I8", [1], Int8Array.of(9));
    const file = parse(await bytesOf(copy));
    const keys = "general.architecture general.name tokenizer.ggml.tokens nested llama.context_length small new";
    assert.equal([...file.metadata.keys()].join(" "), keys);
    assert.deepEqual(file.metadata.typeOf("small"), { type: "uint8" });
    assert.deepEqual(file.metadata.get("small"), 8);
    assert.deepEqual(file.metadata.typeOf("llama.context_length"), { type: "int32" });
    const actual = [...file.tensors.keys()];
    assert.deepEqual(actual, ["token_embd.weight", "f\ufffd\ufffd", "blk.0.attn_q.weight", "last"]);
    assert.deepEqual(file.tensor("f\ufffd\ufffd").dequantizeSync(), Float32Array.of(5));
  });

  test("what is refused", async () => {
    const copy = GgufWriter.from(parse(original));
    const type = { name: "TypeError", code: "ERR_INVALID_ARG_TYPE" };
    for (const wrong of ["model.gguf", undefined, {}, original]) {
      assert.throws(() => GgufWriter.from(wrong as never), type);
    }
    assert.throws(() => copy.set("small", 300), { code: "ERR_GGUF_METADATA_RANGE" });
    assert.throws(() => copy.set("small", 3).set("small", 4), { code: "ERR_GGUF_INVALID" });
    assert.throws(() => copy.set("tokenizer.ggml.tokens", "x"), { code: "ERR_GGUF_METADATA_TYPE" });
    assert.throws(() => copy.addTensor("empty", "F32", [1], new Uint8Array(3)), { code: "ERR_GGUF_RANGE" });
    assert.throws(() => copy.removeMetadata("context_length"), {
      code: "ERR_GGUF_INVALID",
      message: "no metadata key is 'context_length'. Did you mean 'llama.context_length'?",
    });
    assert.throws(() => copy.removeTensor("blk.0.attn_k.weight"), {
      code: "ERR_GGUF_TENSOR_NOT_FOUND",
      message: "no tensor is named 'blk.0.attn_k.weight'. Did you mean 'blk.0.attn_q.weight'?",
    });
    assert.throws(() => copy.removeTensor(5 as never), type);
    assert.throws(() => copy.removeMetadata(5 as never), type);
    const unknown = parse(writeGguf({ tensors: [{ name: "x", type: 1000, shape: [1], bytes: new Uint8Array(4) }] }), {
      partial: true,
    });
    assert.throws(() => GgufWriter.from(unknown), { code: "ERR_GGUF_UNSUPPORTED_TYPE" });
    const closed = parse(original);
    const late = GgufWriter.from(closed);
    closed.close();
    assert.throws(() => GgufWriter.from(closed), { code: "ERR_GGUF_CLOSED" });
    await assert.rejects(bytesOf(late), { code: "ERR_GGUF_CLOSED" });
  });

  test("large tensors are read a piece at a time", async () => {
    const path = newPath();
    const length = 24 << 20;
    const piece = new Random(8).fill(new Uint8Array(1 << 20));
    const data = (function* () {
      for (let at = 0; at < length; at += piece.length) yield piece;
    })();
    await new GgufWriter().addTensor("x", "I8", [length], data).write(path);
    using file = openSync(path);
    const lengths: number[] = [];
    let at = 0;
    const all = readFileSync(path);
    for await (const chunk of GgufWriter.from(file).chunks()) {
      lengths.push(chunk.length);
      assert.equal(Buffer.compare(chunk, all.subarray(at, at + chunk.length)), 0);
      at += chunk.length;
    }
    assert.equal(at, all.length);
    assert.ok(Math.max(...lengths) <= 4 << 20);
  });
});

describe("numbers as data", () => {
  const types: QuantizableType[] = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"];
  const numbers = Float32Array.from({ length: 32 * 64 }, () => random.gaussian());
  const forms: Record<string, () => TensorData> = {
    "an array": () => numbers,
    "a function": () => () => numbers,
    "an asynchronous function": () => async () => numbers,
    "an array of pieces": () => [numbers.subarray(0, 64), new Float32Array(0), numbers.subarray(64)],
    "an asynchronous iterable": () =>
      (async function* () {
        for (let at = 0; at < numbers.length; at += 320) yield numbers.subarray(at, at + 320);
      })(),
  };
  for (const [form, data] of Object.entries(forms)) {
    test(form, async () => {
      const writer = new GgufWriter();
      for (const type of types) writer.addTensor(type, type, [64, 32], data());
      const file = parse(await bytesOf(writer));
      for (const type of types) {
        assert.deepEqual(Buffer.from(file.tensor(type).bytes()), Buffer.from(quantizeSync(type, numbers)), type);
      }
    });
  }

  test("more numbers than are turned into blocks at a time", async () => {
    const many = new Float32Array(700_000).map((_, i) => Math.sin(i));
    const file = parse(await bytesOf(new GgufWriter().addTensor("x", "Q5_1", [32, 21_875], many)));
    assert.deepEqual(Buffer.from(file.tensor("x").bytes()), Buffer.from(quantizeSync("Q5_1", many)));
  });

  test("what is refused", async () => {
    const add = (type: GgmlType, shape: number[], data: unknown): GgufWriter =>
      new GgufWriter().addTensor("x", type, shape, data as TensorData);
    assert.throws(() => add("Q8_0", [32], new Float32Array(64)), { code: "ERR_GGUF_RANGE" });
    assert.throws(() => add("Q8_0", [32], new Float32Array(33)), { code: "ERR_GGUF_RANGE" });
    assert.throws(() => add("Q8_0", [64], [new Float32Array(16), new Float32Array(48)]), {
      code: "ERR_GGUF_RANGE",
      message: "tensor 'x': its data has a piece of 16 numbers, which are not whole Q8_0 blocks of 32",
    });
    assert.throws(() => add("Q8_1", [256], new Float32Array(256)), {
      code: "ERR_INVALID_ARG_TYPE",
      message: /numbers can be given for F32, F16, .*, for tensor 'x'/,
    });
    assert.throws(() => add("q8_0" as GgmlType, [32], new Float32Array(32)), {
      code: "ERR_GGUF_UNSUPPORTED_TYPE",
      message: /did you mean Q8_0\?/,
    });
    await assert.rejects(bytesOf(add("Q8_0", [32], () => new Float32Array(64))), { code: "ERR_GGUF_RANGE" });
    await assert.rejects(bytesOf(add("Q8_0", [32], new Set([new Float64Array(32)]))), {
      code: "ERR_INVALID_ARG_TYPE",
      message: /made of instances of Uint8Array or Float32Array, for tensor 'x'/,
    });
  });
});

test("JSON.stringify gives a summary", () => {
  const file = parse(
    writeGguf({
      metadata: [
        ["a", i32(-1)],
        ["general.name", str("x")],
      ],
      tensors: spec.tensors ?? [],
    }),
  );
  assert.deepEqual(JSON.parse(JSON.stringify(file)), {
    paths: [],
    version: 3,
    byteOrder: "little",
    byteLength: file.byteLength,
    alignment: 32,
    tensorCount: 4,
    parameterCount: 256 * 3 + 5 + 128,
    metadata: { a: -1, "general.name": "x" },
  });
  file.close();
  assert.equal(JSON.parse(JSON.stringify(file)).closed, true);
});
