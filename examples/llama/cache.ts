/** The keys and values of the tokens so far, which every later token looks back at. */
import type { LlamaConfig } from "./config";

/** One layer's share, token by token. */
export class LayerCache {
  readonly keys: Float32Array;
  readonly values: Float32Array;
  readonly #keysPerToken: number;
  readonly #valuesPerToken: number;
  /** Tokens in the cache. */
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

  /** For as many as `capacity` tokens. */
  constructor(
    config: LlamaConfig,
    readonly capacity: number,
  ) {
    this.layers = Array.from({ length: config.layerCount }, () => new LayerCache(config, capacity));
  }

  /** Tokens in the cache: the position of the next one. */
  get length(): number {
    return this.layers[0]?.length ?? 0;
  }
}
