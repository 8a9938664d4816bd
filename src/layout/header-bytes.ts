/** The bytes of a header as they are written: numbers in the file's byte order, lengths in its version's width. */

import { swapBytes } from "../base/bytes";
import { utf8 } from "../base/text-decoder";

/** How the numbers of a file are stored. */
export interface HeaderFormat {
  /** 1 has lengths and counts of four bytes, 2 and 3 of eight. */
  readonly version: number;
  readonly bigEndian: boolean;
}

/** What new files are written as. */
export const CURRENT_FORMAT: HeaderFormat = { version: 3, bigEndian: false };

/** Bytes of a length or count. */
export function lengthBytes(format: HeaderFormat): 4 | 8 {
  return format.version === 1 ? 4 : 8;
}

/** The next multiple of `alignment`. */
export function alignUp(offset: number, alignment: number): number {
  return Math.ceil(offset / alignment) * alignment;
}

/** Bytes that grow as they are written. */
export class HeaderBytes {
  readonly format: HeaderFormat;
  readonly #littleEndian: boolean;
  #bytes = new Uint8Array(256);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  constructor(format: HeaderFormat) {
    this.format = format;
    this.#littleEndian = !format.bigEndian;
  }

  get length(): number {
    return this.#length;
  }

  /** What was written so far; valid until more is. */
  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  int(size: 1 | 2 | 4, value: number): this {
    const at = this.#grow(size);
    if (size === 1) this.#view.setUint8(at, value);
    else if (size === 2) this.#view.setUint16(at, value, this.#littleEndian);
    else this.#view.setUint32(at, value, this.#littleEndian);
    return this;
  }

  int64(value: bigint): this {
    const at = this.#grow(8);
    this.#view.setBigUint64(at, BigInt.asUintN(64, value), this.#littleEndian);
    return this;
  }

  float32(value: number): this {
    const at = this.#grow(4);
    this.#view.setFloat32(at, value, this.#littleEndian);
    return this;
  }

  float64(value: number): this {
    const at = this.#grow(8);
    this.#view.setFloat64(at, value, this.#littleEndian);
    return this;
  }

  /** A length, count or dimension. */
  count(value: number): this {
    return lengthBytes(this.format) === 4 ? this.int(4, value) : this.int64(BigInt(value));
  }

  /** A string: its length and its bytes. */
  string(text: string | Uint8Array): this {
    const bytes = typeof text === "string" ? utf8(text) : text;
    return this.count(bytes.length).raw(bytes);
  }

  /** Numbers of `size` bytes, given little-endian. */
  numbers(size: number, bytes: Uint8Array): this {
    this.raw(bytes);
    if (!this.#littleEndian) swapBytes(this.#bytes.subarray(this.#length - bytes.length, this.#length), size);
    return this;
  }

  raw(bytes: Uint8Array): this {
    const at = this.#grow(bytes.length);
    this.#bytes.set(bytes, at);
    return this;
  }

  /** Makes room for `size` bytes, zero as yet; returns where they start. */
  #grow(size: number): number {
    const at = this.#length;
    this.#length += size;
    if (this.#length > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(this.#length, this.#bytes.length * 2));
      grown.set(this.#bytes.subarray(0, at));
      this.#bytes = grown;
      this.#view = new DataView(grown.buffer);
    }
    return at;
  }
}
