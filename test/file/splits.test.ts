/** Split models: opened as one from any shard, and refused where a shard is missing, foreign or there twice. */
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { inspect } from "node:util";
import { GgufError, type GgufFile, open, openSync, parse } from "gguf-native";
import { type GgufSpec, splitKeys, str, type TypedValue, u16, u32, u64, writeGguf } from "../support/gguf-writer";
import { needsAddon } from "../support/needs-addon";
import { temporaryFolder } from "../support/paths";

const root = temporaryFolder();
const COUNT = 3;

type Entry = readonly [string, TypedValue];

function tensor(name: string, ...values: number[]) {
  return {
    name,
    type: 0,
    shape: [2, values.length / 2],
    bytes: new Uint8Array(Float32Array.from(values).buffer),
  };
}

/** Shard `no` of a model of five tensors: two, two, one. */
function shard(no: number, spec: GgufSpec = {}): Uint8Array {
  const model: Entry[] = no === 0 ? [["general.architecture", str("test")]] : [];
  const tensors = [
    [tensor("a", 1, 2, 3, 4), tensor("b", 5, 6)],
    [tensor("c", 7, 8), tensor("d", 9, 10)],
    [tensor("e", 11, 12)],
  ][no]!;
  return writeGguf({ metadata: [...model, ...splitKeys(no, COUNT, 5)], tensors, ...spec });
}

const nameOf = (no: number, count = COUNT) =>
  `model-${String(no + 1).padStart(5, "0")}-of-${String(count).padStart(5, "0")}.gguf`;

/** A folder with the shards of a model; those in `replaced` with another content, or missing where that is null. */
function model(replaced: Record<number, Uint8Array | null> = {}): { folder: string; paths: string[] } {
  const folder = mkdtempSync(join(root, "model-"));
  const paths = Array.from({ length: COUNT }, (_, no) => join(folder, nameOf(no)));
  for (const [no, path] of paths.entries()) {
    const content = replaced[no] === undefined ? shard(no) : replaced[no];
    if (content !== null) writeFileSync(path, content);
  }
  return { folder, paths };
}

const good = model();

function expectWhole(path: string): void {
  using file = openSync(path);
  assert.equal(file.tensors.size, 5);
}

async function check(file: GgufFile): Promise<void> {
  assert.deepEqual([...file.tensors.keys()], ["a", "b", "c", "d", "e"]);
  assert.deepEqual(file.paths, good.paths);
  assert.equal(file.metadata.architecture, "test");
  assert.equal(file.metadata.number("split.no"), 0);
  assert.equal(file.byteLength, shard(0).length + shard(1).length + shard(2).length);
  const expected = { a: [1, 2, 3, 4], b: [5, 6], c: [7, 8], d: [9, 10], e: [11, 12] };
  const where = { a: 0, b: 0, c: 1, d: 1, e: 2 };
  for (const [name, values] of Object.entries(expected)) {
    const each = file.tensor(name);
    assert.equal(each.path, good.paths[where[name as "a"]]);
    assert.deepEqual(each.toJSON(), {
      ...{ name, type: "F32", shape: [2, values.length / 2], offset: each.offset },
      ...{ elementCount: values.length, byteLength: values.length * 4 },
    });
    assert.deepEqual(each.dequantizeSync(), Float32Array.from(values));
    assert.deepEqual(await each.dequantize({ end: 1 }), Float32Array.from(values.slice(0, 1)));
    assert.deepEqual(each.rowsSync([0]), Float32Array.from(values.slice(0, 2)));
    const twice = [...values.slice(0, 2), ...values.slice(0, 2)];
    assert.deepEqual(await each.rows([0, 0]), Float32Array.from(twice));
    assert.deepEqual(Buffer.from(each.bytes()), Buffer.from(Float32Array.from(values).buffer));
  }
  assert.match(inspect(file), /shards: 3/);
  const last = file.tensor("e");
  const running = last.dequantize();
  file[Symbol.dispose]();
  assert.ok(file.closed);
  assert.deepEqual(await running, Float32Array.of(11, 12));
  assert.throws(() => file.tensor("a"), { code: "ERR_GGUF_CLOSED" });
  assert.throws(() => last.dequantizeSync(), { code: "ERR_GGUF_CLOSED", path: good.paths[2] });
  assert.throws(() => file.tensors, { code: "ERR_GGUF_CLOSED" });
  assert.throws(() => file.metadata.get("split.no"), { code: "ERR_GGUF_CLOSED" });
  assert.deepEqual(last.shape, [2, 1]);
  file.close();
}

describe("a split model opens as one", () => {
  for (const [no, path] of good.paths.entries()) {
    test(`from shard ${no + 1}, synchronously`, () => check(openSync(path)));
    test(`from shard ${no + 1}, asynchronously`, async () => check(await open(path)));
  }
  test("from a file URL", () => check(openSync(pathToFileURL(good.paths[1]!))));
  test("with reads", () => check(openSync(good.paths[1]!, { access: "read" })));
  test("and its views end with it", needsAddon, () => {
    const file = openSync(good.paths[0]!);
    const views = [...file.tensors.values()].map((each) => each.bytes());
    file.close();
    for (const view of views) assert.equal(view.length, 0);
  });
  const noLinks = process.platform === "win32" && "links need rights there";
  test("through links that are named as shards, whatever they point to", { skip: noLinks }, () => {
    const { folder, paths } = model();
    const links = mkdtempSync(join(root, "links-"));
    for (const [no, path] of paths.entries()) {
      const blob = join(folder, `blob${no}`);
      renameSync(path, blob);
      symlinkSync(blob, join(links, nameOf(no)));
    }
    expectWhole(join(links, nameOf(2)));
  });
  test("with an extension in capitals", () => {
    const { folder, paths } = model();
    for (const path of paths) renameSync(path, path.replace(/gguf$/, "GGUF"));
    expectWhole(join(folder, nameOf(1).replace(/gguf$/, "GGUF")));
  });
  test("whatever integer type counts", () => {
    const other = writeGguf({
      metadata: [
        ["split.no", u32(2)],
        ["split.count", u64(3n)],
        ["split.tensors.count", u64(5n)],
      ],
      tensors: [tensor("e", 11, 12)],
    });
    expectWhole(model({ 2: other }).paths[2]!);
  });
});

describe("one file alone", () => {
  test("with splits: false", () => {
    const file = openSync(good.paths[1]!, { splits: false });
    assert.deepEqual([...file.tensors.keys()], ["c", "d"]);
    assert.deepEqual(file.paths, [good.paths[1]]);
    assert.equal(file.metadata.number("split.no"), 1);
    file.close();
  });
  test("from memory", () => {
    const file = parse(shard(1));
    assert.deepEqual([...file.tensors.keys()], ["c", "d"]);
    assert.deepEqual(file.paths, []);
    assert.equal(file.tensor("c").path, undefined);
  });
  test("with a split.count of 1 or 0, whatever its name", () => {
    for (const count of [0, 1]) {
      const path = join(root, `whole-${count}.gguf`);
      writeFileSync(path, writeGguf({ metadata: [["split.count", u16(count)]] }));
      openSync(path).close();
    }
  });
});

describe("refused", () => {
  /** With another content of shard `no`, or none, opening from any of `from` is an error of the file `at`. */
  function refuses(
    name: string,
    [no, content]: [number, Uint8Array | null],
    [code, at, message]: [code: string, at: number, message: RegExp],
    from = [0, 1, 2],
  ): void {
    const { paths } = model({ [no]: content });
    test(name, async () => {
      for (const each of from) {
        const is = (error: unknown) => {
          assert.ok(error instanceof GgufError, String(error));
          assert.equal(error.code, `ERR_GGUF_${code}`, error.message);
          assert.match(error.message, message);
          assert.equal(error.path, paths[at], error.message);
          return error.message.startsWith(`${error.path}: `);
        };
        assert.throws(() => openSync(paths[each]!), is);
        await assert.rejects(open(paths[each]!), is);
      }
    });
  }
  const missing = /shard 2 of 3 .* one folder, or open one alone with \{ splits: false \}\)/;
  refuses("a missing shard", [1, null], ["OPEN", 1, missing], [0, 2]);
  test("a missing shard keeps the system's error as the cause", () => {
    assert.throws(
      () => openSync(model({ 1: null }).paths[0]!),
      (error: GgufError) => (error.cause as NodeJS.ErrnoException).code === "ENOENT",
    );
  });
  test("a shard that is there but cannot be opened is not said to be missing", async () => {
    const { paths } = model({ 1: null });
    mkdirSync(paths[1]!);
    const is = (error: GgufError) => {
      assert.equal(error.code, "ERR_GGUF_OPEN");
      assert.match(error.message, /: shard 2 of 3 of the split model: /);
      return error.path === paths[1];
    };
    assert.throws(() => openSync(paths[0]!), is);
    await assert.rejects(open(paths[0]!), is);
  });
  const text = Buffer.from("something else");
  refuses("a shard that is not a GGUF file", [1, text], ["MAGIC", 1, /not a GGUF file/]);
  const cut = shard(2).subarray(0, -4);
  refuses("a shard that was cut off", [2, cut], ["TRUNCATED", 2, /tensor 'e'/]);
  const asFirst = /shard 1 \(split\.no is 0\), but its name says shard 2/;
  refuses("a duplicate under another's name", [1, shard(0)], ["INVALID", 1, asFirst], [0, 2]);
  const other = ["general.architecture", str("other")] as const;
  for (const [what, no, spec, message, at = no, from = [0]] of [
    ["with 4 shards", 1, { metadata: splitKeys(1, 4, 5) }, /one of 4 shards .* does not belong/, 1, [0, 2]],
    ["with 6 tensors", 1, { metadata: splitKeys(1, 3, 6) }, /with 6 tensors .* does not belong/],
    ["of another architecture", 1, { metadata: [...splitKeys(1, 3, 5), other] }, /architecture is other, not test/],
    ["in another byte order", 1, { byteOrder: "big" }, /byte order/],
    ["of a whole model", 2, { metadata: [] }, /not a shard of a split model; it does not belong/, 2, [0, 1]],
    ["that has another's tensor", 2, { tensors: [tensor("a", 0, 0)] }, /'a' that is also in .*00001-of-00003/],
    ["without tensors", 2, { tensors: [] }, /4 tensors together, but split\.tensors\.count is 5/, 0],
    ["of an impossible number", 0, { metadata: splitKeys(3, 3, 5) }, /split\.no is 3, but split\.count is 3/],
    ["without its number", 0, { metadata: [["split.count", u16(3)]] }, /no split\.no/],
    ["whose count is text", 0, { metadata: [["split.count", str("3")]] }, /split\.count must be a whole number/],
  ] as [what: string, no: number, spec: GgufSpec, message: RegExp, at?: number, from?: number[]][]) {
    refuses(`a shard ${what}`, [no, shard(no, spec)], ["INVALID", at, message], from);
  }

  test("a shard that was renamed", () => {
    const { folder, paths } = model();
    for (const name of ["model.gguf", nameOf(1), nameOf(0, 4)]) {
      const path = join(folder, name);
      copyFileSync(paths[0]!, path);
      assert.throws(() => openSync(path), {
        code: "ERR_GGUF_INVALID",
        path,
        message: /name that ends in '-00001-of-00003\.gguf'.*rename it, or open it alone with \{ splits: false \}$/,
      });
      openSync(path, { splits: false }).close();
    }
  });

  test("nothing stays open after a failure", {
    skip: process.platform !== "linux" && "needs /proc",
  }, async () => {
    const { readdirSync } = require("node:fs") as typeof import("node:fs");
    const { paths } = model({ 2: null });
    const before = readdirSync("/proc/self/fd").length;
    for (let i = 0; i < 50; i++) {
      assert.throws(() => openSync(paths[0]!));
      await assert.rejects(open(paths[0]!));
    }
    assert.ok(readdirSync("/proc/self/fd").length <= before + 2);
  });
});

test("aborting while shards are being opened", async () => {
  const reason = new Error("enough");
  await assert.rejects(open(good.paths[0]!, { signal: AbortSignal.abort(reason) }), reason);
  const controller = new AbortController();
  const opening = open(good.paths[0]!, { signal: controller.signal });
  controller.abort(reason);
  await assert.rejects(opening, reason);
});

test("names in another folder are not mixed up with a folder that is named like a shard", () => {
  const { folder, paths } = model();
  const odd = join(root, `odd-00001-of-00009.gguf-${basename(folder)}`);
  renameSync(folder, odd);
  expectWhole(join(odd, basename(paths[1]!)));
  rmSync(odd, { recursive: true });
});

test("names that are not UTF-8 are unique across shards", async () => {
  const named = (bytes: number[], value: number) => ({
    ...tensor("", value, value),
    name: Uint8Array.from(bytes),
  });
  const tensors = [[named([0xff], 1), named([0x41], 2)], [named([0xfe], 3), named([0xfd], 4)], [named([0xfc], 5)]];
  const { paths } = model(Object.fromEntries(tensors.map((of, no) => [no, shard(no, { tensors: of })])));
  for (const file of [openSync(paths[1]!), await open(paths[2]!)]) {
    assert.deepEqual([...file.tensors.keys()], ["\ufffd", "A", "\ufffd (2)", "\ufffd (3)", "\ufffd (4)"]);
    const found = [...file.tensors.values()].map((each) => [...each.nameBytes(), ...each.rowsSync([0])]);
    assert.deepEqual(found, [
      [0xff, 1, 1],
      [0x41, 2, 2],
      [0xfe, 3, 3],
      [0xfd, 4, 4],
      [0xfc, 5, 5],
    ]);
    file.close();
  }
});
