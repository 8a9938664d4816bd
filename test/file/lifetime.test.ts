/** Closing with views and work outstanding, garbage collection, worker threads. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { Worker } from "node:worker_threads";
import { type GgufFile, type OpenOptions, openSync, parse } from "gguf-native";
import * as reference from "gguf-native/reference";
import { manyBlocks } from "../support/blocks";
import { lineOf, runNode } from "../support/child";
import { firstDifference } from "../support/compare";
import { arr, str, type TypedValue, writeGguf } from "../support/gguf-writer";
import { isWasm, needsAddon } from "../support/needs-addon";
import { temporaryFolder } from "../support/paths";
import { sanitized } from "../support/sanitized";

const path = join(temporaryFolder(), "model.gguf");
const ELEMENTS = 2 ** 22;
let content: Uint8Array;
let expected: Float32Array;

before(() => {
  const blocks = manyBlocks("Q8_0", ELEMENTS / 32);
  expected = reference.dequantizeSync("Q8_0", blocks);
  const tensors = [{ name: "t", type: 8, shape: [1024, ELEMENTS / 1024], bytes: blocks }];
  content = writeGguf({ metadata: [["general.name", str("x")]], tensors });
  writeFileSync(path, content);
});

const collect = async () => {
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
};

const sources: Record<string, () => GgufFile> = {
  mmap: () => openSync(path),
  read: () => openSync(path, { access: "read" } satisfies OpenOptions),
  parse: () => parse(content),
};

for (const [name, openFile] of Object.entries(sources)) {
  describe(`close: ${name}`, () => {
    test("methods that need the file throw ERR_GGUF_CLOSED; other properties stay", async () => {
      const file = openFile();
      const t = file.tensor("t");
      const { metadata, tensors } = file;
      assert.equal(metadata.string("general.name"), "x");
      const facts = JSON.stringify(t);
      file.close();
      const closed = { name: "GgufError", code: "ERR_GGUF_CLOSED" };
      for (const run of [
        () => file.tensors,
        () => file.tensor("t"),
        () => t.bytes(),
        () => t.dequantizeSync(),
        () => t.rowsSync([0]),
        () => metadata.size,
        () => metadata.get("general.name"),
        () => metadata.has("general.name"),
        () => metadata.string("general.name"),
        () => metadata.typeOf("general.name"),
        () => metadata.bytes("general.name"),
        () => metadata.keys(),
        () => [...metadata],
        () => metadata.toJSON(),
        () => metadata.architecture,
      ]) {
        assert.throws(run, closed, String(run));
      }
      await assert.rejects(t.dequantize(), closed);
      await assert.rejects(t.rows([0]), closed);
      assert.equal(JSON.stringify(t), facts);
      assert.equal(tensors.size, 1);
      assert.deepEqual([file.version, file.byteLength, file.closed], [3, content.length, true]);
    });

    test("views have length 0 after close", {
      skip: (name !== "mmap" || isWasm) && "only of mapped files",
    }, () => {
      const file = openFile();
      const [a, b] = [file.tensor("t").bytes(), file.tensor("t").bytes()];
      const part = a.subarray(100, 200);
      assert.ok(a.length > 0 && b.length === a.length);
      file.close();
      assert.deepEqual([a.length, b.length, part.length], [0, 0, 0]);
      assert.equal(a[0], undefined);
      a[0] = 1;
    });

    test("work that has started completes", async () => {
      const file = openFile();
      const running = [file.tensor("t").dequantize(), file.tensor("t").dequantize({ dtype: "bf16" })] as const;
      file.close();
      assert.equal(firstDifference(await running[0], expected), -1);
      assert.equal((await running[1]).length, ELEMENTS);
    });

    test("work and views outlive every reference to the file", async () => {
      const running = openFile().tensor("t").dequantize();
      const view = openFile().tensor("t").bytes();
      await collect();
      assert.equal(firstDifference(await running, expected), -1);
      const values = reference.dequantizeSync("Q8_0", view.slice(0, 34 * 1024));
      assert.equal(firstDifference(values, expected.subarray(0, 32 * 1024)), -1);
    });
  });
}

test("what is being written when the file is closed is written whole, and nothing else", needsAddon, async () => {
  const file = openSync(path);
  const view = file.tensor("t").bytes();
  const wanted = Buffer.from(view);
  const server = createServer({ pauseOnConnect: true }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const sent = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [[received]] = await Promise.all([once(server, "connection") as Promise<[Socket]>, once(sent, "connect")]);
  sent.end(view); // more than fits on the way
  file.close();
  assert.equal(view.length, 0);
  await new Promise((resolve) => setTimeout(resolve, 20));
  // Memory of others, where the file might have been.
  const others = Array.from({ length: 20 }, () => Buffer.alloc(wanted.length, "other"));
  const chunks: Buffer[] = [];
  received.on("data", (chunk: Buffer) => chunks.push(chunk)).resume();
  await once(received, "end");
  received.destroy();
  server.close();
  assert.equal(Buffer.compare(Buffer.concat(chunks), wanted), 0);
  others.length = 0; // not collected before
});

test("10,000 files opened and closed leave descriptors, mappings and memory as they were", {
  skip: !existsSync("/proc/self/maps") && "there is no /proc here to count them in",
}, async () => {
  const small = join(temporaryFolder(), "small.gguf");
  writeFileSync(small, writeGguf({ tensors: [{ name: "t", type: 8, shape: [1024], bytes: new Uint8Array(1088) }] }));
  // In a process of its own, where nobody else opens anything.
  const program = `const fs = require("node:fs");
    const { open, openSync, parse } = require("gguf-native");
    const path = process.argv[1], bytes = fs.readFileSync(path), missing = path + ".none";
    const state = () => ({
      descriptors: fs.readdirSync("/proc/self/fd").length,
      mappings: fs.readFileSync("/proc/self/maps", "utf8").split("\\n").filter((line) => line.includes(path)).length,
      rss: process.memoryUsage.rss(),
    });
    const cycle = async (i) => {
      const file = [() => openSync(path), () => openSync(path, { access: "read" }), () => parse(bytes), () => open(path)][i % 4]();
      const opened = await file, t = opened.tensor("t");
      if (i % 3 === 0) t.bytes();
      if (i % 5 === 0) t.dequantizeSync();
      const running = i % 50 === 0 ? t.dequantize() : undefined;
      if (i % 7 === 0) try { openSync(missing); } catch {}
      if (i % 11 !== 0) opened.close(); // the others are collected
      await running;
    };
    const settle = async () => { for (let i = 0; i < 5; i++) { gc(); await new Promise((done) => setImmediate(done)); } };
    (async () => {
      for (let i = 0; i < 2000; i++) await cycle(i);
      await settle();
      const before = state();
      for (let i = 0; i < 10000; i++) await cycle(i);
      await settle();
      console.log(JSON.stringify([before, state()]));
    })();`;
  const line = await lineOf(["--expose-gc", "-e", program, small]);
  const [before, after] = JSON.parse(line) as Record<"descriptors" | "mappings" | "rss", number>[];
  assert.equal(after!.descriptors, before!.descriptors);
  assert.equal(after!.mappings, before!.mappings);
  // A descriptor, a mapping or a handle that is lost each time would be more than this.
  const grown = after!.rss - before!.rss;
  assert.ok(grown < (sanitized ? 300 : 30) * 2 ** 20, `${grown} bytes more`);
});

test("a setter on Array.prototype that closes the file while arrays are filled", needsAddon, () => {
  // In a process of its own: what it does to Array.prototype would break everybody else.
  const many = join(temporaryFolder(), "many.gguf");
  const strings = Array.from({ length: 2000 }, (_, i) => `token ${i}`);
  writeFileSync(
    many,
    writeGguf({
      metadata: [
        ["strings", arr("string", strings)],
        ...strings.map((name) => [name, str(name)] as [string, TypedValue]),
      ],
      tensors: strings.map((name) => ({ name, type: 24, shape: [0], bytes: new Uint8Array(0) })),
    }),
  );
  const program = `const { openSync } = require("gguf-native");
    for (const read of ["strings", "keys", "tensors", "bytes"]) {
      for (const access of ["mmap", "read"]) {
        const file = openSync(process.argv[1], { access });
        const { metadata } = file;
        if (read === "strings" || read === "bytes") metadata.size;
        let closed = 0;
        const set = () => { closed++; file.close(); };
        for (let i = 0; i < 600; i++) Object.defineProperty(Array.prototype, i, { configurable: true, set });
        let outcome;
        try {
          if (read === "strings") metadata.get("strings");
          if (read === "bytes") metadata.bytes("strings");
          if (read === "keys") for (const _ of metadata.keys());
          if (read === "tensors") for (const _ of file.tensors.keys());
        } catch (error) {
          outcome = error;
        }
        for (let i = 0; i < 600; i++) delete Array.prototype[i];
        if (outcome !== undefined && outcome.code !== "ERR_GGUF_CLOSED") throw outcome;
        if (closed === 0) throw new Error("nothing was closed");
      }
    }`;
  const { status, signal, stderr } = runNode(["-e", program, many]);
  assert.deepEqual([status, signal, stderr], [0, null, ""]);
});

test("worker threads on one file, terminated at any moment, the sooner the more work there is", async () => {
  const source = `
    const { workerData: { path, index }, parentPort } = require("node:worker_threads");
    const { openSync } = require("gguf-native");
    const file = openSync(path);
    const t = file.tensor("t");
    const x = new Float32Array(1024).fill(1);
    globalThis.view = t.bytes();
    parentPort.postMessage("begun");
    if (index % 3 === 0) for (;;) { t.matmulSync(x, { threads: 2 }); t.dequantizeSync(); }
    (function again() {
      Promise.all([t.dequantize(), t.dequantize({ dtype: "f16" }), t.rows([1, 2]), t.matmul(x)]).then(again);
    })();`;
  using file = openSync(path);
  const t = file.tensor("t");
  const x = new Float32Array(1024).fill(1);
  const products = t.matmulSync(x, { threads: 1 });
  for (let round = 0; round < 3; round++) {
    const workers = Array.from(
      { length: 6 },
      (_, index) => new Worker(source, { eval: true, workerData: { path, index } }),
    );
    await Promise.all(
      workers.map(async (worker, i) => {
        await new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
        await new Promise((resolve) => setTimeout(resolve, (i * 7 * (round + 1)) % 23));
        await worker.terminate();
      }),
    );
    assert.equal(firstDifference(await t.dequantize(), expected), -1);
    assert.equal(firstDifference(t.matmulSync(x, { threads: 2 }), products), -1);
  }
});

test("the addon loaded twice in one environment, with handles of one given to the other", () => {
  const program = `
    const load = () => {
      for (const file of Object.keys(require.cache)) delete require.cache[file];
      return require("gguf-native");
    };
    const [a, b] = [load(), load()];
    const { GgufError } = a;
    if (GgufError === b.GgufError) throw new Error("it was not loaded again");
    const [fileA, fileB] = [a.openSync(process.argv[1]), b.openSync(process.argv[1])];
    const first = fileB.tensor("t").dequantizeSync({ end: 32 })[0];
    if (fileA.tensor("t").dequantizeSync({ end: 32 })[0] !== first) throw new Error("not the same");
    if (a.GgufFile.prototype.tensor.call(fileB, "t").dequantizeSync({ end: 32 })[0] !== first) throw new Error("not the same");
    fileA.close();
    try { fileA.tensor("t"); } catch (error) { if (!(error instanceof a.GgufError)) throw error; }
    if (fileB.tensor("t").dequantizeSync({ end: 32 })[0] !== first) throw new Error("closed with the other");`;
  const { status, signal, stderr } = runNode(["-e", program, path]);
  assert.deepEqual([status, signal, stderr], [0, null, ""]);
});

describe("process.exit", () => {
  for (const [when, code] of Object.entries({
    "with a file open": "",
    "with a view": "globalThis.view = t.bytes()",
    "in the middle of work": "for (let i = 0; i < 4; i++) t.dequantize()",
    "from progress": "t.dequantize({ onProgress: () => process.exit(0) })",
    "with an open under way": "open(process.argv[1])",
    "after close with a view": "globalThis.view = t.bytes(); file.close()",
  })) {
    test(when, () => {
      const program = `const { open, openSync } = require("gguf-native");
        const file = openSync(process.argv[1]); const t = file.tensor("t"); ${code};
        ${code.includes("onProgress") ? "" : "process.exit(0)"}`;
      const { status, signal, stderr } = runNode(["-e", program, path]);
      assert.deepEqual([status, signal, stderr], [0, null, ""]);
    });
  }
});
