/** Finds and loads the addon. Everything that can go wrong is an Error whose message says what to do. */
import fs = require("node:fs");
import path = require("node:path");

import { BUNDLED } from "./bundled";
import type { NativeAddon } from "./native-surface";

/** The addon that was loaded last. */
let loaded: Partial<NativeAddon> | undefined;

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

/**
 * Where bundlers put the addon that know addons (ncc), and what is seen by programs that collect the files of an application
 * (@vercel/nft, ncc): a path in plain sight, of which they take whatever stands for the system. Other bundlers take no notice.
 */
function relocated(): string {
  return path.join(__dirname, `../../prebuilds/${system}/gguf-native.node`);
}

/** Where the kernels in WebAssembly are: in sight of the same programs. */
function wasm(): string {
  return path.join(__dirname, "../wasm/kernels.wasm");
}

/** Where applications put them that are bundled by another program. */
function wasmBesideBundle(): string {
  return path.join(__dirname, "wasm/kernels.wasm");
}

/** The folder that this file is in, or the bundle that it became a part of; not in a bundle that is an ES module. */
const here = typeof __filename === "string" ? path.dirname(__filename) : undefined;

/** The folder of the package, unless this is a part of a bundle. */
export function packageFolder(): string | undefined {
  if (here === undefined) return undefined;
  const folder = path.join(here, "../..");
  try {
    const manifest = JSON.parse(fs.readFileSync(`${folder}/package.json`, "utf8")) as { name?: unknown };
    return manifest.name === "gguf-native" ? folder : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Chooses the addon: what GGUF_NATIVE_ADDON names, else what node-gyp-build finds in the package: what was compiled here, else
 * the prebuilt one of this system.
 * @throws Error where there is none
 */
export function findAddon(): AddonChoice {
  const named = process.env.GGUF_NATIVE_ADDON;
  if (named) return { path: checkNamed(path.resolve(named)), reason: "named by GGUF_NATIVE_ADDON" };
  const folder = packageFolder();
  const file = folder === undefined ? usable(relocated) : addonIn(folder);
  if (file === undefined) {
    throw new Error(
      folder === undefined
        ? BUNDLED
        : `gguf-native has no prebuilt addon for this system (${system}): ${buildAdvice()}`,
    );
  }
  const isCompiled = folder !== undefined && isInside(path.join(folder, "build"), file);
  return { path: file, reason: isCompiled ? "compiled on this machine" : `prebuilt for ${system}` };
}

/** The addon in the folder of the package, by the names that prebuildify and node-gyp give. */
function addonIn(folder: string): string | undefined {
  try {
    const file = nodeGypBuild().path(folder);
    // It also looks beside Node's executable, where the addons of other packages may be.
    return isInside(folder, file) ? file : undefined;
  } catch {
    return undefined;
  }
}

/**
 * When it is loaded, node-gyp-build looks for a file of Alpine's, unless it is told the C library. Node's permission model may
 * forbid that. An addon that is not for one of the C libraries alone is found then, too.
 */
function nodeGypBuild(): { path(folder: string): string } {
  try {
    return require("node-gyp-build");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_ACCESS_DENIED") throw error;
    process.env.LIBC = "glibc";
    try {
      return require("node-gyp-build");
    } finally {
      delete process.env.LIBC;
    }
  }
}

/** The WebAssembly module that takes the addon's place; undefined where there is none, or nothing to run it. */
export function findModule(): string | undefined {
  return "WebAssembly" in globalThis ? (usable(wasm) ?? usable(wasmBesideBundle)) : undefined;
}

/** The path of a file of this package, if it is there. */
function usable(locate: () => string): string | undefined {
  const file = orUndefined(locate);
  if (file === undefined || !fs.existsSync(file)) return undefined;
  return packageFolder() !== undefined || isBesideBundle(file) ? file : undefined;
}

/** The path, if there is a `__dirname`: a bundle that is an ES module has none. */
function orUndefined(locate: () => string): string | undefined {
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
  return here === undefined || isInside(here, file);
}

function isInside(folder: string, file: string): boolean {
  const way = path.relative(folder, file);
  return !way.startsWith("..") && !path.isAbsolute(way); // absolute: on another drive
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
  if ("failureMark" in module.exports) {
    loaded = module.exports as NativeAddon;
    return module.exports;
  }
  throw new Error(`gguf-native cannot load its addon: '${file}' is the addon of something else`);
}

/** Ends this process with `code` after `milliseconds`, unless it has ended by then. Does nothing where no addon was loaded. */
export function endProcess(milliseconds: number, code: number): void {
  loaded?.endProcess?.(milliseconds, code);
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
