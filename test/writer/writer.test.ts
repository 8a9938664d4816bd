/** GgufWriter: tensors, and writing to disk. */
import assert from "node:assert/strict";
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
import { type GgmlType, GgufWriter, ggmlTypes, openSync, parse, type TensorData } from "gguf-native";
import { gaussianBlocks } from "../support/blocks";
import { lineOf, runNode } from "../support/child";
import { emulated } from "../support/emulated";
import { writeGguf } from "../support/gguf-writer";
import { projectRoot, temporaryFolder } from "../support/paths";
import { Random } from "../support/random";
import { bytesOf, pieces } from "../support/written-bytes";

const folder = temporaryFolder();
let counter = 0;
const newPath = () => join(folder, `${counter++}.gguf`);

describe("tensors", () => {
  test("of every type, as another reader sees them", async () => {
    const random = new Random(3);
    const writer = new GgufWriter().set("general.architecture", "llama").set("general.quantization_version", 2);
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
    const verified = runNode([join(projectRoot, "dist", "cli", "main.js"), "verify", path]);
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

  test("that are quantized get the version of their blocks, unless one is set", async () => {
    const key = "general.quantization_version";
    const versionOf = async (writer: GgufWriter) => {
      const file = parse(await bytesOf(writer));
      assert.equal(file.byteLength, writer.byteLength);
      return [file.metadata.get(key), file.metadata.typeOf(key)?.type];
    };
    const q8 = new Uint8Array(34);
    assert.deepEqual(await versionOf(new GgufWriter().addTensor("q", "Q8_0", [32], q8)), [2, "uint32"]);
    assert.deepEqual(await versionOf(new GgufWriter().addTensor("f", "F16", [1], new Uint8Array(2))), [
      undefined,
      undefined,
    ]);
    const given = new GgufWriter().addTensor("q", "Q8_0", [32], q8).set(key, 1);
    assert.deepEqual(await versionOf(given), [1, "uint32"]);
    // What is copied is of a version that nobody knows.
    const old = parse(writeGguf({ tensors: [{ name: "q", type: 8, shape: [32], bytes: q8 }] }));
    assert.deepEqual(await versionOf(GgufWriter.from(old)), [undefined, undefined]);
    const both = GgufWriter.from(old).addTensor("r", "Q8_0", [32], q8);
    assert.deepEqual(await versionOf(both), [2, "uint32"]);
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
      add("a", "Q8_1", [32], new Float32Array(32)),
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
      assert.rejects(async () => bytesOf(new GgufWriter().addTensor("blk.0.x", "F32", [3], data as TensorData)), {
        name: "TypeError",
        code: "ERR_INVALID_ARG_TYPE",
        message,
      });
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
    const { stdout } = runNode(["-e", program, path], { cwd: projectRoot });
    assert.match(stdout, /^ERR_GGUF_WRITE (EACCES|EPERM)\n$/);
    assert.equal(readFileSync(path, "utf8"), "old");
    assert.deepEqual(filesIn(dir), ["model.gguf"]);
    chmodSync(path, 0o666);
  });

  const failures: [name: string, data: () => TensorData, error: object | RegExp][] = [
    ["a stream that is too short", () => zeros(3), { code: "ERR_GGUF_RANGE", message: /'a': its data are 3072 bytes/ }],
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
    const more = Number(await lineOf(["-e", program]));
    assert.ok(more > 0 && more < 100e6, `${more} bytes more`);
  });
});
