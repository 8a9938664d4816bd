// What the other scripts share: building what they need.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { bundle } from "../build/bundle.mjs";
import { makeVendorFolder } from "../build/vendor.mjs";
import { fail, run, tryRun } from "./commands.mjs";
import { addonFolder, addons, root, variantFolder } from "./paths.mjs";

const require = createRequire(import.meta.url);

/** Runs `node FILE ...` in the project; ends this process if it fails. */
export function runNode(...args) {
  run(process.execPath, args);
}

/** Where tsc puts what it makes of which folder: see tsconfig.json and src/tsconfig.json. */
const compiledFolders = {
  src: "dist",
  bench: "build/bench",
  examples: "build/examples",
  test: "build/test",
  view: "build/view",
};

/** What scripts/build/view.mjs and bundle-wasm.mjs put between what tsc makes. */
const bundled = [join("view", "session.js"), join("wasm", "shared-")];

/** Compiles the TypeScript of a project and of those that it refers to, as far as it changed, and bundles what is bundled. */
function compile(project, ...options) {
  for (const [sources, outputs] of Object.entries(compiledFolders)) removeOrphans(sources, outputs);
  runNode(require.resolve("typescript/bin/tsc"), "--build", project, ...options);
  bundle();
}

/** Removes what tsc has made of sources that are gone, which it never does itself: imports would still find it. */
function removeOrphans(sources, outputs) {
  if (!existsSync(join(root, outputs))) return;
  for (const name of readdirSync(join(root, outputs), { recursive: true })) {
    const [, stem, kind] = /^(.*?)(?:\.d)?\.([cm]?)[jt]s(?:\.map)?$/.exec(name) ?? [];
    if (stem === undefined || bundled.some((begin) => name.startsWith(begin))) continue;
    if (existsSync(join(root, sources, `${stem}.${kind}ts`))) continue;
    rmSync(join(root, outputs, name));
  }
}

/** Compiles the sources of the package; `options` are further ones of tsc. */
export const buildSources = (...options) => compile("src", ...options);

/**
 * Compiles all TypeScript that runs in Node: the sources, tests, benchmarks, examples, and parts of the page for the tests.
 */
export function buildTests() {
  compile(".");
}

/** Beside the addon: what it was compiled from. */
const addonRecord = `${addons[0]}.json`;

/** The sources of the addon, and the addon itself, each as a text that changes with it. */
function addonState() {
  const hash = createHash("sha256");
  const files = readdirSync(join(root, "native"), { recursive: true }).map((name) => join("native", name));
  // What is for WebAssembly is not in the addon.
  const isSource = (file) => /(\.(cc|h|def|map)|[/\\]sources\.txt)$/.test(file) && !/[/\\]wasm[./\\]/.test(file);
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
  const jobs = process.env.JOBS ?? "max";
  runNode(require.resolve("node-gyp/bin/node-gyp.js"), "rebuild", `--jobs=${jobs}`, ...given, ...options);
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

/** Compiles the sources, and the addon if there is none. */
export function buildPackage() {
  buildSources();
  needAddon();
}

/** Compiles all TypeScript, and the addon if there is none. */
export function buildAll() {
  buildTests();
  needAddon();
}

function needAddon() {
  makeVendorFolder();
  if (addons.some(existsSync)) return;
  console.log(
    "Compiling the addon: kernels for each instruction set, once. This takes a minute or two, longer on few cores.\n" +
      "To install without it: npm ci --ignore-scripts, then npm run build -- ts. Installed as a package, it is compiled already.",
  );
  buildAddon();
}

/** CMake's setting for cross-compiling, with a file of native/cmake. */
export const toolchainSetting = (name) => `-DCMAKE_TOOLCHAIN_FILE=${join(root, "native", "cmake", `${name}.cmake`)}`;

/** Compiles the addon in the folder of a variant, with what is compiled there already; `settings` are CMake's. */
export function buildVariant(variant, settings, env = process.env) {
  const folder = variantFolder(variant);
  const headers = [require("node-api-headers").include_dir, resolve(root, require("node-addon-api").include_dir)];
  const common = [
    ...["-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_JS_VERSION=8", `-DCMAKE_JS_INC=${headers.join(";")}`],
    `-DCMAKE_LIBRARY_OUTPUT_DIRECTORY=${addonFolder(variant)}`,
  ];
  run("cmake", ["-S", join(root, "native"), "-B", folder, ...common, ...settings], { env });
  run("cmake", ["--build", folder, "--target", "gguf_native", "--parallel", String(availableParallelism())]);
}
