// `npm run test:native -- --wasm`: the C++ tests of the kernels, compiled for WebAssembly, in Node's WASI; then the tests of the module.
// Arguments are GoogleTest's, such as --gtest_filter=Primitives*.
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { WASI } from "node:wasi";
import { compileAll, linkProgram, sourcesFor } from "../build/wasm-tools.mjs";
import { fail } from "../lib/commands.mjs";
import { root, variantFolder } from "../lib/paths.mjs";

const googletest = "/usr/src/googletest/googletest";
if (!existsSync(googletest)) fail("GoogleTest's sources were not found. On Debian: apt-get install googletest");

/**
 * Of test/native/dequant, products_test.cc is left out. Its oracle is fmaf: that of wasi-libc needs rounding modes, which
 * WebAssembly lacks, and rounds twice. test/wasm/wasm.test.ts compares with the addon's products.
 */
const leftOut = ["products_test.cc"];
const tests = readdirSync(join(root, "test", "native", "dequant")).filter(
  (name) => name.endsWith(".cc") && !leftOut.includes(name),
);
console.log(`Not run in WebAssembly: ${leftOut.join(", ")}; see scripts/test/wasm.mjs`);

const flags = [
  ...["-I", root, "-I", join(googletest, "include"), "-I", googletest],
  ...["PTHREAD", "DEATH_TEST", "STREAM_REDIRECTION"].map((part) => `-DGTEST_HAS_${part}=0`),
  ...["SIGNAL", "PROCESS_CLOCKS", "GETPID"].map((part) => `-D_WASI_EMULATED_${part}`),
  `-DGGUF_NATIVE_REPOSITORY="${root}"`,
  "-Wno-shorten-64-to-32", // the tests' own lengths are small
];
const program = join(variantFolder("wasm"), "dequant_tests.wasm");
mkdirSync(variantFolder("wasm"), { recursive: true });
const googletests = [join(googletest, "src", "gtest-all.cc"), join(googletest, "src", "gtest_main.cc")];
linkProgram(program, [
  ...(await compileAll(sourcesFor("dequant/").map((source) => join("native", source)))),
  ...(await compileAll(
    tests.map((name) => join("test", "native", "dequant", name)),
    flags,
  )),
  ...(await compileAll(googletests, [...flags, "-w"])),
]);

const wasi = new WASI({
  version: "preview1",
  args: ["dequant_tests", ...process.argv.slice(2)],
  returnOnExit: true,
});
const module = await WebAssembly.compile(readFileSync(program));
process.exitCode = wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject()));
