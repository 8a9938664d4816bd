/** Headers of hundreds of thousands of keys, tensors and strings, and of more than there may be. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import { GgufWriter, mergeModel, openSync, parse, setMetadata, splitModel } from "gguf-native";
import { ByteWriter } from "../support/byte-writer";
import { runNode } from "../support/child";
import { bin } from "../support/cli";
import { temporaryFolder } from "../support/paths";
import { within } from "../support/within";

const folder = temporaryFolder();

describe("large headers", () => {
  const header = (tensors: number, keys: number) =>
    new ByteWriter().bytes(Buffer.from("GGUF")).u32(3).u64(tensors).u64(keys);

  test("100,000 tensors, found in any order, and the same objects while few are between", () => {
    const count = 100_000;
    const w = header(count, 0);
    for (let i = 0; i < count; i++)
      w.string(`t${i}`)
        .u32(1)
        .u64(i % 7)
        .u32(0)
        .u64(32 * i);
    const file = within(10, () => parse(w.align(32).done(), { partial: true }));
    const { tensors } = file;
    within(10, () => {
      assert.equal(tensors.size, count);
      let i = 0;
      for (const [name, tensor] of tensors) {
        assert.equal(name, `t${i}`);
        assert.equal(tensors.get(name), tensor);
        assert.equal(tensor.elementCount, i++ % 7);
      }
      assert.equal(i, count);
      for (i = count - 1; i >= 0; i -= 331) assert.equal(tensors.get(`t${i}`)?.name, `t${i}`);
      for (const absent of ["", "t", `t${count}`, "\ud800", "\ufffd"]) assert.equal(tensors.get(absent), undefined);
    });
    assert.match(inspect(tensors), /^TensorMap\(100000\) \{.* 99900 more items\n\}$/s);
    file.close();
    for (const use of [() => tensors.get("t0"), () => tensors.has("t0"), () => [...tensors.keys()]]) {
      assert.throws(use, { code: "ERR_GGUF_CLOSED" });
    }
  });

  test("2^20 names that hold U+FFFD, but not one more", () => {
    const named = (count: number) => {
      const w = header(0, count);
      for (let i = 0; i < count; i++) w.string(`\ufffd${i}`).u32(0).u8(1);
      return w.done();
    };
    assert.throws(() => parse(named(2 ** 20 + 1)), {
      code: "ERR_GGUF_INVALID",
      message: /more than 1048576 names of its kind are not UTF-8 or hold U\+FFFD/,
    });
    const { metadata } = parse(named(2 ** 20));
    const shown = within(20, () => metadata.get(`\ufffd${2 ** 20 - 1}`));
    assert.equal(shown, 1);
  });

  test("2^20 keys fit in one object, but not one more", () => {
    const w = header(0, 2 ** 20 + 1);
    for (let i = 0; i <= 2 ** 20; i++) w.string(`k${i}`).u32(0).u8(1);
    const { metadata } = parse(w.done());
    assert.throws(() => metadata.toJSON(), { code: "ERR_GGUF_RANGE", message: /1048577 metadata keys/ });
    assert.match(inspect(metadata), / and 1047577 more$/);
  });

  test("more than 2^20 keys or tensors are not written, nor worked on together", async () => {
    const count = 2 ** 20 + 1;
    const keys = header(0, count);
    for (let i = 0; i < count; i++) keys.string(`k${i}`).u32(0).u8(1);
    const tensors = header(count, 1).string("a.key").u32(0).u8(1);
    for (let i = 0; i < count; i++) tensors.string(`t${i}`).u32(1).u64(0).u32(0).u64(0);
    const [ofKeys, ofTensors] = [join(folder, "keys.gguf"), join(folder, "many-tensors.gguf")];
    writeFileSync(ofKeys, keys.align(32).done());
    writeFileSync(ofTensors, tensors.align(32).done());

    const output = join(folder, "rewritten.gguf");
    const tooMany = (what: string) => ({
      code: "ERR_GGUF_RANGE",
      message: new RegExp(`1048577 ${what} are more than can be written, 1048576`),
    });
    for (const [path, what] of [
      [ofKeys, "metadata keys"],
      [ofTensors, "tensors"],
    ] as const) {
      using file = openSync(path);
      assert.throws(() => GgufWriter.from(file), tooMany(what));
      await assert.rejects(mergeModel(path, output), tooMany(what));
      await assert.rejects(splitModel(path, output, { maxTensors: 9 }), tooMany(what));
    }
    await assert.rejects(setMetadata(ofKeys, { k1: 2 }), tooMany("metadata keys"));
    // The tensors are not looked at for that.
    await setMetadata(ofTensors, { "a.key": 2 });
    await setMetadata(ofTensors, { "a.key": { value: "a longer value", type: "string" } }, { output });
    using changed = openSync(output);
    assert.deepEqual([changed.metadata.get("a.key"), changed.tensors.size], ["a longer value", count]);

    for (const args of [
      ["stats", ofTensors, "--svg", join(folder, "all.svg")],
      ["stats", ofTensors, "t*"],
      ["dequantize", ofTensors, "--all", "-o", folder],
    ]) {
      const { status, stderr } = runNode([bin, ...args]);
      assert.match(stderr, /these are more than 1048576 tensors: name fewer of them/);
      assert.equal(status, 1);
    }
  });
});
