/**
 * The WebAssembly module of `native/wasm` and its instance in this thread.
 *
 * Nothing stays in it from one call to the next. So one is enough, and can be replaced at any time: after a trap,
 * which leaves its memory in any state, and after work that needed much memory, which an instance cannot give back. Only
 * caches of keys and values stay, in instances of their own (network.ts).
 */
import { GgufError } from "../../base/errors";
import { outOfMemory } from "./failure";

/** A `WebAssembly.Module`, whose type comes with those of browsers. */
export type CompiledModule = object;

/** What `native/wasm` exports: its sources describe each function. Booleans are 0 and 1, places are addresses. */
export interface ModuleExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly __indirect_function_table: {
    readonly length: number;
    grow(by: number): number;
    set(index: number, value: object): void;
  };
  __wasm_call_ctors(): void;
  allocate(byteLength: number): number;
  free(at: number): void;

  reply_is_error(reply: number): number;
  reply_columns(reply: number): number;
  reply_column(reply: number, index: number): number;
  reply_bytes(reply: number, index: number): number;
  free_reply(reply: number): void;

  set_hash_keys(keys: number): void;
  parse(bytes: number, loaded: number, fileSize: number, partial: number): number;
  read_value(
    ...args: [
      ...[bytes: number, byteLength: number, name: number, nameBytes: number, type: number],
      ...[elementType: number, length: number, begin: number, end: number, version: number, bigEndian: number],
    ]
  ): number;

  formats(): number;
  use_scalar(scalar: number): void;
  use_tiles(of16: number, of32: number): void;
  dequantize(type: number, dtype: number, bigEndian: number, blocks: number, count: number, out: number): void;
  new_products(type: number, bigEndian: number, columns: number, vectors: number, int8: number): number;
  products_pack(products: number, x: number): void;
  products_multiply(products: number, rows: number, rowCount: number, y: number, stride: number): void;
  free_products(products: number): void;
  measure(
    ...args: [type: number, bigEndian: number, blocks: number, count: number, totals: number, fields: number]
  ): number;
  compare(
    ...args: [
      ...[typeA: number, bigEndianA: number, blocksA: number],
      ...[typeB: number, bigEndianB: number, blocksB: number, numbers: number],
      ...[totals: number, fields: number],
    ]
  ): number;
  quantize_step(type: number, columns: number, hasImportance: number, best: number): number;
  quantize(
    ...args: [
      ...[type: number, columns: number, importance: number, best: number, firstBlock: number],
      ...[numbers: number, count: number, blocks: number],
    ]
  ): number;
  swap(type: number, blocks: number, count: number, swapped: number): void;

  net_rms_norm(x: number, weight: number, width: number, count: number, epsilon: number, out: number): void;
  net_layer_norm(
    ...args: [
      ...[x: number, weight: number, bias: number, width: number, count: number],
      ...[epsilon: number, out: number],
    ]
  ): void;
  net_normalize(x: number, width: number, count: number, out: number): void;
  net_rounding_error(x: number, count: number, out: number): void;
  net_activate(x: number, up: number, kind: number, n: number, out: number): void;
  net_softmax(x: number, width: number, count: number, scale: number, cap: number, out: number): void;
  net_sum_of_powers(x: number, n: number, out: number): void;
  net_mean_of_rows(x: number, width: number, count: number, out: number): void;
  net_add(x: number, y: number, lengthX: number, lengthY: number): void;
  net_scale(x: number, n: number, factor: number): void;
  net_rope(
    ...args: [
      ...[x: number, headWidth: number, headCount: number, tokens: number],
      ...[table: number, pairs: number, adjacent: number, out: number],
    ]
  ): void;
  net_new_cache(heads: number, keyWidth: number, valueWidth: number, type: number): number;
  net_free_cache(cache: number): void;
  net_cache_append(cache: number, keys: number, values: number, n: number): number;
  net_cache_truncate(cache: number, length: number): void;
  net_cache_fork(cache: number): number;
  net_cache_read(cache: number, first: number, n: number, keys: number, values: number): void;
  net_cache_restore(cache: number, keys: number, values: number, n: number): void;
  net_attention(
    ...args: [
      ...[queries: number, n: number, cache: number, heads: number, scale: number, causal: number],
      ...[window: number, cap: number, sinks: number, out: number],
    ]
  ): void;
}

/** What is used of the global object, whose types come with those of browsers. */
export const { WebAssembly, crypto } = globalThis as unknown as {
  WebAssembly: {
    Module: {
      new (bytes: Uint8Array): CompiledModule;
      exports(module: CompiledModule): { readonly name: string }[];
    };
    Instance: new (module: CompiledModule, imports?: object) => { readonly exports: unknown };
    Global: new (type: object, value: number) => object;
    validate(bytes: Uint8Array): boolean;
    RuntimeError: new () => Error;
  };
  crypto: { getRandomValues(bytes: Uint8Array): void };
};

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
  hasTiles = false;
  readonly #allocated: number[] = [];

  constructor(module: CompiledModule) {
    this.exports = new WebAssembly.Instance(module).exports as ModuleExports;
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

  /** A copy of what is there. */
  copy(at: number, byteLength: number): ArrayBuffer {
    return this.exports.memory.buffer.slice(at, at + byteLength);
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
  if (wantsTiles && addTiles !== undefined && !instance.hasTiles) instance = withTiles(instance, addTiles);
  const used = instance;
  const drop = (): void => {
    instance = undefined;
  };
  try {
    return workIn(used, work, drop);
  } finally {
    if (isLarge(used)) drop();
  }
}

/** An instance whose memory is larger than this after its work is not used again. */
export const isLarge = ({ byteLength }: Instance): boolean => byteLength > LARGEST_KEPT;

/** Where something goes wrong, the instance may be spoiled: another one takes its place, and tiles are not tried again. */
function withTiles(made: Instance, add: (instance: Instance) => boolean): Instance {
  try {
    made.hasTiles = add(made);
  } catch {}
  if (made.hasTiles) return made;
  addTiles = undefined;
  return newInstance();
}

export function newInstance(): Instance {
  compiled ??= compile();
  try {
    return new Instance(compiled);
  } catch (error) {
    throw isTrap(error) ? outOfMemory() : error;
  }
}

/** Does work in an instance, and frees what it allocated there. After a trap, `onTrap` is called: the instance is of no use. */
export function workIn<T>(used: Instance, work: (instance: Instance) => T, onTrap: () => void): T {
  try {
    try {
      return work(used);
    } finally {
      used.freeAll();
    }
  } catch (error) {
    if (!isTrap(error)) throw error;
    onTrap();
    throw outOfMemory();
  }
}

/** What a module throws: where memory ends, where its stack does, and where no memory is left for an instance. */
function isTrap(error: unknown): boolean {
  return error instanceof WebAssembly.RuntimeError || error instanceof RangeError;
}
