// `npm run demo [path]`: inspects a model, dequantizes every tensor, and compares the native kernels with the
// TypeScript reference for every type. Without a path it makes a small sample model first.
import { createRequire } from "node:module";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { buildPackage, buildTests, runNode } from "./build.mjs";
import { root } from "./paths.mjs";
import { writeSample } from "./sample.mjs";

const require = createRequire(import.meta.url);

buildPackage();
buildTests(); // for the code that makes the sample and random blocks
const support = (name) => require(join(root, "build", "test", "support", name));
const path = process.argv[2] ?? writeSample();

section("npx gguf-native inspect");
runNode(join("dist", "cli", "main.js"), "inspect", path);

section("Every tensor, dequantized");
const { cpu, dequantizeSync, ggmlTypes, openSync } = require("gguf-native");
const reference = require("gguf-native/reference");
dequantizeAll(path);

section("Every type: native against plain TypeScript");
compareTypes();

/** Decodes the whole file once. */
function dequantizeAll(file) {
  const model = openSync(file);
  const { isa, threads } = cpu();
  let elements = 0;
  let skipped = 0;
  const begin = performance.now();
  for (const tensor of model.tensors.values()) {
    try {
      elements += tensor.dequantizeSync().length;
    } catch (error) {
      if (error.code !== "ERR_GGUF_UNSUPPORTED_TYPE") throw error;
      skipped++;
    }
  }
  const seconds = (performance.now() - begin) / 1000;
  const rate = ((elements * 4) / seconds / 1e9).toFixed(2);
  console.log(`  ${model.tensors.size - skipped} tensors, ${elements.toLocaleString("en-US")} weights`);
  console.log(
    `  ${(seconds * 1000).toFixed(1)} ms on one thread, ${rate} GB/s (kernels: ${isa}; ${threads} threads)`,
  );
  if (skipped > 0) console.log(`  ${skipped} tensors of unknown types`);
}

/** Times both sides on the same random blocks, 256 KiB of output. */
function compareTypes() {
  const { gaussianBlocks } = support("blocks.js");
  const { Random } = support("random.js");
  const random = new Random(2);
  const out = new Float32Array(65536);
  const gigabytes = (ms) => (out.byteLength / ms / 1e6).toFixed(2);
  const rows = Object.entries(ggmlTypes).map(([type, { blockSize }]) => {
    const bytes = gaussianBlocks(type, out.length / blockSize, random);
    const native = best(() => dequantizeSync(type, bytes, { out }));
    const nativeBits = Buffer.from(out.slice().buffer);
    const plain = best(() => reference.dequantizeSync(type, bytes, { out }));
    const same = nativeBits.equals(Buffer.from(out.buffer)) ? "identical" : sameNumbers(nativeBits, out);
    return [type, gigabytes(native), gigabytes(plain), `${(plain / native).toFixed(1)} x`, same];
  });
  const titles = ["type", "native GB/s", "TypeScript GB/s", "speed-up", "result"];
  const widths = titles.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i].length)));
  for (const row of [titles, ...rows]) {
    const cells = row.map((cell, i) =>
      i === 0 || i === 4 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]),
    );
    console.log(`  ${cells.join("  ").trimEnd()}`);
  }
  console.log("  (float32 written per second, 256 KiB of output, one thread, best of many)");
}

/** Whether the numbers are the same where the bits differ: a NaN equals any NaN. */
function sameNumbers(bits, out) {
  const other = new Float32Array(bits.buffer, bits.byteOffset, out.length);
  return out.every((value, i) => Object.is(value, other[i])) ? "identical" : "DIFFERENT";
}

/** Milliseconds of the fastest of many runs within 50 ms. */
function best(run) {
  let fastest = Number.POSITIVE_INFINITY;
  for (const end = performance.now() + 50; performance.now() < end; ) {
    const begin = performance.now();
    run();
    fastest = Math.min(fastest, performance.now() - begin);
  }
  return fastest;
}

function section(title) {
  console.log(`\n== ${title}\n`);
}
