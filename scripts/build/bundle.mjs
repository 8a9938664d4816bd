// Bundling what tsc has compiled.
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { buildSync } from "esbuild";
import { root } from "../lib/paths.mjs";
import { bundlePackages, packageUsers } from "./bundle-packages.mjs";
import { bundleEntry, bundleWasm, kernels, wasmEntries } from "./bundle-wasm.mjs";

/** ES modules that import no CommonJS: else bundlers and their development servers need settings. */
const moduleEntries = ["reference/index.mjs", "tokenizer/index.mjs"];

/** Whether tsc, which writes its record last, has run since a file was bundled. It may have written the file again. */
function isStale(file) {
  const record = join(root, "dist", ".tsbuildinfo");
  const bundled = join(root, "dist", file);
  return !existsSync(bundled) || statSync(bundled).mtimeMs <= statSync(record).mtimeMs;
}

/** Bundles what is not, or not since the sources were compiled; the WebAssembly module where it is. */
export function bundle() {
  if (packageUsers.some((file) => isStale(`${file}.js`))) bundlePackages();
  for (const file of moduleEntries.filter(isStale)) bundleEntry(file);
  if (existsSync(kernels) && wasmEntries.some(isStale)) bundleWasm();
  bundleExample();
}

/** The llama example as one file of plain JavaScript, which runs from the installed package. */
function bundleExample() {
  const outfile = join(root, "examples", "llama.js");
  const banner = { js: "// examples/llama.ts and what it imports, compiled: npm run build -- ts" };
  buildSync({
    ...{ entryPoints: [join(root, "examples", "llama.ts")], outfile, bundle: true, tsconfigRaw: {}, banner },
    ...{ platform: "node", target: "node20", format: "cjs", packages: "external" },
  });
}
