/**
 * The addon, with errors and values of this realm; or the WebAssembly module in its place. Only this file uses them.
 * `native-surface.ts` types both.
 *
 * Copies of this module, in several realms, may share one addon. So arrays and errors get their classes here: the addon
 * throws plain objects, {@link Failure}, of which {@link errorOf} makes a `GgufError` or a `TypeError`.
 */
import { constants } from "node:buffer";
import { getEnvironmentData, setEnvironmentData } from "node:worker_threads";
import { GgufError } from "../base/errors";
import { limitArrays } from "../base/typed-arrays";
import { findAddon, findModule, loadAddon } from "./addon";
import type { Failure, NativeAddon } from "./native-surface";
import { errorInThisRealm, inThisRealm } from "./realm";
import { systemError } from "./system-error";

export type * from "./native-surface";

type NativeFunction = (...args: unknown[]) => unknown;

/** The WebAssembly module, if that is in use. */
export let wasm: { readonly path: string; readonly reason: string } | undefined;

const addon = loadEither();

/**
 * The addon; or, where none can be loaded and none was asked for by name, the module, with a warning. GGUF_NATIVE_WASM=1 asks
 * for the module.
 */
function loadEither(): NativeAddon {
  if (process.env.GGUF_NATIVE_WASM === "1") return loadWasm("GGUF_NATIVE_WASM is 1");
  try {
    return loadAddon(findAddon()) as NativeAddon;
  } catch (error) {
    if (process.env.GGUF_NATIVE_ADDON || findModule() === undefined) throw error;
    const reason = (error as Error).message;
    warnOfWasm(reason);
    return loadWasm(reason);
  }
}

/** Once: threads that are started later know that it was said. */
function warnOfWasm(reason: string): void {
  const code = "GGUF_NATIVE_WASM";
  if (getEnvironmentData(code) !== undefined) return;
  setEnvironmentData(code, true);
  const warning = `kernels in WebAssembly take the place of the addon, several times slower: ${reason}`;
  process.emitWarning(warning, { code });
}

function loadWasm(reason: string): NativeAddon {
  const path = findModule();
  if (path === undefined) {
    throw new Error(`gguf-native cannot load its WebAssembly module: dist/wasm/kernels.wasm is not there (${reason})`);
  }
  wasm = { path, reason };
  const { loadModule } = require("./wasm/in-node") as typeof import("./wasm/in-node");
  return loadModule(path);
}

/**
 * Whether the addon's arrays are not of the classes of this realm. Vitest with jsdom has jsdom's typed arrays alone in place of
 * those of Node, whose class is the one that Buffer extends.
 */
const isForeign =
  Object.getPrototypeOf(addon.formats()) !== Array.prototype ||
  Object.getPrototypeOf(Buffer.prototype) !== Uint8Array.prototype;

/** A function of the addon with errors, and values, of this realm. */
function adapted(call: NativeFunction): NativeFunction {
  return (...args) => {
    try {
      const result = call(...args);
      return isForeign ? inThisRealm(result) : result;
    } catch (error) {
      throw errorOf(error);
    }
  };
}

/** The error to throw, or to reject with, for what the addon did. What others threw is not changed. */
export function errorOf(thrown: unknown): unknown {
  if (!isFailure(thrown)) return errorInThisRealm(thrown);
  const { code, detail, path, offset, systemCode } = thrown;
  if (code === "ERR_INVALID_ARG_TYPE") return Object.assign(new TypeError(detail), { code });
  const cause = systemCode === undefined ? undefined : systemError(systemCode, path);
  return new GgufError(code, detail, { path, offset, cause });
}

function isFailure(thrown: unknown): thrown is Failure {
  return typeof thrown === "object" && (thrown as Partial<Failure> | null)?.mark === addon.failureMark;
}

/** The result of a promise of the addon, with values and errors of this realm. */
export async function resultOf<T>(promise: Promise<T>): Promise<T> {
  try {
    const result = await promise;
    return isForeign ? (inThisRealm(result) as T) : result;
  } catch (error) {
    throw errorOf(error);
  }
}

function load(): NativeAddon {
  const functions = Object.entries(addon).filter(([, value]) => typeof value === "function");
  const native = Object.fromEntries(functions.map(([name, call]) => [name, adapted(call)]));
  return { failureMark: addon.failureMark, ...native } as unknown as NativeAddon;
}

function warnOfInstructionSet({ isa, available }: ReturnType<NativeAddon["cpu"]>): void {
  const requested = process.env.GGUF_NATIVE_ISA;
  if (!requested || available.includes(requested)) return;
  process.emitWarning(
    `GGUF_NATIVE_ISA=${requested} is not available here (available: ${available.join(", ")}); using ${isa}`,
    { code: "GGUF_NATIVE_ISA" },
  );
}

export const native: NativeAddon = load();
warnOfInstructionSet(native.cpu());
limitArrays(constants.MAX_LENGTH);
