// `npm run demo [path]`: inspects a model, loads all of it as numbers, and compares the native kernels with the
// TypeScript reference for every type. Without a path it makes a small sample model first.
import { createRequire } from "node:module";
import { freemem } from "node:os";
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

section("The whole model, dequantized");
const { cpu, dequantizeSync, ggmlTypes, openSync } = require("gguf-native");
const reference = require("gguf-native/reference");
await loadAll(path);

section("Every type: native against plain TypeScript");
compareTypes();

/** Loads all tensors at once, as a program would that keeps them: into fresh memory, on every core. */
async function loadAll(file) {
  const model = openSync(file);
  const { isa, threads } = cpu();
  const all = [...model.tensors.values()];
  const known = all.filter(({ type }) => type in ggmlTypes);
  const bytes = 4 * known.reduce((sum, { elementCount }) => sum + elementCount, 0);
  if (bytes > freemem() / 2) {
    console.log(`  not loaded: float32 numbers would take ${(bytes / 1e9).toFixed(1)} GB`);
    return;
  }
  const begin = performance.now();
  const results = await Promise.all(known.map((tensor) => tensor.dequantize()));
  const seconds = (performance.now() - begin) / 1000;
  const weights = results.reduce((sum, { length }) => sum + length, 0);
  console.log(`  ${known.length} tensors, ${weights.toLocaleString("en-US")} weights`);
  console.log(
    `  loaded in ${(seconds * 1000).toFixed(1)} ms: ${((4 * weights) / seconds / 1e9).toFixed(2)} GB/s of numbers, ` +
      `${(weights / seconds / 1e9).toFixed(2)} billion weights a second (kernels: ${isa}; ${threads} threads)`,
  );
  if (known.length < all.length) console.log(`  ${all.length - known.length} tensors of unknown types`);
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
