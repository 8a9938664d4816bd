// `npm run build:view`: the page to look at models, dist/view/index.html. It is one file: the program of the page, that of
// its worker with the WebAssembly module, and the styles are in it, and its policy allows these by their hashes and no others.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { fail } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";
import { bundleOptions, kernels } from "./bundle-wasm.mjs";
import { licensesOf } from "./licenses.mjs";

if (!existsSync(kernels)) fail("the page has the WebAssembly module in it: run npm run build:wasm first");

const view = join(root, "view");

/** What the page calls the package's modules, and where these are. */
const packageSources = {
  name: "package-sources",
  setup({ onResolve, resolve }) {
    const inSources = (path, { kind }) => resolve(`./src/${path}`, { kind, resolveDir: root });
    onResolve({ filter: /^gguf-native\/wasm$/ }, (from) => inSources("wasm/index.mts", from));
    onResolve({ filter: /^#dist\// }, (from) => inSources(from.path.slice("#dist/".length), from));
  },
};

/** All files that are in the page. */
const inputs = {};

/** The text that a bundle is. */
async function bundle(entry, plugins = []) {
  const { outputFiles, warnings, metafile } = await build({
    ...bundleOptions(),
    tsconfigRaw: { compilerOptions: { jsx: "react-jsx", jsxImportSource: "preact" } },
    resolveExtensions: [".browser.ts", ".ts", ".tsx", ".mjs", ".js"],
    entryPoints: [join(view, entry)],
    plugins: [packageSources, ...plugins],
    ...{ format: "iife", minify: true, charset: "utf8" },
  });
  if (warnings.length > 0) fail(`${entry} has warnings`);
  Object.assign(inputs, metafile.inputs);
  return outputFiles[0].text.trim();
}

/** `virtual:worker`, which is the program of the worker as text. */
const workerText = {
  name: "worker-text",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^virtual:worker$/ }, ({ path }) => ({ path, namespace: "worker" }));
    onLoad({ filter: /./, namespace: "worker" }, async () => ({
      contents: await bundle("worker.ts"),
      loader: "text",
    }));
  },
};

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const script = await bundle("main.tsx", [workerText]);
if (/<\/script|<!--/i.test(script)) fail("the program has text that would end its element");
const style = await bundle("style.css");

const policy = [
  "default-src 'none'",
  `script-src ${hash(script)} 'wasm-unsafe-eval'`,
  `style-src ${hash(style)}`,
  "worker-src blob:",
  "connect-src 'self' https: http://127.0.0.1:* http://localhost:*",
  "img-src data: blob:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

const parts = { POLICY: policy, STYLE: style, SCRIPT: script, LICENSES: licensesOf(inputs) };
const html = readFileSync(join(view, "index.html"), "utf8").replace(
  /@(POLICY|STYLE|SCRIPT|LICENSES)@/g,
  (_, name) => parts[name],
);
mkdirSync(join(root, "dist", "view"), { recursive: true });
const file = join(root, "dist", "view", "index.html");
writeFileSync(file, html);
console.log(`dist/view/index.html: ${statSync(file).size} bytes`);
