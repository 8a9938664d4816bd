/** `gguf-native convert`. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { at, expectFailure, json, leftovers, output } from "../support/cli";
import { sampleModel } from "../support/sample-model";

writeFileSync(at("model.gguf"), sampleModel());
const wholeOf = async (name: string) => (await output("hash --whole", name)).split(" ")[0];

describe("--byte-order", () => {
  test("big, and back: values stay, and so does the file", async () => {
    const printed = await output("convert model.gguf big.gguf --byte-order big");
    assert.match(printed, /^big\.gguf: 20 tensors, .*, big-endian\n$/);
    const { byteOrder, tensors } = await json("inspect big.gguf");
    assert.deepEqual([byteOrder, tensors.length], ["big", 20]);
    const [stats] = (await json("stats model.gguf output_norm.weight")).tensors;
    assert.deepEqual((await json("stats big.gguf output_norm.weight")).tensors[0], stats);
    await output("convert big.gguf little.gguf --byte-order little");
    assert.equal(await wholeOf("little.gguf"), await wholeOf("model.gguf"));
  });
  test("of the file itself; a dry run leaves it alone", async () => {
    writeFileSync(at("own.gguf"), sampleModel());
    const report = await json("convert own.gguf own.gguf --byte-order big --dry-run");
    assert.deepEqual([report.output, report.byteOrder], [null, "big"]);
    assert.ok(readFileSync(at("own.gguf")).equals(sampleModel()));
    await output("convert own.gguf own.gguf --byte-order big");
    assert.ok(readFileSync(at("own.gguf")).equals(readFileSync(at("big.gguf"))));
  });
});

test("wrong usage, and files that are none, leave nothing behind", async () => {
  await expectFailure("convert model.gguf x.gguf", 2, /missing --byte-order/);
  await expectFailure("convert model.gguf", 2, /missing OUT/);
  await expectFailure(
    "convert model.gguf x.gguf --byte-order bigg",
    2,
    /must be little or big, not 'bigg'.*Did you mean 'big'/,
  );
  writeFileSync(at("text.gguf"), "not a model");
  await expectFailure("convert text.gguf x.gguf --byte-order big", 1, /text\.gguf/);
  await expectFailure("convert model.gguf no/x.gguf --byte-order big", 1, /no\/x\.gguf/);
  assert.deepEqual(leftovers(), []);
});
