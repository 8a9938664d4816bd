/** `gguf-native rename`. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { at, expectFailure, expectTidy, json, leftovers, namesIn, output } from "../support/cli";
import { writeGguf } from "../support/gguf-writer";
import { sampleModel } from "../support/sample-model";

const content = sampleModel();
writeFileSync(at("model.gguf"), content);
const before = namesIn("model.gguf");

describe("rename", () => {
  test("one tensor, or all that a glob matches", async () => {
    const stdout = await output(
      ...["rename", "model.gguf", "output_norm.weight", "norm", "blk.*.attn_?.weight", "layers.*.*_proj"],
      ...["-o", "a.gguf"],
    );
    expectTidy(stdout);
    assert.match(stdout, /\n {2}blk\.0\.attn_q\.weight +layers\.0\.q_proj\n/);
    assert.match(stdout, /\na\.gguf: 20 tensors/);
    assert.deepEqual(
      namesIn("a.gguf"),
      before.map((name) =>
        name.replace("output_norm.weight", "norm").replace(/blk\.(.*)\.attn_(.)\.weight/, "layers.$1.$2_proj"),
      ),
    );
    const sha = async (name: string, tensor: string) =>
      (await json(["hash", name])).files[0].tensors.find((each: { name: string }) => each.name === tensor).sha256;
    assert.equal(await sha("a.gguf", "layers.1.k_proj"), await sha("model.gguf", "blk.1.attn_k.weight"));
  });
  test("two swap their names; the first glob that matches counts", async () => {
    writeFileSync(at("own.gguf"), content);
    const { tensors } = await json([
      ...["rename", "own.gguf", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight"],
      ...["blk.0.ffn_norm.weight", "blk.0.attn_norm.weight", "blk.0.*", "x.*", "--in-place"],
    ]);
    const swapped = tensors.filter(({ from }: { from?: string }) => /norm/.test(from ?? ""));
    assert.deepEqual(
      swapped.map(({ from, name }: { from: string; name: string }) => [from, name]),
      [
        ["blk.0.attn_norm.weight", "blk.0.ffn_norm.weight"],
        ["blk.0.ffn_norm.weight", "blk.0.attn_norm.weight"],
      ],
    );
    assert.equal(namesIn("own.gguf").filter((name) => name.startsWith("x.")).length, 7);
  });
  test("names that control a terminal are escaped where they are shown", async () => {
    const tensor = { name: "\u001b[2Ja", type: 0, shape: [1], bytes: new Uint8Array(4) };
    writeFileSync(at("hostile.gguf"), writeGguf({ tensors: [tensor] }));
    expectTidy(await output("rename hostile.gguf *a", "*\u202eb", "--in-place"));
    assert.deepEqual(namesIn("hostile.gguf"), ["\u001b[2J\u202eb"]);
  });
});

test("names that cannot be, and wrong usage, change nothing", async () => {
  for (const [args, status, message] of [
    [["blk.0.*", "blk.1.*"], 1, /'blk\.1\.attn_norm\.weight': two tensors would have this name/],
    [["blk.*", "b"], 2, /'b' has 0 '\*', but 'blk\.\*' has 1 wildcards: each needs one/],
    [["blk.*", "b.*", "c"], 2, /missing NAME after 'c'/],
    [["blk.0.attn_q.weight"], 2, /missing NAME/],
    [["output_norm.weight", ""], 1, /must not be empty/],
    [["output_norm.weight", "x".repeat(64)], 1, /64 bytes, ggml reads up to 63/],
    [["outputnorm.weight", "x"], 1, /Did you mean 'output_norm\.weight'/],
    [[`${"*a".repeat(1000)}b`, "*".repeat(1000)], 1, /no tensor's name matches/],
  ] as const)
    await expectFailure(["rename", "model.gguf", ...args, "--in-place"], status, message);
  assert.ok(readFileSync(at("model.gguf")).equals(content));
  assert.deepEqual(leftovers(), []);
});
