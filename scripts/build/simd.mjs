// The functions of the examples between products: examples/network/simd, compiled to WebAssembly.
import { existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fail, run } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";

const source = join("examples", "network", "simd");
/** The module. In Node it is read from there; bundles have its bytes as `SIMD`, in base64. */
export const simdModule = join(root, "build", "examples", "network", "simd.wasm");

/** Compiles the module if a source is newer, or package.json, which says with which compiler. */
export function buildSimd() {
  const changed = (file) => statSync(join(root, file)).mtimeMs;
  const files = readdirSync(join(root, source)).map((name) => join(source, name));
  const newest = Math.max(...[...files, "package.json"].map(changed));
  if (existsSync(simdModule) && statSync(simdModule).mtimeMs > newest) return;
  const compiler = join(root, "node_modules", "assemblyscript", "bin", "asc.js");
  if (!existsSync(compiler)) fail("the compiler of examples/network/simd is missing: run npm ci");
  mkdirSync(dirname(simdModule), { recursive: true });
  // Warning 112: numbers of 128 bits cannot be handed to JavaScript, which nothing does.
  run(process.execPath, [
    compiler,
    ...[join(source, "index.ts"), "--outFile", simdModule, "-O3", "--noAssert", "--disableWarning", "112"],
    ...["--runtime", "stub", "--enable", "simd", "--importMemory", "--noExportMemory"],
  ]);
}
