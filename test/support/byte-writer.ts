/** Bytes in a chosen byte order, and GGUF's strings and counts, whose width depends on the version. */
export type ByteOrder = "little" | "big";
export type Version = 1 | 2 | 3;

export class ByteWriter {
  readonly #little: boolean;
  readonly #version: number;
  #bytes = new Uint8Array(1024);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  constructor(byteOrder: ByteOrder = "little", version = 3) {
    this.#little = byteOrder === "little";
    this.#version = version;
  }

  /** Where the next byte goes. */
  get offset(): number {
    return this.#length;
  }

  u8(value: number): this {
    const at = this.#grow(1);
    this.#view.setUint8(at, value);
    return this;
  }
  i8(value: number): this {
    const at = this.#grow(1);
    this.#view.setInt8(at, value);
    return this;
  }
  u16(value: number): this {
    const at = this.#grow(2);
    this.#view.setUint16(at, value, this.#little);
    return this;
  }
  i16(value: number): this {
    const at = this.#grow(2);
    this.#view.setInt16(at, value, this.#little);
    return this;
  }
  u32(value: number): this {
    const at = this.#grow(4);
    this.#view.setUint32(at, value, this.#little);
    return this;
  }
  i32(value: number): this {
    const at = this.#grow(4);
    this.#view.setInt32(at, value, this.#little);
    return this;
  }
  u64(value: number | bigint): this {
    const at = this.#grow(8);
    this.#view.setBigUint64(at, BigInt(value), this.#little);
    return this;
  }
  i64(value: number | bigint): this {
    const at = this.#grow(8);
    this.#view.setBigInt64(at, BigInt(value), this.#little);
    return this;
  }
  f32(value: number): this {
    const at = this.#grow(4);
    this.#view.setFloat32(at, value, this.#little);
    return this;
  }
  f64(value: number): this {
    const at = this.#grow(8);
    this.#view.setFloat64(at, value, this.#little);
    return this;
  }

  /** A count, a length or a dimension: u64, in version 1 u32. */
  count(value: number | bigint): this {
    return this.#version === 1 ? this.u32(Number(value)) : this.u64(value);
  }

  bytes(bytes: Uint8Array): this {
    const at = this.#grow(bytes.length);
    this.#bytes.set(bytes, at);
    return this;
  }

  string(text: string | Uint8Array): this {
    const bytes = typeof text === "string" ? Buffer.from(text) : text;
    return this.count(bytes.length).bytes(bytes);
  }

  zeros(count: number): this {
    this.#grow(count);
    return this;
  }

  /** Zeros up to a multiple of `alignment`. */
  align(alignment: number): this {
    return this.zeros((alignment - (this.#length % alignment)) % alignment);
  }

  /** What was written so far; a copy. */
  done(): Uint8Array {
    return this.#bytes.slice(0, this.#length);
  }

  #grow(count: number): number {
    const at = this.#length;
    this.#length += count;
    if (this.#length > this.#bytes.length) {
      const bytes = new Uint8Array(Math.max(this.#length, this.#bytes.length * 2));
      bytes.set(this.#bytes);
      this.#bytes = bytes;
      this.#view = new DataView(bytes.buffer);
    }
    return at;
  }
}
