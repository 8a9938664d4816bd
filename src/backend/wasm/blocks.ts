/** Blocks of a tensor, or of an array: where they are, and what is known about them. */
import type { NativeFile, NativeFormat } from "../native-surface";
import { goneBlocks, MemoryBytes } from "./bytes-of-file";
import { about, WasmFile } from "./files";
import { formatOf } from "./kernels";

/** Blocks of a tensor or of an array: what is read of them, and what is known about them. */
export interface Blocks {
  readonly format: NativeFormat;
  readonly bigEndian: boolean;
  readonly path: string | undefined;
  /** Whether the blocks are memory that can go away while a job runs. */
  readonly isMemory: boolean;
  /** The blocks of `count` elements from `first` on. */
  take(first: number, count: number): Uint8Array;
  /** Throws unless the blocks of all these elements are there. */
  check(first: number, count: number): void;
  retain(): void;
  release(): void;
}

export function blocksOfTensor(file: NativeFile, index: number): Blocks {
  const { bytes, header } = WasmFile.of(file);
  const { path } = bytes;
  const { offset } = header.extent(index);
  const format = about(path, () => formatOf(header.typeOf(index)));
  const { blockSize, typeSize } = format;
  // Exact, which numbers beyond 2^53 are not.
  const place = (elements: number): bigint => BigInt(elements / blockSize) * BigInt(typeSize);
  const begin = (first: number): bigint => offset + place(first);
  return {
    format,
    bigEndian: header.info().bigEndian,
    path,
    isMemory: bytes instanceof MemoryBytes,
    // An empty tensor may lie past the end of the file.
    take: (first, count) => (count === 0 ? new Uint8Array() : bytes.take(Number(begin(first)), Number(place(count)))),
    check: (first, count) => bytes.check(count === 0 ? 0n : begin(first), place(count)),
    retain: () => bytes.retain(),
    release: () => bytes.release(),
  };
}

export function blocksOfArray(type: number, array: Uint8Array, bigEndian: boolean): Blocks {
  const format = formatOf(type);
  const { blockSize, typeSize } = format;
  const place = (elements: number): number => (elements / blockSize) * typeSize;
  const { length } = array;
  const check = (first: number, count: number): void => {
    if (array.length !== length || place(first + count) > length) throw goneBlocks();
  };
  const take = (first: number, count: number): Uint8Array => {
    check(first, count);
    return array.subarray(place(first), place(first + count));
  };
  const nothing = (): void => undefined;
  return {
    ...{ format, bigEndian, path: undefined, isMemory: true },
    ...{ take, check, retain: nothing, release: nothing },
  };
}

export function elementsOf({ format: { blockSize, typeSize } }: Blocks, array: Uint8Array): number {
  return (array.length / typeSize) * blockSize;
}

export function columnsOf(file: NativeFile, index: number): number {
  return WasmFile.of(file).header.columnsOf(index);
}
