/**
 * The WebAssembly module of `native/wasm` and its instance in this thread.
 *
 * Nothing stays in an instance from one call to the next. So one is enough, and can be replaced at any time: after a trap,
 * which leaves its memory in any state, and after work that needed much memory, which an instance cannot give back.
 */
import { GgufError } from "../../base/errors";
import { outOfMemory } from "./failure";

/** A `WebAssembly.Module`, whose type comes with those of browsers. */
export type CompiledModule = object;

/** What `native/wasm` exports: its sources describe each function. Booleans are 0 and 1, places are addresses. */
export interface ModuleExports {
  readonly memory: { readonly buffer: ArrayBuffer };
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
      ...[
        elementType: number,
        length: number,
        begin: number,
        end: number,
        version: number,
        bigEndian: number,
      ],
    ]
  ): number;

  formats(): number;
  use_scalar(scalar: number): void;
  dequantize(
    type: number,
    dtype: number,
    bigEndian: number,
    blocks: number,
    count: number,
    out: number,
  ): void;
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
}

/** What is used of the global object, whose types come with those of browsers. */
export const { WebAssembly, crypto } = globalThis as unknown as {
  WebAssembly: {
    Module: {
      new (bytes: Uint8Array): CompiledModule;
      exports(module: CompiledModule): { readonly name: string }[];
    };
    Instance: new (module: CompiledModule) => { readonly exports: unknown };
    RuntimeError: new () => Error;
  };
  crypto: { getRandomValues(bytes: Uint8Array): void };
};

/** An instance whose memory is larger than this after its work is not used again. */
const LARGEST_KEPT = 64 * 2 ** 20;

/** Bytes of the keys of the hash of names. */
const HASH_KEY_BYTES = 24;

let compile = (): CompiledModule => {
  throw new Error("the WebAssembly module is not set");
};
let compiled: CompiledModule | undefined;
let instance: Instance | undefined;

/** Says where the module comes from when it is first needed; before anything else here is called. */
export function setModule(make: () => CompiledModule): void {
  compile = make;
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

/** Does work, which must not call this again, in the instance of this thread. Frees what it allocated there. A trap becomes an error. */
export function inModule<T>(work: (instance: Instance) => T): T {
  compiled ??= compile();
  try {
    instance ??= new Instance(compiled);
    const used = instance;
    try {
      return work(used);
    } finally {
      used.freeAll();
      if (used.byteLength > LARGEST_KEPT) instance = undefined;
    }
  } catch (error) {
    if (!isTrap(error)) throw error;
    instance = undefined;
    throw outOfMemory();
  }
}

/** What a module throws: where memory ends, where its stack does, and where no memory is left for an instance. */
function isTrap(error: unknown): boolean {
  return error instanceof WebAssembly.RuntimeError || error instanceof RangeError;
}
