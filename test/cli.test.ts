/** The command line, end to end: what it prints, writes and exits with. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type GgmlType, ggmlTypes, openSync } from "gguf-native";
import * as reference from "gguf-native/reference";
import { gaussianBlocks } from "./support/blocks";
import { arr, f32, f64, str, u32, u64, writeGguf } from "./support/gguf-writer";
import { goldenPath } from "./support/golden";
import { projectRoot, temporaryFolder } from "./support/paths";
import { Random } from "./support/random";
import { sampleModel } from "./support/sample-model";

const folder = temporaryFolder();
const bin = join(projectRoot, "dist", "cli", "main.js");
const at = (name: string) => join(folder, name);

function run(args: string[], env: NodeJS.ProcessEnv = {}) {
  const options = { cwd: folder, encoding: "utf8", env: { ...process.env, COLUMNS: "", ...env } } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin, ...args], {
    ...options,
    maxBuffer: 2 ** 28,
  });
  return { status, stdout, stderr, lines: stdout.split("\n") };
}

function expectFailure(args: string[], status: 1 | 2, message: RegExp): void {
  const result = run(args);
  assert.equal(result.status, status, result.stderr);
  assert.match(result.stderr, /^gguf-native: [^\n]*\n$/);
  assert.match(result.stderr, message);
  assert.equal(result.stdout, "");
}

writeFileSync(at("sample.gguf"), sampleModel());
const evil = "evil\x1b[31m\n\u202ename\x07";
writeFileSync(
  at("evil.gguf"),
  writeGguf({
    metadata: [
      ["general.architecture", str(evil)],
      ["general.name", str("x".repeat(500))],
      ["__proto__", str("data")],
      [evil, arr("string", [evil, "漢字".repeat(50)])],
      ["big", u64(2n ** 64n - 1n)],
      ["bigs", arr("uint64", [2n ** 64n - 1n])],
      ["floats", arr("float64", [Number.NaN, -Infinity, -0, 0.1])],
      ["f32", f32(0.1)],
      ["negative zero", f64(-0)],
      ["broken", str(Uint8Array.of(0xe2, 0x96))],
      ["broken list", arr("string", ["ok", Uint8Array.of(0xff, 0x41), "\ufffd"])],
      ["nested", arr("array", [arr("uint8", [1, 2]), arr("array", [])])],
      [
        "long",
        arr(
          "uint32",
          Array.from({ length: 1000 }, (_, i) => i),
        ),
      ],
    ],
    tensors: [
      { name: evil, type: 0, shape: [1], bytes: new Uint8Array(4) },
      { name: "n".repeat(200), type: 99, shape: [2 ** 40, 2, 3, 4], bytes: new Uint8Array(4) },
    ],
  }),
);

describe("usage", () => {
  test("--help, --version", () => {
    for (const args of [
      ["--help"],
      ["-h"],
      ["help"],
      ["inspect", "--help"],
      ["verify", "-h"],
      ["dequantize", "--help"],
    ]) {
      const { status, stdout, stderr, lines } = run(args);
      assert.deepEqual([status, stderr], [0, ""]);
      assert.match(stdout, /^Usage: gguf-native/);
      for (const line of lines) assert.ok(line.length <= 80, line);
    }
    assert.match(run(["inspect", "--help"]).stdout, /Examples:/);
    const { version } = JSON.parse(readFileSync(join(projectRoot, "package.json"), "utf8"));
    assert.equal(run(["--version"]).stdout, `${version}\n`);
  });
  test("the installed command is this one, with a shebang", () => {
    assert.match(readFileSync(bin, "utf8"), /^#!\/usr\/bin\/env node\n/);
  });
  test("wrong usage exits with 2", () => {
    expectFailure([], 2, /missing COMMAND/);
    expectFailure(["explode"], 2, /unknown command 'explode'/);
    expectFailure(["--explode"], 2, /unknown option '--explode'/);
    expectFailure(["constructor"], 2, /unknown command/);
    expectFailure(["model.gguf"], 2, /did you mean 'gguf-native inspect model.gguf'/);
    expectFailure(["inspect"], 2, /missing FILE/);
    expectFailure(["inspect", "a", "b"], 2, /unexpected argument 'b'/);
    expectFailure(["inspect", "--explode", "a"], 2, /Unknown option '--explode'/);
    expectFailure(["verify"], 2, /missing FILE/);
    expectFailure(["dequantize", "sample.gguf"], 2, /missing TENSOR/);
    expectFailure(["dequantize", "sample.gguf", "t", "-o"], 2, /output/);
    expectFailure(["dequantize", "sample.gguf", "t", "-o", "x.txt"], 2, /\.npy or \.bin/);
    expectFailure(["dequantize", "sample.gguf", "t", "-o", "x.npy", "--dtype", "f8"], 2, /f8/);
    expectFailure(["dequantize", "sample.gguf", "t", "-o", "x.npy", "--dtype", "bf16"], 2, /bfloat16/);
    expectFailure(["dequantize", "sample.gguf", "t", "--dtype", "f16"], 2, /needs -o/);
  });
  test("files that cannot be opened or are none exit with 1", () => {
    writeFileSync(at("not.gguf"), "hello\nworld");
    for (const command of [["inspect"], ["verify"]]) {
      expectFailure([...command, "none.gguf"], 1, /none\.gguf: .*No such file/i);
      expectFailure([...command, "not.gguf"], 1, /not\.gguf: not a GGUF file/);
    }
    expectFailure(["dequantize", "none.gguf", "x"], 1, /none\.gguf/);
    expectFailure(["dequantize", "sample.gguf", "none"], 1, /no tensor is named 'none'/);
    expectFailure(["inspect", "odd\x1b[31m\nname"], 1, /odd\\x1b\[31m\\nname/);
  });
});

describe("inspect", () => {
  test("shows what a person wants first", () => {
    const { status, stdout, stderr } = run(["inspect", "sample.gguf"]);
    assert.deepEqual([status, stderr], [0, ""]);
    assert.match(stdout, /^sample\.gguf\n {2}architecture +llama\n {2}name +Sample llama, random weights\n/);
    assert.match(stdout, /\n {2}size +\d\.\d\d MiB \([\d,]+ bytes\), GGUF version 3\n/);
    assert.match(stdout, /\n {2}parameters +7\.08 M in 20 tensors\n {2}context length +2,048\n/);
    assert.match(stdout, /\n {2}Q6_K +2 +1\.11 M +\d+ KiB +6\.56 +\d+\.\d %\n/);
    assert.match(stdout, /\n {2}blk\.0\.ffn_down\.weight +Q8_0 +1536 x 512 +816 KiB +\d+\n/);
    assert.match(stdout, /\n {2}tokenizer\.ggml\.tokens +string\[2048\] +\["<unk>", "<s>", "<\/s>/);
    assert.match(stdout, /\n {2}llama\.attention\.layer_norm_rms_epsilon +float32 +0\.00001\n/);
  });
  test("fits 80 columns, or what COLUMNS says, and holds nothing that moves a terminal", () => {
    for (const file of ["sample.gguf", "evil.gguf", goldenPath]) {
      for (const [columns, width] of [
        ["", 80],
        ["120", 120],
        ["nonsense", 80],
      ] as const) {
        const { status, lines, stdout } = run(["inspect", file], { COLUMNS: columns });
        assert.equal(status, 0);
        for (const line of lines) assert.ok([...line].length <= width, line);
        assert.doesNotMatch(stdout, /[^\P{C}\n]/u);
      }
    }
    assert.match(run(["inspect", "evil.gguf"]).stdout, /evil\\x1b\[31m\\n\\u202ename\\x07/);
  });
  test("--tensors and --metadata show only that", () => {
    assert.match(run(["inspect", "--tensors", "sample.gguf"]).stdout, /^Tensors \(20\)\n/);
    assert.doesNotMatch(run(["inspect", "--tensors", "sample.gguf"]).stdout, /Metadata|architecture/);
    assert.match(run(["inspect", "--metadata", "sample.gguf"]).stdout, /^Metadata \(16\)\n/);
    assert.match(
      run(["inspect", "--metadata", "--tensors", "sample.gguf"]).stdout,
      /^Tensors[\s\S]*\nMetadata/,
    );
  });
  test("a file without anything", () => {
    writeFileSync(at("empty.gguf"), writeGguf());
    assert.match(
      run(["inspect", "empty.gguf"]).stdout,
      /0 in 0 tensors\n\nTensors \(0\)\n\nMetadata \(0\)\n$/,
    );
    assert.deepEqual(JSON.parse(run(["inspect", "--json", "empty.gguf"]).stdout).metadata, {});
  });
  test("a file that is cut off is shown; the exit code is 1", () => {
    writeFileSync(at("cut.gguf"), sampleModel());
    truncateSync(at("cut.gguf"), 1_000_000);
    const { status, stdout, stderr } = run(["inspect", "cut.gguf"]);
    assert.equal(status, 1);
    assert.match(stdout, /blk\.1\.ffn_down\.weight/);
    assert.match(stderr, /^gguf-native: cut\.gguf: tensor .* runs past the end.*\n$/);
  });
});

describe("inspect --json", () => {
  test("loses nothing", () => {
    const { status, stdout } = run(["inspect", "--json", "evil.gguf"]);
    assert.equal(status, 0);
    const json = JSON.parse(stdout);
    assert.deepEqual(Object.keys(json.metadata).length, 13);
    assert.deepEqual(Object.getOwnPropertyDescriptor(json.metadata, "__proto__")!.value, {
      type: "string",
      value: "data",
    });
    assert.deepEqual(json.metadata[evil].value, [evil, "漢字".repeat(50)]);
    assert.deepEqual(json.metadata.big, { type: "uint64", value: "18446744073709551615" });
    assert.deepEqual(json.metadata.bigs.value, ["18446744073709551615"]);
    assert.deepEqual(json.metadata.floats.value, ["NaN", "-Infinity", "-0", 0.1]);
    assert.deepEqual(json.metadata.f32, { type: "float32", value: Math.fround(0.1) });
    assert.deepEqual(json.metadata["negative zero"], { type: "float64", value: "-0" });
    assert.deepEqual(json.metadata.broken, { type: "string", value: "\ufffd", bytes: "e296" });
    assert.deepEqual(json.metadata["broken list"], {
      ...{ type: "array", elementType: "string", length: 3 },
      ...{ value: ["ok", "\ufffdA", "\ufffd"], bytes: { 1: "ff41" } },
    });
    assert.deepEqual(json.metadata.nested.value, [[1, 2], []]);
    assert.equal(json.metadata.long.value.length, 1000);
    assert.deepEqual(json.tensors[1], {
      ...{ name: "n".repeat(200), type: "unknown(99)", shape: [2 ** 40, 2, 3, 4] },
      ...{ elementCount: 24 * 2 ** 40, byteLength: null, offset: json.tensors[0].offset + 32 },
    });
  });
  test("has the whole file", () => {
    const json = JSON.parse(run(["inspect", "--json", "sample.gguf"]).stdout);
    const file = openSync(at("sample.gguf"));
    assert.deepEqual(json.tensors, JSON.parse(JSON.stringify([...file.tensors.values()])));
    assert.deepEqual(
      json.metadata["tokenizer.ggml.tokens"].value,
      file.metadata.strings("tokenizer.ggml.tokens"),
    );
    assert.deepEqual(
      [json.version, json.byteOrder, json.byteLength, json.alignment, json.tensorCount],
      [3, "little", file.byteLength, 32, 20],
    );
    assert.equal(json.types.Q8_0.bytes, file.tensor("blk.0.ffn_down.weight").byteLength);
    assert.deepEqual(Object.keys(JSON.parse(run(["inspect", "--json", "--tensors", "sample.gguf"]).stdout)), [
      "tensors",
    ]);
  });
});

describe("dequantize", () => {
  const values = openSync(at("sample.gguf")).tensor("blk.0.attn_k.weight").dequantizeSync();
  const sample = ["dequantize", "sample.gguf", "blk.0.attn_k.weight"];

  /** The header's dictionary and the data of a .npy file. */
  function readNpy(name: string): { header: string; data: Buffer } {
    const bytes = readFileSync(at(name));
    assert.equal(bytes.toString("latin1", 0, 8), "\x93NUMPY\x01\x00");
    const end = 10 + bytes.readUInt16LE(8);
    assert.equal(end % 64, 0);
    assert.equal(bytes[end - 1], 10);
    return { header: bytes.toString("latin1", 10, end).trim(), data: bytes.subarray(end) };
  }

  test("without -o shows a summary", () => {
    const { status, stdout } = run(sample);
    assert.equal(status, 0);
    assert.match(
      stdout,
      /^blk\.0\.attn_k\.weight\n {2}type +Q4_K\n {2}shape +512 x 128\n {2}values +65,536 from 36\.0 KiB\n/,
    );
    assert.match(
      stdout,
      /\n {2}min +-\d.*\n {2}max +\d.*\n {2}mean +.*\n {2}NaN +0\n {2}infinite +0\n {2}first +.*\n$/,
    );
  });
  test("to .npy as f32 and f16: rows first", () => {
    assert.equal(run([...sample, "-o", "k.npy"]).status, 0);
    const { header, data } = readNpy("k.npy");
    assert.equal(header, "{'descr': '<f4', 'fortran_order': False, 'shape': (128, 512), }");
    assert.deepEqual(data, Buffer.from(values.buffer));
    assert.equal(run([...sample, "--output", "k.npy", "--dtype", "f16"]).status, 0);
    const half = readNpy("k.npy");
    assert.match(half.header, /'<f2'.*\(128, 512\)/);
    assert.equal(half.data.length, values.length * 2);
  });
  test("one dimension, no dimension", () => {
    writeFileSync(
      at("dims.gguf"),
      writeGguf({ tensors: [{ name: "s", type: 0, shape: [], bytes: new Uint8Array(4) }] }),
    );
    run(["dequantize", "dims.gguf", "s", "-o", "s.npy"]);
    assert.match(readNpy("s.npy").header, /'shape': \(\), /);
    run(["dequantize", "sample.gguf", "output_norm.weight", "-o", "n.npy"]);
    assert.match(readNpy("n.npy").header, /'shape': \(512,\), /);
  });
  test("numpy reads it", {
    skip: spawnSync("python3", ["-c", "import numpy"]).status !== 0 && "no numpy",
  }, () => {
    run([...sample, "-o", "numpy.npy"]);
    const program = "import numpy, sys; a = numpy.load('numpy.npy'); print(a.shape, a.dtype, float(a[3, 5]))";
    const { stdout } = spawnSync("python3", ["-c", program], { cwd: folder, encoding: "utf8" });
    assert.equal(stdout.trim(), `(128, 512) float32 ${values[3 * 512 + 5]}`);
  });
  test("to .bin as bf16", () => {
    assert.equal(run([...sample, "-o", "k.bin", "--dtype", "bf16"]).status, 0);
    const bits = openSync(at("sample.gguf")).tensor("blk.0.attn_k.weight").dequantizeSync({ dtype: "bf16" });
    assert.deepEqual(readFileSync(at("k.bin")), Buffer.from(bits.buffer));
  });
  test("more than one piece", () => {
    const count = 2 ** 21 + 2 ** 20 + 256;
    const bytes = gaussianBlocks("Q6_K", count / 256, new Random(9));
    writeFileSync(at("large.gguf"), writeGguf({ tensors: [{ name: "t", type: 14, shape: [count], bytes }] }));
    assert.equal(run(["dequantize", "large.gguf", "t", "-o", "large.bin"]).status, 0);
    const whole = openSync(at("large.gguf")).tensor("t").dequantizeSync();
    assert.ok(Buffer.from(whole.buffer).equals(readFileSync(at("large.bin"))));
  });
  test("a failure leaves the old file and nothing else", () => {
    writeFileSync(at("keep.npy"), "old");
    expectFailure(["dequantize", "evil.gguf", "n".repeat(200), "-o", "keep.npy"], 1, /unknown\(99\)/);
    assert.equal(readFileSync(at("keep.npy"), "utf8"), "old");
    expectFailure([...sample, "-o", join("missing", "k.npy")], 1, /ENOENT/);
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.endsWith(".tmp")),
      [],
    );
  });
  test("an interrupted one leaves nothing", {
    skip: process.platform === "win32" && "no signals",
  }, async () => {
    const elements = 2 ** 29;
    writeFileSync(
      at("huge.gguf"),
      writeGguf({ tensors: [{ name: "t", type: 0, shape: [4], bytes: new Uint8Array(16) }] }),
    );
    const header = readFileSync(at("huge.gguf"));
    header.writeBigUInt64LE(BigInt(elements), 24 + 9 + 4);
    writeFileSync(at("huge.gguf"), header);
    truncateSync(at("huge.gguf"), header.length - 16 + elements * 4);
    const child = spawn(process.execPath, [bin, "dequantize", "huge.gguf", "t", "-o", "huge.bin"], {
      cwd: folder,
    });
    const temporary = () => readdirSync(folder).filter((name) => name.startsWith("huge.bin"));
    while (temporary().length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    child.kill("SIGTERM");
    const signal = await new Promise((resolve) => child.once("exit", (_code, signal) => resolve(signal)));
    assert.equal(signal, "SIGTERM");
    assert.deepEqual(temporary(), []);
  });
});

describe("every type", () => {
  const random = new Random(35);
  const tensors = Object.entries(ggmlTypes).map(([name, { id, blockSize }]) => {
    const bytes = gaussianBlocks(name as GgmlType, 512 / blockSize, random);
    return { name, type: id, shape: [256, 2], bytes };
  });
  writeFileSync(at("types.gguf"), writeGguf({ tensors }));

  test("verify scans it", () => {
    const { status, stdout, stderr } = run(["verify", "types.gguf"]);
    assert.deepEqual([status, stderr], [0, ""]);
    assert.equal(stdout, `ok   types.gguf  ${tensors.length} tensors, 17.9 K values\n`);
  });
  test("inspect names it", () => {
    const { stdout } = run(["inspect", "types.gguf", "--tensors"]);
    for (const { name } of tensors) assert.match(stdout, new RegExp(`^ +${name} +${name} `, "m"));
  });
  for (const type of ["IQ1_M", "NVFP4", "TQ1_0", "I64"] as const) {
    test(`dequantize ${type}`, () => {
      assert.equal(run(["dequantize", "types.gguf", type, "-o", `${type}.bin`]).status, 0);
      const expected = reference.dequantizeSync(type, tensors.find(({ name }) => name === type)!.bytes);
      assert.deepEqual(readFileSync(at(`${type}.bin`)), Buffer.from(expected.buffer));
    });
  }
});

describe("verify", () => {
  test("good files", () => {
    const { status, stdout, stderr } = run(["verify", "sample.gguf", "empty.gguf"]);
    assert.deepEqual([status, stderr], [0, ""]);
    assert.equal(
      stdout,
      "ok   sample.gguf  20 tensors, 7.08 M values\nok   empty.gguf  0 tensors, 0 values\n",
    );
  });
  test("NaN, infinities, types that cannot be scanned", () => {
    const bytes = new Uint8Array(Float32Array.of(1, Number.NaN, Infinity, -Infinity).buffer);
    const tensors = [
      { name: "t", type: 0, shape: [4], bytes },
      { name: "u", type: 99, shape: [4], bytes },
    ];
    writeFileSync(at("nan.gguf"), writeGguf({ tensors }));
    const { status, stdout, stderr } = run(["verify", "nan.gguf", "sample.gguf"]);
    assert.equal(status, 1);
    assert.equal(stderr, "gguf-native: nan.gguf: tensor 't': 1 NaN value, 2 infinite values\n");
    assert.match(stdout, /^bad {2}nan\.gguf {2}2 tensors, 4 values, 1 tensor not scanned\nok /);
  });
  test("a bad file among good ones", () => {
    const { status, stdout, stderr } = run(["verify", "cut.gguf", "none.gguf", "sample.gguf"]);
    assert.equal(status, 1);
    assert.match(stdout, /^ok {3}sample\.gguf/);
    assert.match(stderr, /^gguf-native: cut\.gguf: .*\ngguf-native: none\.gguf: .*\n$/);
  });
});

test("a reader that stops reading is no error", { skip: process.platform === "win32" && "no sh" }, () => {
  const metadata = [
    [
      "long",
      arr(
        "string",
        Array.from({ length: 300_000 }, (_, i) => `token ${i}`),
      ),
    ],
  ] as const;
  writeFileSync(at("long.gguf"), writeGguf({ metadata: [...metadata, ["x", u32(1)]] }));
  const command = `"${process.execPath}" "${bin}" inspect --json long.gguf; echo "exit $?" >&2`;
  const { stdout, stderr } = spawnSync("sh", ["-c", `(${command}) | head -c 10`], {
    cwd: folder,
    encoding: "utf8",
  });
  assert.equal(stdout.length, 10);
  assert.equal(stderr, "exit 0\n");
  assert.ok(existsSync(at("long.gguf")));
});
