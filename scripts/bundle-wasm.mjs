// The entry `gguf-native/wasm`: dist/wasm/index.mjs and index.cjs, each one file with the WebAssembly module in it, and
// with nothing of Node. Where a module has a file NAME.browser.ts beside it, that takes its place.
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { deflateRawSync } from "node:zlib";
import { buildSync } from "esbuild";
import { root } from "./paths.mjs";

/** The module, which `npm run build:wasm` makes. */
export const kernels = join(root, "dist", "wasm", "kernels.wasm");

/** Bundles; `log` gets a line about each file. */
export function bundleWasm(log = () => undefined) {
  const module = readFileSync(kernels);
  const embedded = [deflateRawSync(module, { level: 9 }).toString("base64"), module.length];
  for (const [format, name] of [
    ["esm", "index.m"],
    ["cjs", "index.c"],
  ]) {
    const outfile = join("dist", "wasm", `${name}js`);
    buildSync({
      absWorkingDir: root,
      entryPoints: [join("src", "wasm", `${name}ts`)],
      ...{
        outfile,
        format,
        bundle: true,
        platform: "neutral",
        target: "es2022",
        keepNames: true,
        legalComments: "none",
      },
      ...{ tsconfigRaw: {}, resolveExtensions: [".browser.ts", ".ts"], allowOverwrite: true },
      define: { KERNELS: JSON.stringify(embedded) },
    });
    log(`${outfile}: ${statSync(join(root, outfile)).size} bytes`);
  }
}
