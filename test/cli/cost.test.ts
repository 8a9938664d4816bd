/** What commands cost: time grows no faster than the file. What they cost with large files is in test/scale. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { openSync, parse, parseMetadataValue } from "gguf-native";
import { ByteWriter } from "../support/byte-writer";
import { patch } from "../support/changes";
import { at, floats, json, output, run } from "../support/cli";
import { emulated } from "../support/emulated";
import { arr, type GgufSpec, i32, str, type TypedValue, u16, u32, writeGguf } from "../support/gguf-writer";
import { sanitized } from "../support/sanitized";

const MiB = 2 ** 20;

test("toJSON of arrays in arrays decodes none of the long ones", {
  skip: sanitized && "sanitizers take memory of their own",
}, () => {
  const length = 200 * MiB;
  const header = new ByteWriter().bytes(Buffer.from("GGUF")).u32(3).u64(0).u64(1);
  header.string("nested").u32(9).u32(9).u64(1).u32(0).u64(length);
  const bytes = new Uint8Array(header.offset + length);
  bytes.set(header.done());
  const { metadata } = parse(bytes);
  const before = process.resourceUsage().maxRSS;
  assert.deepEqual(metadata.toJSON(), { nested: [{ type: "array", elementType: "uint8", length }] });
  assert.ok(process.resourceUsage().maxRSS - before < (100 * MiB) / 1024);
});

describe("time grows with the length of text, not with its square", () => {
  /** Far more than it takes, and far less than it would. */
  function quick(work: () => unknown): void {
    const begin = process.cpuUsage(); // not what other processes take
    work();
    const took = process.cpuUsage(begin).user / 1_000;
    assert.ok(took < (emulated ? 20_000 : 2_000), `${took} ms`);
  }
  const n = 400_000;
  const texts: Record<string, string> = {
    "escaped quotes": `[${'\\"'.repeat(n)}`,
    "digits that are no number": `${"1".repeat(n)}x`,
    "digits in an array": `[${"1".repeat(n)}x`,
    brackets: "[".repeat(n),
  };
  for (const [name, text] of Object.entries(texts)) {
    test(`parseMetadataValue: ${name}`, () => quick(() => assert.equal(parseMetadataValue(text), text)));
  }
  test("parseMetadataValue: a string of ten million characters", () => {
    const long = "\\\\".repeat(5_000_000);
    quick(() => assert.deepEqual(parseMetadataValue(`["${long}", 1]`, "array[]"), [JSON.parse(`"${long}"`), 1]));
  });
  test("parseMetadataValue: more digits than any number has", () => {
    const code = "ERR_GGUF_METADATA_RANGE";
    for (const text of ["9".repeat(5_000_000), `[${"9".repeat(5_000_000)}]`]) {
      quick(() => assert.throws(() => parseMetadataValue(text), { code, message: /'9{37}\.\.\.' has 5000000 digits/ }));
    }
    assert.equal(parseMetadataValue("9".repeat(1000)), BigInt("9".repeat(1000)));
  });
});

describe("values of many parts", () => {
  const texts = ["", "a", "漢字".repeat(200_000), "x".repeat(1_048_575), "é".repeat(600_000), "end"];
  const broken = [Buffer.from([0x61, 0xff]), Buffer.concat([Buffer.alloc(2 * MiB, "é"), Buffer.of(0xe6)])];
  const nested = [
    arr("string", [...texts, ...broken]),
    arr("uint16", [1, 2]),
    arr("array", [arr("bool", [true, false]), arr("string", broken)]),
    arr("int8", []),
  ];
  const values: Record<string, TypedValue> = {
    texts: arr("string", texts),
    strings: arr(
      "string",
      Array.from({ length: 10_000 }, (_, i) => "s".repeat(i % 300)),
    ),
    long: str("漢".repeat(700_000)),
    broken: str(broken[1]!),
    nested: arr("array", nested),
    numbers: arr(
      "int32",
      Array.from({ length: 300_001 }, (_, i) => i * 7 - 5),
    ),
    bigs: arr("uint64", [0n, 2n ** 64n - 1n]),
    floats: arr("float64", [0.1, -1e300]),
  };
  const write = (name: string, spec: GgufSpec) => writeFileSync(at(name), writeGguf(spec));
  const metadata = Object.entries(values);
  const names: string[] = [];
  for (const version of [1, 2, 3] as const) {
    for (const byteOrder of ["little", "big"] as const) {
      names.push(`${version}-${byteOrder}`);
      write(names.at(-1)!, { version, byteOrder, metadata });
    }
  }

  test("have the same digest in every version and byte order", async () => {
    const { files } = await json(["hash", ...names]);
    assert.equal(new Set(files.map((file: { sha256: string }) => file.sha256)).size, 1);
  });
  test("are the same to diff", async () => {
    for (const name of names) {
      for (const other of names) assert.equal(await output("diff", name, other), "no differences\n");
    }
  });
  test("differ where their last byte does", async () => {
    for (const [key, value] of [
      ["texts", arr("string", [...texts.slice(0, -1), "enD"])],
      ["long", str(`${"漢".repeat(699_999)}字`)],
      ["numbers", arr("int32", [...(values.numbers!.value as number[]).slice(0, -1), 0])],
    ] as const) {
      write("other", { metadata: Object.entries({ ...values, [key]: value }), byteOrder: "big", version: 1 });
      const found = await json("diff 3-little other", 1);
      const actual = found.metadata.map((difference: { key: string }) => difference.key);
      assert.deepEqual(actual, [key]);
    }
  });
  test("are in JSON what they are decoded to, with the bytes of broken text", async () => {
    const decoded = (value: unknown): unknown =>
      typeof value === "bigint" ? String(value) : typeof value === "object" ? Array.from(value as [], decoded) : value;
    for (const name of names) {
      const { metadata: shown } = await json(["inspect", "--json", "--metadata", name]);
      const { metadata } = openSync(at(name));
      for (const [key, value] of metadata) assert.deepEqual(shown[key].value, decoded(value), `${name} ${key}`);
      const hex = broken.map((bytes) => bytes.toString("hex"));
      assert.equal(shown.broken.bytes, hex[1]);
      assert.deepEqual(shown.nested.bytes, {
        "0.6": hex[0],
        "0.7": hex[1],
        "2.1.0": hex[0],
        "2.1.1": hex[1],
      });
      assert.equal(shown.texts.bytes, undefined);
    }
  });
  test("are shown by their start", async () => {
    const lines = (await run("inspect --metadata 3-big", { COLUMNS: "1000" })).stdout.split("\n");
    const shown = (key: string) => lines.find((line) => line.startsWith(`  ${key} `))!.replace(/^ +\S+ +/, "");
    assert.match(shown("texts"), /^string\[6\] +\["", "a", "(漢字){200}", \.\.\.\]$/);
    assert.match(shown("long"), /^string +漢{400}$/);
    assert.match(shown("numbers"), /^int32\[300001\] +\[-5, 2, 9, .*, \.\.\.\]$/);
    assert.match(shown("nested"), /^array\[4\] +\[\["", "a", "(漢字){200}", \.\.\.\]\]$/);
    assert.match(shown("floats"), /^float64\[2\] +\[0\.1, -1e\+300\]$/);
  });
});

describe("names that are not UTF-8", () => {
  const named = (...bytes: number[]): GgufSpec => ({
    metadata: bytes.map((byte) => [Uint8Array.of(byte), u32(1)]),
    tensors: bytes.map((byte) => ({ ...floats("", [byte]), name: Uint8Array.of(byte) })),
  });
  writeFileSync(at("ff"), writeGguf(named(0xff)));
  writeFileSync(at("fe"), writeGguf(named(0xfe)));
  writeFileSync(at("fe-ff"), writeGguf(named(0xfe, 0xff)));
  writeFileSync(at("ff-fe"), writeGguf(named(0xff, 0xfe)));

  test("are others to hash", async () => {
    const { files } = await json("hash ff fe fe-ff ff-fe");
    const metadata = files.map((file: { metadata: string }) => file.metadata);
    assert.notEqual(metadata[0], metadata[1]);
    assert.equal(metadata[2], metadata[3]);
    assert.equal(files[2].sha256, files[3].sha256);
    const found = files[2].tensors.map((tensor: { nameBytes: string }) => tensor.nameBytes);
    assert.deepEqual(found, ["fe", "ff"]);
  });
  test("and to diff, whatever their order", async () => {
    assert.equal(await output("diff fe-ff ff-fe"), "no differences\n");
    const { metadata, tensors } = await json("diff ff fe", 1);
    const value = (keyBytes: string) => ({ type: "uint32", keyBytes, value: 1 });
    assert.deepEqual(metadata, [
      { key: "\ufffd", a: value("ff") },
      { key: "\ufffd", b: value("fe") },
    ]);
    assert.deepEqual(
      tensors.map(({ nameBytes, only }: { nameBytes: string; only: string }) => [nameBytes, only]),
      [
        ["ff", "a"],
        ["fe", "b"],
      ],
    );
  });
  test("are other tensors in other files of a split model", async () => {
    const { metadata, tensors } = named(0xfe, 0xff);
    for (const [no, tensor] of tensors!.entries()) {
      const split = { "split.no": u16(no), "split.count": u16(2), "split.tensors.count": i32(2) };
      const entries = [...(no === 0 ? metadata! : []), ...Object.entries(split)];
      writeFileSync(at(`split-0000${no + 1}-of-00002.gguf`), writeGguf({ tensors: [tensor], metadata: entries }));
    }
    assert.equal(await output("diff split-00001-of-00002.gguf ff-fe"), "no differences\n");
    const { files } = await json("hash split-00002-of-00002.gguf fe-ff");
    assert.equal(files[0].sha256, files[1].sha256);
  });
  test("have their bytes in JSON, and others have none", async () => {
    const { metadata, tensors } = await json("inspect --json fe-ff");
    assert.deepEqual(metadata["\ufffd"], { type: "uint32", keyBytes: "fe", value: 1 });
    assert.deepEqual(metadata["\ufffd (2)"], { type: "uint32", keyBytes: "ff", value: 1 });
    assert.deepEqual(
      tensors.map(({ name, nameBytes }: { name: string; nameBytes: string }) => [name, nameBytes]),
      [
        ["\ufffd", "fe"],
        ["\ufffd (2)", "ff"],
      ],
    );
    writeFileSync(at("utf-8"), writeGguf({ metadata: [["\ufffd", u32(1)]], tensors: [floats("\ufffd", [1])] }));
    const good = await json("inspect --json utf-8");
    assert.deepEqual(good.metadata["\ufffd"], { type: "uint32", value: 1 });
    assert.equal(good.tensors[0].nameBytes, undefined);
  });
  test("are there for programs", () => {
    const file = openSync(at("fe-ff"));
    assert.deepEqual(file.metadata.keyBytes("\ufffd (2)"), Uint8Array.of(0xff));
    assert.equal(file.metadata.keyBytes("absent"), undefined);
    assert.deepEqual(file.tensor("\ufffd").nameBytes(), Uint8Array.of(0xfe));
    file.close();
    assert.throws(() => file.metadata.keyBytes("\ufffd"), { code: "ERR_GGUF_CLOSED" });
  });
});

test("a value that was overwritten since the file was opened is an error", {
  skip: process.platform === "win32" && "Windows refuses to change files that are mapped",
}, () => {
  const path = at("overwritten");
  const bytes = writeGguf({
    metadata: [["list", arr("array", [arr("string", ["abc"]), arr("uint8", [1])])]],
  });
  const length = Buffer.from(bytes).indexOf("abc") - 8;
  for (const [offset, value] of [
    [length, 0xff], // of the string
    [length - 12, 0xff], // the element type
    [length - 8, 0xff], // the number of strings
  ] as const) {
    writeFileSync(path, bytes);
    using file = openSync(path);
    patch(path, Uint8Array.of(value, value, value), offset);
    assert.throws(() => file.metadata.toJSON(), { code: "ERR_GGUF_INVALID", path });
  }
});
