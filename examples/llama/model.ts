/** The forward pass of a llama model, and of those that differ from it in little. */
import type { GgufFile, GgufTensor } from "gguf-native";
import { KvCache, type LayerCache } from "./cache";
import { type LlamaConfig, readConfig } from "./config";
import {
  add,
  attention,
  type Rotations,
  rmsNorm,
  rope,
  ropeFrequencies,
  rotationsOf,
  swiglu,
} from "./operations";

/** Tokens that are processed at a time: enough to use each weight often, few enough to need little memory. */
const BATCH = 128;

export interface LoadOptions {
  /** Threads that multiply. Default: as many as help. */
  threads?: number | undefined;
}

/** A matrix, still quantized and in its file, and what is added to its products. */
interface Linear {
  weight: GgufTensor;
  bias: Float32Array | undefined;
}

interface Layer {
  attnNorm: Float32Array;
  attnQ: Linear;
  attnK: Linear;
  attnV: Linear;
  /** Norms of each head of queries and keys. */
  queryNorm: Float32Array | undefined;
  keyNorm: Float32Array | undefined;
  attnOutput: Linear;
  ffnNorm: Float32Array;
  ffnGate: Linear;
  ffnUp: Linear;
  ffnDown: Linear;
}

/** A model whose weights stay in its file, which must stay open. */
export class Llama {
  private constructor(
    readonly config: LlamaConfig,
    private readonly embeddings: GgufTensor,
    private readonly layers: readonly Layer[],
    private readonly outputNorm: Float32Array,
    private readonly output: Linear,
    private readonly frequencies: Float64Array,
    private readonly threads: number | undefined,
  ) {}

  /** @throws Error if this example does not support the network; GgufError if something is wrong with the file */
  static load(file: GgufFile, options: LoadOptions = {}): Llama {
    const config = readConfig(file.metadata);
    const unused = new Set(file.tensors.keys());
    const find = (name: string): GgufTensor => {
      unused.delete(name);
      return file.tensor(name);
    };
    const vector = (name: string): Float32Array => find(name).dequantizeSync();
    const optionalVector = (name: string): Float32Array | undefined =>
      file.tensors.has(name) ? vector(name) : undefined;
    const linear = (name: string): Linear => ({
      weight: find(`${name}.weight`),
      bias: optionalVector(`${name}.bias`),
    });

    const layers = Array.from({ length: config.layerCount }, (_, i): Layer => {
      const block = `blk.${i}.`;
      return {
        attnNorm: vector(`${block}attn_norm.weight`),
        attnQ: linear(`${block}attn_q`),
        attnK: linear(`${block}attn_k`),
        attnV: linear(`${block}attn_v`),
        queryNorm: optionalVector(`${block}attn_q_norm.weight`),
        keyNorm: optionalVector(`${block}attn_k_norm.weight`),
        attnOutput: linear(`${block}attn_output`),
        ffnNorm: vector(`${block}ffn_norm.weight`),
        ffnGate: linear(`${block}ffn_gate`),
        ffnUp: linear(`${block}ffn_up`),
        ffnDown: linear(`${block}ffn_down`),
      };
    });
    const llama = new Llama(
      config,
      find("token_embd.weight"),
      layers,
      vector("output_norm.weight"),
      // Many models use the same matrix for the embeddings and for the output.
      linear(file.tensors.has("output.weight") ? "output" : "token_embd"),
      ropeFrequencies(config, optionalVector("rope_freqs.weight")),
      options.threads,
    );
    for (const name of unused)
      throw new Error(`this example does not know the purpose of the tensor ${name}`);
    return llama;
  }

  /** Creates a cache for up to `capacity` tokens. */
  createCache(capacity: number): KvCache {
    return new KvCache(this.config, capacity);
  }

  /** Processes `tokens`, which follow those in `cache`, and appends them. Returns the logits of the next token. */
  forward(tokens: readonly number[], cache: KvCache): Float32Array {
    if (tokens.length === 0) throw new RangeError("there are no tokens to process");
    const length = cache.length + tokens.length;
    if (length > cache.capacity) {
      throw new RangeError(`${length} tokens do not fit in a cache for ${cache.capacity}`);
    }
    let x: Float32Array = new Float32Array();
    for (let start = 0; start < tokens.length; start += BATCH) {
      x = this.#forwardBatch(tokens.slice(start, start + BATCH), cache);
    }
    const last = x.subarray(-this.config.embeddingLength);
    return this.#multiply(this.output, rmsNorm(last, this.outputNorm, this.config.normEpsilon));
  }

  /** The activations of some tokens after all layers. */
  #forwardBatch(tokens: readonly number[], cache: KvCache): Float32Array {
    const { normEpsilon } = this.config;
    const rotations = rotationsOf(this.frequencies, cache.length, tokens.length);
    const x = this.embeddings.rowsSync(tokens);
    for (const [i, layer] of this.layers.entries()) {
      const attentionInput = rmsNorm(x, layer.attnNorm, normEpsilon);
      add(x, this.#attend(layer, attentionInput, cache.layers[i]!, rotations));
      const ffnInput = rmsNorm(x, layer.ffnNorm, normEpsilon);
      const hidden = swiglu(this.#multiply(layer.ffnGate, ffnInput), this.#multiply(layer.ffnUp, ffnInput));
      add(x, this.#multiply(layer.ffnDown, hidden));
    }
    return x;
  }

  #attend(layer: Layer, x: Float32Array, cache: LayerCache, rotations: Rotations): Float32Array {
    const { config } = this;
    let queries = this.#multiply(layer.attnQ, x);
    let keys = this.#multiply(layer.attnK, x);
    if (layer.queryNorm !== undefined) queries = rmsNorm(queries, layer.queryNorm, config.normEpsilon);
    if (layer.keyNorm !== undefined) keys = rmsNorm(keys, layer.keyNorm, config.normEpsilon);
    rope(queries, config.headCount, config, rotations);
    rope(keys, config.kvHeadCount, config, rotations);
    cache.append(keys, this.#multiply(layer.attnV, x));
    return this.#multiply(layer.attnOutput, attention(config, queries, cache, this.threads));
  }

  /** The products of a matrix with the vectors in `x`, in the same layout. */
  #multiply({ weight, bias }: Linear, x: Float32Array): Float32Array {
    const products = weight.matmulSync(x, { threads: this.threads });
    if (bias !== undefined) add(products, bias);
    return products;
  }
}
