/** The keys and values of the tokens so far. The attention of every later token uses them. */
import { dequantizeSync } from "gguf-native";
import type { Floats, Workspace } from "../network/workspace";
import type { LlamaConfig } from "./config";

/** The matrices grow by so many tokens at a time. */
const STEP = 64;

/**
 * The keys and values of one layer, as matrices of type F16 that `matmulSync` multiplies where they are. Each head has
 * two. Keys: a row for each token, whose product with a query is a score. Values: a column for each token, so that the
 * product with the weights of the tokens is the weighted sum. Both have room for `columns` tokens: beyond the last token
 * they are zero.
 */
export class LayerCache {
  /** Number of tokens in the cache. */
  length = 0;
  /** The tokens that the matrices have room for, a multiple of STEP. */
  columns = 0;
  readonly #config: LlamaConfig;
  readonly #capacity: number;
  readonly #keys: Uint16Array;
  readonly #values: Uint16Array;

  constructor(config: LlamaConfig, capacity: number) {
    const { kvHeadCount, keyLength, valueLength } = config;
    this.#config = config;
    this.#capacity = Math.ceil(capacity / STEP) * STEP;
    this.#keys = new Uint16Array(kvHeadCount * this.#capacity * keyLength);
    this.#values = new Uint16Array(kvHeadCount * this.#capacity * valueLength);
  }

  /** The keys of a head: `columns` rows of `keyLength` numbers. */
  keys(head: number): Uint8Array {
    const { keyLength } = this.#config;
    return bytesOf(this.#keys, head * this.#capacity * keyLength, this.columns * keyLength);
  }

  /** The values of a head: `valueLength` rows of `columns` numbers. */
  values(head: number): Uint8Array {
    const { valueLength } = this.#config;
    return bytesOf(this.#values, head * this.#capacity * valueLength, this.columns * valueLength);
  }

  /** Adds tokens. `keys` and `values` hold the heads of each token, one token after the other. */
  append(keys: Floats, values: Floats, workspace: Workspace): void {
    const { kvHeadCount, keyLength, valueLength } = this.#config;
    const { simd } = workspace;
    const [keysOfToken, valuesOfToken] = [kvHeadCount * keyLength, kvHeadCount * valueLength];
    const count = keys.length / keysOfToken;
    this.#widen(Math.ceil((this.length + count) / STEP) * STEP);
    const byHead = workspace.floats("keys by head", keys.length);
    for (let head = 0; head < kvHeadCount; head++) {
      simd.copyRuns(
        keys.address + 4 * head * keyLength,
        4 * keysOfToken,
        byHead.address + 4 * head * count * keyLength,
        4 * keyLength,
        keyLength,
        count,
        1,
      );
    }
    const keyBits = halves(byHead);
    for (let head = 0; head < kvHeadCount; head++) {
      const from = head * count * keyLength;
      const to = (head * this.#capacity + this.length) * keyLength;
      this.#keys.set(keyBits.subarray(from, from + count * keyLength), to);
    }
    const columns = workspace.floats("values by column", values.length);
    simd.transpose(values.address, 4 * valuesOfToken, count, valuesOfToken, columns.address, 4 * count);
    const valueBits = halves(columns);
    const matrices = this.#values;
    for (let head = 0, from = 0; head < kvHeadCount; head++) {
      let to = head * this.#capacity * valueLength + this.length;
      for (let row = 0; row < valueLength; row++) {
        for (let token = 0; token < count; token++) matrices[to + token] = valueBits[from++]!;
        to += this.columns;
      }
    }
    this.length += count;
  }

  /** Makes the rows of all values `columns` long, in place: from the last row on, since each moves up. */
  #widen(columns: number): void {
    if (columns === this.columns) return;
    const { kvHeadCount, valueLength } = this.#config;
    for (let head = 0; head < kvHeadCount; head++) {
      const matrix = head * this.#capacity * valueLength;
      for (let row = valueLength - 1; row >= 0; row--) {
        const from = matrix + row * this.columns;
        const to = matrix + row * columns;
        this.#values.copyWithin(to, from, from + this.length);
        this.#values.fill(0, to + this.length, to + columns);
      }
    }
    this.columns = columns;
  }
}

/** The bits of numbers, rounded to binary16. */
function halves({ bytes }: Floats): Uint16Array {
  return dequantizeSync("F32", bytes, { dtype: "f16" });
}

function bytesOf({ buffer }: Uint16Array, start: number, length: number): Uint8Array {
  return new Uint8Array(buffer, 2 * start, 2 * length);
}

export class KvCache {
  readonly layers: readonly LayerCache[];

  /** Has room for `capacity` tokens. */
  constructor(
    config: LlamaConfig,
    readonly capacity: number,
  ) {
    this.layers = Array.from({ length: config.layerCount }, () => new LayerCache(config, capacity));
  }

  /** Number of tokens in the cache, which is also the position of the next token. */
  get length(): number {
    return this.layers[0]?.length ?? 0;
  }
}
