/** The forward pass of a llama model, and of those that differ from it in little. */
import type { GgufFile, GgufTensor } from "gguf-native";
import {
  activate,
  add,
  attention,
  gated,
  KvCache,
  Rotations,
  rmsNorm,
  rope,
  scale,
} from "gguf-native/network";
import { Scratch } from "../network/scratch";
import { type Linear, multiply, type ProductOptions, Weights } from "../network/weights";
import { type LayerAttention, type LlamaConfig, readConfig } from "./config";

/** Tokens that are processed at a time: enough to use each weight often, few enough to need little memory. */
const BATCH = 128;
/** Tokens whose logits are computed at a time: with a vocabulary of 262,144 tokens, 32 MiB. */
const OUTPUT_BATCH = 32;

/** The keys and values of the attention, which are F16, are multiplied exactly in any case. */
export interface LoadOptions extends ProductOptions {
  /** Is told of each matrix its name, its columns and the vectors that it is multiplied with. */
  observe?: Observer | undefined;
}

export type Observer = (name: string, columns: number, vectors: Float32Array) => void;

/** The keys and values of some tokens, in all layers. */
export interface LlamaCache {
  layers: readonly KvCache[];
  capacity: number;
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
    private readonly scratch: Scratch,
    readonly config: LlamaConfig,
    private readonly embeddings: GgufTensor,
    private readonly layers: readonly Layer[],
    private readonly outputNorm: Float32Array,
    private readonly output: Linear,
    /** By the attention of layers. */
    private readonly rotations: ReadonlyMap<LayerAttention, Rotations>,
    private readonly options: Omit<LoadOptions, "observe">,
    private readonly observe: Observer | undefined,
  ) {}

  /** @throws Error if this example does not support the network; GgufError if something is wrong with the file */
  static load(file: GgufFile, { observe, ...options }: LoadOptions = {}): Llama {
    const config = readConfig(file);
    const weights = new Weights(file);
    const layers = Array.from({ length: config.layerCount }, (_, i): Layer => {
      const block = `blk.${i}.`;
      return {
        attention: config.attention[i]!,
        attnNorm: weights.vector(`${block}attn_norm.weight`),
        attnQ: weights.linear(`${block}attn_q`),
        attnK: weights.linear(`${block}attn_k`),
        attnV: weights.linear(`${block}attn_v`),
        queryNorm: weights.optionalVector(`${block}attn_q_norm.weight`),
        keyNorm: weights.optionalVector(`${block}attn_k_norm.weight`),
        attnOutput: weights.linear(`${block}attn_output`),
        attnPostNorm: weights.optionalVector(`${block}post_attention_norm.weight`),
        ffnNorm: weights.vector(`${block}ffn_norm.weight`),
        ffnGate: weights.linear(`${block}ffn_gate`),
        ffnUp: weights.linear(`${block}ffn_up`),
        ffnDown: weights.linear(`${block}ffn_down`),
        ffnPostNorm: weights.optionalVector(`${block}post_ffw_norm.weight`),
      };
    });
    const { ropeLength: width, ropePairs: pairs } = config;
    const factors = weights.optionalVector("rope_freqs.weight")?.subarray(0, width / 2);
    const llama = new Llama(
      new Scratch(),
      config,
      weights.tensor("token_embd.weight"),
      layers,
      weights.vector("output_norm.weight"),
      // Many models use the same matrix for the embeddings and for the output.
      weights.linear(weights.has("output.weight") ? "output" : "token_embd"),
      new Map(
        config.attention.map((kind) => {
          const { ropeBase: base, ropeScale } = kind;
          return [kind, new Rotations({ width, base, scale: ropeScale, factors, pairs })];
        }),
      ),
      options,
      observe,
    );
    weights.expectAllUsed();
    return llama;
  }

  /** Creates a cache for up to `capacity` tokens. */
  createCache(capacity: number): LlamaCache {
    const { layerCount, kvHeadCount: heads, keyLength: keyWidth, valueLength: valueWidth } = this.config;
    const newLayer = (): KvCache => new KvCache({ heads, keyWidth, valueWidth, capacity });
    return { layers: Array.from({ length: layerCount }, newLayer), capacity };
  }

  /** Processes `tokens`, which follow those in `cache`, and appends them. Returns the logits of the next token. */
  forward(tokens: readonly number[], cache: LlamaCache): Float32Array {
    if (tokens.length === 0) throw new RangeError("there are no tokens to process");
    const { embeddingLength } = this.config;
    let last: Float32Array | undefined;
    for (const x of this.#batches(tokens, cache)) last = x.subarray(x.length - embeddingLength);
    return this.#logits(last!).slice();
  }

  /**
   * Processes `tokens` like {@link forward}. For each of them from number `first` on, calls `visit` with its number and the
   * logits of the token after it, which are good until `visit` returns.
   */
  forwardEach(
    tokens: readonly number[],
    cache: LlamaCache,
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
  *#batches(tokens: readonly number[], cache: LlamaCache): Generator<Float32Array> {
    const length = cache.layers[0]!.length + tokens.length;
    if (length > cache.capacity) {
      throw new RangeError(`${length} tokens do not fit in a cache for ${cache.capacity}`);
    }
    for (let start = 0; start < tokens.length; start += BATCH) {
      yield this.#forwardBatch(tokens.slice(start, start + BATCH), cache);
    }
  }

  /** The activations of some tokens after all layers. */
  #forwardBatch(tokens: readonly number[], cache: LlamaCache): Float32Array {
    const { normEpsilon: epsilon, activation, embeddingScale, embeddingLength } = this.config;
    const x = this.scratch.floats("x", tokens.length * embeddingLength);
    this.embeddings.rowsSync(tokens, { out: x });
    if (embeddingScale !== 1) scale(x, embeddingScale);
    const normed = this.scratch.floats("normed", x.length);
    for (const [i, layer] of this.layers.entries()) {
      const attentionInput = rmsNorm(x, layer.attnNorm, { epsilon, out: normed });
      const attended = this.#attend(layer, attentionInput, cache.layers[i]!);
      this.#addNormed(x, attended, layer.attnPostNorm);
      const ffnInput = rmsNorm(x, layer.ffnNorm, { epsilon, out: normed });
      const gate = this.#multiply(layer.ffnGate, ffnInput, "gate");
      const hidden = gated(gate, this.#multiply(layer.ffnUp, ffnInput, "up"), activation, { out: gate });
      this.#addNormed(x, this.#multiply(layer.ffnDown, hidden, "down"), layer.ffnPostNorm);
    }
    return x;
  }

  #attend(layer: Layer, x: Float32Array, cache: KvCache): Float32Array {
    const { headCount, kvHeadCount, keyLength, valueLength, scoreScale, normEpsilon: epsilon } = this.config;
    const queries = this.#multiply(layer.attnQ, x, "queries");
    const keys = this.#multiply(layer.attnK, x, "keys");
    if (layer.queryNorm !== undefined) rmsNorm(queries, layer.queryNorm, { epsilon, out: queries });
    if (layer.keyNorm !== undefined) rmsNorm(keys, layer.keyNorm, { epsilon, out: keys });
    const rotations = this.rotations.get(layer.attention)!;
    rope(queries, keyLength, rotations, cache.length, { headCount, out: queries });
    rope(keys, keyLength, rotations, cache.length, { headCount: kvHeadCount, out: keys });
    cache.append(keys, this.#multiply(layer.attnV, x, "values"));
    const count = queries.length / (headCount * keyLength);
    const heard = attention(queries, cache, {
      ...{ heads: headCount, scale: scoreScale, window: layer.attention.window },
      ...{
        threads: this.options.threads,
        out: this.scratch.floats("heard", count * headCount * valueLength),
      },
    });
    return this.#multiply(layer.attnOutput, heard, "attended");
  }

  /** Adds the vectors of `y` to those of `x`, each scaled by a norm in place first if there is a weight for that. */
  #addNormed(x: Float32Array, y: Float32Array, weight: Float32Array | undefined): void {
    const { normEpsilon: epsilon } = this.config;
    add(x, weight === undefined ? y : rmsNorm(y, weight, { epsilon, out: y }));
  }

  /** The logits after some tokens, from their activations after all layers. */
  #logits(x: Float32Array): Float32Array {
    const { normEpsilon, logitCap } = this.config;
    const out = this.scratch.floats("last normed", x.length);
    const normed = rmsNorm(x, this.outputNorm, { epsilon: normEpsilon, out });
    const logits = this.#multiply(this.output, normed, "logits");
    if (logitCap !== undefined)
      scale(activate(scale(logits, 1 / logitCap), "tanh", { out: logits }), logitCap);
    return logits;
  }

  /** The products of a matrix with the vectors in `x`, in the same layout: `name` in the workspace. */
  #multiply(linear: Linear, x: Float32Array, name: string): Float32Array {
    const [columns, rows] = linear.weight.shape as [number, number];
    this.observe?.(linear.weight.name, columns, x);
    return multiply(linear, x, this.options, this.scratch.floats(name, (x.length / columns) * rows));
  }
}
