/** The functions of the addon, without the facade: what the WebAssembly module has to agree with. */
import { createRequire } from "node:module";
import type { ParsedHeader } from "#wasm/header";
import { testedAddon } from "./installed";

interface File {
  readonly file: never;
}

interface Job<T> {
  promise: Promise<T>;
}

/** Some of `NativeAddon` in src/native-surface.ts. */
export interface RawAddon {
  parse(bytes: Uint8Array, partial: boolean): File;
  parse(bytes: Uint8Array, partial: boolean, fileSize: number): File | undefined;
  info(file: File): ReturnType<ParsedHeader["info"]>;
  keys(file: File): ReturnType<ParsedHeader["keys"]>;
  tensors(file: File): ReturnType<ParsedHeader["tensors"]>;
  value(file: File, index: number): ReturnType<ParsedHeader["value"]>;
  valueBytes(file: File, index: number): ReturnType<ParsedHeader["valueBytes"]>;
  keyBytes(file: File, index: number): Uint8Array;
  tensorNameBytes(file: File, index: number): Uint8Array;
  statsBlocksAsync(
    type: number,
    blocks: Uint8Array,
    bigEndian: boolean,
    totals: Float64Array,
    onProgress: undefined,
  ): Job<Float64Array>;
  compareBlocksAsync(
    ...args: [number, Uint8Array, number, Uint8Array, bigEndian: number, totals: Float64Array]
  ): Job<Float64Array>;
  quantize(type: number, values: Float32Array, out: Uint8Array): Uint8Array;
  swapBytes(type: number, blocks: Uint8Array): Uint8Array;
  formats(): object[];
}

export const rawAddon = createRequire(__filename)(testedAddon) as RawAddon;

/** What the addon and the module throw. */
export interface Thrown {
  mark: object;
  code: string;
  detail: string;
  offset?: number;
}

/** The value, or what was thrown, without the mark. */
export function outcomeOf<T>(work: () => T): { value: T } | { error: Omit<Thrown, "mark"> } {
  try {
    return { value: work() };
  } catch (error) {
    if (typeof (error as Partial<Thrown>).mark !== "object") throw error;
    const { code, detail, offset } = error as Thrown;
    return { error: { code, detail, ...(offset !== undefined && { offset }) } };
  }
}
