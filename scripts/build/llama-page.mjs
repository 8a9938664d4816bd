// `npm run build:llama-page`: the page that writes text with a model, build/llama-page: two files for any static server.
import { copyFileSync, existsSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { buildSync } from "esbuild";
import { buildSources } from "../lib/build.mjs";
import { fail } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";
import { kernels } from "./bundle-wasm.mjs";

if (!existsSync(kernels)) fail("the page has the WebAssembly module in it: run npm run build:wasm first");
buildSources();

const folder = join(root, "build", "llama-page");
const outfile = join(folder, "llama.js");
mkdirSync(folder, { recursive: true });
copyFileSync(join(root, "examples", "browser", "index.html"), join(folder, "index.html"));
const { warnings } = buildSync({
  absWorkingDir: root,
  entryPoints: [join(root, "examples", "browser", "main.mjs")],
  tsconfigRaw: {}, // imports find what package.json exports, not the sources
  ...{ bundle: true, minify: true, platform: "browser", format: "esm", target: "es2022", outfile },
});
if (warnings.length > 0) fail("the bundle has warnings");
console.log(`${folder}: index.html and llama.js, ${statSync(outfile).size} bytes`);
