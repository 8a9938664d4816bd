// Builds and runs the C++ tests (GoogleTest):
//
//   node scripts/test-native.mjs [--sanitize] [--arm64] [--build-only] [GoogleTest options, such as --gtest_filter=Parse*]
//
// --sanitize   with AddressSanitizer and UndefinedBehaviorSanitizer
// --arm64      cross-compiled, under qemu
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { toolchainSetting } from "./build.mjs";
import { fail, findClang, need, run } from "./commands.mjs";
import { root } from "./paths.mjs";

const ownOptions = ["--sanitize", "--arm64", "--build-only"];
const options = new Set(process.argv.slice(2).filter((argument) => ownOptions.includes(argument)));
const testArguments = process.argv.slice(2).filter((argument) => !ownOptions.includes(argument));

/** CXX decides. */
const compiler = process.env.CXX ?? ((options.has("--sanitize") && findClang()) || "c++");

/** Asks the compiler, which knows where it looks. */
function hasGoogleTest() {
  const folder = mkdtempSync(join(tmpdir(), "gguf-native-gtest-"));
  try {
    const probe = join(folder, "probe.cc");
    writeFileSync(probe, "#include <gtest/gtest.h>\n");
    const [command, ...args] = compiler.split(" "); // CXX may be "ccache g++"
    return (
      spawnSync(command, [...args, "-std=c++17", "-fsyntax-only", probe], { stdio: "ignore" }).status === 0
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

need(["cmake", "cmake"]);
if (options.has("--arm64")) {
  need(["aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu"], ["qemu-aarch64-static", "qemu-user-static"]);
  if (!existsSync("/usr/src/googletest/CMakeLists.txt"))
    fail("GoogleTest's sources were not found. On Debian: apt-get install googletest");
} else if (process.platform !== "win32") {
  need([compiler.split(" ")[0], "g++"]);
  if (!hasGoogleTest()) fail("GoogleTest was not found. On Debian and Ubuntu: apt-get install libgtest-dev");
}

const variant = ["native-tests", ...["arm64", "sanitize"].filter((name) => options.has(`--${name}`))].join(
  "-",
);
const build = join(root, "build", variant);
run(
  "cmake",
  [
    ...["-S", join(root, "native"), "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DGGUF_NATIVE_TESTS=ON"],
    ...(options.has("--sanitize") ? ["-DGGUF_NATIVE_SANITIZE=address,undefined"] : []),
    ...(options.has("--arm64") ? [toolchainSetting("aarch64-linux-gnu")] : []),
  ],
  process.platform === "win32" ? {} : { env: { ...process.env, CXX: compiler } },
);
run("cmake", ["--build", build, "--config", "Release", "--parallel", String(availableParallelism())]);
if (options.has("--build-only")) process.exit(0);

for (const name of ["core_tests", "dequant_tests", "faults_tests"]) {
  const program = [join(build, name), join(build, "Release", `${name}.exe`)].find((path) => existsSync(path));
  if (program === undefined) {
    console.log(`${name}: there are no such tests`);
    continue;
  }
  const command = options.has("--arm64") ? ["qemu-aarch64-static", program] : [program];
  run(command[0], [...command.slice(1), "--gtest_brief=1", ...testArguments], {
    env: { ...process.env, UBSAN_OPTIONS: "print_stacktrace=1" },
  });
}
