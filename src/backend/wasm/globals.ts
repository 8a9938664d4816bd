/** The types of what is used of the global object, which come with those of browsers, and of the module. */

/** A `WebAssembly.Module`. */
export type CompiledModule = object;

export const { WebAssembly, crypto } = globalThis as unknown as {
  WebAssembly: {
    Module: {
      new (bytes: Uint8Array): CompiledModule;
      exports(module: CompiledModule): { readonly name: string }[];
    };
    Instance: new (module: CompiledModule, imports?: object) => { readonly exports: unknown };
    Global: new (type: object, value: number) => object;
    Memory: new (limits: object) => { readonly buffer: SharedArrayBuffer };
    validate(bytes: Uint8Array): boolean;
    RuntimeError: new () => Error;
  };
  crypto: { getRandomValues(bytes: Uint8Array): void };
};

/** What `native/wasm` exports: its sources describe each function. Booleans are 0 and 1, places are addresses. */
export interface ModuleExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly __stack_pointer: { value: number };
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
  new_products(
    ...args: [type: number, bigEndian: number, columns: number, vectors: number, int8: number, threads: number]
  ): number;
  products_pack(products: number, x: number, parts: number, first: number, end: number): void;
  products_multiply(
    ...args: [products: number, rows: number, rowCount: number, y: number, stride: number, thread: number]
  ): void;
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
  net_attention_work(n: number, cache: number, heads: number, out: number): void;
  net_attention(
    ...args: [
      ...[queries: number, n: number, cache: number, heads: number, scale: number, causal: number],
      ...[window: number, cap: number, sinks: number, out: number],
      ...[scratch: number, first: number, end: number, thread: number],
    ]
  ): void;
}
