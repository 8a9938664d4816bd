// The entry `gguf-native/wasm`: dist/wasm/index.mjs and index.cjs, each one file with the WebAssembly module in it, and
// with nothing of Node. Where a module has a file NAME.browser.ts beside it, that takes its place.
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { deflateRawSync } from "node:zlib";
import { buildSync } from "esbuild";
import { root } from "../lib/paths.mjs";
import { licensesOf } from "./licenses.mjs";

/** The module, which `npm run build:wasm` makes. */
export const kernels = join(root, "dist", "wasm", "kernels.wasm");

/** The bundles, without the last two letters of their names and of their sources'. */
export const wasmEntries = ["index.m", "index.c"];

/** How the sources are bundled without Node, with the WebAssembly module in them. */
export function bundleOptions() {
  const module = readFileSync(kernels);
  const embedded = [deflateRawSync(module, { level: 9 }).toString("base64"), module.length];
  return {
    absWorkingDir: root,
    ...{ bundle: true, platform: "neutral", target: "es2022", legalComments: "none" },
    ...{ write: false, metafile: true },
    ...{ tsconfigRaw: {}, resolveExtensions: [".browser.ts", ".ts"] },
    define: { KERNELS: JSON.stringify(embedded) },
  };
}

/** Bundles; `log` gets a line about each file. */
export function bundleWasm(log = () => undefined) {
  const options = bundleOptions();
  for (const entry of wasmEntries) {
    const outfile = join("dist", "wasm", `${entry}js`);
    const entryPoints = [join("src", "wasm", `${entry}ts`)];
    const form = { format: entry === "index.m" ? "esm" : "cjs", keepNames: true, minifyWhitespace: true };
    const { outputFiles, metafile } = buildSync({ ...options, ...form, entryPoints });
    writeFileSync(join(root, outfile), `${outputFiles[0].text}/*! ${licensesOf(metafile.inputs)} */\n`);
    log(`${outfile}: ${statSync(join(root, outfile)).size} bytes`);
  }
}
