/** Every rule of the format, broken: the error's code, the byte it names, and that every way to open agrees. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { GgufError, open, openSync, parse } from "gguf-native";
import { type BadFile, badFiles, badFilesIn, F32, FORMATS, head } from "../support/bad-files";
import { ByteWriter } from "../support/byte-writer";
import { writeTensorInfo } from "../support/gguf-writer";
import { projectRoot, temporaryFolder } from "../support/paths";
import { sampleModel } from "../support/sample-model";

const folder = temporaryFolder();
const path = join(folder, "bad.gguf");

function is({ code, message, offset }: BadFile, where?: string) {
  return (error: unknown) => {
    assert.ok(error instanceof GgufError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    assert.equal(error.offset, offset, error.message);
    assert.equal(error.path, where);
    assert.ok(error.message.endsWith(`(at byte ${offset})`), error.message);
    assert.ok(!error.message.includes("\n"), error.message);
    return true;
  };
}

for (const each of badFiles) {
  test(each.name, async () => {
    writeFileSync(path, each.bytes);
    assert.throws(() => openSync(path), is(each, path));
    assert.throws(() => openSync(path, { access: "read" }), is(each, path));
    await assert.rejects(open(path), is(each, path));
  });
}

for (const [byteOrder, version] of FORMATS) {
  test(`in memory, version ${version}, ${byteOrder}-endian, and if data may be missing`, () => {
    for (const each of badFilesIn(byteOrder, version)) {
      assert.throws(() => parse(each.bytes), is(each), each.name);
      if (each.isGoodInPart) parse(each.bytes, { partial: true });
      else assert.throws(() => parse(each.bytes, { partial: true }), is(each), each.name);
    }
  });
}

test("error messages are readable: names are quoted, control characters escaped", () => {
  const w = head(new ByteWriter(), 1, 0);
  writeTensorInfo(w, { name: "evil\n\x1b[31m", type: F32, shape: [3n] }, 4);
  w.align(32).zeros(64);
  assert.throws(
    () => parse(w.done()),
    (error) => error instanceof GgufError && !/\p{Cc}/u.test(error.message),
  );
});

test("the guide's example of an error is one", () => {
  const cut = join(folder, "model.gguf");
  writeFileSync(cut, sampleModel().subarray(0, 1_000_000));
  const guide = readFileSync(join(projectRoot, "docs", "guide.md"), "utf8");
  assert.throws(
    () => openSync(cut),
    ({ message }: Error) => guide.includes(`\n${message.slice(folder.length + 1)}\n`) || assert.fail(message),
  );
});
