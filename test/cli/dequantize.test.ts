/** `gguf-native dequantize`: what it writes, read by others. */
import assert from "node:assert/strict";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type DType, ggmlTypes, openSync } from "gguf-native";
import { noPython, python, readNpy, readSafetensors } from "../support/array-files";
import { runSync, start, succeeds, untilWith } from "../support/child";
import {
  at,
  bin,
  blocks,
  EVIL,
  expectFailure,
  expectTidy,
  floats,
  folder,
  leftovers,
  output,
  run,
  runProcess,
  writeModel,
} from "../support/cli";
import { emulated } from "../support/emulated";
import { sampleModel } from "../support/sample-model";
import { sanitized } from "../support/sanitized";
import { writeSparseGguf } from "../support/sparse-file";

writeFileSync(at("sample.gguf"), sampleModel());
const model = openSync(at("sample.gguf"));
const tensor = model.tensor("blk.0.attn_k.weight");
const values = tensor.dequantizeSync();
const sample = ["dequantize", "sample.gguf", "blk.0.attn_k.weight"];

/** The bytes that a tensor's values have in a file. */
function expectedBytes(name: string, dtype: DType = "f32"): Buffer {
  return Buffer.from(model.tensor(name).dequantizeSync({ dtype }).buffer);
}

const unknown = { name: "u", type: 99, shape: [4], bytes: new Uint8Array(16) };
writeModel("unknown.gguf", { tensors: [floats("t", [1, 2]), unknown] });

test("without -o shows a summary", async () => {
  const stdout = await output(...sample);
  expectTidy(stdout);
  assert.match(
    stdout,
    /^blk\.0\.attn_k\.weight\n {2}type +Q4_K\n {2}shape +512 x 128\n {2}values +65,536 from 36\.0 KiB\n/,
  );
  assert.match(
    stdout,
    /\n {2}min +-\d.*\n {2}max +\d.*\n {2}mean +.*\n {2}zeros .*\n {2}NaN +0\n {2}infinite +0\n {2}first +.*\n$/,
  );
});

describe("one tensor", () => {
  test("to .npy as f32 and f16: rows first", async () => {
    const said = await output(...sample, "-o", "k.npy");
    assert.equal(said, "k.npy: 65,536 values (f32, 256 KiB)\n");
    await output(...sample, "-o", "K.NPY");
    assert.deepEqual(readFileSync(at("K.NPY")), readFileSync(at("k.npy")));
    const { shape, dtype, fortranOrder, data } = await readNpy(at("k.npy"));
    assert.deepEqual([shape, dtype, fortranOrder], [[128, 512], "f4", false]);
    assert.deepEqual(data, values);
    await output(...sample, "--output", "k.npy", "--dtype", "f16", "--force");
    const half = await readNpy(at("k.npy"));
    assert.deepEqual([half.shape, half.dtype], [[128, 512], "f2"]);
    assert.deepEqual(readFileSync(at("k.npy")).subarray(-values.length * 2), expectedBytes(tensor.name, "f16"));
  });
  test("numpy reads them", { skip: noPython("numpy") }, async () => {
    await output(...sample, "-o", "numpy.npy");
    await output(...sample, "-o", "numpy16.npy", "--dtype", "f16");
    const program = `import numpy
a, b = numpy.load("numpy.npy"), numpy.load("numpy16.npy")
print(a.shape, a.dtype, float(a[3, 5]), b.shape, b.dtype, (a.astype("float16") == b).all())`;
    const expected = `(128, 512) float32 ${values[3 * 512 + 5]} (128, 512) float16 True`;
    assert.equal(python(program, folder), expected);
  });
  test("one dimension, no dimension, three dimensions, no elements", async () => {
    const tensors = [floats("s", [7], []), floats("c", [1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 4]), floats("e", [], [0, 3])];
    writeModel("dims.gguf", { tensors });
    const shapes = { s: [], c: [4, 2, 1], e: [3, 0] };
    for (const [name, shape] of Object.entries(shapes)) {
      await output("dequantize dims.gguf", name, "-o", "dims.npy", "--force");
      assert.deepEqual((await readNpy(at("dims.npy"))).shape, shape);
    }
    await output("dequantize dims.gguf --all -o dims.safetensors");
    const { tensors: written } = readSafetensors(at("dims.safetensors"));
    assert.deepEqual(Object.fromEntries([...written].map(([name, { shape }]) => [name, shape])), shapes);
    await output("dequantize sample.gguf output_norm.weight -o n.npy");
    assert.deepEqual((await readNpy(at("n.npy"))).shape, [512]);
  });
  test("to .bin as bf16, and under another name with --format", async () => {
    await output(...sample, "-o", "k.bin", "--dtype", "bf16");
    assert.deepEqual(readFileSync(at("k.bin")), expectedBytes(tensor.name, "bf16"));
    await output(...sample, "-o", "k.raw", "--format", "bin");
    assert.deepEqual(readFileSync(at("k.raw")), expectedBytes(tensor.name));
  });
  test("a tensor name of the greatest length of a file name", async () => {
    const name = "n".repeat(251);
    writeModel("longest.gguf", { tensors: [floats(name, [1])] });
    await output("dequantize longest.gguf", name, "-o", "longest/");
    assert.deepEqual(readdirSync(at("longest")), [`${name}.npy`]);
  });
  test("more than one piece", async () => {
    const count = 2 ** 23 + 2 ** 20 + 256;
    writeModel("large.gguf", { tensors: [blocks("t", "Q2_K", [count], 9)] });
    await output("dequantize large.gguf t -o large.bin");
    const whole = openSync(at("large.gguf")).tensor("t").dequantizeSync();
    assert.ok(Buffer.from(whole.buffer).equals(readFileSync(at("large.bin"))));
  });
});

describe("several tensors", () => {
  test("--all to .safetensors, in every dtype", async () => {
    for (const dtype of ["f32", "f16", "bf16"] as const) {
      assert.match(
        await output("dequantize sample.gguf --all -o all.safetensors --force --dtype", dtype),
        new RegExp(`^all\\.safetensors: 20 tensors, 7,080,448 values \\(${dtype}, \\d+\\.\\d MiB\\)\n$`),
      );
      const { metadata, tensors } = readSafetensors(at("all.safetensors"));
      assert.deepEqual(metadata, { format: "pt" });
      assert.deepEqual([...tensors.keys()], [...model.tensors.keys()]);
      for (const [name, found] of tensors) {
        const shape = [...model.tensor(name).shape].reverse();
        assert.deepEqual([found.dtype, found.shape], [dtype.toUpperCase(), shape]);
        assert.ok(found.bytes.equals(expectedBytes(name, dtype)), name);
      }
    }
  });
  test("safetensors reads it", { skip: noPython("safetensors.numpy") }, async () => {
    await output("dequantize sample.gguf --all -o python.safetensors");
    const program = `from safetensors.numpy import load_file
a = load_file("python.safetensors")
print(len(a), a["${tensor.name}"].shape, float(a["${tensor.name}"][3, 5]))`;
    assert.equal(python(program, folder), `20 (128, 512) ${values[3 * 512 + 5]}`);
  });
  test("a glob and names to a folder, one .npy each", async () => {
    await output("dequantize sample.gguf blk.?.attn_k.* output_norm.weight -o folder/");
    assert.deepEqual(readdirSync(at("folder")).sort(), [
      ...["blk.0.attn_k.weight.npy", "blk.1.attn_k.weight.npy", "output_norm.weight.npy"],
    ]);
    assert.deepEqual((await readNpy(at("folder/blk.0.attn_k.weight.npy"))).data, values);
  });
  test("to an existing folder, as .bin, with --exclude", async () => {
    mkdirSync(at("there"));
    const args = ["--exclude", "*ffn*", "--exclude", "*attn_[qvo]*", "--format", "bin", "--dtype", "bf16"];
    await output("dequantize sample.gguf blk.0.* -o there", ...args);
    assert.deepEqual(readdirSync(at("there")).sort(), ["blk.0.attn_k.weight.bin", "blk.0.attn_norm.weight.bin"]);
    assert.deepEqual(readFileSync(at("there/blk.0.attn_k.weight.bin")), expectedBytes(tensor.name, "bf16"));
  });
  test("names that would lead elsewhere stay in the folder", async () => {
    const names = ["../../outside", "a/b", "/etc/x", EVIL, "__proto__", "..", "50%2F", "c:\\d", "*"];
    const safe: Record<string, string> = {
      "": "%.bin",
      "-rf": "%2Drf.bin",
      ".hidden ": "%2Ehidden%20.bin",
      "x.": "x%2E.bin",
      "gp\u202enp\u0085": "gp%E2%80%AEnp%C2%85.bin",
      "\u2066\u200d\u061c\u{e0041}": "%E2%81%A6%E2%80%8D%D8%9C%F3%A0%81%81.bin",
      "\u0600\ufeff\u2028": "%D8%80%EF%BB%BF%E2%80%A8.bin",
      "con.weight": "%63on.weight.bin",
      "COM¹": "%43OM¹.bin",
      "LPT9 .x": "%4CPT9 .x.bin",
      "con-v.é漢": "con-v.é漢.bin",
    };
    names.push(...Object.keys(safe));
    writeModel("names.gguf", { tensors: names.map((name, i) => floats(name, [i])) });
    await output("dequantize names.gguf --all -o names/ --format bin");
    const written = readdirSync(at("names"));
    assert.equal(written.length, names.length);
    assert.ok(written.includes("%2E.%2F..%2Foutside.bin"));
    for (const name of ["50%252F.bin", ...Object.values(safe)]) assert.ok(written.includes(name), name);
    assert.ok(written.every((name) => /^[^-.\s]/.test(name) && !/[\p{C}\p{Z}]$|\p{Cf}/u.test(name)));
    assert.ok(!existsSync(join(folder, "..", "outside.bin")));
    await output("dequantize names.gguf --all -o names.safetensors");
    const { tensors } = readSafetensors(at("names.safetensors"));
    assert.deepEqual(
      names.map((name) => tensors.get(name)!.bytes.readFloatLE()),
      names.map((_, i) => i),
    );
    expectTidy((await run(["dequantize", "names.gguf", EVIL])).stdout);
  });
  test("a name that is also a glob is a name", async () => {
    writeModel("globs.gguf", { tensors: [floats("[a]", [1]), floats("a", [2])] });
    await output("dequantize globs.gguf [a] -o glob.bin");
    assert.equal(readFileSync(at("glob.bin")).readFloatLE(), 1);
    await output("dequantize globs.gguf", "\\[a]*", "-o", "glob.bin", "--force");
    assert.equal(readFileSync(at("glob.bin")).readFloatLE(), 1);
  });
});

describe("usage", () => {
  test("wrong usage exits with 2", async () => {
    await expectFailure("dequantize sample.gguf", 2, /missing TENSOR/);
    await expectFailure([...sample, "-o"], 2, /output/);
    await expectFailure([...sample, "-o", "x.txt"], 2, /\.npy, \.safetensors, \.bin or \//);
    await expectFailure([...sample, "-o", "x.npy", "--dtype", "f8"], 2, /--dtype must be f32, f16 or bf16, not 'f8'/);
    await expectFailure([...sample, "-o", "x.npy", "--format", "gif"], 2, /--format must be npy, safetensors or bin/);
    await expectFailure([...sample, "-o", "x.npy", "--dtype", "bf16"], 2, /NumPy has no bfloat16/);
    await expectFailure([...sample, "--dtype", "f16"], 2, /needs -o/);
    await expectFailure([...sample, "--all"], 2, /either --all or/);
    await expectFailure("dequantize sample.gguf blk.*", 2, /18 tensors are more than a summary shows: add -o/);
    const many = /20 tensors do not fit in one \.npy file: write \.safetensors, or into a folder \(-o x\/\)/;
    await expectFailure("dequantize sample.gguf --all -o x.npy", 2, many);
  });
  test("missing tensors exit with 1", async () => {
    await expectFailure("dequantize sample.gguf none", 1, /no tensor is named 'none'/);
    await expectFailure("dequantize sample.gguf none*", 1, /no tensor's name matches 'none\*'; 'gguf-native inspect/);
    await expectFailure("dequantize sample.gguf --all --exclude *", 1, /no tensors are left/);
  });
});

describe("failure", () => {
  test("leaves the old file and nothing else", async () => {
    writeFileSync(at("keep.npy"), "old");
    await expectFailure("dequantize unknown.gguf u -o keep.npy --force", 1, /unknown\(99\)/);
    assert.equal(readFileSync(at("keep.npy"), "utf8"), "old");
    await expectFailure([...sample, "-o", join("missing", "k.npy")], 1, /ENOENT/);
    assert.deepEqual(leftovers(), []);
  });
  test("a tensor that cannot be decoded stops everything before it begins", async () => {
    await expectFailure("dequantize unknown.gguf --all -o none/", 1, /tensor 'u'.*unknown\(99\)/);
    assert.ok(!existsSync(at("none")));
    await output("dequantize unknown.gguf --all --exclude u -o none/");
    assert.deepEqual(readdirSync(at("none")), ["t.npy"]);
  });
  test("a file that is cut off still gives the tensors that are complete", async () => {
    writeFileSync(at("cut.gguf"), sampleModel());
    truncateSync(at("cut.gguf"), model.tensor("blk.0.attn_v.weight").offset);
    await output("dequantize cut.gguf", tensor.name, "-o", "cut.bin");
    assert.deepEqual(readFileSync(at("cut.bin")), expectedBytes(tensor.name));
    const needed = /tensor 'blk\.0\.attn_v\.weight': bytes \d+ to \d+ are needed, but/;
    await expectFailure("dequantize cut.gguf --all -o cut.safetensors", 1, needed);
    assert.ok(!existsSync(at("cut.safetensors")));
    assert.deepEqual(leftovers(), []);
  });
  const late = process.platform === "win32" && "there a name is found too long once others are written";
  test("leaves no folder that it made", { skip: late }, async () => {
    writeModel("long-name.gguf", { tensors: [floats("a", [1]), floats("b".repeat(252), [1])] });
    await expectFailure("dequantize long-name.gguf --all -o made/for/it/", 1, /ENAMETOOLONG|ENOENT/);
    assert.ok(!existsSync(at("made")));
    mkdirSync(at("kept"));
    await expectFailure("dequantize long-name.gguf --all -o kept/new/", 1, /ENAMETOOLONG|ENOENT/);
    assert.deepEqual(readdirSync(at("kept")), []);
  });
  test("a tensor named __metadata__ does not fit in safetensors", async () => {
    writeModel("metadata.gguf", { tensors: [floats("__metadata__", [1])] });
    await expectFailure("dequantize metadata.gguf --all -o m.safetensors", 1, /named '__metadata__'/);
  });
});

const unix = { skip: process.platform === "win32" && "no such files on Windows" };
const bytes = expectedBytes(tensor.name);
const command = `"${process.execPath}" "${bin}" ${sample.join(" ")} --format bin -o`;
const shell = (script: string) => runSync("sh", ["-c", script], { cwd: folder, encoding: "buffer" });

test("what is not a regular file is written to, a link stays a link", unix, async () => {
  writeFileSync(at("target.bin"), "");
  symlinkSync("target.bin", at("link.bin"));
  await output(...sample, "-o", "link.bin", "--force");
  assert.ok(lstatSync(at("link.bin")).isSymbolicLink());
  assert.deepEqual(readFileSync(at("target.bin")), expectedBytes(tensor.name));
  assert.equal(await output(...sample, "-o", "/dev/null", "--format", "bin"), "");
  assert.deepEqual(shell(`${command} /dev/stdout | cat`).stdout, bytes);
  assert.ok(lstatSync("/dev/null").isCharacterDevice());
});

describe("outputs of the shell", unix, () => {
  test("a descriptor of a file is written to from its present position", async () => {
    for (const [name, redirected] of [
      ["/dev/stdout", ">"],
      ["/dev/stdout", ">>"],
      ["/dev/fd/1", ">>"],
      ["/proc/self/fd/1", ">"],
      ["/dev/stderr", "2>"],
      ["/dev/fd/3", "3>"],
      ["stdout-link", ">"],
    ] as const) {
      if (name.startsWith("/proc") && process.platform !== "linux") continue;
      rmSync(at("stdout-link"), { force: true });
      symlinkSync("/dev/stdout", at("stdout-link"));
      writeFileSync(at("shared"), "before\n");
      const kept = redirected === ">>" ? "before\n" : "";
      const to = redirected.startsWith(">") ? "" : `>&${redirected[0]}`;
      shell(`(echo first ${to}; ${command} ${name}; echo last ${to}) ${redirected} shared`);
      const expected = Buffer.concat([Buffer.from(`${kept}first\n`), bytes, Buffer.from("last\n")]);
      assert.ok(readFileSync(at("shared")).equals(expected), `${name} ${redirected}`);
    }
    assert.deepEqual(leftovers(), []);
  });
  test("standard output can be a socket", async () => {
    const args = [bin, ...sample, "--format", "bin", "-o", "/dev/stdout"];
    const { stdout } = runSync(process.execPath, args, { cwd: folder, encoding: "buffer" });
    assert.ok(bytes.equals(stdout));
  });
  test("a reader that stops reading is no error", async () => {
    const { stdout, stderr } = shell(`(${command} /dev/stdout; echo "exit $?" >&2) | head -c 10`);
    assert.deepEqual([stdout, String(stderr)], [bytes.subarray(0, 10), "exit 0\n"]);
    assert.ok(succeeds("mkfifo", [at("stopped")]));
    const named = shell(`head -c 10 stopped >/dev/null & ${command} stopped; echo "exit $?"`);
    assert.deepEqual([String(named.stdout), String(named.stderr)], ["exit 0\n", ""]);
  });
  test("a full disk is an error", { skip: !existsSync("/dev/full") && "no /dev/full" }, async () => {
    for (const script of [`${command} /dev/full`, `${command} /dev/stdout >/dev/full`]) {
      const { status, stderr } = shell(script);
      assert.equal(status, 1);
      assert.match(String(stderr), /^gguf-native: ENOSPC[^\n]*\n$/);
    }
  });
});

describe("large tensors", () => {
  const elements = 2 ** 27;
  const skip = writeSparseGguf(at("huge.gguf"), [
    { name: "t", type: ggmlTypes.TQ1_0.id, shape: [elements], byteLength: (elements / 256) * 54 },
  ]);

  const measured = { skip: skip || (sanitized && "sanitizers take memory of their own") };
  test("memory stays bounded", measured, async () => {
    writeFileSync(at("report.js"), "process.on('exit', () => console.error(process.resourceUsage().maxRSS))");
    const env = { NODE_OPTIONS: `--require ${at("report.js")}` };
    const args = ["dequantize", "huge.gguf", "t", "-o", "/dev/null", "--format", "bin"];
    const { status, stderr } = runProcess(args, env);
    assert.equal(status, 0, stderr);
    const mebibytes = Number(stderr) / 1024;
    // The runtime, the mapped 27 MiB and two pieces: 512 MiB of output are never there at once.
    assert.ok(mebibytes < 200, `${mebibytes} MiB`);
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    const reason = skip || (process.platform === "win32" && "no signals") || (emulated && "no signals for the child");
    test(`${signal} leaves no file and no folder`, { skip: reason }, async () => {
      mkdirSync(at("stays"), { recursive: true });
      for (const output of ["stays/huge.bin", "stays/new/weights/"]) {
        const args = [bin, "dequantize", "huge.gguf", "t", "-o", output];
        const child = start(process.execPath, args, { cwd: folder });
        await untilWith(child, () => leftovers().length > 0);
        child.kill(signal);
        const ended = await new Promise((resolve) => child.once("exit", (_code, signal) => resolve(signal)));
        assert.equal(ended, signal);
        assert.deepEqual(readdirSync(at("stays")), []);
      }
    });
    test(`${signal} ends a command that waits for the reader of a pipe`, {
      skip: reason,
      timeout: 30_000,
    }, async () => {
      rmSync(at("fifo"), { force: true });
      assert.ok(succeeds("mkfifo", [at("fifo")]));
      const args = ["dequantize", "huge.gguf", "t", "-o", "fifo", "--format", "bin"];
      const child = start(process.execPath, [bin, ...args], { cwd: folder });
      // Once it has something to write, all that is left to do is to wait.
      const reader = start("sh", ["-c", "exec < fifo; head -c 1; exec sleep 60"], { cwd: folder });
      await new Promise((resolve) => reader.stdout.once("data", resolve));
      child.kill(signal);
      const ended = await new Promise((resolve) => child.once("exit", (_code, signal) => resolve(signal)));
      reader.kill();
      assert.equal(ended, signal);
    });
  }
});
