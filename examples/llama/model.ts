/** The forward pass of a llama model, and of those that differ from it in little. */
import type { GgufFile, GgufTensor } from "gguf-native";
import { type Linear, multiply, type ProductOptions, Weights } from "../network/weights";
import { type Floats, Workspace } from "../network/workspace";
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

/** The keys and values of the attention, which are F16, are multiplied exactly in any case. */
export interface LoadOptions extends ProductOptions {
  /** Is told of each matrix its name, its columns and the vectors that it is multiplied with. */
  observe?: Observer | undefined;
}

export type Observer = (name: string, columns: number, vectors: Float32Array) => void;

interface Layer {
  attention: LayerAttention;
  attnNorm: Floats;
  attnQ: Linear;
  attnK: Linear;
  attnV: Linear;
  /** Norms of each head of queries and keys. */
  queryNorm: Floats | undefined;
  keyNorm: Floats | undefined;
  attnOutput: Linear;
  /** Norm of what the attention adds. */
  attnPostNorm: Floats | undefined;
  ffnNorm: Floats;
  ffnGate: Linear;
  ffnUp: Linear;
  ffnDown: Linear;
  /** Norm of what the feed-forward network adds. */
  ffnPostNorm: Floats | undefined;
}

/** A model whose weights stay in its file, which must stay open. */
export class Llama {
  private constructor(
    private readonly workspace: Workspace,
    readonly config: LlamaConfig,
    private readonly embeddings: GgufTensor,
    private readonly layers: readonly Layer[],
    private readonly outputNorm: Floats,
    private readonly output: Linear,
    /** By the attention of layers. */
    private readonly frequencies: ReadonlyMap<LayerAttention, Float64Array>,
    private readonly options: Omit<LoadOptions, "observe">,
    private readonly observe: Observer | undefined,
  ) {}

  /** @throws Error if this example does not support the network; GgufError if something is wrong with the file */
  static load(file: GgufFile, { observe, ...options }: LoadOptions = {}): Llama {
    const config = readConfig(file);
    const workspace = new Workspace();
    const weights = new Weights(file, workspace);
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
    const ropeFactors = weights.optionalVector("rope_freqs.weight");
    const llama = new Llama(
      workspace,
      config,
      weights.tensor("token_embd.weight"),
      layers,
      weights.vector("output_norm.weight"),
      // Many models use the same matrix for the embeddings and for the output.
      weights.linear(weights.has("output.weight") ? "output" : "token_embd"),
      new Map(config.attention.map((kind) => [kind, ropeFrequencies(config, kind, ropeFactors?.array)])),
      options,
      observe,
    );
    weights.expectAllUsed();
    return llama;
  }

  /** Creates a cache for up to `capacity` tokens. */
  createCache(capacity: number): KvCache {
    return new KvCache(this.config, capacity);
  }

  /** Processes `tokens`, which follow those in `cache`, and appends them. Returns the logits of the next token. */
  forward(tokens: readonly number[], cache: KvCache): Float32Array {
    if (tokens.length === 0) throw new RangeError("there are no tokens to process");
    const { embeddingLength } = this.config;
    let last: Floats | undefined;
    for (const x of this.#batches(tokens, cache)) last = x.part(x.length - embeddingLength, embeddingLength);
    return this.#logits(last!).array.slice();
  }

  /**
   * Processes `tokens` like {@link forward}. For each of them from number `first` on, calls `visit` with its number and the
   * logits of the token after it, which are good until `visit` returns.
   */
  forwardEach(
    tokens: readonly number[],
    cache: KvCache,
    first: number,
    visit: (number: number, logits: Floats) => void,
  ): void {
    const { embeddingLength } = this.config;
    let start = 0;
    for (const x of this.#batches(tokens, cache)) {
      const end = start + x.length / embeddingLength;
      for (let i = Math.max(first, start); i < end; i += OUTPUT_BATCH) {
        const count = Math.min(OUTPUT_BATCH, end - i);
        const at = (i - start) * embeddingLength;
        const logits = this.#logits(x.part(at, count * embeddingLength));
        const width = logits.length / count;
        for (let j = 0; j < count; j++) visit(i + j, logits.part(j * width, width));
      }
      start = end;
    }
  }

  /** Processes some tokens at a time. Gives their activations after all layers. */
  *#batches(tokens: readonly number[], cache: KvCache): Generator<Floats> {
    const length = cache.length + tokens.length;
    if (length > cache.capacity) {
      throw new RangeError(`${length} tokens do not fit in a cache for ${cache.capacity}`);
    }
    for (let start = 0; start < tokens.length; start += BATCH) {
      yield this.#forwardBatch(tokens.slice(start, start + BATCH), cache);
    }
  }

  /** The activations of some tokens after all layers. */
  #forwardBatch(tokens: readonly number[], cache: KvCache): Floats {
    const { normEpsilon, activation, embeddingScale, embeddingLength } = this.config;
    const position = cache.length;
    const rotations = new Map(
      [...this.frequencies].map(([kind, frequencies], i) => {
        const out = this.workspace.floats(`rotations ${i}`, 2 * tokens.length * frequencies.length);
        return [kind, rotationsOf(frequencies, position, tokens.length, out)];
      }),
    );
    const x = this.workspace.floats("x", tokens.length * embeddingLength);
    this.embeddings.rowsSync(tokens, { out: x.array });
    if (embeddingScale !== 1) scale(x, embeddingScale);
    const normed = this.workspace.floats("normed", x.length);
    for (const [i, layer] of this.layers.entries()) {
      const attentionInput = rmsNorm(x, layer.attnNorm, normEpsilon, normed);
      const attended = this.#attend(layer, attentionInput, cache.layers[i]!, rotations.get(layer.attention)!);
      addNormed(x, attended, layer.attnPostNorm, normEpsilon);
      const ffnInput = rmsNorm(x, layer.ffnNorm, normEpsilon, normed);
      const gate = this.#multiply(layer.ffnGate, ffnInput, "gate");
      const hidden = gated(activation, gate, this.#multiply(layer.ffnUp, ffnInput, "up"));
      addNormed(x, this.#multiply(layer.ffnDown, hidden, "down"), layer.ffnPostNorm, normEpsilon);
    }
    return x;
  }

  #attend(layer: Layer, x: Floats, cache: LayerCache, rotations: Rotations): Floats {
    const { config } = this;
    const queries = this.#multiply(layer.attnQ, x, "queries");
    const keys = this.#multiply(layer.attnK, x, "keys");
    if (layer.queryNorm !== undefined) rmsNorm(queries, layer.queryNorm, config.normEpsilon, queries);
    if (layer.keyNorm !== undefined) rmsNorm(keys, layer.keyNorm, config.normEpsilon, keys);
    rope(queries, config.headCount, config, rotations);
    rope(keys, config.kvHeadCount, config, rotations);
    cache.append(keys, this.#multiply(layer.attnV, x, "values"), this.workspace);
    const { threads } = this.options;
    const heard = attention(config, layer.attention, queries, cache, this.workspace, threads);
    return this.#multiply(layer.attnOutput, heard, "attended");
  }

  /** The logits after some tokens, from their activations after all layers. */
  #logits(x: Floats): Floats {
    const { normEpsilon, logitCap } = this.config;
    const normed = rmsNorm(x, this.outputNorm, normEpsilon, this.workspace.floats("last normed", x.length));
    const logits = this.#multiply(this.output, normed, "logits");
    if (logitCap !== undefined) capLogits(logits.array, logitCap);
    return logits;
  }

  /** The products of a matrix with the vectors in `x`, in the same layout: `name` in the workspace. */
  #multiply(linear: Linear, x: Floats, name: string): Floats {
    const { weight, bias } = linear;
    const [columns, rows] = weight.shape as [number, number];
    const out = this.workspace.floats(name, (x.length / columns) * rows);
    this.observe?.(weight.name, columns, x.array);
    multiply(linear, x, this.options, out);
    if (bias !== undefined) add(out, bias);
    return out;
  }
}
