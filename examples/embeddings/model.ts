/** The forward pass of a BERT model: from the tokens of texts to a vector for each text. */
import type { GgufFile, GgufTensor } from "gguf-native";
import { activate, add, attention, KvCache, layerNorm, meanOfRows, normalize } from "gguf-native/network";
import { Scratch } from "../network/scratch";
import { type Linear, multiply, type ProductOptions, Weights } from "../network/weights";
import { type BertConfig, type Pooling, readConfig } from "./config";

/** Tokens that are processed at a time, of one text or several: enough to use each weight often. */
const BATCH = 128;

/** `activations` is for what is multiplied with quantized matrices, but for those of values, which matter most. */
export interface LoadOptions extends ProductOptions {
  /** How vectors of tokens become one. Default: as the metadata of the model says. */
  pooling?: Pooling | undefined;
  /** Whether vectors are scaled to a length of 1 (default true). */
  normalize?: boolean | undefined;
}

/** The weight and the bias of a norm. */
interface Norm {
  weight: Float32Array;
  bias: Float32Array;
}

interface Layer {
  attnQ: Linear;
  attnK: Linear;
  attnV: Linear;
  attnOutput: Linear;
  attnNorm: Norm;
  ffnUp: Linear;
  ffnDown: Linear;
  ffnNorm: Norm;
}

/** A model whose weights stay in its file, which must stay open. */
export class Bert {
  private constructor(
    private readonly scratch: Scratch,
    /** Keys and values of a text in a layer: both are used up before the next. */
    private readonly cache: KvCache,
    readonly config: BertConfig,
    private readonly tokens: GgufTensor,
    private readonly positions: Float32Array,
    /** What is added to the embedding of every token: that of the first of two texts. */
    private readonly tokenType: Float32Array,
    private readonly norm: Norm,
    private readonly layers: readonly Layer[],
    private readonly options: LoadOptions,
  ) {}

  /** @throws Error if this example does not support the network; GgufError if something is wrong with the file */
  static load(file: GgufFile, options: LoadOptions = {}): Bert {
    const config = readConfig(file, options.pooling);
    const weights = new Weights(file);
    const norm = (name: string): Norm => ({
      weight: weights.vector(`${name}.weight`),
      bias: weights.vector(`${name}.bias`),
    });
    const layers = Array.from({ length: config.layerCount }, (_, i): Layer => {
      const block = `blk.${i}.`;
      return {
        attnQ: weights.linear(`${block}attn_q`),
        attnK: weights.linear(`${block}attn_k`),
        attnV: weights.linear(`${block}attn_v`),
        attnOutput: weights.linear(`${block}attn_output`),
        attnNorm: norm(`${block}attn_output_norm`),
        ffnUp: weights.linear(`${block}ffn_up`),
        ffnDown: weights.linear(`${block}ffn_down`),
        ffnNorm: norm(`${block}layer_output_norm`),
      };
    });
    const bert = new Bert(
      new Scratch(),
      new KvCache({ heads: config.headCount, keyWidth: config.headLength, type: "F32" }),
      config,
      weights.tensor("token_embd.weight"),
      weights.vector("position_embd.weight"),
      weights.tensor("token_types.weight").rowsSync([0]),
      norm("token_embd_norm"),
      layers,
      options,
    );
    weights.expectAllUsed();
    return bert;
  }

  /**
   * The vectors of texts, whose tokens begin and end with those of the model. A text has the same vector alone and among
   * others.
   *
   * @throws RangeError for a text without tokens, or with more than the model's context
   */
  embed(texts: readonly ArrayLike<number>[]): Float32Array[] {
    const { contextLength } = this.config;
    for (const { length } of texts) {
      if (length === 0 || length > contextLength)
        throw new RangeError(`a text has 1 to ${contextLength} tokens, not ${length}`);
    }
    const vectors: Float32Array[] = [];
    for (let start = 0; start < texts.length; ) {
      let end = start;
      let count = 0;
      do count += texts[end++]!.length;
      while (end < texts.length && count + texts[end]!.length <= BATCH);
      vectors.push(...this.#embedBatch(texts.slice(start, end)));
      start = end;
    }
    return vectors;
  }

  #embedBatch(texts: readonly ArrayLike<number>[]): Float32Array[] {
    const { embeddingLength } = this.config;
    const x = this.#embeddings(texts);
    for (const layer of this.layers) {
      const attended = this.#multiply(layer.attnOutput, this.#attend(layer, x, texts), "attended");
      this.#norm(add(x, attended), layer.attnNorm);
      const hidden = this.#multiply(layer.ffnUp, x, "hidden");
      activate(hidden, "gelu_erf", { out: hidden, threads: this.options.threads });
      this.#norm(add(x, this.#multiply(layer.ffnDown, hidden, "down")), layer.ffnNorm);
    }
    let first = 0;
    return texts.map(({ length }) => {
      const end = first + length;
      const vector = this.#pool(x.subarray(first * embeddingLength, end * embeddingLength));
      first = end;
      return vector;
    });
  }

  /** Norms each vector of `x`, in place. */
  #norm(x: Float32Array, { weight, bias }: Norm): void {
    layerNorm(x, weight, bias, { epsilon: this.config.normEpsilon, out: x, threads: this.options.threads });
  }

  /** The embeddings of tokens, with those of their positions. */
  #embeddings(texts: readonly ArrayLike<number>[]): Float32Array {
    const { embeddingLength } = this.config;
    const tokens = texts.flatMap((text) => Array.from(text));
    const x = this.scratch.floats("x", tokens.length * embeddingLength);
    this.tokens.rowsSync(tokens, { out: x });
    let first = 0;
    for (const { length } of texts) {
      const text = x.subarray(first * embeddingLength, (first + length) * embeddingLength);
      add(text, this.positions.subarray(0, text.length));
      first += length;
    }
    this.#norm(add(x, this.tokenType), this.norm);
    return x;
  }

  /** For each text, its tokens look at each other. */
  #attend(layer: Layer, x: Float32Array, texts: readonly ArrayLike<number>[]): Float32Array {
    const queries = this.#multiply(layer.attnQ, x, "queries");
    const keys = this.#multiply(layer.attnK, x, "keys");
    // Half of all that rounding to 8 bits does to a vector is done here, in a twelfth of the products.
    const values = this.#multiply(layer.attnV, x, "values", "f32");
    const heard = this.scratch.floats("heard", x.length);
    const { embeddingLength, headCount: heads } = this.config;
    let first = 0;
    for (const { length } of texts) {
      const begin = first * embeddingLength;
      const end = begin + length * embeddingLength;
      this.cache.truncate(0);
      this.cache.append(keys.subarray(begin, end), values.subarray(begin, end));
      const out = heard.subarray(begin, end);
      const { threads } = this.options;
      attention(queries.subarray(begin, end), this.cache, { heads, causal: false, out, threads });
      first += length;
    }
    return heard;
  }

  /** The vector of a text, from those of its tokens. */
  #pool(x: Float32Array): Float32Array {
    const { embeddingLength, pooling } = this.config;
    const vector = POOL[pooling](x, embeddingLength);
    return this.options.normalize === false ? vector : normalize(vector, embeddingLength, { out: vector });
  }

  /** The products of a matrix with the vectors in `x`, in an array of this name, with its bias. */
  #multiply(
    linear: Linear,
    x: Float32Array,
    name: string,
    activations = this.options.activations,
  ): Float32Array {
    const [columns, rows] = linear.weight.shape as [number, number];
    const out = this.scratch.floats(name, (x.length / columns) * rows);
    return multiply(linear, x, { ...this.options, activations }, out);
  }
}

/** The vector of a text of each kind, from those of its tokens, which have `width` numbers. */
const POOL: Readonly<Record<Pooling, (x: Float32Array, width: number) => Float32Array>> = {
  mean: (x, width) => meanOfRows(x, width),
  cls: (x, width) => x.slice(0, width),
  last: (x, width) => x.slice(-width),
};
