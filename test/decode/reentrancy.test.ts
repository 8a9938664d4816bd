/**
 * JavaScript that runs in the middle of a native call, and calls the addon again: hooks of async_hooks, getters,
 * setters of prototypes. Each test is a process of its own; with AddressSanitizer these find what ordinary runs may not.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { runNode } from "../support/child";
import { writeGguf } from "../support/gguf-writer";
import { needsAddon } from "../support/needs-addon";
import { projectRoot, temporaryFolder } from "../support/paths";

const ROWS = 2 ** 12;
const path = join(temporaryFolder(), "rows.gguf");

before(() => {
  // Row i of "wide" holds i, 1024 times; "narrow" has many more rows.
  const wide = new Float32Array(1024 * ROWS);
  for (let i = 0; i < ROWS; i++) wide.fill(i, i * 1024, (i + 1) * 1024);
  const content = writeGguf({
    tensors: [
      { name: "wide", type: 0, shape: [1024, ROWS], bytes: new Uint8Array(wide.buffer) },
      { name: "narrow", type: 0, shape: [1, 2 ** 20], bytes: new Uint8Array(2 ** 22) },
    ],
  });
  writeFileSync(path, content);
});

function run(program: string, env: Record<string, string> = {}, beforeLoading = "") {
  const begin = `
    ${beforeLoading}
    const assert = require("node:assert/strict");
    const { dequantize, dequantizeSync, openSync } = require("gguf-native");
    const path = process.argv[1];`;
  const { status, signal, stdout, stderr } = runNode(["-e", begin + program, path], {
    cwd: projectRoot,
    env: { ...process.env, ...env },
  });
  assert.deepEqual([status, signal, stdout, stderr], [0, null, "done\n", ""]);
}

describe("async_hooks: a job that starts when a task of another is queued, or its promise settled", needsAddon, () => {
  // 16 MiB of blocks are copied in parts while one thread works on the first; they go away before that is over, and the
  // loop that looks for work settles the job.
  test("while the scheduler looks for the next job", () => {
    run(
      `
      const blocks = new Uint8Array(18 * 2 ** 20);
      const some = new Uint8Array(18 * 4096);
      const out = new Float32Array(new SharedArrayBuffer(4 * 32 * 2 ** 20)).fill(NaN);
      const started = [];
      let isStarting = false;
      require("node:async_hooks").createHook({
        promiseResolve() {
          // Only near the end of what was copied, so that few jobs are enough.
          if (isStarting || out[47 * 2 ** 18] !== 0 || started.length > 200) return;
          isStarting = true;
          for (let i = 0; i < 4; i++) started.push(dequantize("Q4_0", some));
          isStarting = false;
        },
      }).enable();
      const failing = dequantize("Q4_0", blocks, { out });
      structuredClone(blocks.buffer, { transfer: [blocks.buffer] });
      assert.rejects(failing, { code: "ERR_GGUF_RANGE" }).then(async () => {
        assert.ok(started.length > 0);
        for (const result of await Promise.all(started)) assert.equal(result.length, 32 * 4096);
        console.log("done");
      });`,
      { UV_THREADPOOL_SIZE: "1" },
    );
  });

  test("with every task of many jobs, some of them cancelled", () => {
    run(`
      const blocks = new Uint8Array(18 * 2 ** 15);
      const started = [];
      require("node:async_hooks").createHook({
        init(_id, type) {
          if (type !== "gguf-native dequantize" || started.length >= 40) return;
          const controller = new AbortController();
          started.push(dequantize("Q4_0", blocks, { signal: controller.signal }).then(
            (result) => result.length,
            (error) => error.name,
          ));
          if (started.length % 3 === 0) controller.abort();
        },
      }).enable();
      const first = Array.from({ length: 4 }, () => dequantize("Q4_0", blocks));
      Promise.all(first).then(async () => {
        const outcomes = [];
        for (let i = 0; i < started.length; i++) outcomes.push(await started[i]);
        for (const outcome of outcomes) assert.ok(outcome === 2 ** 20 || outcome === "AbortError", outcome);
        assert.ok(outcomes.includes("AbortError"));
        console.log("done");
      });`);
  });
});

// The addon makes the buffers of large results by JavaScript's constructor, as it was when the addon was loaded.
describe("a constructor of buffers", needsAddon, () => {
  const Patched = `
    let hook;
    const OwnArrayBuffer = ArrayBuffer;
    globalThis.ArrayBuffer = new Proxy(OwnArrayBuffer, {
      construct: (target, args) => hook?.(...args) ?? new target(...args),
    });`;
  const runPatched = (program: string) => run(program, {}, Patched);

  test("that makes more results", () => {
    runPatched(`
      const blocks = new Uint8Array(18 * 2 ** 16);
      const make = () => dequantizeSync("Q4_0", blocks);
      const kept = Array.from({ length: 5 }, make);
      let n = 0;
      hook = () => { if (n++ < 20) kept.push(make()); };
      kept.push(make());
      assert.ok(n > 20);
      for (const [i, array] of kept.entries()) array.fill(i);
      for (const [i, array] of kept.entries()) assert.ok(array.every((number) => number === i));
      console.log("done");`);
  });

  test("that reads other rows", () => {
    runPatched(`
      const file = openSync(path);
      const last = Array.from({ length: 600 }, (_, i) => 2 ** 20 - 1 - i);
      let n = 0;
      hook = () => { if (n++ === 0) file.tensor("narrow").rowsSync(last); };
      const rows = Array.from({ length: 600 }, (_, i) => 6 * i);
      const out = file.tensor("wide").rowsSync(rows);
      assert.ok(n > 0);
      for (const [i, row] of rows.entries()) {
        assert.ok(out.subarray(i * 1024, (i + 1) * 1024).every((number) => number === row));
      }
      console.log("done");`);
  });

  test("that throws, closes the file, or gives less or something else than was asked for", () => {
    runPatched(`
      const file = openSync(path);
      const tensor = file.tensor("wide");
      const mine = new Error("mine");
      hook = () => { throw mine; };
      assert.throws(() => tensor.dequantizeSync(), (error) => error === mine);
      hook = () => new OwnArrayBuffer(64);
      assert.throws(() => tensor.dequantizeSync(), Error);
      hook = () => new Map();
      assert.throws(() => tensor.dequantizeSync(), Error);
      hook = () => file.close();
      assert.throws(() => tensor.dequantizeSync(), { code: "ERR_GGUF_CLOSED" });
      console.log("done");`);
  });
});

describe("setters of prototypes", needsAddon, () => {
  test("that detach the blocks and start more jobs while a job starts", () => {
    run(`
      const blocks = new Uint8Array(18 * 2 ** 18);
      let n = 0;
      const more = [];
      Object.defineProperty(Object.prototype, "promise", { configurable: true, set(value) {
        Object.defineProperty(this, "promise", { value, configurable: true });
        if (n++ >= 10) return;
        more.push(dequantize("Q4_0", new Uint8Array(18 * 4096)));
        if (blocks.length > 0) structuredClone(blocks.buffer, { transfer: [blocks.buffer] });
      } });
      dequantize("Q4_0", blocks).then(async (result) => {
        delete Object.prototype.promise;
        assert.ok(result.every((number) => Object.is(number, 0) || Object.is(number, -0)));
        assert.ok(n > 10 && blocks.length === 0);
        for (const other of await Promise.all(more)) assert.equal(other.length, 32 * 4096);
        console.log("done");
      });`);
  });
});

// A result for an array that could go away is made in other memory, which waits while others have 64 MiB of it.
describe("a job that waits for memory of another's result", needsAddon, () => {
  const Waiting = `
    const some = new Uint8Array(18 * 256);
    const many = new Uint8Array(18 * 655360);
    const waiting = () => dequantize("Q4_0", many, { out: new Float32Array(80 * 2 ** 18) });
    const done = (result) => { assert.equal(result.length, 80 * 2 ** 18); console.log("done"); };`;

  test("starts when that is small, and done while it starts", () => {
    run(`${Waiting}
      let second;
      dequantize("Q4_0", some, {
        out: new Float32Array(32 * 256),
        onProgress: () => { second ??= waiting(); },
      }).then(() => second).then(done);`);
  });

  test("starts when that is cancelled while it starts", () => {
    run(`${Waiting}
      let second;
      const controller = new AbortController();
      dequantize("Q4_0", some, {
        out: new Float32Array(32 * 256),
        signal: controller.signal,
        onProgress: () => { second ??= waiting(); controller.abort(); },
      }).catch((error) => { assert.equal(error.name, "AbortError"); return second; }).then(done);`);
  });

  test("starts when that is cancelled during its work", () => {
    run(`${Waiting}
      const controller = new AbortController();
      const first = dequantize("Q4_0", many, { out: new Float32Array(80 * 2 ** 18), signal: controller.signal });
      const second = waiting();
      controller.abort();
      first.catch((error) => { assert.equal(error.name, "AbortError"); return second; }).then(done);`);
  });

  test("starts when that fails, because its blocks went away", () => {
    run(
      `${Waiting}
      const taken = many.slice();
      const first = dequantize("Q4_0", taken, { out: new Float32Array(80 * 2 ** 18) });
      const second = waiting();
      structuredClone(taken.buffer, { transfer: [taken.buffer] });
      first.catch((error) => { assert.equal(error.code, "ERR_GGUF_RANGE"); return second; }).then(done);`,
      { UV_THREADPOOL_SIZE: "1" },
    );
  });

  test("is dropped when the environment ends", () => {
    run(`${Waiting}
      const { Worker } = require("node:worker_threads");
      const program = \`
        const { dequantize } = require("gguf-native");
        const many = new Uint8Array(18 * 655360);
        for (let i = 0; i < 3; i++) dequantize("Q4_0", many, { out: new Float32Array(80 * 2 ** 18) }).catch(() => {});
        require("node:worker_threads").parentPort.postMessage("begun");\`;
      const worker = new Worker(program, { eval: true });
      worker.once("message", async () => {
        await worker.terminate();
        done(await waiting());
      });`);
  });
});
