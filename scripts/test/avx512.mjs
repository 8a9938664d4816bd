// Runs the C++ tests of the AVX-512 kernels on an emulated processor, for machines without AVX-512.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fail, isThere, run, tryRun } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";

const emulated = join(root, "test", "native", "emulated");
const build = join(root, "build", "native-tests-avx512");

// The features that native/dequant/cpu.cc looks for.
const cpuFlags = [
  "popcnt",
  "f16c",
  "fma",
  "avx2",
  "avx512f",
  "avx512dq",
  "avx512bw",
  "avx512vl",
  "avx512vbmi",
  "avx512_vnni",
];
const commands = ["cmake", "g++"]; // also names of packages
const packages = [
  ...["libgtest-dev", "bochs", "bochs-term", "bochsbios", "vgabios"],
  ...["isolinux", "syslinux-common", "xorriso", "busybox-static"],
];

function isInstalled(name) {
  return /^Status: .* installed$/m.test(tryRun("dpkg", ["--status", name]).stdout);
}

function buildTests() {
  const flags = [
    // Bochs refuses to decode gathers whose index is in zmm16 to zmm31 (2.7 and 3.0: an invalid opcode).
    ...Array.from({ length: 16 }, (_, i) => `-ffixed-xmm${16 + i}`),
    `-include "${join(emulated, "bochs.h")}"`,
  ];
  run("cmake", [
    ...["-S", join(root, "native"), "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DGGUF_NATIVE_TESTS=ON"],
    ...["-DCMAKE_CXX_COMPILER=g++", `-DCMAKE_CXX_FLAGS=${flags.join(" ")}`], // Clang has no -ffixed-xmm
    "-DCMAKE_EXE_LINKER_FLAGS=-static", // there are no libraries in the emulated machine
  ]);
  const parallel = String(availableParallelism());
  run("cmake", ["--build", build, "--target", "dequant_tests", "--parallel", parallel]);
}

/** Runs the tests and shows what they print; returns their exit code and how many passed. */
async function runTests() {
  // No times: the emulated clock is wrong.
  const options = ["--gtest_filter=*avx512*", "--gtest_color=no", "--gtest_print_time=0"];
  const args = [join(build, "dequant_tests"), ...options];
  const child = spawn(join(emulated, "run-avx512.sh"), args, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve, reject) => child.on("error", reject).on("close", resolve));
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    output += text;
    process.stdout.write(text);
  });
  const code = await ended;
  return { code, passed: Number(/^\[ {2}PASSED {2}\] (\d+) test/m.exec(output)?.[1] ?? 0) };
}

if (process.platform !== "linux" || process.arch !== "x64") fail("This runs on Linux on x86-64 only.");
const own = /^flags\s*:(.*)$/m.exec(readFileSync("/proc/cpuinfo", "utf8"))?.[1].split(" ") ?? [];
if (cpuFlags.every((flag) => own.includes(flag))) {
  console.log("This machine has AVX-512: npm run test:native runs the AVX-512 kernels.");
  process.exit(0);
}

const missing = [...commands.filter((name) => !isThere(name)), ...packages.filter((name) => !isInstalled(name))];
if (missing.length > 0) fail(`Not found. On Debian 12: apt-get install --no-install-recommends ${missing.join(" ")}`);

buildTests();
console.log("Running the tests on an emulated processor, which takes some minutes ...");
const { code, passed } = await runTests();
if (code !== 0 || passed === 0) fail(`The AVX-512 tests failed (exit code ${code}, ${passed} passed).`);
