/**
 * The WebAssembly module that the folder simd is compiled to: the functions of a network between its products. Their
 * arguments are addresses in a memory, which {@link Workspace} hands out.
 */

type Address = number;

/** What the module exports; the comments are in its source. */
export interface Simd {
  add(x: Address, count: number, width: number, y: Address): void;
  addAndGelu(x: Address, count: number, width: number, bias: Address): void;
  addAndNorm(
    x: Address,
    count: number,
    width: number,
    y: Address,
    bias: Address,
    weight: Address,
    shift: Address,
    epsilon: number,
  ): void;
  /** Where free memory begins. */
  readonly end: { readonly value: Address };
  copyRuns(
    from: Address,
    fromStep: number,
    to: Address,
    toStep: number,
    length: number,
    count: number,
    factor: number,
  ): void;
  gatedByGelu(gate: Address, up: Address, length: number): void;
  gatedBySilu(gate: Address, up: Address, length: number): void;
  greatestOf(x: Address, length: number): number;
  rmsNorm(x: Address, count: number, width: number, weight: Address, epsilon: number, out: Address): void;
  rope(
    x: Address,
    count: number,
    headCount: number,
    width: number,
    pairs: number,
    adjacent: boolean,
    rotations: Address,
  ): void;
  scale(x: Address, length: number, factor: number): void;
  softmax(
    scores: Address,
    rows: number,
    columns: number,
    group: number,
    seen: number,
    window: number,
    powers: Address,
    width: number,
    factors: Address,
  ): void;
  spread(
    from: Address,
    rows: number,
    width: number,
    factors: Address,
    to: Address,
    group: number,
    step: number,
  ): void;
  sumOfPowers(x: Address, length: number, greatest: number): number;
  transpose(from: Address, fromStep: number, count: number, width: number, to: Address, toStep: number): void;
}

/** Memory of a module. Its buffer is another one after it has grown. */
export interface Memory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): void;
}

/** What is used of the global object, whose types come with those of browsers. */
const { WebAssembly, atob } = globalThis as unknown as {
  WebAssembly: {
    Module: new (bytes: Uint8Array) => object;
    Instance: new (module: object, imports: { env: { memory: Memory } }) => { readonly exports: unknown };
    Memory: new (size: { initial: number }) => Memory;
  };
  atob(text: string): string;
};

/** In bundles for browsers: the bytes of the module in base64. */
declare const SIMD: string | undefined;

function moduleBytes(): Uint8Array {
  // Bundlers leave out the second branch, and with it Node.
  if (typeof SIMD === "string") {
    return Uint8Array.from(atob(SIMD), (character) => character.charCodeAt(0));
  } else {
    const { readFileSync } = require("node:fs") as typeof import("node:fs");
    return readFileSync(`${__dirname}/simd.wasm`);
  }
}

let compiled: object | undefined;

/** The functions, and new memory for their numbers. */
export function instantiate(): { simd: Simd; memory: Memory } {
  compiled ??= new WebAssembly.Module(moduleBytes());
  const memory = new WebAssembly.Memory({ initial: 1 });
  const { exports } = new WebAssembly.Instance(compiled, { env: { memory } });
  return { simd: exports as Simd, memory };
}
