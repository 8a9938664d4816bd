// `npm run demo [path]`: inspects a model, dequantizes every tensor, and compares the native kernels with the
// TypeScript reference. Without a path it makes a small sample model first.
import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, relative } from "node:path";
import { performance } from "node:perf_hooks";
import { buildPackage, buildTests, root, runNode } from "./build.mjs";

const require = createRequire(import.meta.url);

buildPackage();
let path = process.argv[2];
if (path === undefined) {
  buildTests();
  path = writeSample();
}

section("npx gguf-native inspect");
runNode(join("dist", "cli", "main.js"), "inspect", path);

section("Every tensor, dequantized");
const { cpu, dequantizeSync, ggmlTypes, openSync } = require("gguf-native");
const reference = require("gguf-native/reference");
const samples = dequantizeAll(path);

section("Per type: native against plain TypeScript");
compare(samples);

/** A llama in miniature, in a mix of types, with random weights. */
function writeSample() {
  const { sampleModel } = require(join(root, "build", "test", "support", "sample-model.js"));
  const folder = join(root, "build", "demo");
  mkdirSync(folder, { recursive: true });
  const file = join(folder, "sample.gguf");
  writeFileSync(file, sampleModel());
  console.log(`Wrote the sample model ${relative(process.cwd(), file)}`);
  return file;
}

/** Decodes the whole file once; returns the first tensor of each type, for the comparison. */
function dequantizeAll(file) {
  const model = openSync(file);
  const { isa, threads } = cpu();
  const byType = new Map();
  let elements = 0;
  let skipped = 0;
  const begin = performance.now();
  for (const tensor of model.tensors.values()) {
    try {
      elements += tensor.dequantizeSync().length;
      if (!byType.has(tensor.type)) byType.set(tensor.type, tensor);
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
  if (skipped > 0) console.log(`  ${skipped} tensors of types that are not supported yet`);
  return byType;
}

/** Times both sides on the same blocks, repeated or cut to 256 KiB of output. */
function compare(byType) {
  const rows = [];
  for (const [type, tensor] of byType) {
    const { blockSize, typeSize } = ggmlTypes[type];
    const blocks = 65536 / blockSize;
    const source = tensor.bytes();
    if (source.length === 0) continue;
    const bytes = new Uint8Array(blocks * typeSize);
    for (let at = 0; at < bytes.length; at += source.length) {
      bytes.set(source.subarray(0, Math.min(source.length, bytes.length - at)), at);
    }
    const out = new Float32Array(65536);
    const native = best(() => dequantizeSync(type, bytes, { out }));
    const nativeBits = Buffer.from(out.slice().buffer);
    const plain = best(() => reference.dequantizeSync(type, bytes, { out }));
    const same = nativeBits.equals(Buffer.from(out.buffer)) ? "identical" : sameNumbers(nativeBits, out);
    const gigabytes = (ms) => (262144 / ms / 1e6).toFixed(2);
    rows.push([type, gigabytes(native), gigabytes(plain), `${(plain / native).toFixed(1)} x`, same]);
  }
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

/** Bits may differ in what kind of NaN a NaN is. */
function sameNumbers(bits, out) {
  const other = new Float32Array(bits.buffer, bits.byteOffset, out.length);
  return out.every((value, i) => Object.is(value, other[i])) ? "identical" : "DIFFERENT";
}

/** Milliseconds of the fastest of many runs within a fifth of a second. */
function best(run) {
  let fastest = Number.POSITIVE_INFINITY;
  for (const end = performance.now() + 200; performance.now() < end; ) {
    const begin = performance.now();
    run();
    fastest = Math.min(fastest, performance.now() - begin);
  }
  return fastest;
}

function section(title) {
  console.log(`\n== ${title}\n`);
}
