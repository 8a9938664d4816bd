/** Outputs that are files which are read, whatever leads to them, and outputs in the place of other models. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  closeSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  openSync as openDescriptor,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, test } from "node:test";
import { GgufWriter, open, setMetadata, splitModel } from "gguf-native";
import { at, bin, folder, run, runProcess } from "../support/cli";
import { sampleModel } from "../support/sample-model";

const skip = process.platform === "win32" && "links need rights on Windows";
const model = sampleModel();
const names = ["m.gguf", "other.gguf", "s-00001-of-00002.gguf", "s-00002-of-00002.gguf"];
let before: Buffer[];

beforeEach(async () => {
  for (const name of readdirSync(folder)) rmSync(at(name), { recursive: true });
  for (const name of ["m.gguf", "other.gguf"]) writeFileSync(at(name), model);
  await splitModel(at("m.gguf"), at("s"), { maxTensors: 10 });
  symlinkSync(at("m.gguf"), at("link"));
  linkSync(at("m.gguf"), at("hard"));
  before = names.map((name) => readFileSync(at(name)));
});

/** A command fails, and every model is as it was. */
async function refused(args: readonly string[], message: RegExp): Promise<void> {
  const found = readdirSync(folder).sort();
  const { status, stderr } = await run(args);
  assert.match(stderr, message, args.join(" "));
  assert.equal(status, 1);
  for (const [i, name] of names.entries()) assert.ok(readFileSync(at(name)).equals(before[i]!), name);
  assert.deepEqual(readdirSync(folder).sort(), found);
}

const READ = /is (the same file as .*, )?a file that is read: choose another name/;
const TENSOR = "output_norm.weight";
const products = [
  ["dequantize", "m.gguf", TENSOR, "--format", "npy", "-o"],
  ["dequantize", "m.gguf", TENSOR, "--format", "bin", "--force", "-o"],
  ["dequantize", "m.gguf", "--all", "--exclude", "*unknown*", "--format", "safetensors", "-o"],
  ["stats", "m.gguf", TENSOR, "--svg"],
  ["stats", "m.gguf", "--force", "--svg"],
];

describe("what is no GGUF", { skip }, () => {
  for (const words of products) {
    test(`${words.join(" ")}: never over the model, by any path`, async () => {
      for (const output of ["m.gguf", "./m.gguf", "link", "hard", at("m.gguf")]) {
        await refused([...words, output], READ);
      }
    });
    test(`${words.join(" ")}: over another model only with --force`, async () => {
      symlinkSync(at("other.gguf"), at("another"));
      const isForced = words.includes("--force");
      for (const output of ["other.gguf", "another"]) {
        if (isForced) {
          const { status, stderr } = await run([...words, output]);
          assert.equal(status, 0, stderr);
          assert.notEqual(readFileSync(at("other.gguf"), "latin1").slice(0, 4), "GGUF");
        } else
          await refused(
            [...words, output],
            /is a GGUF file: something else takes its place only with --force/,
          );
      }
    });
  }
  test("in a folder", async () => {
    mkdirSync(at("out"));
    linkSync(at("m.gguf"), join(at("out"), `${TENSOR}.npy`));
    await refused(["dequantize", "m.gguf", TENSOR, "-o", "out"], READ);
  });
  test("over any file of a split model", async () => {
    const words = ["s-00001-of-00002.gguf", TENSOR, "--force"];
    for (const shard of names.slice(2)) {
      await refused(["dequantize", ...words, "--format", "bin", "-o", shard], READ);
      await refused(["stats", ...words, "--svg", shard], READ);
    }
  });
  test("through a descriptor of the model", () => {
    for (const name of ["m.gguf", "other.gguf"]) {
      const descriptor = openDescriptor(at(name), "a");
      const args = [bin, "dequantize", "m.gguf", TENSOR, "--format", "bin", "-o", "/dev/stdout"];
      const { status, stderr } = spawnSync(process.execPath, args, {
        cwd: folder,
        encoding: "utf8",
        stdio: ["ignore", descriptor, "pipe"],
      });
      closeSync(descriptor);
      assert.match(stderr, /a file that is read|is a GGUF file/);
      assert.equal(status, 1);
      assert.ok(readFileSync(at(name)).equals(before[names.indexOf(name)]!));
    }
  });
  test("an addon", async () => {
    await refused(
      ["build", "-o", "m.gguf"],
      /is a GGUF file: something else takes its place only with --force/,
    );
  });
});

describe("GGUF", { skip }, () => {
  const PART = /a file of the model that is read, whose other files are worth nothing alone/;
  test("merge over a file of the model, by any path", async () => {
    symlinkSync(at("s-00002-of-00002.gguf"), at("second"));
    linkSync(at("s-00002-of-00002.gguf"), at("second-hard"));
    for (const output of [...names.slice(2), "second", "second-hard"]) {
      for (const input of names.slice(2)) await refused(["merge", input, output], PART);
    }
  });
  test("set of one file over another of its model, by any path", async () => {
    const [first, second] = names.slice(2) as [string, string];
    symlinkSync(at(first), at("first"));
    symlinkSync(at(second), at("second"));
    linkSync(at(second), at("second-hard"));
    for (const input of [first, `./${first}`, at(first), "first"]) {
      for (const output of [second, at(second), "second", "second-hard"]) {
        await refused(["set", input, "general.name", "x", "-o", output], PART);
      }
    }
    await assert.rejects(setMetadata(at(second), { "a.b": 1 }, { output: at(first) }), {
      code: "ERR_GGUF_WRITE",
      message: PART,
    });
    // Itself, as without -o; and what only has a similar name.
    copyFileSync(at(second), at("s-00002-of-00003.gguf"));
    for (const output of [first, "s-00002-of-00003.gguf"]) {
      const { status, stderr } = runProcess(["set", first, "general.name", "x", "-o", output]);
      assert.equal(status, 0, stderr);
    }
    (await open(at(second))).close();
  });
  test("split where a part would take the place of the whole", async () => {
    symlinkSync(at("m.gguf"), at("p-00001-of-00002.gguf"));
    await refused(["split", "m.gguf", "p", "--max-tensors", "10"], PART);
  });
  test("set over what it reads, also as standard input", async () => {
    writeFileSync(at("changes.json"), '{"general.name":"x"}');
    symlinkSync(at("changes.json"), at("changes-link"));
    for (const output of ["changes.json", "changes-link"]) {
      await refused(["set", "m.gguf", "--from", "changes.json", "-o", output], READ);
      await refused(["set", "m.gguf", "--chat-template", "changes.json", "-o", output], READ);
    }
    const input = openDescriptor(at("changes.json"), "r");
    const { status, stderr } = spawnSync(
      process.execPath,
      [bin, "set", "m.gguf", "--from", "-", "-o", "changes-link"],
      { cwd: folder, encoding: "utf8", stdio: [input, "pipe", "pipe"] },
    );
    closeSync(input);
    assert.match(stderr, READ);
    assert.equal(status, 1);
    assert.equal(readFileSync(at("changes.json"), "utf8"), '{"general.name":"x"}');
  });
  test("GgufWriter.from over one of several files", async () => {
    using file = await open(at(names[2]!));
    await assert.rejects(GgufWriter.from(file).write(at(names[3]!)), {
      code: "ERR_GGUF_WRITE",
      message: PART,
    });
    await GgufWriter.from(file).write(at("whole.gguf"));
  });
  test("what replaces its whole model is written", async () => {
    copyFileSync(at("m.gguf"), at("one-00001-of-00001.gguf"));
    for (const args of [
      ["set", "m.gguf", "general.name", "x".repeat(9000), "-o", "link"],
      ["split", "s-00001-of-00002.gguf", "--max-tensors", "12"],
      ["merge", "m.gguf", "m.gguf"],
    ]) {
      const { status, stderr } = runProcess(args);
      assert.equal(status, 0, stderr);
    }
  });
});
