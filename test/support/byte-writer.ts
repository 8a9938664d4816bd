/** Bytes in a chosen byte order, and GGUF's strings and counts, whose width depends on the version. */
export type ByteOrder = "little" | "big";
export type Version = 1 | 2 | 3;

type NumberType = `${"Int" | "Uint"}${8 | 16 | 32}` | `Float${32 | 64}` | "BigInt64" | "BigUint64";

export class ByteWriter {
  readonly #little: boolean;
  readonly version: number;
  #bytes = new Uint8Array(1024);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  constructor(byteOrder: ByteOrder = "little", version = 3) {
    this.#little = byteOrder === "little";
    this.version = version;
  }

  /** Where the next byte goes. */
  get offset(): number {
    return this.#length;
  }

  /** Where the next byte went when `mark` was called. */
  marked = 0;
  mark(): this {
    this.marked = this.#length;
    return this;
  }

  u8(value: number): this {
    return this.#number("Uint8", 1, value);
  }
  i8(value: number): this {
    return this.#number("Int8", 1, value);
  }
  u16(value: number): this {
    return this.#number("Uint16", 2, value);
  }
  i16(value: number): this {
    return this.#number("Int16", 2, value);
  }
  u32(value: number): this {
    return this.#number("Uint32", 4, value);
  }
  i32(value: number): this {
    return this.#number("Int32", 4, value);
  }
  u64(value: number | bigint): this {
    return this.#number("BigUint64", 8, BigInt(value));
  }
  i64(value: number | bigint): this {
    return this.#number("BigInt64", 8, BigInt(value));
  }
  f32(value: number): this {
    return this.#number("Float32", 4, value);
  }
  f64(value: number): this {
    return this.#number("Float64", 8, value);
  }

  /** A count, a length or a dimension: u64, in version 1 u32. */
  count(value: number | bigint): this {
    return this.version === 1 ? this.u32(Number(value)) : this.u64(value);
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

  #number(type: NumberType, size: number, value: number | bigint): this {
    const at = this.#grow(size);
    this.#view[`set${type}`](at, value as never, this.#little);
    return this;
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
