// Which TypeScript test files a run is about, and how Node runs them.
import { readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fail } from "./commands.mjs";
import { root } from "./paths.mjs";

/**
 * Test files that are run on an emulated processor, where every process takes seconds to start: those about kernels, bits
 * and mapped files. What else depends on the architecture has C++ tests, which are run there, too.
 */
const emulated = [
  ...["decode/dequantize", "decode/formats", "decode/isa", "decode/numbers"],
  ...["decode/products", "decode/quantize", "decode/rows", "decode/stats", "file/open", "network/bits"],
];

/** Folders of tests that `npm test` leaves out: each has a command of its own. */
const apart = ["models", "scale"];

/** Names of all test files, such as "file/metadata.test.ts": those of one of these folders, or all others. */
function allFiles(folder) {
  return readdirSync(join(root, "test"), { recursive: true })
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => file.endsWith(".test.ts") && apart.find((each) => file.startsWith(`${each}/`)) === folder)
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

/** The test files for an emulated processor. */
export function emulatedTestFiles() {
  return allFiles().filter(isIn(emulated)).map(compiled);
}

/** The arguments of the Node that runs such files, as many at once as there are processors. */
export function testArguments(files) {
  const parallel = `--test-concurrency=${availableParallelism()}`;
  return ["--expose-gc", "--test", "--test-reporter=spec", parallel, ...files];
}
