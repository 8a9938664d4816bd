// `npm run build -- view`: the page to look at models, dist/view/index.html. It is one file: the program of the page, that of
// its worker with the WebAssembly module, and the styles are in it, and its policy allows these by their hashes and no others.
// Beside it, dist/view/session.js: what answers the page's questions under `gguf-native view`. Also build/site: that page and
// a sample model, two files for any static server.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { build } from "esbuild";
import { buildTests } from "../lib/build.mjs";
import { fail } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";
import { sampleForPage } from "../lib/sample.mjs";
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
async function bundle(entry) {
  const { outputFiles, warnings, metafile } = await build({
    ...bundleOptions(),
    tsconfigRaw: { compilerOptions: { jsx: "react-jsx", jsxImportSource: "preact" } },
    resolveExtensions: [".browser.ts", ".ts", ".tsx", ".mjs", ".js"],
    entryPoints: [join(view, entry)],
    plugins: [packageSources, workerTexts],
    ...{ format: "iife", minify: true, charset: "utf8" },
  });
  if (warnings.length > 0) fail(`${entry} has warnings`);
  Object.assign(inputs, metafile.inputs);
  return outputFiles[0].text.trim();
}

/** The session that answers the page under `gguf-native view`: with the package's modules, which are beside it. */
async function sessionBundle() {
  const { outputFiles, warnings, metafile } = await build({
    ...{ absWorkingDir: root, tsconfigRaw: {}, write: false, metafile: true, bundle: true },
    ...{ platform: "node", format: "cjs", target: "node20", legalComments: "none" },
    entryPoints: [join(view, "server", "index.ts")],
    external: ["gguf-native", "#dist/*"],
  });
  if (warnings.length > 0) fail("the session has warnings");
  const licenses = licensesOf(metafile.inputs);
  return licenses === "" ? outputFiles[0].text : `${outputFiles[0].text}/*\n${licenses}\n*/\n`;
}

/** `virtual:NAME`, which is the program of a worker as text: `view/NAME.ts`. A worker may start others. */
const workerTexts = {
  name: "worker-texts",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^virtual:/ }, ({ path }) => ({ path, namespace: "worker" }));
    onLoad({ filter: /./, namespace: "worker" }, async ({ path }) => ({
      contents: await bundle(`${path.slice("virtual:".length)}.ts`),
      loader: "text",
    }));
  },
};

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const script = await bundle("main.tsx");
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
write("dist/view/session.js", await sessionBundle());
write("dist/view/index.html", html);

buildTests(); // the sample is one of them, too
const sample = "sample.gguf";
write("build/site/index.html", html.replace('<div id="app">', `<div id="app" data-sample="${sample}">`));
write(`build/site/${sample}`, sampleForPage());

function write(name, content) {
  const file = join(root, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  console.log(`${name}: ${statSync(file).size} bytes`);
}
