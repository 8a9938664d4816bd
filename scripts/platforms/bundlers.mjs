// The package in applications that are traced or bundled. What bundlers do with esbuild's output is in
// test/package/addon.test.ts.
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
import { fail, npm, output, tryRun } from "../lib/commands.mjs";
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
  rollup: "4.68.7",
  vite: "8.3.8",
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
    "page.mjs": `import { parse } from "gguf-native";
      import { ggmlTypes } from "gguf-native/wasm";
      globalThis.lengthOf = (bytes, name) => "Q4_0" in ggmlTypes && parse(bytes).tensor(name).dequantizeSync().length;`,
    "run-page.mjs": `import { readFileSync } from "node:fs";
      await import(process.argv[3]);
      console.log(lengthOf(readFileSync(process.argv[2]), "Q4_0.gaussian"));`,
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

/** Bundles for browsers: `gguf-native` is the WebAssembly there. They use nothing of a browser, so Node can run them. */
function bundleForBrowsers() {
  if (!existsSync(join(application, "node_modules/gguf-native/dist/wasm/kernels.wasm"))) {
    console.log(
      "bundles for browsers: skipped, the package has no WebAssembly module: npm run build:wasm makes it",
    );
    return;
  }
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
    const { status, stdout, stderr } = tryRun(process.execPath, ["run-page.mjs", golden, page], {
      cwd: application,
    });
    if (status !== 0 || stdout !== "2048\n")
      fail(`page.mjs, bundled by ${bundler}, does not work:\n${stdout}${stderr}`);
    console.log(`page.mjs, bundled for browsers by ${bundler}: works`);
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
  const files = JSON.parse(
    output(process.execPath, ["--input-type=module", "-e", script], { cwd: application }),
  );
  const surplus = files.filter(
    (file) => !/^app\.|package\.json$|\/dist\/|\/prebuilds\/|\/node-gyp-build\/[\w-]+\.js$/.test(file),
  );
  if (surplus.length > 0) fail(`nft finds files that are not needed: ${surplus.join(", ")}`);
  const traced = join(folder, "traced", name);
  for (const file of files) cpSync(join(application, file), join(traced, file));
  expectWorks(`${name}, traced by nft (${files.length} files)`, join(traced, name));
}

export function traceAndBundle(unpacked) {
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
  bundleForBrowsers();
}
