// Runs the TypeScript tests with an addon that is compiled with AddressSanitizer and UndefinedBehaviorSanitizer, in the
// ordinary Node, which loads their runtime first. Then LeakSanitizer looks for memory that the addon leaked. Linux, Clang.
// `npm test -- --sanitized metadata cli` runs only the test files with such a name, `-- --leaks` none of them.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildTests, buildVariant } from "../lib/build.mjs";
import { fail, findClang, output, run, tryRun } from "../lib/commands.mjs";
import { variantAddon } from "../lib/paths.mjs";
import { testArguments, testFiles } from "../lib/test-files.mjs";

const variant = "sanitize";
const names = process.argv.slice(2).filter((argument) => argument !== "--leaks");

const compiler = process.env.CXX ?? findClang();
const library = (name) => output(compiler, [`-print-file-name=${name}`]).trim();
if (compiler === undefined) fail("Clang was not found. On Debian: apt-get install clang-16");
const runtime = library(`libclang_rt.asan-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so`);
if (!existsSync(runtime)) {
  fail(`${compiler} has no sanitizers. On Debian: apt-get install clang-16 libclang-rt-16-dev`);
}

const env = {
  ...process.env,
  GGUF_NATIVE_ADDON: variantAddon(variant),
  GGUF_NATIVE_TEST_SANITIZED: "1",
  // The C++ library too: when it is loaded, the runtime looks for the functions that throw, and Node hides its own.
  LD_PRELOAD: `${runtime}:${library("libstdc++.so.6")}`,
  UBSAN_OPTIONS: "print_stacktrace=1",
};
const watched = (...options) => ({
  ...env,
  ASAN_OPTIONS: [
    ...["handle_sigbus=0", "detect_stack_use_after_return=0", "quarantine_size_mb=64", "allocator_may_return_null=1"],
    ...options,
  ].join(":"),
});

/** Runs the leak scenes; returns the reports about memory of the addon. Node itself leaks some when it exits. */
function findLeaks() {
  const folder = mkdtempSync(join(tmpdir(), "gguf-native-leaks-"));
  try {
    const scenes = join("build", "test", "support", "leak-scenes.js");
    const { status, stderr, stdout } = tryRun(process.execPath, ["--expose-gc", scenes], {
      env: watched("detect_leaks=1", "exitcode=0", "malloc_context_size=40", `log_path=${join(folder, "log")}`),
    });
    if (status !== 0 || stdout !== "played\n") fail(`the scenes failed (${status}): ${stdout}${stderr}`);
    const reports = readdirSync(folder).map((file) => readFileSync(join(folder, file), "utf8"));
    return reports
      .flatMap((report) => report.split("\n\n"))
      .filter((leak) => / leak of /.test(leak) && /\bgguf::|gguf_native\.node/.test(leak));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

buildTests();
buildVariant(variant, ["-DGGUF_NATIVE_SANITIZE=address,undefined"], { ...process.env, CXX: compiler });
if (!process.argv.includes("--leaks")) {
  run(process.execPath, testArguments(testFiles(names)), { env: watched("detect_leaks=0") });
}
const leaks = findLeaks();
if (leaks.length > 0) fail(`memory was leaked:\n\n${leaks.join("\n\n")}`);
console.log("no memory was leaked");
