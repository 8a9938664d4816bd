// `npm run build:wasm`: the kernels as a WebAssembly module, dist/wasm/kernels.wasm, which imports nothing.
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { root } from "./paths.mjs";
import { compileAll, linkModule, sourcesFor } from "./wasm.mjs";

const folder = join(root, "dist", "wasm");
mkdirSync(folder, { recursive: true });
const file = join(folder, "kernels.wasm");
const sources = [...sourcesFor("dequant/"), "wasm/module.cc"].map((source) => join("native", source));
linkModule(file, compileAll(sources));
console.log(`dist/wasm/kernels.wasm: ${statSync(file).size} bytes`);
