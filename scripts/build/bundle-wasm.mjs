// Bundles that run anywhere, with nothing of Node. Where a module has a file NAME.browser.ts beside it, that takes its place.
//
// The entries of browsers and Workers are ES modules that share files, so that a bundle gets only what it uses: those of
// browsers have the WebAssembly module in them, those of Workers import it as a file of its own. dist/wasm/index.cjs is all
// of it in one file.
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { deflateRawSync } from "node:zlib";
import { buildSync } from "esbuild";
import { root } from "../lib/paths.mjs";
import { licensesOf } from "./licenses.mjs";

/** The module, which `npm run build:wasm` makes. */
export const kernels = join(root, "dist", "wasm", "kernels.wasm");

/** Tiles for engines with relaxed SIMD. */
export const relaxed = join(root, "dist", "wasm", "relaxed.wasm");

/** Of the package's entries that need the module, those that are ES modules; and parts that the other one has. */
const modules = ["index", "embeddings", "network", "workerd", "embeddings-workerd", "network-workerd"];
const parts = ["embeddings", "network"];

/** The bundles that have the module, in dist/. */
export const wasmEntries = [...modules.map((name) => `wasm/${name}.mjs`), "wasm/index.cjs"];

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
  const thread = { ...portable, entryPoints: ["src/backend/wasm/thread-of-page.ts"], minify: true, format: "iife" };
  const program = buildSync(thread).outputFiles[0].text;
  return {
    ...portable,
    define: { KERNELS: JSON.stringify(JSON.stringify(embedded)), THREAD: JSON.stringify(program) },
  };
}

/** Bundles an entry of the package, a file in dist/, from the source of the same name. */
export function bundleEntry(file, options = portable) {
  const entryPoints = [join("src", file.replace(/js$/, "ts"))];
  write({
    ...options,
    format: file.endsWith(".mjs") ? "esm" : "cjs",
    entryPoints,
    outfile: join("dist", file),
  });
}

function write(options, log = () => undefined) {
  const { outputFiles, metafile } = buildSync({ ...options, keepNames: true, minifyWhitespace: true });
  for (const { path, text } of outputFiles) {
    const file = relative(root, path).replaceAll("\\", "/");
    const licenses = licensesOf(metafile.outputs[file].inputs);
    writeFileSync(path, text + (licenses === "" ? "" : `/*! ${licenses} */\n`));
    log(`${file}: ${statSync(path).size} bytes`);
  }
}

/** Bundles what has the module; `log` gets a line about each file. */
export function bundleWasm(log) {
  const outdir = join(root, "dist", "wasm");
  for (const name of readdirSync(outdir)) {
    if (name.startsWith("shared-")) rmSync(join(outdir, name));
  }
  const options = bundleOptions();
  const shared = { splitting: true, chunkNames: "shared-[hash]", outdir, outExtension: { ".js": ".mjs" } };
  const entryPoints = modules.map((name) => `src/wasm/${name}.mts`);
  write({ ...options, ...shared, format: "esm", entryPoints }, log);
  write({ ...options, format: "cjs", entryPoints: ["src/wasm/index.cts"], outfile: "dist/wasm/index.cjs" }, log);
  for (const part of parts) {
    writeFileSync(join(outdir, `${part}.cjs`), `module.exports = require("./index.cjs").${part};\n`);
  }
}
