/** `gguf-native remove`. */
import assert from "node:assert/strict";
import { linkSync, readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { at, expectFailure, json, leftovers, namesIn, output, runProcess } from "../support/cli";
import { rangesOf, serve } from "../support/range-server";
import { sampleModel } from "../support/sample-model";

const content = sampleModel();
writeFileSync(at("model.gguf"), content);

describe("remove", () => {
  test("in place of the file; other hard links keep the old one", async () => {
    writeFileSync(at("own.gguf"), content);
    linkSync(at("own.gguf"), at("link.gguf"));
    const stdout = await output("remove own.gguf *norm* token_embd.weight --in-place");
    assert.match(stdout, /^ {2}removed +type/);
    assert.match(stdout, /\nown\.gguf: 14 of 20 tensors/);
    assert.deepEqual(
      namesIn("own.gguf"),
      namesIn("model.gguf").filter((name) => !/norm|embd/.test(name)),
    );
    assert.ok(readFileSync(at("link.gguf")).equals(content));
  });
  test("to another file; every tensor, too", async () => {
    const { removed, tensors } = await json("remove model.gguf * -o header.gguf");
    assert.deepEqual([removed.length, tensors], [20, []]);
    assert.deepEqual(namesIn("header.gguf"), []);
    assert.ok(readFileSync(at("model.gguf")).equals(content));
  });
  test("a big-endian file stays one", async () => {
    await output("convert model.gguf big.gguf --byte-order big");
    await output("remove big.gguf blk.0.* --in-place");
    const { byteOrder, tensorCount } = await json("inspect big.gguf");
    assert.deepEqual([byteOrder, tensorCount], ["big", 11]);
  });
  test("of a URL, to a file", async () => {
    const { url } = await serve(rangesOf(content));
    await expectFailure(["remove", url, "*norm*"], 2, /missing --output/);
    await output("remove", url, "*norm*", "-o", "remote.gguf");
    assert.equal(namesIn("remote.gguf").length, 15);
  });
  test("a write-protected file stays, and so does one where the command fails", async (t) => {
    await expectFailure("remove model.gguf nope --in-place", 1, /no tensor is named 'nope'/);
    await expectFailure("remove model.gguf", 2, /missing TENSOR/);
    for (const args of [
      ["remove", "model.gguf", "*norm*"],
      ["rename", "model.gguf", "*norm*", "*x*"],
    ]) {
      await expectFailure(args, 2, /missing --output OUT, or --in-place/);
      await expectFailure([...args, "--in-place", "-o", "x"], 2, /either --in-place or --output/);
    }
    const { status, stderr } = runProcess(["remove", "model.gguf", "*norm*", "-o", "/proc/nothing.gguf"]);
    if (process.platform !== "linux") t.skip("/proc is of Linux");
    else assert.deepEqual([status, /nothing\.gguf/.test(stderr)], [1, true]);
    assert.ok(readFileSync(at("model.gguf")).equals(content));
    assert.deepEqual(leftovers(), []);
  });
});
