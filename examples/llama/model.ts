/** The forward pass of a llama model, and of those that differ from it in little. */
import { type GgufFile, matmulAllSync } from "gguf-native";
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
import { type Adapter, type Matrix, rowsOf, Weights } from "./weights";

/** Tokens that are processed at a time: enough to use each weight often, few enough to need little memory. */
const BATCH = 128;
/** Tokens whose logits are computed at a time: with a vocabulary of 262,144 tokens, 32 MiB. */
const OUTPUT_BATCH = 32;

export interface LoadOptions {
  /** `int8` (default) rounds what quantized weights are multiplied with to 8 bits, which is faster; `f32` does not. */
  activations?: "int8" | "f32" | undefined;
  /** Threads that multiply. Default: as many as help. */
  threads?: number | undefined;
  adapters?: readonly Adapter[] | undefined;
  /** Is told of each product the matrix and its columns, the vectors, and which expert of how many it is. */
  observe?: ((...product: [string, number, Float32Array, number, number]) => void) | undefined;
}

/** The keys and values of some tokens, for each layer. */
type LlamaCache = readonly KvCache[];

type Layer = ReturnType<typeof loadLayer>;
type FeedForward = Record<"gate" | "up" | "down", Matrix>;

function loadLayer(weights: Weights, config: LlamaConfig, i: number) {
  const { width, heads, keyHeads, keyWidth, valueWidth, experts } = config;
  const block = `blk.${i}.`;
  const feedForward = (suffix: string, ...count: number[]): FeedForward => {
    const gate = weights.matrix(`${block}ffn_gate${suffix}`, width, undefined, ...count);
    const up = weights.matrix(`${block}ffn_up${suffix}`, width, gate.rows, ...count);
    return { gate, up, down: weights.matrix(`${block}ffn_down${suffix}`, gate.rows, width, ...count) };
  };
  return {
    attention: config.attention[i]!,
    attnNorm: weights.vector(`${block}attn_norm.weight`, width),
    queries: weights.matrix(`${block}attn_q`, width, heads * keyWidth),
    keys: weights.matrix(`${block}attn_k`, width, keyHeads * keyWidth),
    values: weights.matrix(`${block}attn_v`, width, keyHeads * valueWidth),
    queryNorm: weights.optional(`${block}attn_q_norm.weight`, keyWidth),
    keyNorm: weights.optional(`${block}attn_k_norm.weight`, keyWidth),
    attnOutput: weights.matrix(`${block}attn_output`, heads * valueWidth, width),
    /** Norms of what attention and feed-forward network add. */
    attnPostNorm: weights.optional(`${block}post_attention_norm.weight`, width),
    ffnPostNorm: weights.optional(`${block}post_ffw_norm.weight`, width),
    ffnNorm: weights.vector(`${block}ffn_norm.weight`, width),
    ffn: experts > 0 ? feedForward("_exps", experts) : feedForward(""),
    /** How well each expert fits; an expert that all tokens use, and how much of it. */
    router: experts > 0 ? weights.matrix(`${block}ffn_gate_inp`, width, experts) : undefined,
    shared: weights.has(`${block}ffn_gate_shexp.weight`) ? feedForward("_shexp") : undefined,
    sharedGate: weights.optionalMatrix(`${block}ffn_gate_inp_shexp`, width, 1),
  };
}

function loadNetwork(file: GgufFile, adapters: readonly Adapter[]) {
  const config = readConfig(file);
  const weights = new Weights(file, adapters);
  const { width, rotated, pairs } = config;
  const embeddings = weights.matrix("token_embd", width);
  const factors = weights.optional("rope_freqs.weight", undefined);
  if (factors !== undefined && factors.length < rotated / 2)
    throw new Error(`the tensor rope_freqs.weight must have ${rotated / 2} numbers, found ${factors.length}`);
  const rotationsOf = (kind: LayerAttention): Rotations =>
    new Rotations({
      width: rotated,
      ...{ base: kind.base, scale: kind.scale },
      factors: factors?.subarray(0, rotated / 2),
      pairs,
    });
  const network = {
    ...{ config, embeddings },
    layers: config.attention.map((_, i) => loadLayer(weights, config, i)),
    rotations: new Map(config.attention.map((kind) => [kind, rotationsOf(kind)])),
    outputNorm: weights.vector("output_norm.weight", width),
    // Many models use the same matrix for both. What is added to embeddings is not added to the output.
    output: weights.optionalMatrix("output", width, embeddings.rows) ?? { ...embeddings, deltas: [] },
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
    return attention.map(() => new KvCache({ heads, keyWidth, valueWidth, capacity }));
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
    const { embeddings, layers } = this.network;
    const x = embeddings.tensor.rowsSync(tokens, { out: this.#floats("x", tokens.length * width) });
    for (const { a, b, factor } of embeddings.deltas)
      b.matmulSync(a.rowsSync(tokens), { factor, accumulate: true, out: x });
    if (embeddingScale !== 1) scale(x, embeddingScale);
    const normed = this.#floats("normed", x.length);
    for (const [i, layer] of layers.entries()) {
      rmsNorm(x, layer.attnNorm, { epsilon, out: normed });
      add(x, this.#norm(this.#attend(layer, normed, cache[i]!), layer.attnPostNorm));
      rmsNorm(x, layer.ffnNorm, { epsilon, out: normed });
      add(x, this.#norm(this.#think(layer, normed), layer.ffnPostNorm));
    }
    return x;
  }

  #attend(layer: Layer, x: Float32Array, cache: KvCache): Float32Array {
    const { heads, keyHeads, keyWidth, valueWidth, scoreScale } = this.config;
    const { threads } = this.options;
    const { window } = layer.attention;
    const matrices = [layer.queries, layer.keys, layer.values];
    const [queries, keys, values] = this.#multiply("qkv", matrices, x) as [Float32Array, Float32Array, Float32Array];
    this.#norm(queries, layer.queryNorm);
    this.#norm(keys, layer.keyNorm);
    const rotations = this.network.rotations.get(layer.attention)!;
    rope(queries, keyWidth, rotations, cache.length, { headCount: heads, out: queries });
    rope(keys, keyWidth, rotations, cache.length, { headCount: keyHeads, out: keys });
    cache.append(keys, values);
    const out = this.#floats("heard", (queries.length / keyWidth) * valueWidth);
    attention(queries, cache, { heads, scale: scoreScale, window, threads, out });
    return this.#multiply("attended", [layer.attnOutput], out)[0]!;
  }

  /** What the feed-forward network adds, or the experts that the router chooses for each token. */
  #think({ ffn, router, shared, sharedGate }: Layer, x: Float32Array): Float32Array {
    if (router === undefined) return this.#feedForward(ffn, x)[0]!;
    const { width, experts, expertsUsed, normalizedExperts } = this.config;
    const count = x.length / width;
    const scores = this.#multiply("router", [router], x)[0]!;
    softmax(scores, experts, { out: scores });
    /** By expert: the tokens that use it, and how much of it. */
    const uses = new Map<number, { token: number; share: number }[]>();
    for (let token = 0; token < count; token++) {
      const { indexes, values } = topK(vectorOf(scores, experts, token), expertsUsed);
      const sum = normalizedExperts ? values.reduce((a, b) => a + b) : 1;
      for (const [i, expert] of indexes.entries()) {
        if (!uses.has(expert)) uses.set(expert, []);
        uses.get(expert)!.push({ token, share: values[i]! / sum });
      }
    }
    const out = this.#floats("experts", x.length).fill(0);
    const used = [...uses.keys()].sort((a, b) => a - b);
    // Of one token, all experts are multiplied at once. Any number of tokens adds them in the same order.
    for (const group of count === 1 ? [used] : used.map((expert) => [expert])) {
      const tokens = uses.get(group[0]!)!;
      const own = this.#floats("own", width * tokens.length);
      for (const [i, { token }] of tokens.entries()) own.set(vectorOf(x, width, token), i * width);
      for (const [i, made] of this.#feedForward(ffn, own, group).entries()) {
        for (const [j, { token, share }] of uses.get(group[i]!)!.entries())
          add(vectorOf(out, width, token), scale(vectorOf(made, width, j), share));
      }
    }
    if (shared !== undefined) {
      const made = this.#feedForward(shared, x)[0]!;
      const shares = sharedGate && activate(this.#multiply("shared", [sharedGate], x)[0]!, "sigmoid");
      for (const [token, share] of shares?.entries() ?? []) scale(vectorOf(made, width, token), share);
      add(out, made);
    }
    return out;
  }

  /** What a feed-forward network makes of the vectors in `x`, or each of some experts. */
  #feedForward({ gate, up, down }: FeedForward, x: Float32Array, experts = [0]): Float32Array[] {
    const { threads } = this.options;
    const made = this.#multiply("hidden", [gate, up], x, experts);
    return experts.map((expert, i) => {
      const [hidden, factors] = made.slice(2 * i) as [Float32Array, Float32Array];
      gated(hidden, factors, this.config.activation, { out: hidden, threads });
      return this.#multiply(`down ${i}`, [down], hidden, [expert])[0]!;
    });
  }

  /** The logits after some tokens, from their activations after all layers. */
  #logits(x: Float32Array): Float32Array {
    const { epsilon, logitCap: cap } = this.config;
    const { outputNorm, output } = this.network;
    const normed = rmsNorm(x, outputNorm, { epsilon, out: this.#floats("last normed", x.length) });
    const logits = this.#multiply("logits", [output], normed)[0]!;
    if (cap !== undefined) scale(activate(scale(logits, 1 / cap), "tanh", { out: logits }), cap);
    return logits;
  }

  /** Scales vectors by a norm, in place, if the model has it. */
  #norm(x: Float32Array, weight: Float32Array | undefined): Float32Array {
    const { epsilon } = this.config;
    return weight === undefined ? x : rmsNorm(x, weight, { epsilon, out: x });
  }

  /** The products of matrices, or those of each of some experts, with the vectors in `x`: in arrays of this name. */
  #multiply(name: string, matrices: readonly Matrix[], x: Float32Array, experts = [0]): Float32Array[] {
    const { activations, threads, observe } = this.options;
    const products = experts.flatMap((expert) => matrices.map((matrix) => ({ matrix, expert })));
    const outs = products.map(({ matrix: { columns, rows } }, i) =>
      this.#floats(`${name} ${i}`, (x.length / columns) * rows),
    );
    const rows = products.map(({ matrix, expert }) => matrix.experts[expert]!);
    matmulAllSync(rows, x, { outs, activations, threads });
    for (const [i, { matrix, expert }] of products.entries()) {
      observe?.(matrix.tensor.name, matrix.columns, x, expert, matrix.experts.length);
      for (const { a, b, factor } of matrix.deltas) {
        const inner = a.matmulSync(x, { ...rowsOf(b.shape[0]!, expert), activations, threads });
        const added = { ...rowsOf(matrix.rows, expert), activations, threads, factor, accumulate: true };
        b.matmulSync(inner, { ...added, out: outs[i] });
      }
    }
    return outs;
  }

  /** `length` numbers of this name, of any value. They are good until the next call with the name. */
  #floats(name: string, length: number): Float32Array {
    let found = this.#scratch.get(name);
    if (found === undefined || found.length < length) {
      found = new Float32Array(length);
      this.#scratch.set(name, found);
    }
    return found.subarray(0, length);
  }
}

const vectorOf = (x: Float32Array, width: number, i: number): Float32Array => x.subarray(i * width, (i + 1) * width);
