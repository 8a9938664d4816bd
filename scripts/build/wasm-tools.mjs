// Compiling for WebAssembly with Clang, and with the libraries for it that Debian has.
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fail, isThere, run, runAll } from "../lib/commands.mjs";
import { root, variantFolder } from "../lib/paths.mjs";

const compilers = ["clang++", "clang++-16", "clang++-17", "clang++-18", "clang++-19"];
const headers = ["16", "17", "18", "19"].map((n) => `/usr/lib/llvm-${n}/include/wasm32-wasi/c++/v1`);
const advice = "apt-get install clang-16 lld-16 wasi-libc libc++-16-dev-wasm32 libclang-rt-16-dev-wasm32";

/** Debian has libc++ for WebAssembly for one version of Clang: that one must compile. */
function findCompiler() {
  const headersHere = headers.find(existsSync);
  const version = /llvm-(\d+)/.exec(headersHere ?? "")?.[1];
  const compiler = compilers.find((name) => name === `clang++-${version}` && isThere(name));
  return compiler === undefined ? undefined : { compiler, headers: headersHere };
}

/** The flags of every file: those of the addon, SIMD, and no exceptions, which Debian's libc++ lacks here. */
const FLAGS = [
  ...["--target=wasm32-wasi", "-O3", "-msimd128", "-std=c++17", "-fno-exceptions", "-fno-rtti"],
  ...["-ffp-contract=off", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wshorten-64-to-32", "-Werror"],
];

/** -O0: else Clang, where it finds a wasm-opt of any version, has it change what was linked. npm puts one in the PATH. */
const LINKING = ["-O0", "-L/usr/lib/wasm32-wasi"];

/** Clang for WebAssembly; ends this process, and says what to install, where it is missing. */
export function needClang() {
  return findCompiler() ?? fail(`Clang for WebAssembly was not found. On Debian: ${advice}`);
}

/** A call of Clang for WebAssembly. */
function clang(args) {
  const found = needClang();
  const system = ["-isystem", found.headers, "-isystem", "/usr/include/wasm32-wasi"];
  return [found.compiler, ...FLAGS, ...system, "-I", join(root, "native"), ...args];
}

function link(args) {
  const [command, ...rest] = clang(args);
  run(command, rest);
}

/** The sources of sources.txt in a folder of native/. */
export function sourcesFor(folder) {
  const lines = readFileSync(join(root, "native", "sources.txt"), "utf8").split("\n");
  return lines.filter((line) => line.startsWith(folder));
}

/** Compiles sources, named from the project's folder on, to object files, which it returns. */
export async function compileAll(sources, flags = []) {
  const folder = join(variantFolder("wasm"), "objects");
  mkdirSync(folder, { recursive: true });
  const objectOf = (source) => join(folder, `${source.replaceAll(/[/\\]/g, "-")}.o`);
  await runAll(sources.map((source) => clang([...flags, "-c", source, "-o", objectOf(source)])));
  return sources.map(objectOf);
}

/**
 * Links a module without imports. Its stack lies below everything else: what overflows it is a trap, and spoils nothing.
 */
export function linkModule(file, objects) {
  const options = ["--no-entry", "--export=__wasm_call_ctors", "--gc-sections", "--strip-all"];
  options.push("--stack-first", "-zstack-size=262144");
  options.push("--export-table", "--growable-table"); // for the module beside it
  options.push("--export=__stack_pointer"); // each thread has a stack
  link(["-nostartfiles", ...options.map((option) => `-Wl,${option}`), ...objects, "-o", file, ...LINKING]);
}

/** For what linkBeside links. Clang compiles code for any place for Emscripten only, of which nothing else is needed. */
export const BESIDE = "--target=wasm32-unknown-emscripten -D__wasi__ -fPIC -mbulk-memory -mrelaxed-simd".split(" ");

/** Links a module that uses memory and table of another, as the conventions for dynamic linking say. */
export function linkBeside(file, objects) {
  const options = ["--no-entry", "--experimental-pic", "-shared", "--strip-all"];
  options.push("--max-memory=4294967296"); // that of the memory, if it is shared
  link([
    "--target=wasm32-unknown-emscripten",
    "-nostdlib",
    "-nostartfiles",
    ...options.map((option) => `-Wl,${option}`),
    ...objects,
    "-o",
    file,
    ...LINKING,
  ]);
}

/** Links a program for WASI. */
export function linkProgram(file, objects) {
  const emulated = ["signal", "process-clocks", "getpid"].map((part) => `-lwasi-emulated-${part}`);
  link([...objects, "-o", file, ...LINKING, ...emulated]);
}
