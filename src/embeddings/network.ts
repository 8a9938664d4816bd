/**
 * The networks that make vectors of texts. They are one transformer: what an architecture says of it is in the table
 * {@link ARCHITECTURES}, and all else in the model's keys, and in which tensors there are.
 */
import type { Activations } from "../base/options";
import type { GgufFile } from "../file/parse";
import { matmulAllSync } from "../file/products-together";
import type { GgufTensor } from "../file/tensor";
import { knownType } from "../file/tensor-requests";
import type { Activation } from "../network/options";
import {
  activate,
  add,
  attention,
  gated,
  KvCache,
  layerNorm,
  meanOfRows,
  normalize,
  Rotations,
  rmsNorm,
  rope,
  roundingError,
  scale,
  softmax,
  topK,
} from "../network/public";
import { POOLINGS, type Pooling } from "./options";
import { type Linear, type Norm, rowsOf, Weights } from "./weights";

interface Architecture {
  /** Norms that also subtract the mean, or not. */
  readonly norm: "layer" | "rms";
  /** Whether norms stand before attention and feed-forward network, or after what these are added to. */
  readonly isNormedFirst: boolean;
  readonly activation: Activation;
  readonly isRotated: boolean;
  readonly isCausal: boolean;
  /** Where the file names none. */
  readonly pooling: Pooling | undefined;
  /** Whether some layers have experts, of which none has a gate. */
  readonly hasExperts?: true;
  /** Gemma's: embeddings are scaled, and of so many layers all but the last see a window on both sides of a token. */
  readonly pattern?: number;
}

const ARCHITECTURES: Readonly<Record<string, Architecture>> = {
  bert: {
    ...{ norm: "layer", isNormedFirst: false, activation: "gelu_erf" },
    ...{ isRotated: false, isCausal: false, pooling: undefined },
  },
  "nomic-bert": {
    ...{ norm: "layer", isNormedFirst: false, activation: "silu" },
    ...{ isRotated: true, isCausal: false, pooling: undefined },
  },
  "nomic-bert-moe": {
    ...{ norm: "layer", isNormedFirst: false, activation: "gelu_erf" },
    ...{ isRotated: true, isCausal: false, pooling: undefined, hasExperts: true },
  },
  qwen3: {
    ...{ norm: "rms", isNormedFirst: true, activation: "silu" },
    ...{ isRotated: true, isCausal: true, pooling: "last" },
  },
  "gemma-embedding": {
    ...{ norm: "rms", isNormedFirst: true, activation: "gelu" },
    ...{ isRotated: true, isCausal: false, pooling: "mean", pattern: 6 },
  },
};

/** Tokens of which the wide vectors between both matrices of a feed-forward network are there at a time: they stay in the cache. */
const HIDDEN_AT_ONCE = 256;

/** A feed-forward network. */
interface Expert {
  readonly gate: Linear | undefined;
  readonly up: Linear;
  readonly down: Linear;
}

interface Layer {
  readonly q: Linear;
  readonly k: Linear;
  readonly v: Linear;
  readonly out: Linear;
  readonly qNorm: Norm | undefined;
  readonly kNorm: Norm | undefined;
  /** One, or those among which the router chooses so many for each token. */
  readonly experts: readonly Expert[];
  readonly router: Linear | undefined;
  readonly used: number;
  /** Before or after attention and network, as the architecture has it. */
  readonly attnNorm: Norm;
  readonly ffnNorm: Norm;
  /** Of their results, before these are added. */
  readonly attnResultNorm: Norm | undefined;
  readonly ffnResultNorm: Norm | undefined;
  readonly rotations: Rotations | undefined;
  /** How many tokens before and after it a token sees; undefined: all. */
  readonly reach: number | undefined;
}

/** Tokens of a text; from `second` on they are those of the second one of two. */
export interface Tokens {
  readonly ids: Int32Array;
  readonly second: number;
}

export interface NetworkOptions {
  readonly activations: Activations;
  readonly threads: number | undefined;
  readonly pooling: Pooling | undefined;
  /** Whether its matrices are prepared, by who opens it. */
  readonly prepare: boolean | undefined;
}

/** A network whose weights stay in its file, which must stay open. */
export class Network {
  /** The most tokens of a text. */
  readonly maxTokens: number;
  /** The numbers of a vector. */
  readonly dimensions: number;
  /** `"rank"` if all that it makes of a text is a number. */
  readonly pooling: Pooling | "rank";
  /** Whether it can score pairs of texts. */
  readonly hasScores: boolean;

  readonly #kind: Architecture;
  readonly #isCausal: boolean;
  readonly #options: NetworkOptions;
  readonly #width: number;
  readonly #epsilon: number;
  readonly #heads: number;
  readonly #headWidth: number;
  readonly #tokens: GgufTensor;
  readonly #positions: Float32Array | undefined;
  /** What is added to the tokens of the first and of the second text. */
  readonly #types: readonly [Float32Array, Float32Array] | undefined;
  readonly #embeddingNorm: Norm | undefined;
  readonly #outputNorm: Norm | undefined;
  readonly #layers: readonly Layer[];
  /** Matrices that a text's vector is multiplied with, and those that a score is made with. */
  readonly #dense: readonly Linear[];
  readonly #classifier: Linear | undefined;
  readonly #score: Linear | undefined;
  /** Keys and values of a text in a layer: both are used up before the next. */
  readonly #cache: KvCache;
  readonly #scratch = new Map<string, Float32Array>();

  /**
   * Reads all of a model but its matrices, and checks all shapes.
   * @throws GgufError ERR_GGUF_UNSUPPORTED_TYPE for a network that is not known; ERR_GGUF_INVALID, ERR_GGUF_TENSOR_NOT_FOUND for
   *   one that does not fit together
   */
  constructor(file: GgufFile, options: NetworkOptions) {
    const weights = new Weights(file);
    const name = file.metadata.architecture ?? "(none)";
    if (!Object.hasOwn(ARCHITECTURES, name)) {
      const known = Object.keys(ARCHITECTURES).join(", ");
      const detail = `an embedder runs models of the architectures ${known}, not ${name}`;
      throw weights.error("ERR_GGUF_UNSUPPORTED_TYPE", detail);
    }
    const kind = ARCHITECTURES[name] as Architecture;
    this.#kind = kind;
    this.#isCausal = weights.flag("attention.causal", kind.isCausal);
    weights.expectPlainRotations();
    this.#options = options;
    const width = weights.count("embedding_length");
    const heads = weights.count("attention.head_count");
    const keyHeads = weights.count("attention.head_count_kv", heads);
    const isGiven = weights.value("attention.key_length", 0) !== 0;
    const divisor = `a divisor of the ${width} numbers of a vector`;
    weights.expect(isGiven || width % heads === 0, "attention.head_count", divisor, heads);
    const headWidth = weights.count("attention.key_length", width / heads);
    const valueWidth = weights.count("attention.value_length", headWidth);
    weights.expect(valueWidth === headWidth, "attention.value_length", "the length of a key", valueWidth);
    weights.expect(heads % keyHeads === 0, "attention.head_count_kv", `a divisor of ${heads}`, keyHeads);
    const isRms = kind.norm === "rms";
    this.#width = width;
    this.#heads = heads;
    this.#headWidth = headWidth;
    this.#epsilon = weights.positive(isRms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon");
    this.maxTokens = weights.count("context_length");
    this.pooling = options.pooling ?? readPooling(weights, kind);

    this.#tokens = weights.tensor("token_embd.weight", width, undefined);
    if (!kind.isRotated) {
      const table = weights.tensor("position_embd.weight", width, undefined);
      const positions = table.shape[1] ?? 1;
      weights.expect(
        this.maxTokens <= positions,
        "context_length",
        `up to the ${positions} positions of the model`,
        this.maxTokens,
      );
      this.#positions = table.dequantizeSync();
    }
    if (weights.has("token_types.weight")) {
      const types = weights.tensor("token_types.weight", width, undefined);
      const last = Math.min(1, (types.shape[1] ?? 1) - 1);
      this.#types = [types.rowsSync([0]), types.rowsSync([last])];
    }
    this.#embeddingNorm = kind.isNormedFirst ? undefined : weights.norm("token_embd_norm", width);
    this.#outputNorm = kind.isNormedFirst ? weights.norm("output_norm", width) : undefined;
    const layers = weights.layerCount();
    // Before layers are read: a cache has limits of its own.
    this.#cache = new KvCache({ heads: keyHeads, keyWidth: headWidth, type: "F32" });
    const rotate = (base: number): Rotations | undefined => {
      if (!kind.isRotated) return undefined;
      const rotated = weights.count("rope.dimension_count", headWidth);
      const fits = rotated % 2 === 0 && rotated <= headWidth;
      weights.expect(fits, "rope.dimension_count", `even, and at most ${headWidth}`, rotated);
      weights.expect(base > 1, "rope.freq_base", "above 1", base);
      return new Rotations({ width: rotated, base, pairs: "halves" });
    };
    const everywhere = rotate(weights.positive("rope.freq_base", 10000));
    const nearby = kind.pattern === undefined ? undefined : rotate(weights.positive("rope.freq_base_swa", 10000));
    const window = kind.pattern === undefined ? 0 : weights.count("attention.sliding_window", MOST_WINDOW);
    const feedForward = weights.count("feed_forward_length");
    this.#layers = Array.from({ length: layers }, (_, i) => {
      const isNear = kind.pattern !== undefined && i % kind.pattern < kind.pattern - 1;
      return {
        ...readLayer(weights, `blk.${i}.`, { kind, width, heads, keyHeads, headWidth, feedForward }),
        rotations: isNear ? nearby : everywhere,
        reach: isNear ? Math.floor(window / 2) : undefined,
      };
    });

    const dense: Linear[] = [];
    let length = width;
    for (const each of ["dense_2", "dense_3"]) {
      if (!weights.has(`${each}.weight`)) continue;
      dense.push(weights.linear(each, length));
      length = (dense.at(-1) as Linear).end;
    }
    this.#dense = dense;
    this.dimensions = length;
    this.#classifier = weights.has("cls.weight") ? weights.linear("cls", width, width) : undefined;
    this.#score = weights.has("cls.output.weight") ? weights.linear("cls.output", width, 1) : undefined;
    this.hasScores = this.#score !== undefined;
    if (this.pooling === "rank" && this.#score === undefined) weights.tensor("cls.output.weight");
    if (weights.has("output.weight")) weights.tensor("output.weight", width, undefined); // for the next token
    weights.expectAllUsed();
  }

  /**
   * The vectors of texts, of which each is the same alone and among others; of two texts, or where `isScored`, a number. Gives
   * way after each product.
   */
  *run(texts: readonly Tokens[], isScored: boolean): Generator<void, Float32Array[]> {
    const width = this.#width;
    const x = this.#embeddings(texts);
    for (const layer of this.#layers) {
      const asked = this.#kind.isNormedFirst ? this.#norm(x, layer.attnNorm, "normed") : x;
      const heard = yield* this.#attend(layer, asked, texts);
      yield;
      this.#addResult(x, this.#multiply(layer.out, heard, "result"), layer.attnResultNorm, layer.attnNorm);
      for (let start = 0; start < x.length; start += HIDDEN_AT_ONCE * width) {
        const some = x.subarray(start, start + HIDDEN_AT_ONCE * width);
        const result = yield* this.#feedForward(layer, some);
        this.#addResult(some, result, layer.ffnResultNorm, layer.ffnNorm);
      }
    }
    let first = 0;
    return texts.map(({ ids }) => {
      const end = first + ids.length;
      const vectors = x.subarray(first * width, end * width);
      first = end;
      return isScored ? this.#scoreOf(vectors) : this.#vectorOf(vectors);
    });
  }

  /** Adds what attention or network made of `x`, with the norms that belong there. */
  #addResult(x: Float32Array, result: Float32Array, own: Norm | undefined, after: Norm): void {
    add(x, own === undefined ? result : this.#norm(result, own));
    if (!this.#kind.isNormedFirst) this.#norm(x, after);
  }

  /** Norms each vector of `x`: in place, or in the array of this name. */
  #norm(x: Float32Array, { weight, bias }: Norm, name?: string): Float32Array {
    const out = name === undefined ? x : this.#floats(name, x.length);
    const options = { epsilon: this.#epsilon, out, threads: this.#options.threads };
    return this.#kind.norm === "rms" ? rmsNorm(x, weight, options) : layerNorm(x, weight, bias, options);
  }

  #embeddings(texts: readonly Tokens[]): Float32Array {
    const width = this.#width;
    const ids = texts.flatMap((text) => Array.from(text.ids));
    const x = this.#floats("x", ids.length * width);
    this.#tokens.rowsSync(ids, { out: x });
    if (this.#kind.pattern !== undefined) scale(x, Math.sqrt(width));
    let first = 0;
    for (const { ids, second } of texts) {
      const text = x.subarray(first * width, (first + ids.length) * width);
      if (this.#positions !== undefined) add(text, this.#positions.subarray(0, text.length));
      if (this.#types !== undefined) {
        add(text.subarray(0, second * width), this.#types[0]);
        add(text.subarray(second * width), this.#types[1]);
      }
      first += ids.length;
    }
    return this.#embeddingNorm === undefined ? x : this.#norm(x, this.#embeddingNorm);
  }

  /** For each text, its tokens look at each other. */
  *#attend(layer: Layer, x: Float32Array, texts: readonly Tokens[]): Generator<void, Float32Array> {
    const matrices = { queries: layer.q, keys: layer.k, values: layer.v };
    const [queries, keys, values] = this.#multiplyAll(matrices, x) as [Float32Array, Float32Array, Float32Array];
    yield;
    if (this.#options.activations === "int8" && knownType(layer.v.tensor).blockSize > 1) {
      // Half of all that rounding to 8 bits does to a vector of a text is done to the values, in a twelfth of the products. So
      // what rounding loses is multiplied with their matrix, too.
      const lost = roundingError(x, { out: this.#floats("lost", x.length), threads: this.#options.threads });
      add(values, this.#multiply({ ...layer.v, bias: undefined }, lost, "added"));
      yield;
    }
    this.#rotate(layer, queries, layer.qNorm, texts);
    this.#rotate(layer, keys, layer.kNorm, texts);
    yield;
    const heard = this.#floats("heard", queries.length);
    const [queryWidth, keyWidth] = [layer.q.end - layer.q.start, layer.k.end - layer.k.start];
    let first = 0;
    for (const { ids } of texts) {
      const end = first + ids.length;
      this.#cache.truncate(0);
      this.#cache.append(
        keys.subarray(first * keyWidth, end * keyWidth),
        values.subarray(first * keyWidth, end * keyWidth),
      );
      const [from, to] = [first * queryWidth, end * queryWidth];
      this.#ask(queries.subarray(from, to), heard.subarray(from, to), ids.length, layer.reach);
      first = end;
      yield;
    }
    return heard;
  }

  /** What the tokens of a text, whose keys and values are in the cache, hear. */
  #ask(queries: Float32Array, out: Float32Array, count: number, reach: number | undefined): void {
    const { threads } = this.#options;
    const heads = this.#heads;
    if (reach === undefined || reach >= count) {
      attention(queries, this.#cache, { heads, causal: this.#isCausal, out, threads });
      return;
    }
    // A token that stands `reach` further, and looks back twice as far, sees what this one sees on both sides. There is no
    // such place for the last ones: they see all that comes after them.
    const at = (count - reach) * (queries.length / count);
    const window = reach + 1;
    const shifted = { heads, window: window + reach, out: out.subarray(0, at), threads };
    attention(queries.subarray(0, at), this.#cache, shifted);
    if (reach === 0) return;
    const last = { heads, window, causal: false, out: out.subarray(at), threads };
    attention(queries.subarray(at), this.#cache, last);
  }

  /** Heads of queries or keys, in place: normed and rotated, if the model does that. */
  #rotate({ rotations }: Layer, x: Float32Array, norm: Norm | undefined, texts: readonly Tokens[]): void {
    if (norm !== undefined) this.#norm(x, norm);
    if (rotations === undefined) return;
    const { threads } = this.#options;
    const total = texts.reduce((sum, { ids }) => sum + ids.length, 0);
    const headCount = x.length / total / this.#headWidth;
    const positions = Int32Array.from(texts.flatMap(({ ids }) => Array.from(ids.keys())));
    rope(x, this.#headWidth, rotations, positions, { headCount, out: x, threads });
  }

  *#feedForward(layer: Layer, x: Float32Array): Generator<void, Float32Array> {
    const input = this.#kind.isNormedFirst ? this.#norm(x, layer.ffnNorm, "normed") : x;
    const { experts, router, used } = layer;
    if (router === undefined) return yield* this.#expert(experts[0] as Expert, input);
    const width = this.#width;
    const at = (array: Float32Array, i: number, length = width) => array.subarray(i * length, (i + 1) * length);
    const shares = this.#multiply(router, input, "shares");
    softmax(shares, experts.length, { out: shares });
    const chosen = Array.from({ length: input.length / width }, (_, i) => topK(at(shares, i, experts.length), used));
    const sum = this.#floats("sum", input.length).fill(0);
    for (const [number, expert] of experts.entries()) {
      const tokens = [...chosen.keys()].filter((i) => chosen[i]?.indexes.includes(number));
      if (tokens.length === 0) continue;
      const own = this.#floats("own", tokens.length * width);
      for (const [i, token] of tokens.entries()) own.set(at(input, token), i * width);
      const made = yield* this.#expert(expert, own);
      for (const [i, token] of tokens.entries()) {
        add(at(sum, token), scale(at(made, i), shares[token * experts.length + number] as number));
      }
    }
    return sum;
  }

  *#expert({ up, gate: other, down }: Expert, x: Float32Array): Generator<void, Float32Array> {
    const { activation } = this.#kind;
    const { threads } = this.#options;
    const matrices = { hidden: up, ...(other && { gate: other }) };
    const [hidden, gate] = this.#multiplyAll(matrices, x) as [Float32Array, Float32Array?];
    yield;
    if (gate === undefined) activate(hidden, activation, { out: hidden, threads });
    else gated(gate, hidden, activation, { out: hidden, threads });
    yield;
    const result = this.#multiply(down, hidden, "result");
    yield;
    return result;
  }

  /** The vector of a text, from those of its tokens. */
  #vectorOf(x: Float32Array): Float32Array {
    const pooled = this.#pooled(x, this.pooling);
    return this.#dense.reduce((vector, linear) => this.#product(linear, vector), pooled);
  }

  #scoreOf(x: Float32Array): Float32Array {
    let vector = this.#pooled(x, "cls");
    if (this.#classifier !== undefined) vector = activate(this.#product(this.#classifier, vector), "tanh");
    return this.#product(this.#score as Linear, vector);
  }

  #pooled(x: Float32Array, pooling: Pooling | "rank"): Float32Array {
    const width = this.#width;
    // Only those that are used are normed.
    const used = pooling === "mean" ? x : pooling === "last" ? x.slice(-width) : x.slice(0, width);
    if (this.#outputNorm !== undefined) this.#norm(used, this.#outputNorm);
    return pooling === "mean" ? meanOfRows(used, width) : used;
  }

  /** The products of matrices with the vectors in `x`, with their biases: each in the array of its name. */
  #multiplyAll(matrices: Readonly<Record<string, Linear>>, x: Float32Array): Float32Array[] {
    const outs = Object.entries(matrices).map(([name, { columns, start, end }]) =>
      this.#floats(name, (x.length / columns) * (end - start)),
    );
    const { activations, threads } = this.#options;
    return matmulAllSync(Object.values(matrices), x, { outs, activations, threads });
  }

  #multiply(linear: Linear, x: Float32Array, name: string): Float32Array {
    return this.#multiplyAll({ [name]: linear }, x)[0] as Float32Array;
  }

  /** Those of one matrix with the vector of a text, which are few: nothing is rounded, and the array is of its own. */
  #product(linear: Linear, x: Float32Array): Float32Array {
    return matmulAllSync([linear], x, { threads: this.#options.threads })[0] as Float32Array;
  }

  /**
   * `length` numbers of this name, of any value, good until the next call with the name: they are used again, since making them
   * takes longer than some of what is written to them.
   */
  #floats(name: string, length: number): Float32Array {
    const found = this.#scratch.get(name);
    if (found?.length === length) return found;
    const fits = found !== undefined && 4 * length <= found.buffer.byteLength;
    const floats = fits ? new Float32Array(found.buffer, 0, length) : new Float32Array(length);
    this.#scratch.set(name, floats);
    return floats;
  }
}

/** Beyond every text. */
const MOST_WINDOW = 2 ** 24;

interface Sizes {
  readonly kind: Architecture;
  readonly width: number;
  readonly heads: number;
  readonly keyHeads: number;
  readonly headWidth: number;
  readonly feedForward: number;
}

function readLayer(weights: Weights, block: string, sizes: Sizes): Omit<Layer, "rotations" | "reach"> {
  const { kind, width, heads, keyHeads, headWidth } = sizes;
  const [queryWidth, keyWidth] = [heads * headWidth, keyHeads * headWidth];
  const linear = (name: string, columns: number, rows: number) => weights.linear(block + name, columns, rows);
  const optionalNorm = (name: string, length: number) => weights.optionalNorm(block + name, length);
  const matrices = (): { q: Linear; k: Linear; v: Linear } => {
    if (!weights.has(`${block}attn_qkv.weight`)) {
      const [q, k, v] = [
        linear("attn_q", width, queryWidth),
        linear("attn_k", width, keyWidth),
        linear("attn_v", width, keyWidth),
      ];
      return { q, k, v };
    }
    const end = queryWidth + keyWidth;
    const all = linear("attn_qkv", width, end + keyWidth);
    const [q, k, v] = [rowsOf(all, 0, queryWidth), rowsOf(all, queryWidth, end), rowsOf(all, end, end + keyWidth)];
    return { q, k, v };
  };
  const { isNormedFirst } = kind;
  return {
    ...matrices(),
    out: linear("attn_output", queryWidth, width),
    qNorm: optionalNorm("attn_q_norm", headWidth),
    kNorm: optionalNorm("attn_k_norm", headWidth),
    ...readExperts(weights, block, sizes),
    attnNorm: weights.norm(block + (isNormedFirst ? "attn_norm" : "attn_output_norm"), width),
    ffnNorm: weights.norm(block + (isNormedFirst ? "ffn_norm" : "layer_output_norm"), width),
    attnResultNorm: optionalNorm("post_attention_norm", width),
    ffnResultNorm: optionalNorm("post_ffw_norm", width),
  };
}

function readExperts(
  weights: Weights,
  block: string,
  { kind, width, feedForward }: Sizes,
): Pick<Layer, "experts" | "router" | "used"> {
  const router = `${block}ffn_gate_inp`;
  const [up, down] = [`${block}ffn_up`, `${block}ffn_down`];
  if (!kind.hasExperts || !weights.has(`${router}.weight`)) {
    const gate = kind.activation === "gelu_erf" ? undefined : weights.linear(`${block}ffn_gate`, width, feedForward);
    const only = { gate, up: weights.linear(up, width, feedForward), down: weights.linear(down, feedForward, width) };
    return { experts: [only], router: undefined, used: 1 };
  }
  const [count, used] = [weights.count("expert_count"), weights.count("expert_used_count")];
  weights.expect(used <= count, "expert_used_count", "at most expert_count", used);
  const downs = weights.linears(`${down}_exps`, feedForward, width, count);
  const ups = weights.linears(`${up}_exps`, width, feedForward, count);
  const experts = ups.map((up, i) => ({ gate: undefined, up, down: downs[i] as Linear }));
  return { experts, router: weights.linear(router, width, count), used };
}

/** GGUF counts from 1, and after those three has what makes scores; 0 is none: then a head for scores says it. */
function readPooling(weights: Weights, kind: Architecture): Pooling | "rank" {
  const type = weights.value("pooling_type", kind.pooling === undefined ? 0 : POOLINGS.indexOf(kind.pooling) + 1);
  const isScored = type === 0 && weights.has("cls.output.weight");
  const pooling = isScored ? "rank" : [...POOLINGS, "rank" as const][type - 1];
  if (pooling !== undefined) return pooling;
  const choices = POOLINGS.map((each) => `"${each}"`).join(", ");
  const detail = `pooling_type ${type} says not how vectors of tokens become one: choose ${choices} by options.pooling`;
  throw weights.error("ERR_GGUF_UNSUPPORTED_TYPE", detail);
}

/** Scales a vector to length 1, and cuts it before. */
export function cut(vector: Float32Array, dimensions: number, isNormalized: boolean): Float32Array {
  const short = vector.length === dimensions ? vector : vector.slice(0, dimensions);
  return isNormalized ? normalize(short, dimensions, { out: short }) : short;
}
