/** The forward pass of a llama model, and of those that differ from it in little. */
import type { GgufFile, GgufTensor } from "gguf-native";
import { KvCache, type LayerCache } from "./cache";
import { type LayerAttention, type LlamaConfig, readConfig } from "./config";
import {
  add,
  addNormed,
  attention,
  capLogits,
  gated,
  type Rotations,
  rmsNorm,
  rope,
  ropeFrequencies,
  rotationsOf,
  scale,
} from "./operations";

/** Tokens that are processed at a time: enough to use each weight often, few enough to need little memory. */
const BATCH = 128;
/** Tokens whose logits are computed at a time: with a vocabulary of 262,144 tokens, 32 MiB. */
const OUTPUT_BATCH = 32;

export interface LoadOptions {
  /**
   * `int8` (default) rounds what matrices are multiplied with to 8 bits, which is faster; `f32` does not. The keys and
   * values of the attention, which are F16, and weights that are plain numbers are multiplied exactly in both cases.
   */
  activations?: "int8" | "f32" | undefined;
  /** Threads that multiply. Default: as many as help. */
  threads?: number | undefined;
}

/** A matrix, still quantized and in its file, and what is added to its products. */
interface Linear {
  weight: GgufTensor;
  /** The second scale of NVFP4 weights; 1 for others. */
  scale: number;
  bias: Float32Array | undefined;
}

interface Layer {
  attention: LayerAttention;
  attnNorm: Float32Array;
  attnQ: Linear;
  attnK: Linear;
  attnV: Linear;
  /** Norms of each head of queries and keys. */
  queryNorm: Float32Array | undefined;
  keyNorm: Float32Array | undefined;
  attnOutput: Linear;
  /** Norm of what the attention adds. */
  attnPostNorm: Float32Array | undefined;
  ffnNorm: Float32Array;
  ffnGate: Linear;
  ffnUp: Linear;
  ffnDown: Linear;
  /** Norm of what the feed-forward network adds. */
  ffnPostNorm: Float32Array | undefined;
}

/** A model whose weights stay in its file, which must stay open. */
export class Llama {
  private constructor(
    readonly config: LlamaConfig,
    private readonly embeddings: GgufTensor,
    private readonly layers: readonly Layer[],
    private readonly outputNorm: Float32Array,
    private readonly output: Linear,
    /** By the attention of layers. */
    private readonly frequencies: ReadonlyMap<LayerAttention, Float64Array>,
    private readonly options: LoadOptions,
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
    const linear = (name: string): Linear => {
      const weight = find(`${name}.weight`);
      unused.delete(`${name}.input_scale`); // for inputs in NVFP4, and these here are binary32
      return { weight, scale: secondScale(weight), bias: optionalVector(`${name}.bias`) };
    };
    const secondScale = ({ scale }: GgufTensor): number => (scale === undefined ? 1 : vector(scale.name)[0]!);

    const layers = Array.from({ length: config.layerCount }, (_, i): Layer => {
      const block = `blk.${i}.`;
      return {
        attention: config.attention[i]!,
        attnNorm: vector(`${block}attn_norm.weight`),
        attnQ: linear(`${block}attn_q`),
        attnK: linear(`${block}attn_k`),
        attnV: linear(`${block}attn_v`),
        queryNorm: optionalVector(`${block}attn_q_norm.weight`),
        keyNorm: optionalVector(`${block}attn_k_norm.weight`),
        attnOutput: linear(`${block}attn_output`),
        attnPostNorm: optionalVector(`${block}post_attention_norm.weight`),
        ffnNorm: vector(`${block}ffn_norm.weight`),
        ffnGate: linear(`${block}ffn_gate`),
        ffnUp: linear(`${block}ffn_up`),
        ffnDown: linear(`${block}ffn_down`),
        ffnPostNorm: optionalVector(`${block}post_ffw_norm.weight`),
      };
    });
    const ropeFactors = optionalVector("rope_freqs.weight");
    const llama = new Llama(
      config,
      find("token_embd.weight"),
      layers,
      vector("output_norm.weight"),
      // Many models use the same matrix for the embeddings and for the output.
      linear(file.tensors.has("output.weight") ? "output" : "token_embd"),
      new Map(config.attention.map((kind) => [kind, ropeFrequencies(config, kind, ropeFactors)])),
      { activations: "int8", ...options },
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
    let x: Float32Array = new Float32Array();
    for (const batch of this.#batches(tokens, cache)) x = batch;
    return this.#logits(x.subarray(-this.config.embeddingLength));
  }

  /**
   * Processes `tokens` like {@link forward}. For each of them from number `first` on, calls `visit` with its number and the
   * logits of the token after it.
   */
  forwardEach(
    tokens: readonly number[],
    cache: KvCache,
    first: number,
    visit: (number: number, logits: Float32Array) => void,
  ): void {
    const { embeddingLength } = this.config;
    let start = 0;
    for (const x of this.#batches(tokens, cache)) {
      const end = start + x.length / embeddingLength;
      for (let i = Math.max(first, start); i < end; i += OUTPUT_BATCH) {
        const count = Math.min(OUTPUT_BATCH, end - i);
        const at = (i - start) * embeddingLength;
        const logits = this.#logits(x.subarray(at, at + count * embeddingLength));
        const width = logits.length / count;
        for (let j = 0; j < count; j++) visit(i + j, logits.subarray(j * width, (j + 1) * width));
      }
      start = end;
    }
  }

  /** Processes some tokens at a time. Gives their activations after all layers. */
  *#batches(tokens: readonly number[], cache: KvCache): Generator<Float32Array> {
    const length = cache.length + tokens.length;
    if (length > cache.capacity) {
      throw new RangeError(`${length} tokens do not fit in a cache for ${cache.capacity}`);
    }
    for (let start = 0; start < tokens.length; start += BATCH) {
      yield this.#forwardBatch(tokens.slice(start, start + BATCH), cache);
    }
  }

  /** The activations of some tokens after all layers. */
  #forwardBatch(tokens: readonly number[], cache: KvCache): Float32Array {
    const { normEpsilon, activation, embeddingScale } = this.config;
    const position = cache.length;
    const rotations = new Map(
      [...this.frequencies].map(([kind, frequencies]) => [
        kind,
        rotationsOf(frequencies, position, tokens.length),
      ]),
    );
    const x = this.embeddings.rowsSync(tokens);
    if (embeddingScale !== 1) scale(x, embeddingScale);
    for (const [i, layer] of this.layers.entries()) {
      const attentionInput = rmsNorm(x, layer.attnNorm, normEpsilon);
      const attended = this.#attend(layer, attentionInput, cache.layers[i]!, rotations.get(layer.attention)!);
      addNormed(x, attended, layer.attnPostNorm, normEpsilon);
      const ffnInput = rmsNorm(x, layer.ffnNorm, normEpsilon);
      const gate = this.#multiply(layer.ffnGate, ffnInput);
      const hidden = gated(activation, gate, this.#multiply(layer.ffnUp, ffnInput));
      addNormed(x, this.#multiply(layer.ffnDown, hidden), layer.ffnPostNorm, normEpsilon);
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
    const heard = attention(config, layer.attention, queries, cache, this.options.threads);
    return this.#multiply(layer.attnOutput, heard);
  }

  /** The logits after some tokens, from their activations after all layers. */
  #logits(x: Float32Array): Float32Array {
    const { normEpsilon, logitCap } = this.config;
    const logits = this.#multiply(this.output, rmsNorm(x, this.outputNorm, normEpsilon));
    if (logitCap !== undefined) capLogits(logits, logitCap);
    return logits;
  }

  /** The products of a matrix with the vectors in `x`, in the same layout. */
  #multiply({ weight, scale, bias }: Linear, x: Float32Array): Float32Array {
    const products = weight.matmulSync(x, this.options);
    if (scale !== 1) for (const [i, product] of products.entries()) products[i] = product * scale;
    if (bias !== undefined) add(products, bias);
    return products;
  }
}
