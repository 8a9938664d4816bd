// `npm run demo [path]`: inspects a model, measures how fast its tensors become numbers, and compares the native kernels
// with the TypeScript reference for every type. Without a path it makes a small sample model first.
import { createRequire } from "node:module";
import { freemem } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { buildAll, runNode } from "../lib/build.mjs";
import { root } from "../lib/paths.mjs";
import { writeSample } from "../lib/sample.mjs";

const require = createRequire(import.meta.url);

buildAll();
const support = (name) => require(join(root, "build", "test", "support", name));
const path = process.argv[2] ?? writeSample();

section("npx gguf-native inspect");
runNode(join("dist", "cli", "main.js"), "inspect", path);

section("All tensors to float32, in memory that is used again");
const { cpu, dequantizeSync, ggmlTypes, openSync } = require("gguf-native");
const reference = require("gguf-native/reference");
await measureModel(path);

section("Every type: native against plain TypeScript");
compareTypes();

/** Loads all tensors again and again, as a runtime does that keeps its memory; then once into new memory. */
async function measureModel(file) {
  const model = openSync(file);
  const { isa, threads } = cpu();
  const tensors = tensorsThatFit(model);
  const weights = tensors.reduce((sum, { elementCount }) => sum + elementCount, 0);
  if (weights === 0) {
    console.log("  no tensors of known types that fit into memory");
    return;
  }
  const memory = new Float32Array(weights);
  let end = 0;
  const outs = tensors.map(({ elementCount }) => {
    end += elementCount;
    return memory.subarray(end - elementCount, end);
  });
  const one = await bestOfSome(() => {
    for (const [i, tensor] of tensors.entries()) tensor.dequantizeSync({ out: outs[i] });
  });
  const every = await bestOfSome(() =>
    Promise.all(tensors.map((tensor, i) => tensor.dequantize({ out: outs[i] }))),
  );
  const begin = performance.now();
  await Promise.all(tensors.map((tensor) => tensor.dequantize()));
  const once = performance.now() - begin;

  const rate = (ms) => `${((4 * weights) / ms / 1e6).toFixed(1)} GB/s`;
  const row = (title, ms) => console.log(`  ${title.padEnd(10)}  ${rate(ms).padStart(10)}`);
  row("one thread", one);
  if (threads > 1) row(`${threads} threads`, every);
  console.log("  (float32 written per second, best of several runs)");
  const left = model.tensors.size - tensors.length;
  console.log(
    `  (${tensors.length} tensors, ${weights.toLocaleString("en-US")} weights, kernels: ${isa}` +
      `${left > 0 ? `; ${left} tensors left out, of unknown types or too large for the free memory` : ""})`,
  );
  console.log(`  (loaded once, into new memory: ${rate(once)}, ${once.toFixed(1)} ms)`);
  model.close();
}

/** Tensors of known types whose numbers take at most a quarter of the free memory, twice. */
function tensorsThatFit({ tensors }) {
  let room = freemem() / 4;
  return [...tensors.values()].filter(({ type, elementCount }) => {
    const fits = type in ggmlTypes && 4 * elementCount <= room;
    if (fits) room -= 4 * elementCount;
    return fits;
  });
}

/** Milliseconds of the fastest of three runs or more, as many as a second has room for. */
async function bestOfSome(run) {
  let fastest = Number.POSITIVE_INFINITY;
  const end = performance.now() + 1000;
  for (let count = 0; count < 3 || performance.now() < end; count++) {
    const begin = performance.now();
    await run();
    fastest = Math.min(fastest, performance.now() - begin);
  }
  return fastest;
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
