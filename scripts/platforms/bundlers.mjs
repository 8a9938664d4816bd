// The package in applications that are traced or bundled. What bundlers do with esbuild's output is in
// test/package/addon.test.ts.
import { execFile } from "node:child_process";
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { buildSync } from "esbuild";
import { fail, isThere, npm, output, tryRun } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";

const folder = join(root, "build", "bundlers");
const tools = join(folder, "tools");
const application = join(folder, "application");
const golden = join(root, "test", "fixtures", "golden.gguf");

/** The releases that are tested. */
const versions = {
  "@rollup/plugin-commonjs": "29.0.3",
  "@rollup/plugin-node-resolve": "16.0.3",
  "@vercel/ncc": "0.45.0",
  "@vercel/nft": "1.11.5",
  miniflare: "4.20260730.0",
  rollup: "4.68.7",
  vite: "8.3.8",
  "vite-6": "npm:vite@6.4.6",
  "vite-7": "npm:vite@7.3.8",
  webpack: "5.112.2",
  "webpack-cli": "7.3.1",
};

function installTools() {
  const wanted = Object.entries(versions).map(([name, version]) => `${name}@${version}`);
  mkdirSync(tools, { recursive: true });
  writeFileSync(join(tools, "package.json"), '{ "private": true, "type": "module" }\n');
  npm("install", "--prefix", tools, "--no-audit", "--no-fund", "--ignore-scripts", ...wanted);
}

const tool = (name) => join(tools, "node_modules", ".bin", name);

/** An application that has the unpacked package in its node_modules, as a CommonJS and as an ES module. */
function makeApplication(unpacked) {
  rmSync(application, { recursive: true, force: true });
  mkdirSync(join(application, "node_modules"), { recursive: true });
  cpSync(unpacked, join(application, "node_modules", "gguf-native"), { recursive: true });
  const dependency = join("node_modules", "node-gyp-build");
  cpSync(join(root, dependency), join(application, dependency), { recursive: true });
  const use = `console.log(openSync(process.argv[2]).tensor("Q4_0.gaussian").dequantizeSync().length);\n`;
  const files = {
    "package.json": '{ "name": "application", "private": true }',
    "app.cjs": `const { openSync } = require("gguf-native");\n${use}`,
    "app.mjs": `import { openSync } from "gguf-native";\n${use}`,
    "entries.mjs": `import { dequantizeSync, GgufError } from "gguf-native";
      import { Embedder } from "gguf-native/embeddings";
      import { activate } from "gguf-native/network";
      import * as reference from "gguf-native/reference";
      import { Tokenizer, wordRuleNames } from "gguf-native/tokenizer";
      import { cpu, quantizeSync } from "gguf-native/wasm";
      export function useAll() {
        const blocks = quantizeSync("Q4_0", new Float32Array(2048));
        const lengths = [dequantizeSync("Q4_0", blocks), reference.dequantizeSync("Q4_0", blocks), activate(new Float32Array(3), "silu")].map((all) => all.length);
        const isOne = new reference.GgufError("ERR_GGUF_RANGE", "x") instanceof GgufError;
        return [cpu().isa, ...lengths, isOne, typeof Tokenizer, typeof Embedder.open, wordRuleNames.length > 0].join(" ");
      }`,
    "page.mjs": `import { useAll } from "./entries.mjs";
      globalThis.result = useAll();
      if (globalThis.document) document.title = result;`,
    "run-page.mjs": "await import(process.argv[2]); console.log(result);",
    "index.html": '<script type="module" src="/page.mjs"></script>',
    // With the condition "workerd".
    "worker.mjs": `import { useAll } from "./entries.mjs";
      import { dequantize } from "gguf-native";
      const run = async () => (await dequantize("F32", new Uint8Array(4))).length + " " + useAll();
      export default { fetch: async () => new Response(await run().catch((error) => error.code + error.message)) };`,
    // Without it.
    "told-worker.mjs": `import module from "gguf-native/kernels.wasm";
      import { useModule } from "gguf-native/wasm";
      import worker from "./worker.mjs";
      useModule(module);
      export default worker;`,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(application, name), text);
}

/** What the bundlers read: where they write to, and which packages they leave out. */
function writeSettings(out, external) {
  const files = {
    "rollup.config.mjs": `
      import commonjs from "${tools}/node_modules/@rollup/plugin-commonjs/dist/es/index.js";
      import { nodeResolve } from "${tools}/node_modules/@rollup/plugin-node-resolve/dist/es/index.js";
      const output = (format, file) => ({ format, file, inlineDynamicImports: true });
      export default {
        input: "app.mjs",
        external: ${external},
        plugins: [nodeResolve({ preferBuiltins: true }), commonjs()],
        output: [output("es", "${out}/rollup/app.mjs"), output("cjs", "${out}/rollup/app.cjs")],
      };`,
    "vite.config.mjs": `
      export default {
        build: { ssr: "app.mjs", outDir: "${out}/vite" },
        ssr: { noExternal: true, external: ${external} },
      };`,
    "webpack.config.mjs": `
      const path = "${application}/${out}/webpack";
      const common = { entry: "./app.mjs", target: "node", mode: "production" };
      const commonjs = Object.fromEntries(${external}.map((name) => [name, "commonjs " + name]));
      const module = Object.fromEntries(${external}.map((name) => [name, "module " + name]));
      export default [
        { ...common, externals: commonjs, output: { path, filename: "app.cjs" } },
        {
          ...{ ...common, externals: module, experiments: { outputModule: true } },
          output: { path, filename: "app.mjs", module: true },
        },
      ];`,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(application, name), text);
}

/** Bundles the application with each bundler, in the folder `out`; calls `check` with each bundle. */
function bundle(out, externals, check) {
  writeSettings(out, JSON.stringify(externals));
  runTool("rollup", "--config", "--silent");
  runTool("webpack");
  runTool("vite", "build", "--logLevel", "error");
  for (const [bundler, name] of [
    ["rollup", "app.mjs"],
    ["rollup", "app.cjs"],
    ["webpack", "app.cjs"],
    ["webpack", "app.mjs"],
    ["vite", "app.mjs"],
  ]) {
    const file = join(application, out, bundler, name);
    if (!existsSync(file)) fail(`${bundler} made no ${name}`);
    check(`${name}, bundled by ${bundler}`, file);
  }
}

/** What `useAll` of the application returns, where `gguf-native` is the WebAssembly. */
const USED_ALL = "wasm 2048 2048 3 true function function true";

/** Bundles for browsers, without plugins for CommonJS. They use nothing of a browser, so Node can run them. */
function bundleForBrowsers() {
  const files = {
    "rollup.page.mjs": `
      import { nodeResolve } from "${tools}/node_modules/@rollup/plugin-node-resolve/dist/es/index.js";
      export default {
        ...{ input: "page.mjs", plugins: [nodeResolve({ browser: true })] },
        output: { format: "es", file: "page/rollup.mjs" },
      };`,
    "vite.page.mjs": `
      const lib = { entry: "page.mjs", formats: ["es"], fileName: () => "vite.mjs" };
      export default { build: { lib, outDir: "page", emptyOutDir: false } };`,
    "webpack.page.mjs": `
      const output = { path: "${application}/page", filename: "webpack.mjs" };
      export default { entry: "./page.mjs", target: ["web", "es2022"], mode: "production", performance: false, output };`,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(application, name), text);
  runTool("rollup", "--config", "rollup.page.mjs", "--silent");
  runTool("webpack", "--config", "webpack.page.mjs");
  runTool("vite", "build", "--config", "vite.page.mjs", "--logLevel", "error");
  for (const bundler of ["rollup", "webpack", "vite"]) {
    const page = join(application, "page", `${bundler}.mjs`);
    const { status, stdout, stderr } = tryRun(process.execPath, ["run-page.mjs", page], { cwd: application });
    if (status !== 0 || stdout !== `${USED_ALL}\n`)
      fail(`page.mjs, bundled by ${bundler}, does not work:\n${stdout}${stderr}`);
    console.log(`page.mjs, bundled for browsers by ${bundler}: works`);
  }
}

/** The page in Chromium, from Vite's development server, which bundles no application. */
async function serveWithVite() {
  if (!isThere("chromium")) {
    console.log("page.mjs in Vite's development server: skipped, there is no chromium: apt-get install chromium");
    return;
  }
  for (const vite of ["vite", "vite-6", "vite-7"]) {
    const cacheDir = join(folder, `${vite}-cache`);
    rmSync(cacheDir, { recursive: true, force: true }); // it may have the package as it was
    const { createServer } = await import(`${tools}/node_modules/${vite}/dist/node/index.js`);
    const server = await createServer({
      ...{ root: application, configFile: false, logLevel: "error", cacheDir },
      server: { host: "127.0.0.1" },
    });
    await server.listen();
    const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"];
    const { stdout } = await promisify(execFile)("chromium", [...flags, server.resolvedUrls.local[0]], {
      timeout: 120_000,
    });
    await server.close();
    if (!stdout.includes(`<title>${USED_ALL}</title>`)) fail(`page.mjs does not work in ${vite}'s server:\n${stdout}`);
    console.log(`page.mjs, in the development server of ${vite}: works`);
  }
}

/** Cloudflare's runtime, which compiles no WebAssembly while it runs. */
async function runInWorkerd() {
  const { Miniflare } = await import(`${tools}/node_modules/miniflare/dist/src/index.js`);
  for (const [name, conditions, expected] of [
    ["worker.mjs", ["workerd", "worker", "browser"], `1 ${USED_ALL}`],
    ["told-worker.mjs", ["worker", "browser"], `1 ${USED_ALL}`],
    ["worker.mjs", ["worker", "browser"], /ERR_GGUF_OPEN.*useModule/],
  ]) {
    const outdir = join(folder, "worker");
    buildSync({
      ...{ absWorkingDir: application, entryPoints: [name], outdir, outExtension: { ".js": ".mjs" } },
      ...{ bundle: true, format: "esm", conditions, mainFields: ["module", "main"] },
      ...{ loader: { ".wasm": "copy" }, logLevel: "error" },
    });
    const worker = new Miniflare({
      ...{ modules: true, modulesRoot: outdir, scriptPath: join(outdir, name) },
      compatibilityDate: "2025-05-05", // from then on, there is FinalizationRegistry
      modulesRules: [
        { type: "ESModule", include: ["**/*.mjs"] },
        { type: "CompiledWasm", include: ["**/*.wasm"] },
      ],
    });
    const answer = await (await worker.dispatchFetch("http://localhost/")).text();
    await worker.dispose();
    if (!(typeof expected === "string" ? answer === expected : expected.test(answer)))
      fail(`${name} does not work in workerd, by the conditions ${conditions}:\n${answer}`);
    console.log(`${name} in workerd, by the conditions ${conditions}: as expected`);
  }
}

const runTool = (name, ...args) => output(tool(name), args, { cwd: application });

/**
 * Errors go to a file: Node shows the line that threw, a minified bundle is one line, and what a pipe has no room for
 * at that moment is lost.
 */
function node(file, env = {}) {
  const errors = join(folder, "stderr.txt");
  const descriptor = openSync(errors, "w");
  const { status, stdout } = tryRun(process.execPath, [file, golden], {
    cwd: folder,
    env: { ...process.env, GGUF_NATIVE_ADDON: "", ...env },
    stdio: ["ignore", "pipe", descriptor],
  });
  closeSync(descriptor);
  return { status, stdout, stderr: readFileSync(errors, "utf8") };
}

/** Works, with the addon: without it there would be a warning. */
function expectWorks(what, file, env) {
  const { status, stdout, stderr } = node(file, env);
  if (status !== 0 || stdout !== "2048\n" || stderr.includes("GGUF_NATIVE_WASM"))
    fail(`${what} does not work:\n${stdout}${stderr}`);
  console.log(`${what}: works`);
}

/** A bundle that the addon is not in: says so, and works where it is told where the addon is. */
function expectBundled(what, file) {
  const { status, stderr } = node(file);
  if (status !== 1 || !/Error: gguf-native was bundled.*GGUF_NATIVE_ADDON/.test(stderr)) {
    fail(`${what} does not say that the package was bundled:\n${stderr.slice(-2000)}`);
  }
  console.log(`${what}: says that the package was bundled`);
  const addon = join(application, "node_modules/gguf-native/prebuilds/linux-x64/gguf-native.node");
  expectWorks(`${what} with GGUF_NATIVE_ADDON`, file, { GGUF_NATIVE_ADDON: addon });
}

/** The files that nft finds, alone in another folder. */
function trace(name) {
  const script = `
    import { nodeFileTrace } from "${tools}/node_modules/@vercel/nft/out/index.js";
    const { fileList } = await nodeFileTrace(["${name}"], { base: process.cwd() });
    console.log(JSON.stringify([...fileList]));`;
  const files = JSON.parse(output(process.execPath, ["--input-type=module", "-e", script], { cwd: application }));
  const surplus = files.filter(
    (file) => !/^app\.|package\.json$|\/dist\/|\/prebuilds\/|\/node-gyp-build\/[\w-]+\.js$/.test(file),
  );
  if (surplus.length > 0) fail(`nft finds files that are not needed: ${surplus.join(", ")}`);
  const traced = join(folder, "traced", name);
  for (const file of files) cpSync(join(application, file), join(traced, file));
  expectWorks(`${name}, traced by nft (${files.length} files)`, join(traced, name));
}

export async function traceAndBundle(unpacked) {
  installTools();
  makeApplication(unpacked);
  rmSync(join(folder, "traced"), { recursive: true, force: true });
  for (const name of ["app.cjs", "app.mjs"]) {
    trace(name);
    const out = join("out", `ncc-${name}`);
    runTool("ncc", "build", name, "--out", out);
    // Elsewhere than it was made, so that no path leads back.
    const moved = join(folder, "traced", `ncc-${name}`);
    cpSync(join(application, out), moved, { recursive: true });
    const bundle = readdirSync(moved).find((file) => /^index\.\w*js$/.test(file));
    expectWorks(`${name}, bundled by ncc`, join(moved, bundle));
  }
  bundle("whole", [], expectBundled);
  bundle("external", ["gguf-native"], (what, file) => expectWorks(`${what} without the package`, file));
  if (!existsSync(join(application, "node_modules/gguf-native/dist/wasm/kernels.wasm"))) {
    console.log("for browsers: skipped, the package has no WebAssembly module: npm run build:wasm makes it");
    return;
  }
  bundleForBrowsers();
  await serveWithVite();
  await runInWorkerd();
}
