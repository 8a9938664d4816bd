// What the other scripts share: building what they need.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { bundleWasm, kernels } from "./bundle-wasm.mjs";
import { run } from "./commands.mjs";
import { addonFolder, addons, root, variantFolder } from "./paths.mjs";
import { makeVendorFolder } from "./vendor.mjs";

const require = createRequire(import.meta.url);

/** Runs `node FILE ...` in the project; ends this process if it fails. */
export function runNode(...args) {
  run(process.execPath, args);
}

/** Compiles the TypeScript sources; `options` are further ones of tsc. Where the WebAssembly module is, bundles it. */
export function buildSources(...options) {
  const hasCompiled = compile({
    sources: "src",
    config: "tsconfig.build.json",
    output: join("dist", "index.js"),
    options,
  });
  if (hasCompiled && existsSync(kernels)) bundleWasm();
}

/**
 * Runs tsc if there is no `output`, or if sources, configurations or options are not those of the last time. Starting
 * tsc takes seconds even if it finds nothing to do. Returns whether it ran.
 */
function compile({ sources, config, output, options = [] }) {
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

/** Compiles the addon if there is none, and the TypeScript sources. */
export function buildPackage() {
  makeVendorFolder();
  if (!addons.some(existsSync)) {
    console.log("Compiling the addon ...");
    runNode(require.resolve("node-gyp/bin/node-gyp.js"), "rebuild");
  }
  buildSources();
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
