/** The keys and values of the tokens so far. The attention of every later token uses them. */
import type { LlamaConfig } from "./config";

/** The keys and values of one layer, token after token. */
export class LayerCache {
  readonly keys: Float32Array;
  readonly values: Float32Array;
  readonly #keysPerToken: number;
  readonly #valuesPerToken: number;
  /** Number of tokens in the cache. */
  length = 0;

  constructor({ kvHeadCount, keyLength, valueLength }: LlamaConfig, capacity: number) {
    this.#keysPerToken = kvHeadCount * keyLength;
    this.#valuesPerToken = kvHeadCount * valueLength;
    this.keys = new Float32Array(capacity * this.#keysPerToken);
    this.values = new Float32Array(capacity * this.#valuesPerToken);
  }

  append(keys: Float32Array, values: Float32Array): void {
    this.keys.set(keys, this.length * this.#keysPerToken);
    this.values.set(values, this.length * this.#valuesPerToken);
    this.length += keys.length / this.#keysPerToken;
  }
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
