// `npm run coverage`: which lines of src/ and native/ the tests run. Reports as web pages go to build/coverage.
// `npm run coverage -- metadata cli` runs all C++ tests, and of the TypeScript tests only the files with such a name.
//
// The C++ figures count what the C++ tests and the TypeScript tests reach together: the TypeScript tests run with an
// addon that is compiled for counting. Needs Clang with llvm-profdata and llvm-cov.
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { join, relative, sep } from "node:path";
import { buildSources, buildTests, buildVariant } from "../lib/build.mjs";
import { fail, findClang, need, output, run, tryRun } from "../lib/commands.mjs";
import { root, variantAddon, variantFolder } from "../lib/paths.mjs";
import { testArguments, testFiles } from "../lib/test-files.mjs";

const variant = "coverage";
const report = join(root, "build", "coverage");
const counts = join(report, "profile.profdata");
const rawCounts = join(report, "raw");

const compiler = process.env.CXX ?? findClang();
if (compiler === undefined) fail("Clang was not found. On Debian and Ubuntu: apt-get install clang-16 llvm-16");
const llvm = (name) => `llvm-${name}${/-\d+$/.exec(compiler)?.[0] ?? ""}`;
need([llvm("cov"), "llvm-16"]); // llvm-profdata comes with it

/** The C++ tests and the addon, with counters. */
function buildNative() {
  const flags = "-fprofile-instr-generate -fcoverage-mapping";
  const env = { ...process.env, CXX: compiler };
  // -O1, for the kernels' sake: with counters, compilers take many minutes over -O3.
  const optimize = "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG";
  buildVariant(variant, ["-DGGUF_NATIVE_TESTS=ON", `-DCMAKE_CXX_FLAGS=${flags}`, optimize], env);
  run("cmake", ["--build", variantFolder(variant), "--parallel", String(availableParallelism())]);
  const tests = readdirSync(variantFolder(variant)).filter((name) => name.endsWith("_tests"));
  return tests.map((name) => join(variantFolder(variant), name));
}

/** Programs write their counts to a few files that they share. */
const env = { ...process.env, LLVM_PROFILE_FILE: join(rawCounts, "%4m.profraw") };

/** Runs the TypeScript tests, with sources in which c8 finds the lines of src/. Returns whether all were good. */
function runTypeScriptTests() {
  const c8 = [
    ...[createRequire(import.meta.url).resolve("c8/bin/c8.js"), "--temp-directory", join(report, "v8")],
    ...["--all", "--src", "src", "--include", "src/**", "--extension", ".ts", "--extension", ".mts"],
    ...["--exclude-after-remap", "--reports-dir", join(report, "typescript")],
    ...["--reporter", "html", "--reporter", "json-summary"],
  ];
  buildTests();
  buildSources("--inlineSourceMap"); // after the tests, which are compiled with the sources as they are released
  // The package has no source maps, which its own tests check.
  const files = testFiles(process.argv.slice(2), { leftOut: ["package/package"] });
  const { status } = tryRun(process.execPath, [...c8, process.execPath, ...testArguments(files)], {
    stdio: "inherit",
    timeout: 0,
    env: { ...env, GGUF_NATIVE_ADDON: variantAddon(variant) },
  });
  buildSources(); // as they were
  return status === 0;
}

/** Lines, functions and branches of every file in src/. */
function typeScriptCoverage() {
  const files = JSON.parse(readFileSync(join(report, "typescript", "coverage-summary.json"), "utf8"));
  return Object.entries(files)
    .filter(([path]) => path !== "total")
    .map(([path, { lines, functions, branches }]) => ({ path, lines, functions, branches }));
}

/** Lines, functions and branches of every file in native/. */
function nativeCoverage(nativeTests) {
  const raw = readdirSync(rawCounts).map((name) => join(rawCounts, name));
  run(llvm("profdata"), ["merge", "--sparse", "-o", counts, ...raw]);
  const [first, ...others] = [variantAddon(variant), ...nativeTests];
  const what = [first, ...others.flatMap((name) => ["--object", name]), `--instr-profile=${counts}`];
  const only = "--ignore-filename-regex=/(test|node_modules|usr)/";
  run(llvm("cov"), ["show", "--format=html", `--output-dir=${join(report, "native")}`, only, ...what]);
  const { data } = JSON.parse(output(llvm("cov"), ["export", "--summary-only", only, ...what]));
  return data[0].files.map(({ filename, summary: { lines, functions, branches } }) => {
    const numbers = ({ count, covered }) => ({ total: count, covered });
    return {
      ...{ path: filename, lines: numbers(lines) },
      ...{ functions: numbers(functions), branches: numbers(branches) },
    };
  });
}

/** Prints a line for each folder, and one for all. */
function printTable(title, files) {
  const folders = new Map();
  const add = (folder, file) => folders.set(folder, [...(folders.get(folder) ?? []), file]);
  for (const file of files) {
    add(relative(root, file.path).split(sep).slice(0, -1).slice(0, 2).join("/"), file);
    add("all", file);
  }
  const share = (list, what) => {
    const sum = (part) => list.reduce((result, file) => result + file[what][part], 0);
    return sum("total") === 0 ? "none" : `${((100 * sum("covered")) / sum("total")).toFixed(1)} %`;
  };
  const kinds = ["lines", "functions", "branches"];
  console.log([title.padEnd(20), ...kinds.map((kind) => kind.padStart(10))].join(""));
  for (const [folder, list] of [...folders].sort(([a], [b]) => (a === "all") - (b === "all") || (a < b ? -1 : 1))) {
    console.log([folder.padEnd(20), ...kinds.map((kind) => share(list, kind).padStart(10))].join(""));
  }
}

rmSync(report, { recursive: true, force: true });
mkdirSync(rawCounts, { recursive: true });
const nativeTests = buildNative();
for (const program of nativeTests) run(program, ["--gtest_brief=1"], { env });
const isGood = runTypeScriptTests();
printTable("TypeScript", typeScriptCoverage());
printTable("C++", nativeCoverage(nativeTests));
console.log(
  `Line by line: ${relative(root, report)}/typescript/index.html and ${relative(root, report)}/native/index.html`,
);
if (!isGood) fail("the TypeScript tests failed: the figures are those of this run");
