// Bundles that run anywhere, with nothing of Node. Where a module has a file NAME.browser.ts beside it, that takes its place.
//
// The entry `gguf-native/wasm` is dist/wasm/index.mjs and index.cjs, each one file with the WebAssembly module in it, and
// workerd.mjs, which imports the module as a file of its own. `gguf-native/network` and
// `gguf-native/embeddings` are parts of each.
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { deflateRawSync } from "node:zlib";
import { buildSync } from "esbuild";
import { root } from "../lib/paths.mjs";
import { licensesOf } from "./licenses.mjs";

/** The module, which `npm run build:wasm` makes. */
export const kernels = join(root, "dist", "wasm", "kernels.wasm");

/** Tiles for engines with relaxed SIMD. */
export const relaxed = join(root, "dist", "wasm", "relaxed.wasm");

/** The bundles that have the module, in dist/. */
export const wasmEntries = ["wasm/index.mjs", "wasm/index.cjs", "wasm/workerd.mjs"];

/** Other entries of the package that are parts of such a bundle, and the endings of the files that have only that part. */
const parts = ["network", "embeddings"];
const partOf = { ".mjs": "./index.mjs", ".cjs": "./index.cjs", "-workerd.mjs": "./workerd.mjs" };

/** How the sources are bundled without Node. */
const portable = {
  absWorkingDir: root,
  ...{ bundle: true, platform: "neutral", target: "es2022", legalComments: "none" },
  ...{ write: false, metafile: true, external: ["./kernels.wasm"] },
  ...{ tsconfigRaw: {}, resolveExtensions: [".browser.ts", ".ts"] },
};

/** The same, with the WebAssembly modules in them. */
export function bundleOptions() {
  const embedded = [kernels, relaxed].map((file) => {
    const module = readFileSync(file);
    return [deflateRawSync(module, { level: 9 }).toString("base64"), module.length];
  });
  return { ...portable, define: { KERNELS: JSON.stringify(embedded) } };
}

/** Bundles an entry of the package, a file in dist/, from the source of the same name; returns its size. */
export function bundleEntry(file, options = portable) {
  const entryPoints = [join("src", file.replace(/js$/, "ts"))];
  const form = { format: file.endsWith(".mjs") ? "esm" : "cjs", keepNames: true, minifyWhitespace: true };
  const { outputFiles, metafile } = buildSync({ ...options, ...form, entryPoints });
  const licenses = licensesOf(metafile.inputs);
  const path = join(root, "dist", file);
  writeFileSync(path, outputFiles[0].text + (licenses === "" ? "" : `/*! ${licenses} */\n`));
  return statSync(path).size;
}

/** Bundles what has the module; `log` gets a line about each file. */
export function bundleWasm(log = () => undefined) {
  const options = bundleOptions();
  for (const file of wasmEntries) log(`dist/${file}: ${bundleEntry(file, options)} bytes`);
  for (const part of parts) {
    const { metafile } = buildSync({ ...options, format: "esm", entryPoints: [`src/${part}/public.ts`] });
    const [{ exports }] = Object.values(metafile.outputs);
    for (const [ending, from] of Object.entries(partOf)) {
      const text = ending.endsWith(".cjs")
        ? `module.exports = require("${from}").${part};\n`
        : `import { ${part} } from "${from}";\nexport const { ${exports.join(", ")} } = ${part};\n`;
      writeFileSync(join(root, "dist", "wasm", part + ending), text);
    }
  }
}
