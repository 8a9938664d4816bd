// `npm run demo [path]`: what the package does with a model, with the time that each call takes, and what to try next. Without
// a path it makes a small sample model first. `npm run demo -- --view [path]` shows the model in the browser instead; further
// options are those of `gguf-native view`.
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, relative } from "node:path";
import { performance } from "node:perf_hooks";
import { kernels } from "../build/bundle-wasm.mjs";
import { needClang } from "../build/wasm-tools.mjs";
import { buildAll, runNode } from "../lib/build.mjs";
import { commandText, nextCommands } from "../lib/next-commands.mjs";
import { root } from "../lib/paths.mjs";
import { sampleForPage } from "../lib/sample.mjs";

const require = createRequire(import.meta.url);

/** Architectures of the example that writes text, and the most weights with which it is soon done. */
const WRITES = ["llama", "qwen2", "qwen3", "gemma3"];
const MOST_TO_WRITE = 2 ** 31;

const [option] = process.argv.slice(2);
const isView = option === "--view";
const hasPage = existsSync(join(root, "dist", "view", "index.html"));
if (isView && !hasPage && !existsSync(kernels)) {
  needClang();
  runNode("scripts/build/wasm.mjs");
}
buildAll();
if (isView) {
  if (!hasPage) runNode("scripts/build/view.mjs");
  const given = process.argv.slice(3);
  const models = given[0] === undefined || given[0].startsWith("-") ? [writeDemoModel()] : [];
  runNode(join("dist", "cli", "main.js"), "view", ...models, ...given);
  process.exit();
}
const { ggmlTypes, openSync } = require("gguf-native");
const { Tokenizer } = require("gguf-native/tokenizer");
const isSample = option === undefined;
const path = option ?? writeDemoModel();
const main = join("dist", "cli", "main.js");

section("npx gguf-native inspect");
runNode(main, "inspect", path);

section("The same from a program, and how long each call takes");
const model = await measureCalls();

if (canWrite(model)) {
  section(`It writes${isSample ? " (the weights are random, so the words mean nothing)" : ""}`);
  const begin = "The weights of a model";
  runNode(join("build", "examples", "llama.js"), path, "--prompt", begin, "--tokens", "24");
}

section("How fast its types become numbers");
runNode(main, "bench", path);

section("What to try next");
printNext(model);
model.close();

function writeDemoModel() {
  const folder = join(root, "build", "demo");
  mkdirSync(folder, { recursive: true });
  const file = join(folder, "demo.gguf");
  writeFileSync(file, sampleForPage());
  return relative(process.cwd(), file);
}

/** Calls as a program makes them, in the order in which one tries them. Each is timed at its fastest, opening once. */
async function measureCalls() {
  const begin = performance.now();
  const opened = openSync(path);
  report("openSync(file)", performance.now() - begin, counted(opened.tensors.size, "tensor"));

  const tensors = [...opened.tensors.values()].filter(({ type }) => type in ggmlTypes);
  const isMatrix = ({ shape, elementCount }) => shape.length === 2 && elementCount > shape[0];
  const matrices = tensors.filter(isMatrix);
  const rowsOf = matrices.find(({ name }) => name === "token_embd.weight") ?? matrices[0];
  const [largest] = matrices.filter((tensor) => tensor !== rowsOf).sort((a, b) => b.elementCount - a.elementCount);
  if (rowsOf !== undefined) {
    const ids = [1, 0, 1];
    report(
      "tensor.rowsSync([1, 0, 1])",
      await best(() => rowsOf.rowsSync(ids)),
      `${rowsOf.shape[0]} numbers each, of ${rowsOf.name}`,
    );
  }
  if (largest !== undefined) {
    const [columns] = largest.shape;
    const vector = new Float32Array(columns).fill(1);
    const of = `${largest.shape.join(" x ")} of ${largest.type}, ${largest.name}`;
    report("await tensor.matmul(vector)", await best(() => largest.matmul(vector)), of);
    report('... with activations: "int8"', await best(() => largest.matmul(vector, { activations: "int8" })), "");
  }
  const tokenizer = tokenizerOf(opened);
  if (tokenizer !== undefined) {
    const text = "The weights of a quantized model are read in place.";
    const ids = tokenizer.encode(text);
    report(
      "tokenizer.encode(text)",
      await best(() => tokenizer.encode(text)),
      `${counted(ids.length, "token")} for "${text}"`,
    );
  }
  return opened;
}

/** Undefined for a model without a vocabulary, or one of a kind that is not known. */
function tokenizerOf({ metadata }) {
  try {
    return new Tokenizer(metadata);
  } catch {
    return undefined;
  }
}

function canWrite({ metadata, tensors }) {
  const weights = Array.from(tensors.values()).reduce((sum, { elementCount }) => sum + elementCount, 0);
  return WRITES.includes(metadata.architecture) && tokenizerOf({ metadata }) !== undefined && weights < MOST_TO_WRITE;
}

function report(call, ms, what) {
  const time = ms < 0.1 ? `${(ms * 1000).toFixed(1)} us` : `${ms.toFixed(2)} ms`;
  console.log(`  ${call.padEnd(30)} ${time.padStart(10)}   ${what}`.trimEnd());
}

function counted(count, noun) {
  return `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
}

/** Commands that work as they stand here. */
function printNext({ tensors }) {
  const [largest] = [...tensors.values()].sort((a, b) => b.elementCount - a.elementCount);
  for (const [args, what] of nextCommands(path, largest?.name ?? "NAME")) {
    console.log(`  # ${what}\n  ${commandText(args)}`);
  }
  console.log("\n  In a program: docs/guide.md. With a model of yours: npm run demo -- model.gguf");
}

/** Milliseconds of the fastest of three runs or more, as many as half a second has room for. */
async function best(run) {
  let fastest = Number.POSITIVE_INFINITY;
  const end = performance.now() + 500;
  for (let count = 0; count < 3 || performance.now() < end; count++) {
    const begin = performance.now();
    await run();
    fastest = Math.min(fastest, performance.now() - begin);
  }
  return fastest;
}

function section(title) {
  console.log(`\n== ${title}\n`);
}
