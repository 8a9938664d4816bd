/** `gguf-native inspect` of several files, of folders, and of standard input. */
import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { runNode, runSync } from "../support/child";
import { at, bin, EVIL, expectFailure, expectTidy, json, output, run, runProcess } from "../support/cli";
import { str, writeGguf } from "../support/gguf-writer";
import { rangesOf, serve } from "../support/range-server";
import { sampleModel } from "../support/sample-model";

const content = sampleModel();
mkdirSync(at("models/inner"), { recursive: true });
mkdirSync(at("empty"));
writeFileSync(at("models/sample.gguf"), content);
writeFileSync(at("models/inner/other.GGUF"), writeGguf({ metadata: [["general.architecture", str(EVIL)]] }));
writeFileSync(at("models/notes.txt"), "no model");
symlinkSync(at("models"), at("models/loop"), "junction");

describe("several models", () => {
  test("a folder, with the folders in it, without links to folders", async () => {
    const stdout = await output("inspect models");
    expectTidy(stdout);
    const [title, head, ...rows] = stdout.trimEnd().split("\n");
    assert.equal(title, "models");
    assert.match(head!, /^ {2}file +architecture +parameters +type/);
    assert.equal(rows.length, 2);
    assert.match(rows[0]!, /^ {2}sample\.gguf +llama +7\.08 M /);
    assert.match(rows[1]!, /^ {2}inner.other\.GGUF +evil/);
  });
  test("files and URLs; in JSON the summary of each", async () => {
    const { url } = await serve(rangesOf(content));
    const { files } = await json(["inspect", "models/sample.gguf", url]);
    const { metadata: _, tensors: _2, ...summary } = await json("inspect models/sample.gguf");
    assert.deepEqual(files[0], summary);
    assert.deepEqual(files[1], { ...summary, path: url, paths: [url] });
  });
  test("a split model is one model; with --no-splits each file is one", async () => {
    mkdirSync(at("parts"));
    await output("split models/sample.gguf parts/part --max-tensors 9");
    const { files } = await json("inspect parts");
    assert.deepEqual(
      files.map(({ paths, tensorCount }: { paths: string[]; tensorCount: number }) => [paths.length, tensorCount]),
      [[3, 20]],
    );
    assert.equal((await json("inspect parts --no-splits")).files.length, 3);
  });
  test("what is bad is in the table, and what is cut off too; the exit code is 1", async () => {
    writeFileSync(at("bad.gguf"), "no model");
    writeFileSync(at("cut.gguf"), content.subarray(0, 1_000_000));
    const { status, stdout, stderr } = await run("inspect bad.gguf cut.gguf nothing.gguf models/sample.gguf");
    assert.equal(status, 1);
    assert.match(
      stdout,
      /\n {2}bad\.gguf +bad\n {2}cut\.gguf +llama .*\n {2}nothing\.gguf +bad\n {2}models.sample\.gguf +llama/,
    );
    assert.match(
      stderr,
      /^gguf-native: bad\.gguf: .*\ngguf-native: cut\.gguf: .* needs [\d,]+;.*\ngguf-native: nothing\.gguf: .*\n$/,
    );
    const { files } = await json("inspect bad.gguf cut.gguf", 1);
    assert.deepEqual(Object.keys(files[0]), ["path", "error"]);
    assert.match(files[1].error, /incomplete: has [\d,]+ bytes, needs [\d,]+;/);
  });
  test("wrong usage", async () => {
    await expectFailure("inspect empty", 1, /empty: no GGUF files are here/);
    await expectFailure("inspect models --tensors", 2, /--tensors is for one model/);
    await expectFailure("inspect a b --filter x", 2, /--filter is for one model/);
    await expectFailure("inspect", 2, /missing FILE/);
  });
});

describe("standard input", () => {
  const inspect = (input: Uint8Array, ...args: string[]) => {
    const { status, stdout, stderr } = runNode([bin, "inspect", "-", ...args], { input });
    return { status, stdout, stderr };
  };
  test("shows the same as for the file", async () => {
    const { status, stdout, stderr } = inspect(content);
    assert.deepEqual([status, stderr], [0, ""]);
    const file = await output("inspect models/sample.gguf");
    assert.equal(stdout, file.replace(/^.*/, "standard input"));
    const inJson = JSON.parse(inspect(content, "--json").stdout);
    assert.deepEqual(inJson.tensors, (await json("inspect models/sample.gguf")).tensors);
    assert.equal(inJson.byteLength, content.length);
  });
  test("reads no more than the header", (t) => {
    if (process.platform === "win32") return t.skip("there are no such pipes");
    const endless = `{ cat models/sample.gguf; exec yes; } | "$0" "$1" inspect -`;
    const { status, stdout } = runSync("sh", ["-c", endless, process.execPath, bin], { cwd: at(".") });
    assert.deepEqual([status, /7\.08 M in 20 tensors/.test(stdout)], [0, true]);
  });
  test("what ends early, or is no model, is an error", () => {
    for (const [input, message] of [
      [new Uint8Array(0), /standard input: the file is empty/],
      [Buffer.from("no model at all"), /standard input: /],
      [content.subarray(0, 30_000), /standard input: /],
    ] as const) {
      const { status, stdout, stderr } = inspect(input);
      assert.deepEqual([status, stdout], [1, ""]);
      assert.match(stderr, message);
    }
    const cut = inspect(content.subarray(0, 400_000));
    const found = [
      cut.status,
      /20 tensors/.test(cut.stdout),
      /incomplete: has [\d,]+ bytes, needs [\d,]+;/.test(cut.stderr),
    ];
    assert.deepEqual(found, [1, true, true]);
  });
});

test("the name alone says what this is, and what to type", () => {
  const { status, stdout, stderr } = runProcess([]);
  assert.deepEqual([status, stderr], [0, ""]);
  expectTidy(stdout);
  assert.match(stdout, /gguf-native inspect model\.gguf .*\n(.*\n)* {2}gguf-native --help/);
});
