/**
 * The WebAssembly module of `native/wasm` and its instance in this thread.
 *
 * Nothing stays in it from one call to the next. So one is enough, and can be replaced at any time: after a trap,
 * which leaves its memory in any state, and after work that needed much memory, which an instance cannot give back. Only
 * caches of keys and values stay, in instances of their own (network.ts).
 */
import { GgufError } from "../../base/errors";
import { outOfMemory } from "./failure";
import { type CompiledModule, crypto, type ModuleExports, WebAssembly } from "./globals";
import type { SharedForm } from "./shared-memory";
import type { HelperData, Tiles } from "./thread";

const LARGEST_KEPT = 64 * 2 ** 20;

/** Bytes of the keys of the hash of names. */
const HASH_KEY_BYTES = 24;

let compile = (): CompiledModule => {
  throw new Error("the WebAssembly module is not set");
};
let compiled: CompiledModule | undefined;
let instance: Instance | undefined;
let addTiles: ((instance: Instance) => boolean) | undefined;

/**
 * Says where the module comes from when it is first needed; before anything else here is called. `add` adds tiles to an instance
 * (relaxed.ts), or says that it cannot.
 */
export function setModule(make: () => CompiledModule, add?: (instance: Instance) => boolean): void {
  compile = make;
  addTiles = add;
  compiled = undefined;
  instance = undefined;
}

/** Compiles the module; @throws GgufError ERR_GGUF_OPEN where the runtime refuses to. */
export function compileModule(bytes: Uint8Array): CompiledModule {
  try {
    return new WebAssembly.Module(bytes);
  } catch (cause) {
    if (cause instanceof RangeError) throw outOfMemory();
    const advice =
      "A page's content security policy must have 'wasm-unsafe-eval' in script-src. Where no code can be compiled, as in " +
      "Cloudflare Workers, import gguf-native/kernels.wasm and give it to useModule (see docs/runtimes.md)";
    const detail = `the runtime does not compile the WebAssembly module: ${(cause as Error).message}. ${advice}`;
    throw new GgufError("ERR_GGUF_OPEN", detail, { cause });
  }
}

/** An instance, and what one piece of work has allocated in it. */
export class Instance {
  readonly exports: ModuleExports;
  /** Where it is memory that threads share. */
  readonly shared: HelperData["memory"] | undefined;
  /** What was added, by which other threads can add it. */
  tiles: Tiles | undefined;
  hasTiles = false;
  /** Caches of keys and values that are in it. */
  caches = 0;
  /** Whether a trap has left its memory in any state: caches are lost. */
  isSpoiled = false;
  readonly #allocated: number[] = [];

  /** `segments`: what is in shared memory at the start. */
  constructor(module: CompiledModule, shared?: HelperData["memory"], segments: SharedForm["segments"] = []) {
    this.shared = shared;
    this.exports = new WebAssembly.Instance(module, { env: { memory: shared } }).exports as ModuleExports;
    for (const { at, bytes } of segments) this.bytes(at, bytes.length).set(bytes);
    this.exports.__wasm_call_ctors();
    const keys = new Uint8Array(HASH_KEY_BYTES);
    crypto.getRandomValues(keys);
    this.exports.set_hash_keys(this.put(keys));
    this.freeAll();
  }

  /** Memory until the end of the work. */
  allocate(byteLength: number): number {
    // The module has addresses of 32 bits: a larger number would be cut short.
    const at = byteLength < 2 ** 32 ? this.exports.allocate(byteLength) >>> 0 : 0;
    if (at === 0) throw outOfMemory();
    this.#allocated.push(at);
    return at;
  }

  /** The bytes there; good until the next call of the module. */
  bytes(at: number, byteLength: number): Uint8Array {
    return new Uint8Array(this.exports.memory.buffer, at, byteLength);
  }

  /** Copies bytes to memory until the end of the work. */
  put(bytes: Uint8Array): number {
    const at = this.allocate(bytes.length);
    this.bytes(at, bytes.length).set(bytes);
    return at;
  }

  /** A copy of what is there, in memory that is not shared. */
  copy(at: number, byteLength: number): ArrayBuffer {
    return this.bytes(at, byteLength).slice().buffer as ArrayBuffer;
  }

  freeAll(): void {
    for (const at of this.#allocated.splice(0)) this.exports.free(at);
  }

  get byteLength(): number {
    return this.exports.memory.buffer.byteLength;
  }
}

/**
 * Does work, which must not call this again, in the instance of this thread. Frees what it allocated there. A trap becomes an error.
 * `wantsTiles`: the work gains by tiles, which take some milliseconds to add.
 */
export function inModule<T>(work: (instance: Instance) => T, wantsTiles = false): T {
  instance ??= newInstance();
  if (wantsTiles) instance = withTiles(instance, newInstance);
  const used = instance;
  try {
    return workIn(used, work);
  } finally {
    if (used.isSpoiled || isLarge(used)) instance = undefined;
  }
}

/** An instance whose memory is larger than this after its work is not used again. */
export const isLarge = ({ byteLength }: Instance): boolean => byteLength > LARGEST_KEPT;

/**
 * An instance with tiles, where there are any: the one that is given, unless something goes wrong, which may have spoiled it. Then
 * another one takes its place, and tiles are not tried again.
 */
export function withTiles(made: Instance, makeAnother: () => Instance): Instance {
  if (addTiles === undefined || made.hasTiles) return made;
  try {
    made.hasTiles = addTiles(made);
  } catch {}
  if (made.hasTiles) return made;
  addTiles = undefined;
  return makeAnother();
}

export function newInstance(): Instance {
  compiled ??= compile();
  try {
    return new Instance(compiled);
  } catch (error) {
    throw isTrap(error) ? outOfMemory() : error;
  }
}

/** Does work in an instance, and frees what it allocated there. After a trap, the instance is of no use. */
export function workIn<T>(used: Instance, work: (instance: Instance) => T): T {
  try {
    try {
      return work(used);
    } finally {
      used.freeAll();
    }
  } catch (error) {
    if (!isTrap(error)) throw error;
    used.isSpoiled = true;
    throw outOfMemory();
  }
}

/** What a module throws: where memory ends, where its stack does, and where no memory is left for an instance. */
function isTrap(error: unknown): boolean {
  return error instanceof WebAssembly.RuntimeError || error instanceof RangeError;
}
