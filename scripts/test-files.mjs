// Which TypeScript test files a run is about, and how Node runs them.
import { readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fail } from "./commands.mjs";
import { root } from "./paths.mjs";

/**
 * Test files that are not run on an emulated processor, where every process takes seconds to start. A name that ends
 * with a hyphen stands for all files that begin with it.
 */
const sameOnEveryProcessor = [
  {
    reason: "test TypeScript alone",
    names: [
      "browser",
      "codebooks",
      "examples-",
      "file-name",
      "glob",
      "real-models",
      "reference",
      "suggest",
      "tokenizer",
    ],
  },
  {
    reason: "start commands, or write files, which is TypeScript over calls that other files test",
    names: [
      "cli",
      "cli-",
      "docs",
      "examples",
      "edit-",
      "permission-model",
      "splits",
      "writer",
      "writer-",
      "writing-",
    ],
  },
  {
    reason: "test TypeScript against servers and timers, for which an emulator is too slow",
    names: ["hub", "remote", "remote-"],
  },
  {
    reason: "test what JavaScript does in the middle of a call, and how time and memory grow with a file",
    names: ["huge", "limits", "reentrancy"],
  },
  {
    reason:
      "test the WebAssembly module, whose instructions are the same everywhere, and the page that has it",
    names: ["view-", "wasm", "wasm-"],
  },
  {
    reason: "test the package and how it is linked",
    names: ["addon", "consumers", "external-buffers", "fences", "out-of-memory", "package"],
  },
];

const matches = (file, name) => (name.endsWith("-") ? file.startsWith(name) : file === `${name}.test.ts`);

/** Names of all test files, such as "metadata.test.ts". */
const allFiles = () => readdirSync(join(root, "test")).filter((file) => file.endsWith(".test.ts"));

const compiled = (file) => join("build", "test", file.replace(/\.ts$/, ".js"));

/** The test files whose names contain one of `names`; all if there is no name. */
export function testFiles(names) {
  const files = allFiles().filter((file) => names.length === 0 || names.some((name) => file.includes(name)));
  if (files.length === 0) fail(`no test file is called ${names.join(" or ")}`);
  return files.map(compiled);
}

/** The test files for an emulated processor; prints which are left out, and why. */
export function emulatedTestFiles() {
  const left = new Set(allFiles());
  for (const { reason, names } of sameOnEveryProcessor) {
    const out = [...left].filter((file) => names.some((name) => matches(file, name)));
    for (const file of out) left.delete(file);
    console.log(`Not run on an emulated processor, since they ${reason}: ${out.join(", ")}`);
  }
  return [...left].map(compiled);
}

/** The arguments of the Node that runs such files, as many at once as there are processors. */
export function testArguments(files) {
  const parallel = `--test-concurrency=${availableParallelism()}`;
  return ["--expose-gc", "--test", "--test-reporter=spec", parallel, ...files];
}
