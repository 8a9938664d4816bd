/** The forward pass of a llama model, and of those that differ from it in little. */
import type { GgufFile } from "gguf-native";
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
  softmax,
  topK,
} from "gguf-native/network";
import { type LayerAttention, type LlamaConfig, readConfig } from "./config";
import { type Adapter, type Linear, multiply, type Product, type ProductOptions, Weights } from "./weights";

/** Tokens that are processed at a time: enough to use each weight often, few enough to need little memory. */
const BATCH = 128;
/** Tokens whose logits are computed at a time: with a vocabulary of 262,144 tokens, 32 MiB. */
const OUTPUT_BATCH = 32;

export interface LoadOptions extends ProductOptions {
  adapters?: readonly Adapter[] | undefined;
  /** Is told of each matrix its name, its columns, the vectors that it is multiplied with, and which expert of how many it is. */
  observe?: Observer | undefined;
}

export type Observer = (
  ...product: [name: string, columns: number, vectors: Float32Array, expert: number, experts: number]
) => void;

/** The keys and values of some tokens, in all layers. */
export interface LlamaCache {
  layers: readonly KvCache[];
  capacity: number;
}

interface FeedForward {
  gate: Linear;
  up: Linear;
  down: Linear;
}

type Layer = ReturnType<typeof loadLayer>;

function loadLayer(weights: Weights, config: LlamaConfig, i: number) {
  const { width, heads, keyHeads, keyWidth, valueWidth, experts } = config;
  const block = `blk.${i}.`;
  const feedForward = (suffix: string, ...count: number[]): FeedForward => {
    const gate = weights.linear(`${block}ffn_gate${suffix}`, width, undefined, ...count);
    const up = weights.linear(`${block}ffn_up${suffix}`, width, gate.rows, ...count);
    return { gate, up, down: weights.linear(`${block}ffn_down${suffix}`, gate.rows, width, ...count) };
  };
  return {
    attention: config.attention[i]!,
    attnNorm: weights.vector(`${block}attn_norm.weight`, width),
    queries: weights.linear(`${block}attn_q`, width, heads * keyWidth),
    keys: weights.linear(`${block}attn_k`, width, keyHeads * keyWidth),
    values: weights.linear(`${block}attn_v`, width, keyHeads * valueWidth),
    queryNorm: weights.optional(`${block}attn_q_norm.weight`, keyWidth),
    keyNorm: weights.optional(`${block}attn_k_norm.weight`, keyWidth),
    attnOutput: weights.linear(`${block}attn_output`, heads * valueWidth, width),
    /** Norms of what attention and feed-forward network add. */
    attnPostNorm: weights.optional(`${block}post_attention_norm.weight`, width),
    ffnPostNorm: weights.optional(`${block}post_ffw_norm.weight`, width),
    ffnNorm: weights.vector(`${block}ffn_norm.weight`, width),
    ffn: experts > 0 ? feedForward("_exps", experts) : feedForward(""),
    /** How well each expert fits, and the expert that all tokens use, with the weight that it has. */
    router: experts > 0 ? weights.linear(`${block}ffn_gate_inp`, width, experts) : undefined,
    shared: weights.has(`${block}ffn_gate_shexp.weight`) ? feedForward("_shexp") : undefined,
    sharedGate: weights.has(`${block}ffn_gate_inp_shexp.weight`)
      ? weights.linear(`${block}ffn_gate_inp_shexp`, width, 1)
      : undefined,
  };
}

function loadNetwork(file: GgufFile, adapters: readonly Adapter[]) {
  const config = readConfig(file);
  const weights = new Weights(file, adapters);
  const { width, rotated, pairs } = config;
  const { embeddings, deltas } = weights.embeddings("token_embd.weight", width);
  const tokens = embeddings.shape[1]!;
  const factors = weights.optional("rope_freqs.weight", undefined);
  if (factors !== undefined && factors.length < rotated / 2)
    throw new Error(`the tensor rope_freqs.weight must have ${rotated / 2} numbers, found ${factors.length}`);
  const rotationsOf = ({ base, scale }: LayerAttention): Rotations =>
    new Rotations({ width: rotated, base, scale, factors: factors?.subarray(0, rotated / 2), pairs });
  const network = {
    ...{ config, embeddings, embeddingDeltas: deltas },
    layers: config.attention.map((_, i) => loadLayer(weights, config, i)),
    rotations: new Map(config.attention.map((kind) => [kind, rotationsOf(kind)])),
    outputNorm: weights.vector("output_norm.weight", width),
    // Many models use the same matrix for the embeddings and for the output.
    output: weights.linear(weights.has("output.weight") ? "output" : "token_embd", width, tokens),
  };
  weights.expectAllUsed();
  return network;
}

/** A model whose weights stay in its file, which must stay open. */
export class Llama {
  readonly config: LlamaConfig;
  /** The arrays of a forward pass: making them takes longer than some of what is written to them. */
  readonly #scratch = new Map<string, Float32Array>();

  private constructor(
    private readonly network: ReturnType<typeof loadNetwork>,
    private readonly options: LoadOptions,
  ) {
    this.config = network.config;
  }

  /** @throws Error if this example does not support the network; GgufError if something is wrong with the file */
  static load(file: GgufFile, options: LoadOptions = {}): Llama {
    return new Llama(loadNetwork(file, options.adapters ?? []), { activations: "int8", ...options });
  }

  /** Creates a cache for up to `capacity` tokens. */
  createCache(capacity: number): LlamaCache {
    const { keyHeads: heads, keyWidth, valueWidth, attention } = this.config;
    return { layers: attention.map(() => new KvCache({ heads, keyWidth, valueWidth, capacity })), capacity };
  }

  /** Processes `tokens`, which follow those in `cache`, and appends them. Returns the logits of the next token. */
  forward(tokens: readonly number[], cache: LlamaCache): Float32Array<ArrayBuffer> {
    let last = new Float32Array();
    this.forwardEach(tokens, cache, tokens.length - 1, (_, logits) => {
      last = logits.slice();
    });
    return last;
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
    if (tokens.length === 0) throw new RangeError("there are no tokens to process");
    const length = cache.layers[0]!.length + tokens.length;
    if (length > cache.capacity) {
      throw new RangeError(`${length} tokens do not fit in a cache for ${cache.capacity}`);
    }
    const { width } = this.config;
    for (let start = 0; start < tokens.length; start += BATCH) {
      const x = this.#forwardBatch(tokens.slice(start, start + BATCH), cache);
      const end = start + x.length / width;
      for (let i = Math.max(first, start); i < end; i += OUTPUT_BATCH) {
        const count = Math.min(OUTPUT_BATCH, end - i);
        const logits = this.#logits(x.subarray((i - start) * width, (i - start + count) * width));
        for (let j = 0; j < count; j++) visit(i + j, vectorOf(logits, logits.length / count, j));
      }
    }
  }

  /** The activations of some tokens after all layers. */
  #forwardBatch(tokens: readonly number[], cache: LlamaCache): Float32Array {
    const { epsilon, embeddingScale, width } = this.config;
    const { embeddings, embeddingDeltas, layers } = this.network;
    const x = embeddings.rowsSync(tokens, { out: this.#floats("x", tokens.length * width) });
    for (const { a, b, factor } of embeddingDeltas)
      b.matmulSync(a.rowsSync(tokens), { factor, accumulate: true, out: x });
    if (embeddingScale !== 1) scale(x, embeddingScale);
    const normed = this.#floats("normed", x.length);
    const addNormed = (y: Float32Array, norm: Float32Array | undefined): void => {
      add(x, norm === undefined ? y : rmsNorm(y, norm, { epsilon, out: y }));
    };
    for (const [i, layer] of layers.entries()) {
      rmsNorm(x, layer.attnNorm, { epsilon, out: normed });
      addNormed(this.#attend(layer, normed, cache.layers[i]!), layer.attnPostNorm);
      rmsNorm(x, layer.ffnNorm, { epsilon, out: normed });
      addNormed(this.#think(layer, normed), layer.ffnPostNorm);
    }
    return x;
  }

  #attend(layer: Layer, x: Float32Array, cache: KvCache): Float32Array {
    const { heads, keyHeads, keyWidth, valueWidth, scoreScale, epsilon } = this.config;
    const { threads } = this.options;
    const { window } = layer.attention;
    const linears = [layer.queries, layer.keys, layer.values].map((linear) => ({ linear }));
    const [queries, keys, values] = this.#multiply("qkv", linears, x) as [
      Float32Array,
      Float32Array,
      Float32Array,
    ];
    if (layer.queryNorm !== undefined) rmsNorm(queries, layer.queryNorm, { epsilon, out: queries });
    if (layer.keyNorm !== undefined) rmsNorm(keys, layer.keyNorm, { epsilon, out: keys });
    const rotations = this.network.rotations.get(layer.attention)!;
    rope(queries, keyWidth, rotations, cache.length, { headCount: heads, out: queries });
    rope(keys, keyWidth, rotations, cache.length, { headCount: keyHeads, out: keys });
    cache.append(keys, values);
    const out = this.#floats("heard", (queries.length / keyWidth) * valueWidth);
    attention(queries, cache, { heads, scale: scoreScale, window, threads, out });
    return this.#multiply("attended", [{ linear: layer.attnOutput }], out)[0]!;
  }

  /** What the feed-forward network adds, or the experts that the router chooses for each token. */
  #think({ ffn, router, shared, sharedGate }: Layer, x: Float32Array): Float32Array {
    if (router === undefined) return this.#feedForward(ffn, x)[0]!;
    const { width, experts, expertsUsed, normalizedExperts } = this.config;
    const tokens = x.length / width;
    const scores = this.#multiply("router", [{ linear: router }], x)[0]!;
    softmax(scores, experts, { out: scores });
    const chosen = Array.from({ length: experts }, (): { token: number; weight: number }[] => []);
    for (let token = 0; token < tokens; token++) {
      const { indexes, values } = topK(vectorOf(scores, experts, token), expertsUsed);
      const sum = normalizedExperts ? values.reduce((a, b) => a + b) : 1;
      for (const [i, expert] of indexes.entries()) chosen[expert]!.push({ token, weight: values[i]! / sum });
    }
    const used = [...chosen.keys()].filter((expert) => chosen[expert]!.length > 0);
    const out = this.#floats("experts", x.length).fill(0);
    // Of one token, all experts are multiplied at once. Any number of tokens adds them in the same order.
    for (const group of tokens === 1 ? [used] : used.map((expert) => [expert])) {
      const own = this.#floats("own", width * chosen[group[0]!]!.length);
      for (const [i, { token }] of chosen[group[0]!]!.entries())
        own.set(vectorOf(x, width, token), i * width);
      for (const [i, made] of this.#feedForward(ffn, own, group).entries()) {
        for (const [j, { token, weight }] of chosen[group[i]!]!.entries())
          add(vectorOf(out, width, token), scale(vectorOf(made, width, j), weight));
      }
    }
    if (shared !== undefined) {
      const weights = sharedGate && this.#multiply("shared gate", [{ linear: sharedGate }], x)[0]!;
      if (weights !== undefined) activate(weights, "sigmoid", { out: weights });
      const made = this.#feedForward(shared, x)[0]!;
      for (const [token, weight] of weights?.entries() ?? []) scale(vectorOf(made, width, token), weight);
      add(out, made);
    }
    return out;
  }

  /** What some experts each make of the vectors in `x`; 0: the only one. */
  #feedForward(
    { gate, up, down }: FeedForward,
    x: Float32Array,
    experts: readonly number[] = [0],
  ): Float32Array[] {
    const { activation } = this.config;
    const { threads } = this.options;
    const both = experts.flatMap((expert) => [gate, up].map((linear) => ({ linear, expert })));
    const made = this.#multiply("hidden", both, x);
    return experts.map((expert, i) => {
      const hidden = gated(made[2 * i]!, made[2 * i + 1]!, activation, { out: made[2 * i]!, threads });
      return this.#multiply(`down ${i}`, [{ linear: down, expert }], hidden)[0]!;
    });
  }

  /** The logits after some tokens, from their activations after all layers. */
  #logits(x: Float32Array): Float32Array {
    const { epsilon, logitCap } = this.config;
    const { outputNorm, output: linear } = this.network;
    const normed = rmsNorm(x, outputNorm, { epsilon, out: this.#floats("last normed", x.length) });
    const logits = this.#multiply("logits", [{ linear }], normed)[0]!;
    if (logitCap !== undefined)
      scale(activate(scale(logits, 1 / logitCap), "tanh", { out: logits }), logitCap);
    return logits;
  }

  /** Products with the same vectors, in arrays of this name. */
  #multiply(name: string, products: readonly Product[], x: Float32Array): Float32Array[] {
    const outs = products.map(({ linear, expert = 0 }, i) => {
      const { weight, columns, rows, experts } = linear;
      this.options.observe?.(weight.name, columns, x, expert, experts);
      return this.#floats(`${name} ${i}`, (x.length / columns) * rows);
    });
    multiply(products, x, outs, this.options);
    return outs;
  }

  /** `length` numbers of this name, of any value. They are good until the next call with the name. */
  #floats(name: string, length: number): Float32Array {
    const found = this.#scratch.get(name);
    if (found?.length === length) return found;
    const fits = found !== undefined && 4 * length <= found.buffer.byteLength;
    const floats = fits ? new Float32Array(found.buffer, 0, length) : new Float32Array(length);
    this.#scratch.set(name, floats);
    return floats;
  }
}

const vectorOf = (x: Float32Array, width: number, i: number): Float32Array =>
  x.subarray(i * width, (i + 1) * width);
