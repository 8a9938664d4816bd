/** `gguf-native split` and `merge`, and split models in every other command. */
import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { before, describe, test } from "node:test";
import { at, expectFailure, expectTidy, json, leftovers, output } from "../support/cli";
import { sampleModel } from "../support/sample-model";

writeFileSync(at("model.gguf"), sampleModel());
const hashOf = async (name: string) => (await output("hash --whole", name)).split(" ")[0];
let whole: string | undefined;
before(async () => {
  whole = await hashOf("model.gguf");
});
const parts = (folder: string) => readdirSync(at(folder)).sort();

describe("split", () => {
  test("by the number of tensors", async () => {
    mkdirSync(at("count"));
    const stdout = await output("split model.gguf count/part --max-tensors 9");
    const names = [1, 2, 3].map((i) => `part-0000${i}-of-00003.gguf`);
    assert.deepEqual(parts("count"), names);
    const printed = stdout.split("\n").map((line) => line.split(":")[0]);
    assert.deepEqual(printed, [...names.map((name) => `count/${name}`), ""]);
    for (const name of names) {
      assert.equal(await hashOf(`count/${name}`), whole);
      assert.match(await output("verify", `count/${name}`), /20 tensors, 7\.08 M values/);
    }
    assert.equal(await output("diff model.gguf count/part-00002-of-00003.gguf"), "no differences\n");
  });
  test("a dry run tells the files and their sizes, and writes nothing", async () => {
    mkdirSync(at("dry"));
    const args = ["split", "model.gguf", "dry/made/part", "--max-tensors", "9"];
    assert.match(await output(...args, "--dry-run"), /^(dry\S+: .*\n){3}nothing was written\n$/);
    const { files } = await json([...args, "--dry-run"]);
    assert.deepEqual(parts("dry"), []);
    assert.deepEqual((await json(args)).files, files);
    for (const { path, byteLength } of files) assert.equal(statSync(at(path)).size, byteLength);
  });
  test("by size, by default under the name of the file", async () => {
    mkdirSync(at("size"));
    writeFileSync(at("size/m.gguf"), sampleModel());
    await output("split size/m.gguf --max-size 2M");
    const names = parts("size").filter((name) => name !== "m.gguf");
    assert.ok(names.length > 2);
    for (const name of names) {
      assert.match(name, new RegExp(`^m-\\d{5}-of-0000${names.length}\\.gguf$`));
      assert.ok(statSync(at(`size/${name}`)).size <= 2 ** 21);
    }
    assert.equal(await hashOf(`size/${names[1]}`), whole);
  });
  test("into a folder, under the name of the file", async () => {
    mkdirSync(at("folder"));
    for (const prefix of ["folder", "folder/"]) {
      await output("split model.gguf", prefix, "--max-tensors", "10");
      assert.deepEqual(
        parts("folder"),
        [1, 2].map((i) => `model-0000${i}-of-00002.gguf`),
      );
      for (const name of parts("folder")) unlinkSync(at(`folder/${name}`));
    }
  });
  test("into a folder that is made", async () => {
    for (const args of [["made/deep/"], ["-o", "made/deep/"], ["--output", "made/deep/model"]]) {
      await output("split model.gguf", ...args, "--max-tensors", "10");
      assert.deepEqual(
        parts("made/deep"),
        [1, 2].map((i) => `model-0000${i}-of-00002.gguf`),
      );
      rmSync(at("made"), { recursive: true });
    }
    await expectFailure("split none.gguf made/deep/ --max-size 1", 1, /none\.gguf/);
    await expectFailure("split model.gguf a -o b --max-tensors 9", 2, /either PREFIX or --output/);
    assert.ok(!existsSync(at("made")));
  });
  test("of a split model, under its name", async () => {
    mkdirSync(at("anew"));
    await output("split model.gguf anew/w --max-tensors 10");
    await output("split anew/w-00001-of-00002.gguf --max-tensors 9");
    assert.deepEqual(
      parts("anew"),
      [...[1, 2].map((i) => `w-0000${i}-of-00002.gguf`), ...[1, 2, 3].map((i) => `w-0000${i}-of-00003.gguf`)].sort(),
    );
    assert.equal(await hashOf("anew/w-00002-of-00003.gguf"), whole);
  });
  test("wrong usage and impossible sizes", async () => {
    await expectFailure("split model.gguf", 2, /missing --max-size or --max-tensors/);
    await expectFailure("split model.gguf --max-tensors 0", 2, /--max-tensors must be a whole number from 1/);
    for (const size of ["0", "x", "1X", "-1", "", "9999999999999T"]) {
      await expectFailure(["split", "model.gguf", `--max-size=${size}`], 2, /--max-size must be a number of bytes/);
    }
    await expectFailure("split none.gguf --max-tensors 9", 1, /none\.gguf/);
    assert.deepEqual(leftovers(), []);
  });
});

describe("merge", () => {
  test("from any file, to what was split", async () => {
    for (const number of [1, 3]) {
      const stdout = await output("merge", `count/part-0000${number}-of-00003.gguf`, "merged.gguf", "--force");
      assert.match(stdout, /^merged\.gguf: \d\.\d\d MiB\n$/);
      assert.equal(await hashOf("merged.gguf"), whole);
      assert.equal(await output("diff model.gguf merged.gguf"), "no differences\n");
    }
  });
  test("a file that is missing", async () => {
    mkdirSync(at("gap"));
    await output("split model.gguf gap/part --max-tensors 9");
    unlinkSync(at("gap/part-00002-of-00003.gguf"));
    const [missing, other] = [/part-00002-of-00003\.gguf/, "gap/part-00003-of-00003.gguf"];
    await expectFailure("merge gap/part-00001-of-00003.gguf gap.gguf", 1, missing);
    await expectFailure(["verify", other], 1, missing, `bad  ${other}  cannot be read\n`);
    assert.ok(!existsSync(at("gap.gguf")));
  });
  test("wrong usage", async () => {
    await expectFailure("merge model.gguf", 2, /missing OUT/);
    await expectFailure("merge model.gguf a b", 2, /name one FILE of the model, and OUT/);
  });
});

test("inspect says which file a tensor is in", async () => {
  assert.match(await output("inspect count/part-00002-of-00003.gguf"), /\n {2}files +3\n/);
  const stdout = await output("inspect --tensors count/part-00002-of-00003.gguf");
  expectTidy(stdout);
  assert.match(stdout, /\n {2}blk\.0\.attn_norm\.weight +F32 +512 +2\.00 KiB +\d+ +1\n/);
  assert.match(stdout, /\n {2}output_norm\.weight .* 3\n/);
  const { paths, tensors } = await json("inspect count/part-00002-of-00003.gguf");
  const expected = [1, 2, 3].map((i) => `count/part-0000${i}-of-00003.gguf`);
  assert.deepEqual(paths, expected);
  assert.equal(tensors.at(-1).path, paths[2]);
});

describe("one file alone, with --no-splits", () => {
  const names = ["alone/part-00002-of-00003.gguf", "alone/renamed.gguf"];
  before(() => {
    mkdirSync(at("alone"));
    for (const name of names) copyFileSync(at("count/part-00002-of-00003.gguf"), at(name));
  });
  const tensor = "blk.0.ffn_down.weight";
  const commands = {
    inspect: [],
    verify: [],
    hash: [],
    stats: [tensor],
    dequantize: [tensor],
  };
  for (const [command, args] of Object.entries(commands)) {
    test(command, async () => {
      for (const [i, name] of names.entries()) {
        // Of the first the others are missing, of the second nobody knows the names of the others.
        const verdict = `bad  ${name}  ${["cannot be read", "broken"][i]}\n`;
        const shown = command === "verify" ? verdict : "";
        await expectFailure([command, name, ...args], 1, /; --no-splits takes this file alone\n$/, shown);
        const stdout = await output(command, name, ...args, "--no-splits");
        assert.match(stdout, /blk\.0\.ffn_down\.weight|ok {3}alone.* 9 tensors/);
      }
      assert.match(await output(command, "--help"), /\n {2}--no-splits +/);
    });
  }
});
