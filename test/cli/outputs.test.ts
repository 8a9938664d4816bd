/** Outputs that are files which are read, whatever leads to them, and outputs in the place of other models. */
import assert from "node:assert/strict";
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
import fs from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, test } from "node:test";
import {
  convertModel,
  type GgufError,
  GgufWriter,
  mergeModel,
  open,
  quantizeModel,
  setMetadata,
  splitModel,
  type WriteOptions,
} from "gguf-native";
import { CHECKPOINTS, writeCheckpoint } from "../support/checkpoints";
import { runNode } from "../support/child";
import { at, bin, folder, leftovers, run } from "../support/cli";
import { temporaryFolder } from "../support/paths";
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

/** A command succeeds. */
async function works(args: readonly string[]): Promise<void> {
  const { status, stderr } = await run(args);
  assert.equal(status, 0, stderr);
}

const EXISTS = /: exists already: choose another name, or replace it with --force/;
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
      const { status, stderr } = runNode(args, { cwd: folder, stdio: ["ignore", descriptor, "pipe"] });
      closeSync(descriptor);
      assert.match(stderr, /a file that is read|is a GGUF file/);
      assert.equal(status, 1);
      assert.ok(readFileSync(at(name)).equals(before[names.indexOf(name)]!));
    }
  });
  test("an addon", async () => {
    await refused(["build", "-o", "m.gguf"], EXISTS);
  });
});

describe("GGUF", { skip }, () => {
  const PART = /a file of the model that is read, whose other files are worth nothing alone/;
  test("merge, quantize and convert over a file of the model, by any path", async () => {
    symlinkSync(at("s-00002-of-00002.gguf"), at("second"));
    linkSync(at("s-00002-of-00002.gguf"), at("second-hard"));
    for (const output of [...names.slice(2), "second", "second-hard"]) {
      for (const input of names.slice(2)) {
        await refused(["merge", input, output], PART);
        await refused(["quantize", input, output, "--type", "Q8_0", "--allow-requantize"], PART);
        await refused(["convert", input, output, "--byte-order", "big"], PART);
      }
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
    for (const output of [first, "s-00002-of-00003.gguf"])
      await works(["set", first, "general.name", "x", "-o", output, "--force"]);
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
    const { status, stderr } = runNode([bin, "set", "m.gguf", "--from", "-", "-o", "changes-link"], {
      cwd: folder,
      stdio: [input, "pipe", "pipe"],
    });
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
    await works(["set", "m.gguf", "general.name", "x".repeat(9000), "-o", "link"]);
    await works(["split", "s-00001-of-00002.gguf", "--max-tensors", "12"]);
    await works(["merge", "m.gguf", "m.gguf"]);
  });
});

const checkpoint = writeCheckpoint(temporaryFolder(), CHECKPOINTS[0]!);
const writers: readonly (readonly string[])[] = [
  ["set", "m.gguf", "general.name", "x", "-o"],
  ["extract", "m.gguf", TENSOR, "-o"],
  ["remove", "m.gguf", TENSOR, "-o"],
  ["rename", "m.gguf", TENSOR, "x", "-o"],
  ["merge", "s-00001-of-00002.gguf"],
  ["quantize", "m.gguf", "--type", "Q8_0", "--allow-requantize"],
  ["convert", "m.gguf", "--byte-order", "big"],
  ["convert", checkpoint],
  ["dequantize", "m.gguf", TENSOR, "--format", "bin", "-o"],
  ["stats", "m.gguf", TENSOR, "--svg"],
];

describe("what exists is replaced only with --force", { skip }, () => {
  beforeEach(() => {
    writeFileSync(at("notes.txt"), "notes");
    symlinkSync("notes.txt", at("to-notes"));
    linkSync(at("notes.txt"), at("also-notes"));
    symlinkSync("made.txt", at("dangling"));
  });
  const notes = () => readFileSync(at("notes.txt"), "utf8");
  for (const words of writers) {
    test(words.slice(0, 2).join(" "), async () => {
      const hasDryRun = !["merge", "dequantize", "stats"].includes(words[0]!);
      for (const output of ["notes.txt", at("notes.txt"), "to-notes", "also-notes", "other.gguf"]) {
        await refused([...words, output], EXISTS);
        if (!hasDryRun) continue;
        const dry = [...words, output, "--dry-run"];
        const printed = (await run(dry)).stdout;
        assert.match(printed, /exists already: only --force replaces it\nnothing was written/);
        assert.match((await run([...dry, "--force"])).stdout, /\nwould replace .*\nnothing was written/);
      }
      assert.equal(notes(), "notes");
      for (const output of ["dangling", "new"]) {
        await works([...words, output]);
        await refused([...words, output], EXISTS);
      }
      for (const output of ["to-notes", "made.txt", "other.gguf"]) await works([...words, output, "--force"]);
      assert.notEqual(notes(), "notes");
      assert.equal(readFileSync(at("also-notes"), "utf8"), "notes");
    });
  }
  test("any file of several", async () => {
    linkSync(at("notes.txt"), at("p-00002-of-00002.gguf"));
    const split = ["split", "m.gguf", "p", "--max-tensors", "10"];
    await refused(split, EXISTS);
    const { stdout } = await run([...split, "--dry-run"]);
    assert.match(stdout, /\np-00002-of-00002\.gguf exists already: only --force replaces it\nnothing/);
    await works([...split, "--force"]);
    mkdirSync(at("out"));
    linkSync(at("notes.txt"), at(`out/${TENSOR}.npy`));
    await refused(["dequantize", "m.gguf", "*norm*", "-o", "out"], EXISTS);
    assert.equal(notes(), "notes");
  });
  test("the model itself is what a command names twice", async () => {
    for (const words of writers.slice(0, 7)) {
      for (const output of ["m.gguf", "link", "hard"]) {
        if (words[0] === "merge") continue;
        const { status, stdout } = await run([...words, output, "--dry-run"]);
        assert.deepEqual([status, /would replace/.test(stdout)], [0, true], words.join(" "));
      }
    }
    await works(["rename", "m.gguf", TENSOR, "x", "-o", "link"]);
  });
});

describe("overwrite: false", () => {
  const writes: Record<string, (output: string, options: WriteOptions) => Promise<unknown>> = {
    "GgufWriter.write": (output, options) => new GgufWriter().set("a.b", 1).write(output, options),
    setMetadata: (output, options) => setMetadata("m.gguf", { "a.b": 1 }, { output, ...options }),
    mergeModel: (output, options) => mergeModel("s-00001-of-00002.gguf", output, options),
    splitModel: (output, options) => splitModel("m.gguf", output.replace(/-0.*/, ""), { maxTensors: 10, ...options }),
    quantizeModel: (output, options) =>
      quantizeModel("m.gguf", output, { type: "Q8_0", allowRequantize: true, ...options }),
    convertModel: (output, options) => convertModel(checkpoint, output, options),
  };
  for (const [name, write] of Object.entries(writes)) {
    test(`${name}: what is there stays, also where it appears meanwhile`, async () => {
      const output = at("p-00002-of-00002.gguf");
      for (const when of ["before", "while writing", "at the end"]) {
        rmSync(output, { force: true });
        const before = readdirSync(folder);
        const put = () => writeFileSync(output, "mine");
        if (when === "before") put();
        const { link } = fs;
        if (when === "at the end") {
          fs.link = async (from, to) => {
            if (to === output) put();
            return link(from, to);
          };
        }
        const onProgress = when === "while writing" ? put : undefined;
        try {
          await assert.rejects(write(output, { overwrite: false, onProgress }), (found: GgufError) => {
            assert.match(found.message, EXISTS);
            return found.code === "ERR_GGUF_WRITE" && (found.cause as { code?: string }).code === "EEXIST";
          });
        } finally {
          fs.link = link;
        }
        assert.equal(readFileSync(output, "utf8"), "mine", when);
        assert.deepEqual(readdirSync(folder), [...new Set([...before, "p-00002-of-00002.gguf"])].sort());
      }
      await write(output, {});
      assert.notEqual(readFileSync(output, "utf8"), "mine");
    });
  }
  test("a file system without hard links", async () => {
    const { link } = fs;
    fs.link = async (from, to) => {
      if (String(from).endsWith(".tmp") && String(to).endsWith(".gguf"))
        throw Object.assign(new Error("no links"), { code: "EPERM" });
      return link(from, to);
    };
    try {
      await mergeModel("s-00001-of-00002.gguf", "merged.gguf", { overwrite: false });
    } finally {
      fs.link = link;
    }
    (await open("merged.gguf")).close();
    assert.deepEqual(leftovers(), []);
  });
});
