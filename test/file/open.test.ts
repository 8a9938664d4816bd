/** Opening: paths, URLs, memory, versions, byte orders, what the system refuses, aborting. */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { after, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { getSystemErrorMap, inspect } from "node:util";
import {
  convertModel,
  GgufError,
  GgufFile,
  GgufWriter,
  mergeModel,
  open,
  openSafetensors,
  openSync,
  parse,
  quantizeModel,
  recover,
  setMetadata,
  splitModel,
} from "gguf-native";
import { str, writeGguf } from "../support/gguf-writer";
import { goldenPath } from "../support/golden";
import { temporaryFolder } from "../support/paths";

const folder = temporaryFolder();
// What is wrongly taken for a name is written there. A folder that a process is in cannot be removed everywhere.
const before = process.cwd();
process.chdir(folder);
after(() => process.chdir(before));
const simple = {
  metadata: [["general.architecture", str("test")]] as const,
  tensors: [{ name: "x", type: 0, shape: [2], bytes: new Uint8Array(Float32Array.of(1.5, -2).buffer) }],
};
const path = join(folder, "simple.gguf");
writeFileSync(path, writeGguf(simple));

function check(file: GgufFile): void {
  assert.ok(file instanceof GgufFile);
  assert.equal(file.version, 3);
  assert.equal(file.byteOrder, "little");
  assert.equal(file.byteLength, writeGguf(simple).length);
  assert.equal(file.alignment, 32);
  assert.equal(file.closed, false);
  assert.equal(file.metadata.architecture, "test");
  assert.deepEqual([...file.tensors.keys()], ["x"]);
  assert.deepEqual(file.tensor("x").dequantizeSync(), Float32Array.of(1.5, -2));
  file.close();
  assert.equal(file.closed, true);
  file.close();
}

describe("ways to open", () => {
  test("openSync", () => check(openSync(path)));
  test("openSync with reads", () => check(openSync(path, { access: "read" })));
  test("openSync with every option", () => {
    check(openSync(path, { access: "mmap", splits: true, partial: false }));
    check(openSync(path, { access: undefined, splits: false, partial: undefined }));
  });
  test("a file URL", () => check(openSync(pathToFileURL(path))));
  test("open", async () => check(await open(path)));
  test("open with reads", async () => check(await open(pathToFileURL(path), { access: "read" })));
  test("parse a Uint8Array", () => check(parse(writeGguf(simple))));
  test("parse a Buffer", () => check(parse(Buffer.from(writeGguf(simple)))));
  test("parse an ArrayBuffer", () => check(parse(writeGguf(simple).slice().buffer)));
  test("parse part of a buffer, unaligned", () => {
    const bytes = writeGguf(simple);
    const larger = new Uint8Array(bytes.length + 10).fill(255);
    larger.set(bytes, 3);
    check(parse(larger.subarray(3, 3 + bytes.length)));
  });
  test("a path that is not ASCII, with spaces", () => {
    const odd = join(folder, "модель 模型 é.gguf");
    writeFileSync(odd, writeGguf(simple));
    check(openSync(odd));
    check(openSync(pathToFileURL(odd)));
  });
  test("using closes", () => {
    const file = openSync(path);
    file[Symbol.dispose]();
    assert.ok(file.closed);
  });
});

describe("places of other kinds", () => {
  test("a file URL as text", async () => {
    const { href } = pathToFileURL(path);
    check(openSync(href));
    check(await open(href));
  });
  const functions: [name: string, call: (place: string | URL) => unknown][] = [
    ["openSync", async (place) => openSync(place)],
    ["recover", recover],
    ["setMetadata", (place) => setMetadata(place, {})],
    ["splitModel", (place) => splitModel(place, "x", { maxTensors: 1 })],
    ["mergeModel", (place) => mergeModel(place, "x")],
    ["GgufWriter.write", (place) => new GgufWriter().write(place)],
    ["the output of quantizeModel", (place) => quantizeModel(path, place, { type: "Q8_0" })],
    ["importance", (importance) => quantizeModel(path, "x", { type: "Q8_0", importance })],
  ];
  for (const place of ["hf://owner/name/x.gguf", "https://host/x?key=secret", "HTTP://host/x", "hf:x", "ollama:x"]) {
    for (const [name, call] of functions) {
      test(`${name} of ${place} says what to call`, async () => {
        for (const each of [place, new URL(place)]) {
          await assert.rejects(
            async () => call(each),
            (error: Error) => {
              assert.match(error.message, /must be a path or a file: URL: open\(\) opens/);
              assert.doesNotMatch(error.message, /secret/);
              return (error as { code?: unknown }).code === "ERR_INVALID_ARG_VALUE";
            },
          );
        }
      });
    }
  }
  const everywhere: typeof functions = [
    ...functions,
    ["quantizeModel", (place) => quantizeModel(place, "x", { type: "Q8_0" })],
    ["convertModel", (place) => convertModel(place, "x")],
    ["open", open],
    ["openSafetensors", (place) => openSafetensors(place)],
  ];
  for (const [name, call] of everywhere) {
    test(`${name} of ftp: and others`, async () => {
      for (const place of ["ftp://host/x.gguf", "s3://bucket/x.gguf"]) {
        await assert.rejects(async () => call(place), {
          code: "ERR_INVALID_ARG_VALUE",
          message: /a path or a file: URL/,
        });
        await assert.rejects(async () => call(new URL(place)), { code: "ERR_INVALID_ARG_VALUE" });
      }
    });
  }
  test("a file may have a colon in its name", {
    skip: process.platform === "win32" && "not on Windows",
  }, () => {
    for (const name of ["a:b.gguf", "data:x", "c:/x"]) {
      mkdirSync(join(folder, name, ".."), { recursive: true });
      writeFileSync(join(folder, name), writeGguf(simple));
      check(openSync(relative(process.cwd(), join(folder, name))));
    }
  });
});

describe("files that the system cannot open", () => {
  const refused = (target: string, code: string) => {
    const is = (error: unknown) => {
      assert.ok(error instanceof GgufError, String(error));
      assert.equal(error.code, "ERR_GGUF_OPEN");
      assert.equal(error.path, target);
      const { code: found, errno = 0 } = error.cause as NodeJS.ErrnoException;
      assert.equal(found, code);
      assert.equal(getSystemErrorMap().get(errno)?.[0], code);
      assert.ok(error.message.startsWith(`${target}: `), error.message);
      return true;
    };
    for (const access of ["mmap", "read"] as const) assert.throws(() => openSync(target, { access }), is);
    // To `open`, a folder is a model of safetensors.
    return code === "EISDIR" ? Promise.resolve() : assert.rejects(open(target), is);
  };
  test("a file that does not exist", () => refused(join(folder, "none.gguf"), "ENOENT"));
  test("an empty path", () => refused("", "ENOENT"));
  test("a file as a folder", () => {
    return refused(join(path, "x"), process.platform === "win32" ? "ENOENT" : "ENOTDIR");
  });
  test("a folder", () => {
    mkdirSync(join(folder, "sub"), { recursive: true });
    return refused(join(folder, "sub"), "EISDIR");
  });
});

describe("aborting open", () => {
  test("during", async () => {
    const controller = new AbortController();
    const opening = open(goldenPath, { signal: controller.signal });
    controller.abort();
    await assert.rejects(opening, { name: "AbortError" });
  });
  test("after", async () => {
    const controller = new AbortController();
    const file = await open(path, { signal: controller.signal });
    controller.abort();
    check(file);
  });
  test("a failure with a signal is that failure", async () => {
    const { signal } = new AbortController();
    await assert.rejects(open(join(folder, "none.gguf"), { signal }), { code: "ERR_GGUF_OPEN" });
  });
});

test("console.log shows what a file, its metadata and its tensors are", () => {
  const file = openSync(path);
  assert.match(inspect(file), /^GgufFile \{[\s\S]*simple\.gguf[\s\S]*tensors: 1/);
  assert.match(inspect(file.metadata), /^GgufMetadata\(1\) \{ 'general.architecture': 'test' \}/);
  assert.match(inspect(file.tensor("x")), /^GgufTensor \{[\s\S]*name: 'x'[\s\S]*type: 'F32'/);
  assert.match(inspect({ deep: { deeper: { file } } }), /GgufFile/);
  file.close();
  assert.match(inspect(file), /closed: true/);
});
