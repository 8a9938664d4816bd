/**
 * What commands cost: memory does not grow with the values of a file, nor time faster than the file. Files that are
 * sparse hold hundreds of megabytes in a few bytes on disk.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  closeSync,
  ftruncateSync,
  openSync as openFd,
  readFileSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { openSync, parse, parseMetadataValue } from "gguf-native";
import { ByteWriter } from "../support/byte-writer";
import { at, bin, floats, folder, json, output, run } from "../support/cli";
import { emulated } from "../support/emulated";
import { arr, type GgufSpec, i32, str, type TypedValue, u16, u32, writeGguf } from "../support/gguf-writer";
import { needsAddon } from "../support/needs-addon";
import { sanitized } from "../support/sanitized";

const MiB = 2 ** 20;

/** The most that a command may take, Node included, which takes some 50 MiB. */
const MOST_BYTES = 300 * MiB;

/**
 * The space for new objects, in MiB, that V8 may fill before it looks which of them are still in use: later versions of
 * Node.js take several times as much, however little is kept.
 */
const NEW_SPACE = "--max-semi-space-size=16";

/** Writes a file whose only key holds an array of `count` elements, all zero. Returns a test's `skip`. */
function writeZeros(name: string, elementType: number, count: number, bytes: number): string | false {
  if (emulated) return "the emulator keeps a record of every page that is mapped";
  if (sanitized) return "sanitizers take memory of their own";
  const header = new ByteWriter().bytes(Buffer.from("GGUF")).u32(3).u64(0).u64(1);
  header.string("array").u32(9).u32(elementType).u64(count);
  const file = openFd(at(name), "w");
  try {
    writeSync(file, header.done());
    ftruncateSync(file, header.offset + count * bytes);
    return false;
  } catch (error) {
    return `this file system: ${(error as Error).message}`;
  } finally {
    closeSync(file);
  }
}

const reporter = at("report.cjs");
writeFileSync(
  reporter,
  `process.on("exit", () => require("fs").writeSync(2, "maxRSS " + process.resourceUsage().maxRSS + "\\n"));`,
);

/** Runs a command in a process of its own, and reads what it prints after `pause` milliseconds. */
async function cost(args: readonly string[], pause = 0): Promise<{ stdout: string; bytes: number }> {
  const child = spawn(process.execPath, [NEW_SPACE, "--require", reporter, bin, ...args], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 120_000,
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  await delay(pause);
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    if (stdout.length < 2 ** 20) stdout += text;
  });
  assert.equal(await ended, 0, stderr);
  const kibibytes = Number(/maxRSS (\d+)/.exec(stderr)?.[1]);
  return { stdout, bytes: kibibytes * 1024 };
}

async function assertCheap(
  args: readonly string[],
  expected: RegExp,
  pause = 0,
  most = MOST_BYTES,
): Promise<void> {
  const { stdout, bytes } = await cost(args, pause);
  assert.match(stdout, expected);
  assert.ok(bytes < most, `${args.join(" ")}: ${Math.round(bytes / MiB)} MiB`);
}

const arrays: readonly [name: string, skip: string | false, value: RegExp][] = [
  ["numbers", writeZeros("numbers", 0, 600 * MiB, 1), /uint8\[629145600\] +\[0, 0, 0, /],
  ["strings", writeZeros("strings", 8, 2 ** 26, 8), /string\[67108864\] +\["", "", /],
  ["bools", writeZeros("bools", 7, 2 ** 26, 1), /bool\[67108864\] +\[false, false, /],
];
for (const [name, skip, value] of arrays) {
  describe(`a sparse array of ${name}`, { skip: skip || needsAddon.skip }, () => {
    test("inspect reads no more than it shows", () => assertCheap(["inspect", name], value));
    test("hash goes through it in pieces", () => assertCheap(["hash", name], /^[0-9a-f]{64} /));
    test("diff does", () => assertCheap(["diff", name, name], /^no differences\n$/));
    test("verify does not keep it in memory", () => assertCheap(["verify", name], /^ok /));
  });
}

describe("inspect --json", { skip: writeZeros("some", 0, 2 ** 25, 1) }, () => {
  const expected = /"length":33554432,"value":\[0,0,0,/;
  test("prints an array in pieces", () => assertCheap(["inspect", "--json", "some"], expected));
  test("no faster than its reader takes them", () =>
    assertCheap(["inspect", "--json", "some"], expected, 3_000));
});

describe("400,000 tensors", { skip: (emulated || sanitized) && "takes too long there" }, () => {
  const count = 400_000;
  const w = new ByteWriter();
  w.bytes(Buffer.from("GGUF")).u32(3).u64(count).u64(0);
  for (let i = 0; i < count; i++)
    w.string(`t${i}`)
      .u32(1)
      .u64(1)
      .u32(0)
      .u64(32 * i);
  w.align(32);
  const file = openFd(at("tensors"), "w");
  writeSync(file, w.done());
  ftruncateSync(file, w.offset + 32 * count);
  closeSync(file);
  test("inspect keeps no rows", () => assertCheap(["inspect", "tensors"], /Tensors \(400,000\)/));
  test("hash keeps a digest of each", () =>
    assertCheap(["hash", "--whole", "tensors"], /^[0-9a-f]{64} /, 0, 400 * MiB));
  test("diff keeps nothing of what is the same", () =>
    assertCheap(["diff", "tensors", "tensors"], /^no differences\n$/, 0, 400 * MiB));
  test("verify keeps nothing of what is finite", () => assertCheap(["verify", "tensors"], /^ok /));
  test("can be drawn", () => assertStrips("tensors"));
});

async function assertStrips(name: string): Promise<void> {
  await cost(["stats", name, "--svg", "strips.svg"]);
  assert.equal(readFileSync(at("strips.svg"), "utf8").match(/<rect x=/g)?.length, 400_000);
}

test("tokens --all keeps no lines", { skip: (emulated || sanitized) && "takes too long there" }, async () => {
  const tokens = Array.from({ length: 500_000 }, (_, i) => `token${i}`);
  const metadata = [["tokenizer.ggml.tokens", arr("string", tokens)]] as const;
  writeFileSync(at("vocabulary"), writeGguf({ metadata: [...metadata] }));
  await assertCheap(["tokens", "--all", "vocabulary"], /Tokens \(500,000\)/);
});

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
    quick(() =>
      assert.deepEqual(parseMetadataValue(`["${long}", 1]`, "array[]"), [JSON.parse(`"${long}"`), 1]),
    );
  });
  test("parseMetadataValue: more digits than any number has", () => {
    const code = "ERR_GGUF_METADATA_RANGE";
    for (const text of ["9".repeat(5_000_000), `[${"9".repeat(5_000_000)}]`]) {
      quick(() =>
        assert.throws(() => parseMetadataValue(text), { code, message: /'9{37}\.\.\.' has 5000000 digits/ }),
      );
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
      const found = await json(["diff", "3-little", "other"], 1);
      assert.deepEqual(
        found.metadata.map((difference: { key: string }) => difference.key),
        [key],
      );
    }
  });
  test("are in JSON what they are decoded to, with the bytes of broken text", async () => {
    const decoded = (value: unknown): unknown =>
      typeof value === "bigint"
        ? String(value)
        : typeof value === "object"
          ? Array.from(value as [], decoded)
          : value;
    for (const name of names) {
      const { metadata: shown } = await json(["inspect", "--json", "--metadata", name]);
      const { metadata } = openSync(at(name));
      for (const [key, value] of metadata)
        assert.deepEqual(shown[key].value, decoded(value), `${name} ${key}`);
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
    const lines = (await run(["inspect", "--metadata", "3-big"], { COLUMNS: "1000" })).stdout.split("\n");
    const shown = (key: string) =>
      lines.find((line) => line.startsWith(`  ${key} `))!.replace(/^ +\S+ +/, "");
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
    const { files } = await json(["hash", "ff", "fe", "fe-ff", "ff-fe"]);
    const metadata = files.map((file: { metadata: string }) => file.metadata);
    assert.notEqual(metadata[0], metadata[1]);
    assert.equal(metadata[2], metadata[3]);
    assert.equal(files[2].sha256, files[3].sha256);
    assert.deepEqual(
      files[2].tensors.map((tensor: { nameBytes: string }) => tensor.nameBytes),
      ["fe", "ff"],
    );
  });
  test("and to diff, whatever their order", async () => {
    assert.equal(await output("diff", "fe-ff", "ff-fe"), "no differences\n");
    const { metadata, tensors } = await json(["diff", "ff", "fe"], 1);
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
      writeFileSync(
        at(`split-0000${no + 1}-of-00002.gguf`),
        writeGguf({ tensors: [tensor], metadata: entries }),
      );
    }
    assert.equal(await output("diff", "split-00001-of-00002.gguf", "ff-fe"), "no differences\n");
    const { files } = await json(["hash", "split-00002-of-00002.gguf", "fe-ff"]);
    assert.equal(files[0].sha256, files[1].sha256);
  });
  test("have their bytes in JSON, and others have none", async () => {
    const { metadata, tensors } = await json(["inspect", "--json", "fe-ff"]);
    assert.deepEqual(metadata["\ufffd"], { type: "uint32", keyBytes: "fe", value: 1 });
    assert.deepEqual(metadata["\ufffd (2)"], { type: "uint32", keyBytes: "ff", value: 1 });
    assert.deepEqual(
      tensors.map(({ name, nameBytes }: { name: string; nameBytes: string }) => [name, nameBytes]),
      [
        ["\ufffd", "fe"],
        ["\ufffd (2)", "ff"],
      ],
    );
    writeFileSync(
      at("utf-8"),
      writeGguf({ metadata: [["\ufffd", u32(1)]], tensors: [floats("\ufffd", [1])] }),
    );
    const good = await json(["inspect", "--json", "utf-8"]);
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
    const fd = openFd(path, "r+");
    writeSync(fd, Uint8Array.of(value, value, value), 0, 3, offset);
    closeSync(fd);
    assert.throws(() => file.metadata.toJSON(), { code: "ERR_GGUF_INVALID", path });
  }
});
