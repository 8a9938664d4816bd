/** Where the bytes of an open file are: in memory, or in a file that is read by position. */
import { failure } from "./failure";

export interface FileBytes {
  /** As it was opened; undefined for bytes in memory. */
  readonly path: string | undefined;
  /**
   * Bytes of the file from `begin` on. Those in memory are the caller's own, others a copy.
   * @throws GgufError ERR_GGUF_TRUNCATED where the file ends before; ERR_GGUF_OPEN where it cannot be read
   */
  take(begin: number, byteLength: number): Uint8Array;
  /** Whether `byteLength` bytes from `begin` on were there when the file was opened. @throws as {@link take} */
  check(begin: number, byteLength: number): void;
  /** Keeps the file open until {@link release} was called as often, and once more. */
  retain(): void;
  release(): void;
}

/** Bytes that the caller gave. They can go away: their array is looked at anew each time. */
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
    this.check(begin, byteLength);
    return this.#array.subarray(begin, begin + byteLength);
  }

  check(begin: number, byteLength: number): void {
    if (this.#hadBytes && this.#array.length === 0) {
      throw failure("ERR_GGUF_CLOSED", "the memory that was parsed is detached");
    }
    checkExtent(begin, byteLength, this.#array.length);
  }

  retain(): void {}
  release(): void {}
}

/** @throws GgufError ERR_GGUF_TRUNCATED unless the bytes are in a file of `size` bytes */
export function checkExtent(begin: number, byteLength: number, size: number): void {
  if (begin + byteLength <= size) return;
  const detail = `bytes ${begin} to ${begin + byteLength} are needed, but there are only ${size} bytes`;
  throw failure("ERR_GGUF_TRUNCATED", detail, begin);
}
