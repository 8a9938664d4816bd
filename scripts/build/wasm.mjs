// `npm run build:wasm`: parser and kernels as a WebAssembly module, dist/wasm/kernels.wasm, which imports nothing.
import { mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { root } from "../lib/paths.mjs";
import { bundleWasm, relaxed } from "./bundle-wasm.mjs";
import { BESIDE, compileAll, linkBeside, linkModule, sourcesFor } from "./wasm-tools.mjs";

const folder = join(root, "dist", "wasm");
mkdirSync(folder, { recursive: true });
const file = join(folder, "kernels.wasm");

/** Of native/core, left out is what asks the system or catches exceptions; wasm/memory.cc has what takes its place. */
const ofSystems = /^core\/(fault_guard|file|hash_keys|out_of_memory|pages|system_codes)/;

const sources = [
  ...sourcesFor("core/").filter((source) => !ofSystems.test(source)),
  ...["dequant/", "quant/", "network/"].flatMap(sourcesFor),
  ...readdirSync(join(root, "native", "wasm"))
    .filter((name) => name.endsWith(".cc"))
    .map((name) => `wasm/${name}`),
].map((source) => join("native", source));
linkModule(file, await compileAll(sources));
linkBeside(relaxed, await compileAll(["native/wasm/relaxed/tiles.cc"], BESIDE));
for (const path of [file, relaxed]) console.log(`${path}: ${statSync(path).size} bytes`);
bundleWasm(console.log);
