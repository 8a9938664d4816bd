/** Keys and values of the tokens that attention asks. */
import type { NativeCache, NativeNetwork } from "../backend/native-surface";
import { checkOptionNames, type OptionNames } from "../base/arguments";
import { GgufError, invalidArgType } from "../base/errors";
import type { OwnBytes } from "../base/options";
import { isUint8Array, plain } from "../base/typed-arrays";
import { ggmlTypes } from "../base/types";
import * as check from "./checks";
import type { CacheType, KvCacheOptions } from "./options";

const OPTIONS: OptionNames<KvCacheOptions> = {
  ...{ heads: true, keyWidth: true, valueWidth: true, capacity: true, type: true },
};
const TYPES: readonly CacheType[] = ["F16", "F32", "Q8_0"];

/** The most numbers of the keys of a token, and of its values: memory is made for 256 tokens at a time. */
const MOST_NUMBERS = 2 ** 18;
const MOST_TOKENS = 2 ** 31 - 1;

/** What serialized bytes begin with: the last character is the version. Then there are six numbers of 32 bits. */
const MAGIC = "GGUF-KV1";
const HEADER_BYTES = MAGIC.length + 6 * 4;

/** The cache behind the surface; it must be one of `backend`. @internal */
export let handleOf: (cache: KeyValueCache, backend: NativeNetwork) => NativeCache;

/** The cache that {@link KeyValueCache.serialize} made bytes of; `make` makes an empty one. @internal */
export let restored: <C extends KeyValueCache>(bytes: Uint8Array, make: (options: KvCacheOptions) => C) => C;

/** What the caches of `gguf-native/network` and of `gguf-native/reference` have in common. */
export abstract class KeyValueCache {
  /** Heads of keys and values. */
  readonly heads: number;
  /** Numbers of a key of one head. */
  readonly keyWidth: number;
  /** Numbers of a value of one head. */
  readonly valueWidth: number;
  /** The most tokens. */
  readonly capacity: number;
  /** How numbers are held. */
  readonly type: CacheType;
  readonly #backend: NativeNetwork;
  #handle: NativeCache;
  #length = 0;

  static {
    handleOf = (cache, backend) => {
      const isCache = typeof cache === "object" && cache !== null && #handle in cache;
      if (isCache && cache.#backend === backend) return cache.#handle;
      throw invalidArgType("cache", "an instance of KvCache of the same module", cache);
    };
    restored = (bytes, make) => {
      const { length, options, data } = parse(bytes);
      const cache = make(options);
      cache.#restore(data, length);
      return cache;
    };
  }

  /** @internal */
  protected constructor(backend: NativeNetwork, options: KvCacheOptions) {
    checkOptionNames(options, OPTIONS);
    const { heads, keyWidth, valueWidth = keyWidth, capacity = MOST_TOKENS, type = "F16" } = options;
    this.heads = check.whole("options.heads", heads, 1, MOST_NUMBERS);
    this.type = check.oneOf("options.type", type, TYPES);
    this.keyWidth = this.#checkWidth("options.keyWidth", keyWidth);
    this.valueWidth = this.#checkWidth("options.valueWidth", valueWidth);
    this.capacity = check.whole("options.capacity", capacity, 0, MOST_TOKENS);
    this.#backend = backend;
    this.#handle = backend.newCache(this.heads, this.keyWidth, this.valueWidth, ggmlTypes[this.type].id);
    Object.freeze(this); // its length and what it holds still change
  }

  /** How many tokens it holds. */
  get length(): number {
    return this.#length;
  }

  /**
   * Appends tokens: n keys of each head and n values. All of a token lie one after the other, head by head.
   *
   * @param keys n * heads * keyWidth numbers
   * @param values n * heads * valueWidth numbers
   * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
   * @throws GgufError ERR_GGUF_RANGE where they are no whole tokens, not as many, more than {@link capacity} has room for, or,
   *   for `"Q8_0"`, not finite; ERR_GGUF_OUT_OF_MEMORY. Nothing is appended then
   */
  append(keys: Float32Array, values: Float32Array): void {
    const count = check.vectorCount("keys", check.floats("keys", keys), this.heads * this.keyWidth);
    const width = this.heads * this.valueWidth;
    check.sameLength("values", check.floats("values", values), count * width, `for ${count} tokens it must have`);
    if (count > this.capacity - this.#length) {
      const room = `${this.#length} of at most ${this.capacity} tokens`;
      throw check.outOfRange(`the cache holds ${room}: there is no room for ${count}`);
    }
    if (count === 0) return;
    this.#backend.cacheAppend(this.#handle, keys, values);
    this.#length += count;
  }

  /**
   * Forgets all tokens but the first `length`.
   *
   * @throws TypeError ERR_INVALID_ARG_TYPE
   * @throws GgufError ERR_GGUF_RANGE if it holds fewer
   */
  truncate(length: number): void {
    const kept = check.whole("length", length, 0, this.#length);
    this.#backend.cacheTruncate(this.#handle, kept);
    this.#length = kept;
  }

  /**
   * A cache with the same tokens, which can continue in another way. Both share their pages of 256 tokens until one of
   * them changes a page.
   *
   * @throws GgufError ERR_GGUF_OUT_OF_MEMORY
   */
  fork(): this {
    const fork = this.empty();
    fork.#handle = this.#backend.cacheFork(this.#handle);
    fork.#length = this.#length;
    return fork;
  }

  /**
   * A copy that shares no memory with this cache.
   *
   * @throws GgufError ERR_GGUF_OUT_OF_MEMORY
   */
  clone(): this {
    const clone = this.empty();
    clone.#restore(this.serialize().subarray(HEADER_BYTES), this.#length);
    return clone;
  }

  /**
   * Bytes that hold all of it, for `deserialize`, the same on every machine: `GGUF-KV1`; heads, keyWidth, valueWidth,
   * capacity, the number of the type as in GGUF files and the length, little-endian numbers of 32 bits; the keys of all tokens;
   * and their values, as blocks of the type.
   *
   * @throws GgufError ERR_GGUF_OUT_OF_MEMORY where there is no memory for them
   */
  serialize(): OwnBytes {
    const { keys, values } = bytesOf(this, this.#length);
    let bytes: OwnBytes;
    try {
      bytes = new Uint8Array(HEADER_BYTES + keys + values);
    } catch (cause) {
      const detail = `there is no memory for ${HEADER_BYTES + keys + values} bytes`;
      throw new GgufError("ERR_GGUF_OUT_OF_MEMORY", detail, { cause });
    }
    for (let i = 0; i < MAGIC.length; i++) bytes[i] = MAGIC.charCodeAt(i);
    const view = new DataView(bytes.buffer, MAGIC.length);
    const sizes = [this.heads, this.keyWidth, this.valueWidth, this.capacity];
    [...sizes, ggmlTypes[this.type].id, this.#length].forEach((n, i) => {
      view.setUint32(4 * i, n, true);
    });
    const data = bytes.subarray(HEADER_BYTES);
    if (this.#length > 0) {
      const [toKeys, toValues] = [data.subarray(0, keys), data.subarray(keys)];
      this.#backend.cacheRead(this.#handle, 0, this.#length, toKeys, toValues);
    }
    return bytes;
  }

  /** An empty cache of the same class and options. @internal */
  protected abstract empty(): this;

  /** Appends all tokens of serialized bytes. */
  #restore(data: Uint8Array, length: number): void {
    const { keys } = bytesOf(this, length);
    if (length > 0) this.#backend.cacheRestore(this.#handle, data.subarray(0, keys), data.subarray(keys));
    this.#length = length;
  }

  #checkWidth(name: string, value: unknown): number {
    const { blockSize } = ggmlTypes[this.type];
    const width = check.whole(name, value, 1, Math.floor(MOST_NUMBERS / this.heads));
    if (width % blockSize === 0) return width;
    throw check.outOfRange(`${name} must be a multiple of ${blockSize} for ${this.type}, found ${width}`);
  }
}

type Sizes = Pick<KeyValueCache, "heads" | "keyWidth" | "valueWidth" | "type">;

/** The bytes of `length` tokens. */
function bytesOf({ heads, keyWidth, valueWidth, type }: Sizes, length: number) {
  const { blockSize, typeSize } = ggmlTypes[type];
  const bytes = (width: number): number => (length * heads * width * typeSize) / blockSize;
  return { keys: bytes(keyWidth), values: bytes(valueWidth) };
}

/** Checks serialized bytes, as far as {@link KeyValueCache}'s constructor does not. */
function parse(given: Uint8Array): {
  options: Required<KvCacheOptions> & Sizes;
  length: number;
  data: Uint8Array;
} {
  if (!isUint8Array(given)) throw invalidArgType("bytes", "an instance of Uint8Array", given);
  const bytes = plain(given);
  if (bytes.length < HEADER_BYTES) {
    throw invalid(`${bytes.length} bytes are too few: the header of a cache has ${HEADER_BYTES}`);
  }
  if (String.fromCharCode(...bytes.subarray(0, MAGIC.length)) !== MAGIC) {
    throw invalid(`a cache begins with ${MAGIC}; these bytes do not`);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset + MAGIC.length, HEADER_BYTES - MAGIC.length);
  const [heads, keyWidth, valueWidth, capacity, id, length] = Array.from({ length: 6 }, (_, i) =>
    view.getUint32(4 * i, true),
  ) as [number, number, number, number, number, number];
  const type = TYPES.find((each) => ggmlTypes[each].id === id);
  if (type === undefined) throw invalid(`no cache has the tensor type ${id}`);
  if (length > capacity) throw invalid(`${length} tokens are more than its capacity, ${capacity}`);
  const options = { heads, keyWidth, valueWidth, capacity, type };
  const { keys, values } = bytesOf(options, length);
  const data = bytes.subarray(HEADER_BYTES);
  if (keys + values !== data.length) {
    throw invalid(`${length} tokens of it have ${keys + values} bytes, found ${data.length}`);
  }
  return { options, length, data };
}

function invalid(detail: string): GgufError {
  return new GgufError("ERR_GGUF_INVALID", `no serialized cache: ${detail}`);
}
