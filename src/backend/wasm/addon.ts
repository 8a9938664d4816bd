/**
 * The native surface over the WebAssembly module: what the addon does on many threads is done here on the calling one, but for
 * products and networks, a piece at a time, so that memory stays bounded. Nothing of an open file is in the module; its bytes are brought there
 * when they are needed.
 */
import { GgufError } from "../../base/errors";
import { longestArray, plain } from "../../base/typed-arrays";
import type { NativeAddon } from "../native-surface";
import { newArray } from "./block-jobs";
import { decoding } from "./decoding";
import { encoding } from "./encoding";
import { failure } from "./failure";
import { fileFunctions, type OpenBytes } from "./files";
import { cancelJob, startJob } from "./jobs";
import * as kernels from "./kernels";
import { network } from "./network";
import { products } from "./products";
import { mostThreads } from "./threads";
import { totals } from "./totals";

const NOTHING = {
  steps: [][Symbol.iterator](),
  total: 0,
  finish: () => new Float32Array(),
  release: () => undefined,
};

/** Makes the surface; `openBytes` opens files. */
export function wasmAddon(openBytes: OpenBytes): NativeAddon {
  return withPlainArrays({
    failureMark: Object.freeze({}),
    ...fileFunctions(openBytes),
    ...decoding,
    ...products,
    ...totals,
    ...encoding,
    ...network,
    swapBytes: kernels.swapBytes,

    cancel: cancelJob,
    warm: () => startJob(NOTHING, undefined, true), // no file is mapped
    // The memory of a module is small, and what a matrix takes there cannot be given back to the system.
    prepareAsync: () => startJob(NOTHING, undefined, true),

    allocate: (length, dtype) => {
      if (!Number.isSafeInteger(length) || length < 0) {
        throw failure("ERR_GGUF_RANGE", `length must be a whole number, found ${length}`);
      }
      try {
        return newArray(dtype, length);
      } catch (cause) {
        if (length > longestArray) throw failure("ERR_GGUF_RANGE", "no array can have that length");
        const detail = `there is no memory for ${length} elements`;
        throw new GgufError("ERR_GGUF_OUT_OF_MEMORY", detail, { cause });
      }
    },
    // What was collected is the system's again.
    trim: () => undefined,

    formats: kernels.formats,
    cpu: () => ({ isa: "wasm", available: ["wasm"], threads: mostThreads() }),
    endProcess: () => undefined, // it takes a thread
  });
}

/** The surface with arrays of callers as {@link plain} ones: everything here relies on their lengths and methods. */
function withPlainArrays(addon: NativeAddon): NativeAddon {
  const entries = Object.entries(addon).map(([name, member]) => {
    if (typeof member !== "function") return [name, member];
    const call = member as (...args: unknown[]) => unknown;
    const adapted = (...args: unknown[]): unknown =>
      call(...args.map((arg) => (ArrayBuffer.isView(arg) ? plain(arg as Uint8Array) : arg)));
    return [name, adapted];
  });
  return Object.fromEntries(entries) as NativeAddon;
}
