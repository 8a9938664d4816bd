/** `gguf-native extract`. */
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { openSync } from "gguf-native";
import { at, expectFailure, expectTidy, json, leftovers, output } from "../support/cli";
import { str, u32, writeGguf } from "../support/gguf-writer";
import { rangeOf, rangesOf, serve } from "../support/range-server";
import { sampleModel } from "../support/sample-model";

const content = sampleModel();
writeFileSync(at("model.gguf"), content);

/** The names of the tensors of a file, each of which must be as in the whole model. */
function namesIn(name: string): string[] {
  using whole = openSync(at("model.gguf"));
  using part = openSync(at(name));
  return Array.from(part.tensors.values(), (tensor) => {
    const original = whole.tensor(tensor.name);
    assert.deepEqual([tensor.type, tensor.shape], [original.type, original.shape]);
    assert.ok(Buffer.from(tensor.bytes()).equals(original.bytes()));
    return tensor.name;
  });
}

describe("extract", () => {
  test("tensors by name and glob, in file order, with all metadata", async () => {
    const stdout = await output("extract model.gguf output_norm.weight blk.?.attn_q.* -o a.gguf");
    expectTidy(stdout);
    assert.match(stdout, /^ {2}tensor +type +shape +size\n/);
    assert.match(stdout, /\na\.gguf: 3 of 20 tensors, .*, little-endian\n$/);
    assert.deepEqual(namesIn("a.gguf"), ["blk.0.attn_q.weight", "blk.1.attn_q.weight", "output_norm.weight"]);
    const found = (await json("inspect a.gguf --metadata")).metadata;
    assert.deepEqual(found, (await json("inspect model.gguf --metadata")).metadata);
  });
  test("layers, with other tensors, without some", async () => {
    await output("extract model.gguf output* --layers 1: --exclude *norm* -o b.gguf");
    const names = namesIn("b.gguf");
    assert.equal(names.length, 7);
    for (const name of names) assert.match(name, /^blk\.1\.(?!.*norm)/);
    await output("extract model.gguf --layers 0 -o b.gguf --force");
    assert.equal(namesIn("b.gguf").length, 9);
  });
  test("only some keys, and those that a file needs", async () => {
    writeFileSync(
      at("aligned.gguf"),
      writeGguf({
        metadata: [
          ["general.architecture", str("test")],
          ["test.block_count", u32(1)],
        ],
        tensors: [{ name: "a", type: 0, shape: [1], bytes: new Uint8Array(4) }],
        alignment: 64,
      }),
    );
    const report = await json([...["extract", "aligned.gguf", "a", "-o", "c.gguf", "--metadata", "general.arch*"]]);
    assert.deepEqual(report.removedKeys, ["test.block_count"]);
    using file = openSync(at("c.gguf"));
    assert.deepEqual([...file.metadata.keys()], ["general.architecture", "general.alignment"]);
    assert.equal(file.alignment, 64);
  });
  test("of a URL, by fetching the header and these tensors", async () => {
    const padded = new Uint8Array(content.length);
    padded.set(content);
    const { url, requests } = await serve(rangesOf(padded));
    await output("extract", url, "output_norm.weight", "-o", "d.gguf");
    assert.deepEqual(namesIn("d.gguf"), ["output_norm.weight"]);
    const bytes = requests.map(rangeOf).map(([first, last]) => last - first + 1);
    assert.ok(bytes.slice(1).reduce((sum, each) => sum + each, 0) <= 2048, String(bytes));
  });
  test("of a split model, and as a dry run", async () => {
    await output("split model.gguf part --max-tensors 9");
    const args = ["extract", "part-00003-of-00003.gguf", "blk.0.attn_q.weight", "-o", "e.gguf"];
    const { output: dry, removed, tensors, byteLength } = await json([...args, "--dry-run"]);
    assert.deepEqual([dry, removed.length, tensors[0].name], [null, 19, "blk.0.attn_q.weight"]);
    assert.ok(!existsSync(at("e.gguf")));
    assert.equal((await json(args)).byteLength, byteLength);
    assert.deepEqual(namesIn("e.gguf"), ["blk.0.attn_q.weight"]);
  });
});

test("wrong usage", async () => {
  for (const [args, status, message] of [
    [["model.gguf", "x", "-o", "x.gguf"], 1, /no tensor is named 'x'/],
    [["model.gguf", "x*", "-o", "x.gguf"], 1, /no tensor's name matches 'x\*'/],
    [["model.gguf", "*norm*", "--exclude", "*", "-o", "x.gguf"], 1, /no tensors are left/],
    [["model.gguf", "*"], 2, /missing --output/],
    [["model.gguf", "-o", "x.gguf"], 2, /missing TENSOR/],
    [["model.gguf", "--layers", "2:", "-o", "x.gguf"], 2, /no tensors are in these layers; the last layer is 1/],
    [["model.gguf", "--layers", "b", "-o", "x.gguf"], 2, /--layers must be a range/],
    [["aligned.gguf", "--layers", "0", "-o", "x.gguf"], 2, /the model has no layers/],
  ] as const)
    await expectFailure(["extract", ...args], status, message);
  assert.ok(!existsSync(at("x.gguf")));
  assert.deepEqual(leftovers(), []);
});
