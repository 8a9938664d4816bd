/** Bringing weights into memory before they are needed. */
import assert from "node:assert/strict";
import { readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type GgufFile, openSync, parse, splitModel } from "gguf-native";
import { writeGguf } from "../support/gguf-writer";
import { temporaryFolder } from "../support/paths";

const MEGABYTES = 12; // of each tensor: several steps
const tensors = ["a", "b", "c"].map((name) => ({
  ...{ name, type: 0, shape: [MEGABYTES << 18], bytes: new Uint8Array(MEGABYTES << 20).fill(1) },
}));
const folder = temporaryFolder();
const path = join(folder, "model.gguf");
writeFileSync(path, writeGguf({ tensors }));

/** Kilobytes of the mappings of `path` in this process, or of some of them: `Rss` are in memory, `Anonymous` copies. */
function mapped(field: string, which = /./): number {
  const blocks = readFileSync("/proc/self/smaps", "utf8").split(/\n(?=[0-9a-f]+-[0-9a-f]+ )/);
  const sizes = blocks
    .filter((block) => block.includes(path) && which.test(block))
    .map((block) => Number(new RegExp(`^${field}: +(\\d+)`, "m").exec(block)?.[1]));
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Of those that are locked. Their field `Locked` is less where other mappings have the same pages. */
const LOCKED = /^VmFlags:.* lo\b/m;

const onLinux = { skip: process.platform !== "linux" && "only Linux tells what is in memory" };
const unlessWasm = { skip: process.env.GGUF_NATIVE_WASM ? "the module maps no files" : onLinux.skip };

describe("the pages of what is warmed are there, and no copies", unlessWasm, () => {
  const cases: [string, number, Parameters<GgufFile["warm"]>[0]?][] = [
    ["all", 3 * MEGABYTES],
    ["one, by its name", MEGABYTES, { tensors: ["b"] }],
    ["two, one of them given", 2 * MEGABYTES, { tensors: new Set(["c", { name: "a" } as never]) }],
    ["none", 0, { tensors: [] }],
  ];
  for (const [name, megabytes, options] of cases) {
    test(name, async () => {
      using file = openSync(path);
      const before = mapped("Rss");
      const seen: number[] = [];
      await file.warm({ ...options, onProgress: (done, total) => seen.push(done, total) });
      const found = (mapped("Rss") - before) / 1024;
      // The system maps up to 2 MB at a time, also where the header is read.
      assert.ok(found >= megabytes - 2.5 && found < megabytes + 4.5, `${found} MB`);
      assert.ok(mapped("Anonymous") < 1024, "pages were copied");
      assert.equal(seen.at(-2) ?? 0, megabytes << 20);
      assert.equal(seen.at(-1) ?? 0, megabytes << 20);
    });
  }
  test("locked until the file is closed, or an error that says what to do", async () => {
    const file = openSync(path);
    const failure = await file.warm({ lock: true }).catch((error) => error);
    if (failure === undefined) {
      assert.ok(mapped("Rss", LOCKED) >= (3 * MEGABYTES) << 10, `${mapped("Rss", LOCKED)} kB`);
      assert.ok(mapped("Anonymous") < 1024, "pages were copied");
    } else {
      assert.equal(failure.code, "ERR_GGUF_OUT_OF_MEMORY", failure);
      assert.match(failure.message, /ulimit -l/);
    }
    file.close();
    assert.equal(mapped("Rss", LOCKED), 0);
  });
});

test("what is not mapped is read, or is there already", async () => {
  using file = openSync(path, { access: "read" });
  await file.warm();
  if (!process.env.GGUF_NATIVE_WASM) await assert.rejects(file.warm({ lock: true }), { code: "ERR_GGUF_RANGE" });
  await parse(writeGguf({ tensors: tensors.slice(0, 1) })).warm({ lock: true });
});

test("a split model", async () => {
  const [first] = await splitModel(path, join(folder, "m"), { maxTensors: 2 });
  using file = openSync(first!);
  const seen: number[] = [];
  await file.warm({ onProgress: (done, total) => seen.push(done, total) });
  if (!process.env.GGUF_NATIVE_WASM) assert.equal(seen.at(-1), (3 * MEGABYTES) << 20);
  assert.deepEqual(
    seen.filter((_, i) => i % 2 === 0),
    seen.filter((_, i) => i % 2 === 0).sort((a, b) => a - b),
  );
});

describe("errors", () => {
  const cases: [string, string, unknown][] = [
    ["a tensor that is not there", "ERR_GGUF_TENSOR_NOT_FOUND", { tensors: ["d"] }],
    ["no list", "ERR_INVALID_ARG_TYPE", { tensors: "a" }],
    ["no tensors", "ERR_INVALID_ARG_TYPE", { tensors: [5] }],
    ["lock that is no boolean", "ERR_INVALID_ARG_TYPE", { lock: 1 }],
    ["another option", "ERR_INVALID_ARG_VALUE", { tensor: "a" }],
    ["no threads", "ERR_GGUF_RANGE", { threads: 0 }],
  ];
  for (const [name, code, options] of cases) {
    test(name, async () => {
      using file = openSync(path);
      await assert.rejects(file.warm(options as never), { code });
    });
  }
  test("closed, aborted, shorter than before", unlessWasm, async () => {
    const file = openSync(path);
    await assert.rejects(file.warm({ signal: AbortSignal.abort(new Error("enough")) }), /enough/);
    const controller = new AbortController();
    const onProgress = (): void => controller.abort(new Error("enough"));
    await assert.rejects(file.warm({ signal: controller.signal, onProgress }), /enough/);
    truncateSync(path, MEGABYTES << 20);
    await assert.rejects(file.warm(), { code: "ERR_GGUF_TRUNCATED" });
    file.close();
    await assert.rejects(file.warm(), { code: "ERR_GGUF_CLOSED" });
  });
});
