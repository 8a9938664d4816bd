/** Where the bytes of an open file are: in memory, or in a file that is read by position. */
import type { GgufError } from "../../base/errors";
import { failure } from "./failure";

export interface FileBytes {
  /** As it was opened; undefined for bytes in memory. */
  readonly path: string | undefined;
  /**
   * Checks that `byteLength` bytes from `begin` on were there when the file was opened, and those in memory still are.
   * @throws GgufError ERR_GGUF_TRUNCATED, ERR_GGUF_CLOSED
   */
  check(begin: bigint, byteLength: bigint): void;
  /**
   * Such bytes, which were checked. Those in memory are the caller's own, others a copy.
   * @throws GgufError ERR_GGUF_TRUNCATED or ERR_GGUF_RANGE where they are no longer there; ERR_GGUF_OPEN where the file
   *   cannot be read
   */
  take(begin: number, byteLength: number): Uint8Array;
  /** Keeps the file open until {@link release} was called as often, and once more. */
  retain(): void;
  release(): void;
}

/** Bytes that the caller gave. They can go away: their array is looked at again each time. */
export class MemoryBytes implements FileBytes {
  readonly path = undefined;
  readonly #array: Uint8Array;
  /** Whether there were any. */
  readonly #hadBytes: boolean;

  constructor(array: Uint8Array) {
    this.#array = array;
    this.#hadBytes = array.length > 0;
  }

  take(begin: number, byteLength: number): Uint8Array {
    if (begin + byteLength > this.#array.length) throw goneBlocks();
    return this.#array.subarray(begin, begin + byteLength);
  }

  check(begin: bigint, byteLength: bigint): void {
    if (this.#hadBytes && this.#array.length === 0) {
      throw failure("ERR_GGUF_CLOSED", "the memory that was parsed is detached");
    }
    checkExtent(begin, byteLength, this.#array.length);
  }

  retain(): void {}
  release(): void {}
}

/** For memory that was there when the work on it began. */
export function goneBlocks(): GgufError {
  return failure("ERR_GGUF_RANGE", "the blocks were detached, moved or cut off while they were read");
}

/** @throws GgufError ERR_GGUF_TRUNCATED unless the bytes are in a file of `size` bytes */
export function checkExtent(begin: bigint, byteLength: bigint, size: number): void {
  if (begin + byteLength <= BigInt(size)) return;
  const detail = `bytes ${begin} to ${begin + byteLength} are needed, but there are only ${size} bytes`;
  throw failure("ERR_GGUF_TRUNCATED", detail, Number(begin));
}
