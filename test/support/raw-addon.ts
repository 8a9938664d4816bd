/** The functions of the addon, without the facade: what the WebAssembly module has to agree with. */
import { createRequire } from "node:module";
import type { ParsedHeader } from "#dist/backend/wasm/header";
import { testedAddon } from "./installed";

interface File {
  readonly file: never;
}

interface Job<T> {
  promise: Promise<T>;
}

/** Some of `NativeAddon` in src/backend/native-surface.ts. */
export interface RawAddon {
  parse(bytes: Uint8Array, partial: boolean): File;
  parse(bytes: Uint8Array, partial: boolean, fileSize: number): File | undefined;
  info(file: File): ReturnType<ParsedHeader["info"]>;
  keys(file: File, first: number, count: number): ReturnType<ParsedHeader["keys"]>;
  tensors(file: File, first: number, count: number): ReturnType<ParsedHeader["tensors"]>;
  findKey(file: File, name: string): number;
  findTensor(file: File, name: string): number;
  replacedKeys(file: File): Uint32Array;
  replacedTensors(file: File): Uint32Array;
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
    threads?: number,
  ): Job<Float64Array>;
  compareBlocksAsync(
    ...args: [number, Uint8Array, number, Uint8Array, bigEndian: number, totals: Float64Array]
  ): Job<Float64Array>;
  quantize(
    type: number,
    numbers: Float32Array,
    columns: number,
    importance: Float32Array | undefined,
    out: Uint8Array | undefined,
    threads: number | undefined,
  ): Uint8Array;
  swapBytes(type: number, blocks: Uint8Array): Uint8Array;
  formats(): object[];
}

export const rawAddon = createRequire(__filename)(testedAddon) as RawAddon;

/** What the addon throws; the module throws a GgufError, whose message ends with the offset. */
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
    const { mark, code, offset, ...thrown } = error as Partial<Thrown> & { code: string };
    if (mark === undefined && (error as Error).name !== "GgufError") throw error;
    const detail = thrown.detail ?? (error as Error).message.replace(/ \(at byte \d+\)$/, "");
    return { error: { code, detail, ...(offset !== undefined && { offset }) } };
  }
}
