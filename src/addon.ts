/**
 * Finds and loads the addon. Everything that can go wrong is an Error whose message says what to do.
 *
 * The paths of addons stand here in plain sight, as `path.join(__dirname, "...")`: that is what programs recognise
 * which collect the files of an application (@vercel/nft, ncc, pkg). Bundlers take no notice of them.
 */
import fs = require("node:fs");
import path = require("node:path");

import { BUNDLED } from "./bundled";

/** Where the addon is, and why it is this one. */
export interface AddonChoice {
  readonly path: string;
  readonly reason: string;
}

/** How the addon is compiled. A system without a prebuilt addon needs it once. */
export function buildAdvice(): string {
  const command = process.versions.pnp ? "yarn gguf-native build" : "npx gguf-native build";
  return `'${command}' compiles it, which needs Python 3, make and a C++17 compiler`;
}

/** The system that an addon is for, as Node names it. */
export const system = `${process.platform}-${process.arch}`;

/** Where the addon is that was compiled here. */
function compiled(): string {
  return path.join(__dirname, "../build/Release/gguf_native.node");
}

/** Where the addon of a release is for this system. */
function prebuilt(): string | undefined {
  switch (system) {
    case "darwin-arm64":
      return path.join(__dirname, "../prebuilds/darwin-arm64/gguf-native.node");
    case "darwin-x64":
      return path.join(__dirname, "../prebuilds/darwin-x64/gguf-native.node");
    case "linux-arm64":
      return path.join(__dirname, "../prebuilds/linux-arm64/gguf-native.node");
    case "linux-x64":
      return path.join(__dirname, "../prebuilds/linux-x64/gguf-native.node");
    case "win32-arm64":
      return path.join(__dirname, "../prebuilds/win32-arm64/gguf-native.node");
    case "win32-x64":
      return path.join(__dirname, "../prebuilds/win32-x64/gguf-native.node");
  }
  return undefined;
}

/** Where the kernels in WebAssembly are. */
function wasm(): string {
  return path.join(__dirname, "wasm/kernels.wasm");
}

/** The folder that this file is in, or the bundle that it became a part of; not in a bundle that is an ES module. */
const here = typeof __filename === "string" ? path.dirname(__filename) : undefined;

/** The folder of the package, unless this is a part of a bundle. */
export function packageFolder(): string | undefined {
  if (here === undefined) return undefined;
  const folder = path.dirname(here);
  try {
    const manifest = JSON.parse(fs.readFileSync(`${folder}/package.json`, "utf8")) as { name?: unknown };
    return manifest.name === "gguf-native" ? folder : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Chooses the addon: what GGUF_NATIVE_ADDON names, else what was compiled here, else the prebuilt one of this system.
 * @throws Error where there is none
 */
export function findAddon(): AddonChoice {
  const named = process.env.GGUF_NATIVE_ADDON;
  if (named) return { path: checkNamed(path.resolve(named)), reason: "named by GGUF_NATIVE_ADDON" };
  for (const [locate, reason] of [
    [compiled, "compiled on this machine"],
    [prebuilt, `prebuilt for ${system}`],
  ] as const) {
    const file = usable(locate);
    if (file !== undefined) return { path: file, reason };
  }
  const isInPackage = packageFolder() !== undefined;
  throw new Error(
    isInPackage ? `gguf-native has no prebuilt addon for this system (${system}): ${buildAdvice()}` : BUNDLED,
  );
}

/** The WebAssembly module that takes the addon's place; undefined where there is none, or nothing to run it. */
export function findModule(): string | undefined {
  return "WebAssembly" in globalThis ? usable(wasm) : undefined;
}

/** The path of a file of this package, if it is there. */
function usable(locate: () => string | undefined): string | undefined {
  const file = orUndefined(locate);
  if (file === undefined || !fs.existsSync(file)) return undefined;
  return packageFolder() !== undefined || isBesideBundle(file) ? file : undefined;
}

/** The path, if there is a `__dirname`: a bundle that is an ES module has none. */
function orUndefined(locate: () => string | undefined): string | undefined {
  try {
    return locate();
  } catch {
    return undefined;
  }
}

/**
 * In a bundle the paths of addons lead to the application's files, unless a bundler that knows addons has put them beside
 * the bundle, and changed the paths accordingly.
 */
function isBesideBundle(file: string): boolean {
  return here === undefined || !path.relative(here, file).startsWith("..");
}

function checkNamed(file: string): string {
  const stats = fs.statSync(file, { throwIfNoEntry: false });
  if (stats?.isFile()) return file;
  const what = stats === undefined ? "does not exist" : "is not a file";
  throw new Error(`gguf-native: GGUF_NATIVE_ADDON names '${file}', which ${what}`);
}

/**
 * Loads an addon; each call makes an instance with a state of its own.
 * @throws Error where the system or the runtime refuses it, or where it is no addon of this package
 */
export function loadAddon({ path: file }: AddonChoice): object {
  const module = { exports: {} };
  try {
    // Not by `require`, which takes a file with another ending for JavaScript, and which bundlers replace.
    process.dlopen(module, path.toNamespacedPath(file));
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    throw new Error(`gguf-native cannot load its addon: ${explain(file, code, message)}`, { cause });
  }
  if ("failureMark" in module.exports) return module.exports;
  throw new Error(`gguf-native cannot load its addon: '${file}' is the addon of something else`);
}

/** Why an addon does not load, and what to do. */
function explain(file: string, code: string | undefined, message: string): string {
  if (code === "ERR_DLOPEN_DISABLED") {
    const flags = `${process.execArgv.join(" ")} ${process.env.NODE_OPTIONS ?? ""}`;
    return flags.includes("--no-addons")
      ? "Node.js was started with --no-addons: leave that out"
      : "the permission model of Node.js forbids addons: start it with --allow-addons, too";
  }
  const text = message.trim();
  if (/failed to map segment/.test(text)) {
    return `'${file}' is on a file system that is mounted noexec, which forbids to run code from there: install the package elsewhere, or set GGUF_NATIVE_ADDON to a copy of the file in a place that allows it (${text})`;
  }
  if (/GLIBC|version `|[Ss]ymbol not found|relocating/.test(text)) {
    return `it needs a newer system: ${buildAdvice()} (${text})`;
  }
  return text.includes(file) ? text : `${text} (${file})`;
}
