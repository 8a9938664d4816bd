/** `gguf-native hash`: what the digests depend on, and what not. */
import assert from "node:assert/strict";
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { ByteWriter } from "../support/byte-writer";
import { at, blocks, EVIL, expectFailure, floats, json, output, run, writeModel } from "../support/cli";
import { arr, type GgufSpec, splitKeys, str, type TypedValue, u32 } from "../support/gguf-writer";
import { sha256 } from "../support/model-facts";
import { projectRoot } from "../support/paths";
import { writeSparseGguf } from "../support/sparse-file";

const metadata: (readonly [string, TypedValue])[] = [
  ["general.architecture", str("llama")],
  ["list", arr("uint8", [1, 2])],
  ["broken", str(Uint8Array.of(0xff))],
];
const tensors = [blocks("q", "Q4_K", [256, 3], 1), floats("f", [1, 2, 3]), floats(EVIL, [4])];
const model: GgufSpec = { metadata, tensors };
writeModel("model.gguf", model);
let whole: string;
let digests: { name: string; sha256: string }[];
let ofMetadata: string;
before(async () => {
  ({ sha256: whole, tensors: digests, metadata: ofMetadata } = (await json("hash model.gguf")).files[0]);
});

/** The digest of another model as a whole. */
async function wholeOf(spec: GgufSpec): Promise<string> {
  writeModel("other.gguf", spec);
  return (await output("hash --whole other.gguf")).split(" ")[0]!;
}

test("of tensors: what sha256sum says of their bytes", async () => {
  const expected = tensors.map(({ name, bytes }) => ({ name, sha256: sha256(bytes) }));
  assert.deepEqual(digests, expected);
});
test("lines like those of sha256sum", async () => {
  const lines = (await output("hash model.gguf")).split("\n");
  assert.equal(lines[0], `${sha256(tensors[0]!.bytes)}  q`);
  assert.equal(lines[2], `${sha256(tensors[2]!.bytes)}  evil\\x1b[31m\\n\\u202ename\\x07`);
  assert.deepEqual(lines.slice(3), [`${whole}  model.gguf (whole)`, ""]);
  const twice = `${whole}  model.gguf\n`;
  assert.equal(await output("hash --whole model.gguf model.gguf"), twice + twice);
});
test("without tensors only the whole", async () => {
  writeModel("empty.gguf", {});
  assert.match(await output("hash empty.gguf"), /^[0-9a-f]{64} {2}empty\.gguf \(whole\)\n$/);
});

test("of the whole: computed from the documented lines", async () => {
  const hex = (text: string) => Buffer.from(text).toString("hex");
  const value = (w: ByteWriter) => sha256(w.done());
  const lines = [
    `metadata ${hex("broken")} ${value(new ByteWriter().u32(8).u64(1).u8(0xff))}`,
    `metadata ${hex("general.architecture")} ${value(new ByteWriter().u32(8).string("llama"))}`,
    `metadata ${hex("list")} ${value(new ByteWriter().u32(9).u32(0).u64(2).u8(1).u8(2))}`,
  ];
  const text = (lines: string[]) => Buffer.from(`${lines.join("\n")}\n`);
  assert.equal(ofMetadata, sha256(text(lines)));
  const infos = [
    `tensor ${hex(EVIL)} F32 [1] ${digests[2]!.sha256}`,
    `tensor ${hex("f")} F32 [3] ${digests[1]!.sha256}`,
    `tensor ${hex("q")} Q4_K [256,3] ${digests[0]!.sha256}`,
  ];
  assert.equal(whole, sha256(text([...lines, ...infos])));
});

describe("layout does not change it", () => {
  const layouts: Record<string, GgufSpec> = {
    "another alignment": { ...model, alignment: 4096 },
    "the usual alignment, written down": { ...model, alignment: 32 },
    "version 2": { ...model, version: 2 },
    "version 1": { ...model, version: 1 },
    "another order of keys": { ...model, metadata: [...metadata].reverse() },
    "another order of tensors": { ...model, tensors: [...tensors].reverse() },
    "keys about splits": { ...model, metadata: [...metadata, ...splitKeys(0, 1, 3)] },
  };
  for (const [name, spec] of Object.entries(layouts)) {
    test(name, async () => assert.equal(await wholeOf(spec), whole));
  }
});

describe("contents change it", () => {
  const [first, ...rest] = tensors as [(typeof tensors)[0], ...typeof tensors];
  const flipped = { ...first, bytes: first.bytes.map((byte, i) => (i === 100 ? byte ^ 1 : byte)) };
  const contents: Record<string, GgufSpec> = {
    "one bit of a tensor": { ...model, tensors: [flipped, ...rest] },
    "the name of a tensor": { ...model, tensors: [{ ...first, name: "p" }, ...rest] },
    "the shape of a tensor": { ...model, tensors: [{ ...first, shape: [768] }, ...rest] },
    "the type of a tensor": {
      ...model,
      tensors: [first, { ...floats("f", [1, 2, 3]), type: 26 }, tensors[2]!],
    },
    "a tensor less": { ...model, tensors: rest },
    "a value": { ...model, metadata: [["general.architecture", str("Llama")], ...metadata.slice(1)] },
    "the type of a value": {
      ...model,
      metadata: [...metadata.slice(0, 1), ["list", arr("int8", [1, 2])], metadata[2]!],
    },
    "bytes that are not UTF-8": {
      ...model,
      metadata: [...metadata.slice(0, 2), ["broken", str(Uint8Array.of(0xfe))]],
    },
    "a key more": { ...model, metadata: [...metadata, ["x", u32(1)]] },
  };
  for (const [name, spec] of Object.entries(contents)) {
    test(name, async () => assert.notEqual(await wholeOf(spec), whole));
  }
});

test("a tensor of an unknown type, whose size is not known, is left out", async () => {
  const unknown = { name: "u", type: 99, shape: [4], bytes: new Uint8Array(16) };
  writeModel("unknown.gguf", { tensors: [unknown, floats("f", [1])] });
  const { sha256: whole, tensors, notHashed } = (await json("hash unknown.gguf")).files[0];
  const digest = sha256(floats("f", [1]).bytes);
  assert.deepEqual(tensors, [
    { name: "u", sha256: null },
    { name: "f", sha256: digest },
  ]);
  assert.deepEqual(notHashed, ["u"]);
  const lines = [`tensor 66 F32 [1] ${digest}`, "tensor 75 unknown(99) [4] -"];
  assert.equal(whole, sha256(Buffer.from(`${lines.join("\n")}\n`)));
  assert.equal(
    await output("hash unknown.gguf"),
    `not hashed${" ".repeat(54)}  u\n${digest}  f\n${whole}  unknown.gguf (whole, without the data of 1 tensor)\n`,
  );
  const line = `${whole}  unknown.gguf (without the data of 1 tensor)\n`;
  assert.equal(await output("hash --whole unknown.gguf"), line);
  writeModel("shape.gguf", { tensors: [{ ...unknown, shape: [2, 2] }, floats("f", [1])] });
  assert.notEqual((await json("hash shape.gguf")).files[0].sha256, whole);
  assert.deepEqual((await json("hash model.gguf")).files[0].notHashed, []);
});

const megabytes = 48 * 2 ** 20;
const sparse = ["a", "b", "c"].map((name, i) => ({
  ...{ name, type: 0, shape: [megabytes / 4], byteLength: megabytes },
  pieces: [{ at: 1000, bytes: Uint8Array.of(i + 1) }],
}));
test("on several threads", { skip: writeSparseGguf(at("large.gguf"), sparse) }, async () => {
  const { tensors } = (await json("hash large.gguf")).files[0];
  const expected = sparse.map(({ name, pieces }) => {
    const bytes = new Uint8Array(megabytes);
    bytes.set(pieces[0]!.bytes, 1000);
    return { name, sha256: sha256(bytes) };
  });
  assert.deepEqual(tensors, expected);
});
test("another file in its place when threads open it", {
  skip: writeSparseGguf(at("replaced.gguf"), sparse) || process.platform === "win32",
}, async (context) => {
  writeSparseGguf(at("other.gguf"), [...sparse].reverse());
  const { native } = require(join(projectRoot, "dist", "backend", "native.js"));
  const { open } = native;
  context.mock.method(native, "open", (...args: unknown[]) => {
    const file = open(...args);
    renameSync(at("other.gguf"), at("replaced.gguf"));
    return file;
  });
  await expectFailure("hash replaced.gguf", 1, /replaced\.gguf: .*another file has taken its place/);
});

describe("--check", () => {
  const list = (text: string, name = "list") => writeFileSync(at(name), text);
  /** A model like the first, with one bit of tensor "q" changed. */
  const damage = (path: string) => {
    const changed = {
      ...tensors[0]!,
      bytes: tensors[0]!.bytes.map((byte, i) => (i === 100 ? byte ^ 1 : byte)),
    };
    writeModel(path, { ...model, tensors: [changed, ...tensors.slice(1)] });
  };

  test("what hash prints, of several models", async () => {
    writeModel("second.gguf", {});
    list(await output("hash model.gguf second.gguf"));
    assert.equal(await output("hash --check list"), "model.gguf: OK\nsecond.gguf: OK\n");
    list(await output("hash --whole model.gguf second.gguf"), "wholes");
    assert.equal(await output("hash --check wholes"), "model.gguf: OK\nsecond.gguf: OK\n");
    assert.deepEqual(await json("hash --check list"), {
      ok: true,
      files: [
        { path: "model.gguf", ok: true, tensors: [] },
        { path: "second.gguf", ok: true, tensors: [] },
      ],
    });
  });
  test("names the tensors that differ; the exit code is 1", async () => {
    damage("damaged.gguf");
    list((await output("hash model.gguf")).replace("model.gguf", "damaged.gguf"));
    const { status, stdout, stderr } = await run("hash --check list");
    assert.deepEqual([status, stdout, stderr], [1, "damaged.gguf: FAILED (1 tensor)\n  q\n", ""]);
    const found = await json("hash --check list", 1);
    assert.deepEqual(found, { ok: false, files: [{ path: "damaged.gguf", ok: false, tensors: ["q"] }] });
    list((await output("hash --whole model.gguf")).replace("model.gguf", "damaged.gguf"));
    assert.equal((await run("hash --check list")).stdout, "damaged.gguf: FAILED\n");
  });
  test("tensors that are missing, new, or of names that would move a terminal", async () => {
    writeModel("fewer.gguf", { ...model, tensors: tensors.slice(0, 2) });
    list((await output("hash model.gguf")).replace("model.gguf", "fewer.gguf"));
    const { status, stdout } = await run("hash --check list");
    const printed = [status, stdout];
    assert.deepEqual(printed, [1, "fewer.gguf: FAILED (1 tensor)\n  evil\\x1b[31m\\n\\u202ename\\x07\n"]);
  });
  test("tensors of unknown types", async () => {
    writeModel("unknown.gguf", { tensors: [{ name: "u", type: 99, shape: [4], bytes: new Uint8Array(16) }] });
    for (const args of [[], ["--whole"]]) {
      list(await output("hash unknown.gguf", ...args));
      assert.equal(await output("hash --check list"), "unknown.gguf: OK\n");
    }
  });
  test("models that cannot be read, and the others all the same", async () => {
    list(`${whole}  none.gguf\n${whole}  model.gguf\n`);
    const { status, stdout, stderr } = await run("hash --check list");
    assert.deepEqual([status, stdout], [1, "none.gguf: FAILED to open or read\nmodel.gguf: OK\n"]);
    assert.match(stderr, /^gguf-native: none\.gguf: [^\n]*\n$/);
  });
  test("what is no list", async () => {
    for (const [text, message] of [
      ["", /list: no digests are in this list/],
      ["hello\n", /list: line 1 is none that 'gguf-native hash' prints/],
      [`${whole}  model.gguf\n${"x".repeat(64)}  y\n`, /line 2 is none/],
      [`${whole}  a (whole)\n${whole}  t\n`, /it ends without the line of the whole model/],
    ] as const) {
      list(text);
      await expectFailure("hash --check list", 1, message);
    }
    await expectFailure("hash --check missing", 1, /missing/);
    await expectFailure("hash --check", 2, /missing LIST/);
    await expectFailure("hash --check --whole list", 2, /either --check or --whole/);
  });
});
