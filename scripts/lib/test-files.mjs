// Which TypeScript test files a run is about, and how Node runs them.
import { readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fail } from "./commands.mjs";
import { root } from "./paths.mjs";

/** Test files, or folders of them, that are not run on an emulated processor, where every process takes seconds to start. */
const sameOnEveryProcessor = [
  {
    reason: "test TypeScript alone",
    names: [
      "bench/",
      "file/glob",
      "examples/embeddings",
      "examples/hugging-face",
      "examples/llama",
      "examples/llama-page",
      "examples/many-machines",
      "examples/search-page",
      "file/name",
      "file/real-models",
      "file/suggest",
      "network/accuracy",
      "network/arguments",
      "package/arguments",
      "package/copies",
      "reference/",
      "safetensors/",
      "tokenizer/",
    ],
  },
  {
    reason: "start commands, or write files, which is TypeScript over calls that other files test",
    names: [
      "cli/",
      "examples/examples",
      "file/permission-model",
      "file/splits",
      "package/demo",
      "package/docs",
      "quantize/",
      "writer/",
    ],
  },
  {
    reason: "test TypeScript against servers and timers, for which an emulator is too slow",
    names: ["remote/"],
  },
  {
    reason:
      "test what JavaScript does in the middle of a call, in which order jobs run, and how time and memory grow with a file",
    names: ["decode/huge", "decode/reentrancy", "decode/turns", "file/limits"],
  },
  {
    reason: "test WebAssembly, whose instructions are the same everywhere, and what is made with it",
    names: ["examples/embeddings-bits", "examples/llama-bits", "view/", "wasm/"],
  },
  {
    reason: "test what is read of headers, which the C++ tests of core do there",
    names: [
      "file/changing-file",
      "file/metadata",
      "file/metadata-types",
      "file/model",
      "file/properties",
      "file/tensors",
    ],
  },
  {
    reason: "test the package and how it is linked",
    names: [
      "decode/external-buffers",
      "decode/out-of-memory",
      "file/fences",
      "package/addon",
      "package/consumers",
      "package/package",
    ],
  },
];

/** Folders of tests that `npm test` leaves out: each has a command of its own. */
const apart = ["models", "scale"];

/** Names of all test files, such as "file/metadata.test.ts": those of one of these folders, or all others. */
function allFiles(folder) {
  return readdirSync(join(root, "test"), { recursive: true })
    .map((file) => file.replaceAll("\\", "/"))
    .filter(
      (file) => file.endsWith(".test.ts") && apart.find((each) => file.startsWith(`${each}/`)) === folder,
    )
    .sort();
}

/** Tells whether a file is in a list of files and folders, all of which must be there. */
function isIn(list) {
  const matches = (file, name) => (name.endsWith("/") ? file.startsWith(name) : file === `${name}.test.ts`);
  const gone = list.find((name) => !allFiles().some((file) => matches(file, name)));
  if (gone !== undefined) fail(`a list of test files names ${gone}, which is not there`);
  return (file) => list.some((name) => matches(file, name));
}

const compiled = (file) => join("build", "test", file.replace(/\.ts$/, ".js"));

/**
 * The test files whose names contain one of `names`, in which a slash and a hyphen are the same; all if there is no name.
 * Without those of the list `leftOut`. Of one of the folders that are apart, if `folder` names it.
 */
export function testFiles(names, { leftOut = [], folder = undefined } = {}) {
  const plain = (name) => name.replaceAll("/", "-");
  const isOut = isIn(leftOut);
  const files = allFiles(folder)
    .filter((file) => names.length === 0 || names.some((name) => plain(file).includes(plain(name))))
    .filter((file) => !isOut(file));
  if (files.length === 0) fail(`no test file is called ${names.join(" or ")}`);
  return files.map(compiled);
}

/** The test files for an emulated processor; prints which are left out, and why. */
export function emulatedTestFiles() {
  const left = new Set(allFiles());
  for (const { reason, names } of sameOnEveryProcessor) {
    const out = [...left].filter(isIn(names));
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
