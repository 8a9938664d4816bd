/**
 * Everything that a program does with files, many times over. scripts/test/sanitized-addon.mjs runs it under
 * LeakSanitizer, which tells at the end whether memory was leaked.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { type AsyncOptions, allocate, open, openSync, parse, trim } from "gguf-native";
import { arr, str, u32, writeGguf } from "./gguf-writer";

const folder = mkdtempSync(join(tmpdir(), "gguf-native-leaks-"));
const path = join(folder, "model.gguf");
const ELEMENTS = 2 ** 21;
const content = writeGguf({
  metadata: [
    ["general.name", str("leaks")],
    ["tokens", arr("string", ["a", "b", "c"])],
    ["number", u32(7)],
  ],
  tensors: [{ name: "t", type: 8, shape: [1024, ELEMENTS / 1024], bytes: new Uint8Array((ELEMENTS / 32) * 34) }],
});
writeFileSync(path, content);

const collect = async () => {
  globalThis.gc?.();
  await new Promise((resolve) => setImmediate(resolve));
};

async function scenes(access: "mmap" | "read"): Promise<void> {
  for (let i = 0; i < 20; i++) {
    const file = i % 2 === 0 ? openSync(path, { access }) : await open(path, { access });
    const t = file.tensor("t");
    assert.equal(file.metadata.toJSON()["general.name"], "leaks");
    file.metadata.bytes("tokens");
    const view = t.bytes();
    t.dequantizeSync({ end: 2 ** 16 });
    t.dequantizeSync();
    await t.dequantize({ dtype: "f16", out: new Uint16Array(new SharedArrayBuffer(2 * ELEMENTS)) });
    await t.rows([3, 1, 2]);
    const running = t.dequantize();
    const controller = new AbortController();
    const options: AsyncOptions = { signal: controller.signal, onProgress: () => controller.abort() };
    const aborted = Promise.allSettled([t.dequantize(options), t.dequantize(options), open(path, options)]);
    if (i % 3 !== 0) file.close();
    controller.abort();
    await Promise.all([running, aborted]);
    assert.throws(() => openSync(join(path, "none")), { code: "ERR_GGUF_OPEN" });
    assert.throws(() => parse(content.subarray(0, 60)), { code: "ERR_GGUF_TRUNCATED" });
    assert.equal(view.length > 0, access === "read" || i % 3 === 0);
    allocate(ELEMENTS);
    parse(content).tensor("t").dequantizeSync({ end: 32 });
    await collect();
  }
}

/** Workers that end by themselves, are ended in the middle of work, or end with everything open. */
async function workers(): Promise<void> {
  const program = `const { openSync } = require("gguf-native");
    const { workerData: { path, how }, parentPort } = require("node:worker_threads");
    const file = openSync(path), t = file.tensor("t");
    globalThis.view = t.bytes();
    t.dequantizeSync();
    (function again() { t.dequantize().then(() => { if (how === "terminated") again(); else file.close(); }); })();
    parentPort.postMessage("begun");
    if (how === "exits") setTimeout(() => process.exit(0), 2);`;
  for (const how of ["terminated", "exits", "ends", "terminated"]) {
    const worker = new Worker(program, { eval: true, workerData: { path, how } });
    await new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
    if (how === "terminated") await worker.terminate();
    else await new Promise((resolve) => worker.once("exit", resolve));
  }
}

async function main(): Promise<void> {
  await scenes("mmap");
  await scenes("read");
  await workers();
  trim();
  await collect();
  rmSync(folder, { recursive: true });
  console.log("played");
}

void main();
