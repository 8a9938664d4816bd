/** Tensors: what is listed, the stored bytes, types that are not known, files that are cut off. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import { dequantizeSync, type GgufError, ggmlTypes, openSync, parse } from "gguf-native";
import { dequantizeSync as decodeSync } from "gguf-native/reference";
import { ByteWriter } from "../support/byte-writer";
import { type TensorSpec, writeGguf, writeTensorInfo } from "../support/gguf-writer";
import { needsAddon } from "../support/needs-addon";
import { temporaryFolder } from "../support/paths";

const folder = temporaryFolder();
const bytesOf = (length: number) => Uint8Array.from({ length }, (_, i) => i * 7);
const tensor = (name: string, type: number, shape: (number | bigint)[], length: number): TensorSpec => ({
  name,
  type,
  shape,
  bytes: bytesOf(length),
});
const { F32, Q4_0, Q6_K } = ggmlTypes;

describe("the list", () => {
  const specs = [
    tensor("b", Q6_K.id, [512, 3], 6 * 210),
    tensor("a", F32.id, [5], 20),
    tensor("four.dims", Q4_0.id, [32, 2, 3, 4], 24 * 18),
    tensor("scalar", F32.id, [], 4),
    tensor("nothing", F32.id, [0, 7], 0),
    tensor("__proto__", F32.id, [1], 4),
    tensor("x".repeat(1000), F32.id, [1], 4),
  ];
  const file = parse(writeGguf({ tensors: specs }));

  test("is in file order", () => {
    assert.deepEqual(
      [...file.tensors.keys()],
      specs.map(({ name }) => name),
    );
    assert.equal(file.tensors.size, specs.length);
    assert.equal(file.tensors.get("none"), undefined);
    for (const [name, t] of file.tensors) assert.equal(t.name, name);
  });
  test("is a read-only map", () => {
    const { tensors } = file;
    for (const change of ["clear", "delete", "set"]) {
      assert.equal((tensors as unknown as Record<string, unknown>)[change], undefined);
    }
    assert.throws(() => Map.prototype.clear.call(tensors), TypeError);
    assert.equal(file.tensors, tensors);
    assert.ok(tensors.has("a") && !tensors.has("none"));
    assert.equal(tensors.get("a"), file.tensor("a"));
    assert.deepEqual(
      [...tensors.values()],
      [...tensors.entries()].map(([, t]) => t),
    );
    const seen: unknown[] = [];
    tensors.forEach(function (this: unknown, t, name, map) {
      seen.push(this, t, name, map);
    }, 5);
    const expected = specs.flatMap(({ name }) => [5, file.tensor(name as string), name, tensors]);
    assert.deepEqual(seen, expected);
    assert.match(inspect(tensors), /^TensorMap\(7\) \{\n {2}'b' => GgufTensor \{/);
    assert.match(inspect({ tensors }, { depth: 0 }), /TensorMap/);
  });
  test("has name, type, shape, counts, offset", () => {
    const b = file.tensor("b");
    assert.deepEqual([b.type, b.shape, b.elementCount, b.byteLength], ["Q6_K", [512, 3], 1536, 1260]);
    const four = file.tensor("four.dims");
    const shown = [four.type, four.shape, four.elementCount, four.byteLength];
    assert.deepEqual(shown, ["Q4_0", [32, 2, 3, 4], 768, 432]);
    assert.deepEqual([file.tensor("scalar").shape, file.tensor("scalar").elementCount], [[], 1]);
    assert.deepEqual([file.tensor("nothing").shape, file.tensor("nothing").byteLength], [[0, 7], 0]);
    const rows = ["b", "four.dims", "scalar", "nothing"].map((name) => file.tensor(name));
    assert.deepEqual(
      rows.map(({ columns, rowCount }) => [columns, rowCount]),
      [
        [512, 3],
        [32, 24],
        [1, 1],
        [0, 0],
      ],
    );
    assert.ok(Object.isFrozen(b.shape));
    assert.equal(b.shape, b.shape);
    assert.deepEqual(JSON.parse(JSON.stringify(b)), {
      ...{ name: "b", type: "Q6_K", shape: [512, 3] },
      ...{ elementCount: 1536, byteLength: 1260, offset: b.offset },
    });
    for (const t of file.tensors.values()) assert.equal(t.offset % 32, 0);
  });
  test("a name that does not exist", () => {
    for (const name of ["none", "", "constructor", "toString"]) {
      assert.throws(() => file.tensor(name), {
        code: "ERR_GGUF_TENSOR_NOT_FOUND",
        message: new RegExp(`'${name}'`),
      });
    }
  });
  test("an empty tensor gives an empty array", async () => {
    assert.equal(file.tensor("nothing").dequantizeSync().length, 0);
    assert.equal((await file.tensor("nothing").dequantize()).length, 0);
    assert.equal(file.tensor("nothing").bytes().length, 0);
  });
});

describe("bytes", () => {
  const spec = tensor("t", F32.id, [4], 16);
  const path = join(folder, "bytes.gguf");
  const content = writeGguf({ tensors: [spec] });
  writeFileSync(path, content);

  for (const access of ["mmap", "read"] as const) {
    test(`writing to them does not reach the file (${access})`, () => {
      const file = openSync(path, { access });
      const view = file.tensor("t").bytes();
      view.fill(0xee);
      assert.deepEqual(readFileSync(path), Buffer.from(content));
      file.close();
      assert.deepEqual(Buffer.from(openSync(path).tensor("t").bytes()), Buffer.from(spec.bytes));
    });
  }
  test("are a view, not a copy, of a mapped file", needsAddon, () => {
    const file = openSync(path);
    const t = file.tensor("t");
    t.bytes().fill(0);
    assert.deepEqual(t.dequantizeSync(), new Float32Array(4));
    file.close();
  });
  test("are a view, not a copy, of memory", () => {
    const memory = content.slice();
    const parsed = parse(memory).tensor("t");
    parsed.bytes().fill(0);
    assert.ok(memory.subarray(parsed.offset).every((byte) => byte === 0));
    assert.equal(parsed.bytes().buffer, memory.buffer);
  });
});

describe("unknown types", () => {
  const origins: Record<number, string> = {
    ...{
      4: "Q4_2 of old versions",
      33: "Q4_0_8_8 of old versions",
      36: "I2_S of Microsoft's BitNet",
      38: "IQ4_NL_8_8 of old",
    },
    ...{ 43: "TURBO2_0 of forks", 133: "Q6_0 of ik_llama.cpp", 144: "IQ4_KS of ik_llama.cpp" },
    ...{ 139: "IQ4_K of ik_llama.cpp", 158: "IQ1_KT of ik_llama.cpp", 208: "Q8_0_R8 of ik_llama.cpp" },
    ...{
      223: "IQ4_XS_R8 of",
      337: "IQ2_K_R4 of",
      399: "Q8_K_R8 of ik_llama.cpp",
      200: "",
      [2 ** 32 - 1]: "",
    },
  };
  const ids = Object.keys(origins).map(Number);
  const file = parse(
    writeGguf({
      tensors: [...ids.map((id) => tensor(`t${id}`, id, [7, 3], 64)), tensor("good", F32.id, [1], 4)],
    }),
  );
  for (const id of ids) {
    test(`unknown(${id})`, async () => {
      const t = file.tensor(`t${id}`);
      const found = [t.type, t.shape, t.elementCount, t.byteLength];
      assert.deepEqual(found, [`unknown(${id})`, [7, 3], 21, Number.NaN]);
      const refused = {
        name: "GgufError",
        code: "ERR_GGUF_UNSUPPORTED_TYPE",
        message: new RegExp(
          `^tensor 't${id}': the size of its type, unknown\\(${id}\\), is unknown, so its data cannot be read${origins[id] && `; it is ${origins[id]}.*`}$`,
        ),
      };
      assert.throws(() => t.bytes(), refused);
      assert.throws(() => t.dequantizeSync(), refused);
      assert.throws(() => t.rowsSync([0]), refused);
      await assert.rejects(t.dequantize(), refused);
      await assert.rejects(t.rows([0]), refused);
      // The reference and the kernels say the same of the type alone.
      for (const decode of [dequantizeSync, decodeSync]) {
        const said = new RegExp(origins[id] ? `; it is ${origins[id]}` : `unknown\\(${id}\\)$`);
        assert.throws(() => decode(t.type as "F32", new Uint8Array(4)), said);
      }
    });
  }
  test("the others are there", () => assert.equal(file.tensor("good").dequantizeSync().length, 1));
});

describe("tensors out of order and with gaps", () => {
  const w = new ByteWriter();
  w.bytes(Buffer.from("GGUF")).u32(3).u64(2).u64(0);
  writeTensorInfo(w, { name: "second", type: F32.id, shape: [1] }, 128);
  writeTensorInfo(w, { name: "first", type: F32.id, shape: [1] }, 32);
  w.align(32).zeros(32).f32(1).align(32).zeros(64).f32(2);
  test("are found", () => {
    const file = parse(w.done());
    assert.deepEqual([...file.tensors.keys()], ["second", "first"]);
    assert.equal(file.tensor("first").dequantizeSync()[0], 1);
    assert.equal(file.tensor("second").dequantizeSync()[0], 2);
  });
});

describe("partial", () => {
  const specs = [tensor("here", F32.id, [8], 32), tensor("cut", Q4_0.id, [64], 36), tensor("gone", F32.id, [8], 32)];
  const whole = writeGguf({ tensors: specs });
  const cut = whole.slice(0, parse(whole).tensor("cut").offset + 20);
  const path = join(folder, "partial.gguf");
  writeFileSync(path, cut);
  const files = {
    parse: () => parse(cut, { partial: true }),
    mmap: () => openSync(path, { partial: true }),
    read: () => openSync(path, { partial: true, access: "read" }),
  };
  for (const [name, openPartial] of Object.entries(files)) {
    test(`lists everything, rejects reading missing data (${name})`, async () => {
      const file = openPartial();
      assert.deepEqual([...file.tensors.keys()], ["here", "cut", "gone"]);
      assert.equal(file.tensor("here").dequantizeSync().length, 8);
      assert.equal(file.tensor("here").bytes().length, 32);
      for (const absent of ["cut", "gone"]) {
        const { offset, path: where } = file.tensor(absent);
        const about = where === undefined ? "" : `${where}: `;
        const refused = (error: GgufError) => {
          assert.deepEqual([error.name, error.code], ["GgufError", "ERR_GGUF_TRUNCATED"], error.message);
          assert.ok(error.message.startsWith(`${about}tensor '${absent}': bytes ${offset} to `), error.message);
          assert.deepEqual([error.path, error.offset], [where, offset]);
          return true;
        };
        assert.throws(() => file.tensor(absent).bytes(), refused);
        assert.throws(() => file.tensor(absent).dequantizeSync(), refused);
        assert.throws(() => file.tensor(absent).rowsSync([0]), refused);
        await assert.rejects(file.tensor(absent).dequantize(), refused);
        await assert.rejects(file.tensor(absent).rows([0]), refused);
      }
      file.close();
    });
  }
  test("without it the file is rejected", () => {
    assert.throws(() => openSync(path), { code: "ERR_GGUF_TRUNCATED" });
    assert.throws(() => parse(cut, { partial: false }), { code: "ERR_GGUF_TRUNCATED" });
  });
});
