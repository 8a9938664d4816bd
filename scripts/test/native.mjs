// Builds and runs the C++ tests (GoogleTest):
//
//   node scripts/test/native.mjs [--sanitize[=SANITIZERS]] [--arm64] [--build-only] [GoogleTest options, such as
//                                --gtest_filter=Parse*]
//
// --sanitize          with AddressSanitizer and UndefinedBehaviorSanitizer
// --sanitize=thread   with ThreadSanitizer: only the tests of code that several threads run
// --arm64             cross-compiled, under qemu
// --wasm              those of the kernels, as a WebAssembly program
// --avx512            those of the AVX-512 kernels, on an emulated processor
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { runNode, toolchainSetting } from "../lib/build.mjs";
import { fail, findClang, need, run, tryRun } from "../lib/commands.mjs";
import { root, variantFolder } from "../lib/paths.mjs";

const [first] = process.argv.slice(2);
if (first === "--wasm" || first === "--avx512") {
  runNode("--no-warnings", `scripts/test/${first.slice(2)}.mjs`, ...process.argv.slice(3));
  process.exit(0);
}

const ownOption = /^--(sanitize(=.*)?|arm64|build-only)$/;
const options = process.argv.slice(2).filter((argument) => ownOption.test(argument));
const testArguments = process.argv.slice(2).filter((argument) => !ownOption.test(argument));
const arm64 = options.includes("--arm64");
const sanitizers = sanitizersOf(options.find((option) => option.startsWith("--sanitize")));
const threads = sanitizers === "thread";

/** What Clang calls the sanitizers; nothing without the option. */
function sanitizersOf(option) {
  if (option === undefined) return undefined;
  const [, names = "address,undefined"] = option.split("=");
  if (names !== "address,undefined" && names !== "thread") {
    fail(`--sanitize=${names} is not known: use --sanitize or --sanitize=thread`);
  }
  return names;
}

/** CXX decides. */
const compiler = process.env.CXX ?? ((sanitizers && findClang()) || "c++");

/** Asks the compiler, which knows where it looks. */
function hasGoogleTest() {
  const folder = mkdtempSync(join(tmpdir(), "gguf-native-gtest-"));
  try {
    const probe = join(folder, "probe.cc");
    writeFileSync(probe, "#include <gtest/gtest.h>\n");
    const [command, ...args] = compiler.split(" "); // CXX may be "ccache g++"
    return tryRun(command, [...args, "-std=c++17", "-fsyntax-only", probe]).status === 0;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

need(["cmake", "cmake"]);
if (arm64) {
  need(["aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu"], ["qemu-aarch64-static", "qemu-user-static"]);
  if (!existsSync("/usr/src/googletest/CMakeLists.txt"))
    fail("GoogleTest's sources were not found. On Debian: apt-get install googletest");
} else if (process.platform !== "win32") {
  need([compiler.split(" ")[0], "g++"]);
  if (!hasGoogleTest()) fail("GoogleTest was not found. On Debian and Ubuntu: apt-get install libgtest-dev");
}

const variant = [arm64 && "arm64", sanitizers && (threads ? "sanitize-thread" : "sanitize")].filter(Boolean);
const build = variant.length > 0 ? variantFolder(variant.join("-")) : join(root, "build", "native-tests");
run(
  "cmake",
  [
    ...["-S", join(root, "native"), "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DGGUF_NATIVE_TESTS=ON"],
    ...(sanitizers ? [`-DGGUF_NATIVE_SANITIZE=${sanitizers}`] : []),
    ...(arm64 ? [toolchainSetting("aarch64-linux-gnu")] : []),
  ],
  process.platform === "win32" ? {} : { env: { ...process.env, CXX: compiler } },
);
// Under ThreadSanitizer only what threads share: kernels and parsers share nothing, and the tests of faults make
// processes, not threads.
const programs = threads
  ? ["core_tests", "machine_tests", "work_tests"]
  : ["core_tests", "dequant_tests", "machine_tests", "work_tests", "faults_tests"];
const filters = threads ? { core_tests: ["--gtest_filter=FileTest.*:TruncatedFile.*"] } : {};
run("cmake", [
  ...["--build", build, "--config", "Release", "--parallel", String(availableParallelism())],
  ...(threads ? ["--target", ...programs] : []),
]);
if (options.includes("--build-only")) process.exit(0);

for (const name of programs) {
  const program = [join(build, name), join(build, "Release", `${name}.exe`)].find((path) => existsSync(path));
  if (program === undefined) fail(`${name} was not built: test/native has no such tests`);
  const command = arm64 ? ["qemu-aarch64-static", "-cpu", "max", program] : [program];
  run(command[0], [...command.slice(1), "--gtest_brief=1", ...(filters[name] ?? []), ...testArguments], {
    env: {
      ...process.env,
      UBSAN_OPTIONS: "print_stacktrace=1",
      TSAN_OPTIONS: `suppressions=${join(root, "test", "native", "thread-sanitizer.txt")}`,
    },
  });
}
// A processor without the newer instructions must not execute any.
if (arm64) {
  const filter = "--gtest_filter=Isas.*:*IntegerRowProducts.OfAVector*";
  const program = [join(build, "dequant_tests"), "--gtest_brief=1", filter];
  run("qemu-aarch64-static", ["-cpu", "cortex-a53", ...program]);
}
