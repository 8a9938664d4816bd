// What the other scripts share: building what they need.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { bundleJson } from "../build/bundle-json.mjs";
import { bundleWasm, kernels } from "../build/bundle-wasm.mjs";
import { makeVendorFolder } from "../build/vendor.mjs";
import { fail, run, tryRun } from "./commands.mjs";
import { addonFolder, addons, root, variantFolder } from "./paths.mjs";

const require = createRequire(import.meta.url);

/** Runs `node FILE ...` in the project; ends this process if it fails. */
export function runNode(...args) {
  run(process.execPath, args);
}

/**
 * Compiles the TypeScript sources; `options` are further ones of tsc. Bundles what is bundled: the WebAssembly module where
 * it is.
 */
export function buildSources(...options) {
  const hasCompiled = compile({
    sources: "src",
    config: "tsconfig.build.json",
    output: join("dist", "index.js"),
    options,
  });
  if (!hasCompiled) return;
  bundleJson();
  if (existsSync(kernels)) bundleWasm();
}

/**
 * Runs tsc if there is no `output`, or if sources, configurations or options are not those of the last time. Starting
 * tsc takes seconds even if it finds nothing to do. Returns whether it ran.
 */
function compile({ sources, config, output, options = [] }) {
  removeOrphans(config);
  const configurations = readdirSync(root).filter((name) =>
    /^tsconfig.*\.json$|^package.*\.json$/.test(name),
  );
  const files = readdirSync(join(root, sources), { recursive: true }).map((name) => join(sources, name));
  const hash = createHash("sha256").update(JSON.stringify(options));
  for (const file of [...configurations, ...files].sort()) {
    const { mtimeMs, size } = statSync(join(root, file));
    hash.update(`${file} ${mtimeMs} ${size}\n`);
  }
  const inputs = hash.digest("hex");
  const stamp = join(root, "build", `${config}.inputs`);
  if (existsSync(join(root, output)) && existsSync(stamp) && readFileSync(stamp, "utf8") === inputs)
    return false;
  console.error(`Compiling ${sources}/ ...`);
  runNode(require.resolve("typescript/bin/tsc"), "-p", config, ...options);
  mkdirSync(join(root, "build"), { recursive: true });
  writeFileSync(stamp, inputs);
  return true;
}

/** Removes what tsc has made of sources that are gone: it would still be loaded, and tests among it would run. */
function removeOrphans(config) {
  const { compilerOptions } = JSON.parse(readFileSync(join(root, config), "utf8"));
  const [sources, outputs] = [compilerOptions.rootDir, compilerOptions.outDir].map((name) =>
    join(root, name),
  );
  if (!existsSync(outputs)) return;
  for (const name of readdirSync(outputs, { recursive: true })) {
    const [, stem, kind] = /^(.*?)(?:\.d)?\.([cm]?)[jt]s(?:\.map)?$/.exec(name) ?? [];
    if (stem === undefined || existsSync(join(sources, `${stem}.${kind}ts`))) continue;
    rmSync(join(outputs, name));
  }
}

/** Beside the addon: what it was compiled from. */
const addonRecord = `${addons[0]}.json`;

/** The sources of the addon, and the addon itself, each as a text that changes with it. */
function addonState() {
  const hash = createHash("sha256");
  const files = readdirSync(join(root, "native"), { recursive: true }).map((name) => join("native", name));
  // What is for WebAssembly is not in the addon.
  const isSource = (file) =>
    /(\.(cc|h|def|map)|[/\\]sources\.txt)$/.test(file) && !/[/\\]wasm[./\\]/.test(file);
  for (const file of ["binding.gyp", ...files.filter(isSource)].sort()) {
    hash.update(`${file}\n`).update(readFileSync(join(root, file)));
  }
  const { mtimeMs, size } = statSync(addons[0]);
  return { sources: hash.digest("hex"), addon: `${mtimeMs} ${size}` };
}

/** The folder of headers that node-gyp is to take, which otherwise may download some; as `gguf-native build` finds it. */
export function findHeaders() {
  makeVendorFolder();
  buildSources();
  return require(join(root, "dist", "cli", "work", "node-headers.js")).headersFolder(root);
}

/** Compiles the addon; `options` are further ones of node-gyp. */
export function buildAddon(...options) {
  const headers = findHeaders();
  const given = headers === undefined ? [] : [`--nodedir=${headers}`];
  runNode(require.resolve("node-gyp/bin/node-gyp.js"), "rebuild", ...given, ...options);
  if (existsSync(addons[0])) writeFileSync(addonRecord, JSON.stringify(addonState()));
}

/**
 * Ends this process if tests would fail only because of the addon: it was compiled from other sources, or does not load. Of
 * an addon that {@link buildAddon} did not make, nothing is known.
 */
export function checkAddon() {
  if (process.env.GGUF_NATIVE_ADDON) return;
  if (existsSync(addonRecord) && existsSync(addons[0])) {
    const [then, now] = [JSON.parse(readFileSync(addonRecord, "utf8")), addonState()];
    if (then.addon === now.addon && then.sources !== now.sources) {
      fail("The addon was compiled from other sources than those in native/: run 'npm run build:native'");
    }
  }
  const { status, stderr } = tryRun(process.execPath, ["-e", `require(${JSON.stringify(root)})`]);
  if (status === 0 && !stderr.includes("[GGUF_NATIVE_WASM]")) return;
  const [reason] = /^\w*Error: .*$|\[GGUF_NATIVE_WASM\].*$/m.exec(stderr) ?? [stderr];
  fail(`The addon does not load: run 'npm run build:native' (${reason})`);
}

/** Compiles the addon if there is none, and the TypeScript sources. */
export function buildPackage() {
  makeVendorFolder();
  buildSources();
  if (addons.some(existsSync)) return;
  console.log("Compiling the addon ...");
  buildAddon();
}

/** CMake's setting for cross-compiling, with a file of native/cmake. */
export const toolchainSetting = (name) =>
  `-DCMAKE_TOOLCHAIN_FILE=${join(root, "native", "cmake", `${name}.cmake`)}`;

/** Compiles the addon in the folder of a variant, with what is compiled there already; `settings` are CMake's. */
export function buildVariant(variant, settings, env = process.env) {
  const folder = variantFolder(variant);
  const headers = [
    require("node-api-headers").include_dir,
    resolve(root, require("node-addon-api").include_dir),
  ];
  const common = [
    ...["-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_JS_VERSION=8", `-DCMAKE_JS_INC=${headers.join(";")}`],
    `-DCMAKE_LIBRARY_OUTPUT_DIRECTORY=${addonFolder(variant)}`,
  ];
  run("cmake", ["-S", join(root, "native"), "-B", folder, ...common, ...settings], { env });
  run("cmake", ["--build", folder, "--target", "gguf_native", "--parallel", String(availableParallelism())]);
}

/** Compiles the examples to build/examples. */
export function buildExamples() {
  buildSources();
  compile({
    sources: "examples",
    config: "tsconfig.examples.json",
    output: join("build", "examples", "llama.js"),
  });
}

/** Compiles the part of the page that knows no browser to build/view. */
function buildViewParts() {
  compile({
    sources: join("view", "lib"),
    config: "tsconfig.view.json",
    output: join("build", "view", "lib", "session.js"),
  });
}

/** Compiles the tests and their support code to build/test, and the examples and parts of the page, which some tests import. */
export function buildTests() {
  buildExamples();
  buildViewParts();
  compile({
    sources: "test",
    config: "tsconfig.test.json",
    output: join("build", "test", "support", "sample-model.js"),
  });
}
