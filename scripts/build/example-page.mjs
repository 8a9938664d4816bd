// `npm run build -- llama-page`, `npm run build -- search-page`: the page of an example, build/NAME-page: two files for any
// static server. A third one tells `npx serve` the headers by which the page has threads.
import { copyFileSync, existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildSync } from "esbuild";
import { buildSources } from "../lib/build.mjs";
import { fail } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";
import { kernels } from "./bundle-wasm.mjs";

/** Where each page is. */
const pages = {
  llama: join("examples", "browser"),
  search: join("examples", "embeddings", "page"),
};

const [name] = process.argv.slice(2);
const source = join(root, pages[name]);
if (!existsSync(kernels)) fail("the page has the WebAssembly module in it: run npm run build:wasm first");
buildSources();

const folder = join(root, "build", `${name}-page`);
const outfile = join(folder, `${name}.js`);
mkdirSync(folder, { recursive: true });
copyFileSync(join(source, "index.html"), join(folder, "index.html"));
const headers = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };
const listed = Object.entries(headers).map(([key, value]) => ({ key, value }));
writeFileSync(join(folder, "serve.json"), JSON.stringify({ headers: [{ source: "**", headers: listed }] }));
const { warnings } = buildSync({
  absWorkingDir: root,
  entryPoints: [join(source, "main.mjs")],
  tsconfigRaw: {}, // imports find what package.json exports, not the sources
  ...{ bundle: true, minify: true, platform: "browser", format: "esm", target: "es2022", outfile },
});
if (warnings.length > 0) fail("the bundle has warnings");
console.log(`${folder}: index.html and ${name}.js, ${statSync(outfile).size} bytes`);
