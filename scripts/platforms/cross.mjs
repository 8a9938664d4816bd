// The addon for macOS and Windows, compiled here with the Clang of Zig (ziglang of the Python package index), so that a release
// does not fail on the day it is made. Nothing of it runs here: this checks that everything compiles without a warning, links,
// and exports what Node.js looks for.
import { execFile } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { makeVendorFolder } from "../build/vendor.mjs";
import { fail, forEachAtOnce, need, output, run } from "../lib/commands.mjs";
import { root } from "../lib/paths.mjs";

const VERSION = "0.17.1";
const folder = join(root, "build", "cross");
const zig = join(folder, `ziglang-${VERSION}`, "ziglang", "zig");

const mac = { link: ["-Wl,-undefined,dynamic_lookup"], flags: ["-mmacosx-version-min=11.0"], symbol: "_" };
const windows = { link: [], flags: ["-DNOMINMAX", "-DWIN32_LEAN_AND_MEAN"], symbol: "" };
const targets = {
  "darwin-arm64": { target: "aarch64-macos", ...mac },
  "darwin-x64": { target: "x86_64-macos", ...mac },
  "win32-arm64": { target: "aarch64-windows-gnu", machine: "arm64", ...windows },
  "win32-x64": { target: "x86_64-windows-gnu", machine: "i386:x86-64", ...windows },
};

/** As binding.gyp has them. */
const flags = [
  ...["-std=c++17", "-O3", "-ffp-contract=off", "-fvisibility=hidden", "-fvisibility-inlines-hidden"],
  ...["-Wall", "-Wextra", "-Werror", "-fno-sanitize=undefined", "-Inative", "-isystem", "vendor/node-addon-api"],
  ...["-DNAPI_VERSION=8", "-DNODE_ADDON_API_CPP_EXCEPTIONS", "-DNODE_ADDON_API_DISABLE_DEPRECATED"],
  "-DNODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS",
];

function fetchZig() {
  if (existsSync(zig)) return;
  need(["python3", "python3-pip"]);
  const into = join(folder, `ziglang-${VERSION}`);
  run("python3", ["-m", "pip", "install", "--quiet", "--target", into, `ziglang==${VERSION}`]);
}

/** Compiles and links the addon of a system; returns its path. */
async function compile(system) {
  const { target, link, flags: own, machine } = targets[system];
  const place = join(folder, system);
  const headers = createRequire(import.meta.url)("node-api-headers");
  const sources = readFileSync(join(root, "native", "sources.txt"), "utf8").match(/^[a-z]\S+/gm);
  const objects = sources.map((source) => join(place, `${source}.o`));
  rmSync(place, { recursive: true, force: true });
  for (const object of objects) mkdirSync(dirname(object), { recursive: true });
  const compiler = ["c++", "-target", target, ...own];
  await forEachAtOnce(sources.keys(), async (i) => {
    const args = [...compiler, ...flags, `-isystem${headers.include_dir}`];
    const options = { cwd: root, maxBuffer: 2 ** 24 };
    await promisify(execFile)(zig, [...args, "-c", join("native", sources[i]), "-o", objects[i]], options);
  });
  const library = join(place, "node.lib");
  if (machine !== undefined) {
    run(zig, ["dlltool", "-m", machine, "-d", headers.def_paths.node_api_def, "-D", "node.exe", "-l", library]);
  }
  const addon = join(place, "gguf-native.node");
  run(zig, [...compiler, "-shared", "-s", ...objects, ...link, ...(machine ? [library] : []), "-o", addon]);
  return addon;
}

const wanted = ["napi_register_module_v1", "node_api_module_get_api_version_v1"];

/** What of the addon others can see: what Node.js looks for, and nothing of its own. */
function checkExports(system, addon) {
  const text = system.startsWith("win32")
    ? output("llvm-readobj-16", ["--coff-exports", addon])
    : output("llvm-nm-16", ["--extern-only", "--defined-only", addon]);
  const names = [...text.matchAll(/(?:Name: | [A-Z] )(\S+)/g)].map(([, name]) => name);
  const missing = wanted.filter((name) => !names.includes(targets[system].symbol + name));
  const own = names.filter((name) => name.includes("4gguf"));
  if (missing.length > 0) fail(`the addon of ${system} does not export ${missing.join(", ")}`);
  if (own.length > 0) fail(`the addon of ${system} exports ${own.join(", ")}`);
}

/** @param into where to copy the addons, as prebuilds/ has them; nowhere if undefined */
export async function compileForOtherSystems({ systems = Object.keys(targets), into } = {}) {
  need(["llvm-nm-16", "llvm-16"]);
  fetchZig();
  makeVendorFolder();
  for (const system of systems) {
    const addon = await compile(system);
    checkExports(system, addon);
    console.log(`${system}: compiles without a warning, links, and exports what Node.js needs`);
    if (into === undefined) continue;
    mkdirSync(join(into, system), { recursive: true });
    copyFileSync(addon, join(into, system, "gguf-native.node"));
  }
}
