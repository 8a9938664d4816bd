/** The forward pass of a BERT model: from the tokens of texts to a vector for each text. */
import type { GgufFile, GgufTensor } from "gguf-native";
import { type Linear, multiply, type ProductOptions, Weights } from "../network/weights";
import { type Floats, Workspace } from "../network/workspace";
import { type BertConfig, type Pooling, readConfig } from "./config";
import { add, addAndGelu, addAndNorm, attention, type Norm, normalize } from "./operations";

/** Tokens that are processed at a time, of one text or several: enough to use each weight often. */
const BATCH = 128;

/** `activations` is for what is multiplied with quantized matrices, but for those of values, which matter most. */
export interface LoadOptions extends ProductOptions {
  /** How vectors of tokens become one. Default: as the metadata of the model says. */
  pooling?: Pooling | undefined;
  /** Whether vectors are scaled to a length of 1 (default true). */
  normalize?: boolean | undefined;
}

/** A matrix whose products get something added. */
type Biased = Linear & { bias: Floats };

interface Layer {
  attnQ: Biased;
  attnK: Linear;
  attnV: Linear;
  attnOutput: Biased;
  attnNorm: Norm;
  ffnUp: Biased;
  ffnDown: Biased;
  ffnNorm: Norm;
}

/** A model whose weights stay in its file, which must stay open. */
export class Bert {
  private constructor(
    private readonly workspace: Workspace,
    readonly config: BertConfig,
    private readonly tokens: GgufTensor,
    private readonly positions: Floats,
    /** What is added to the embedding of every token: that of the first of two texts. */
    private readonly tokenType: Floats,
    private readonly norm: Norm,
    private readonly layers: readonly Layer[],
    private readonly options: LoadOptions,
  ) {}

  /** @throws Error if this example does not support the network; GgufError if something is wrong with the file */
  static load(file: GgufFile, options: LoadOptions = {}): Bert {
    const config = readConfig(file, options.pooling);
    const workspace = new Workspace();
    const weights = new Weights(file, workspace);
    const norm = (name: string): Norm => ({
      weight: weights.vector(`${name}.weight`),
      bias: weights.vector(`${name}.bias`),
    });
    const linear = (name: string): Biased => {
      const found = weights.linear(name);
      const none = (): Floats => workspace.copyOf(new Float32Array(found.weight.shape[1] as number));
      return { ...found, bias: found.bias ?? none() };
    };
    const layers = Array.from({ length: config.layerCount }, (_, i): Layer => {
      const block = `blk.${i}.`;
      const attnV = linear(`${block}attn_v`);
      const attnOutput = linear(`${block}attn_output`);
      // The attention leaves out the bias of the values, of which this becomes.
      const { bias } = attnOutput;
      const added = workspace.floats("attended", bias.length);
      add(bias, multiply(attnOutput, attnV.bias, { activations: "f32" }, added));
      return {
        attnQ: linear(`${block}attn_q`),
        attnK: linear(`${block}attn_k`),
        attnV,
        attnOutput,
        attnNorm: norm(`${block}attn_output_norm`),
        ffnUp: linear(`${block}ffn_up`),
        ffnDown: linear(`${block}ffn_down`),
        ffnNorm: norm(`${block}layer_output_norm`),
      };
    });
    const bert = new Bert(
      workspace,
      config,
      weights.tensor("token_embd.weight"),
      weights.vector("position_embd.weight"),
      workspace.copyOf(weights.tensor("token_types.weight").rowsSync([0])),
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
    const { normEpsilon, embeddingLength } = this.config;
    const x = this.#embeddings(texts);
    for (const layer of this.layers) {
      const attended = this.#multiply(layer.attnOutput, this.#attend(layer, x, texts), "attended");
      addAndNorm(x, attended, layer.attnOutput.bias, layer.attnNorm, normEpsilon);
      const hidden = this.#multiply(layer.ffnUp, x, "hidden");
      addAndGelu(hidden, layer.ffnUp.bias);
      addAndNorm(
        x,
        this.#multiply(layer.ffnDown, hidden, "down"),
        layer.ffnDown.bias,
        layer.ffnNorm,
        normEpsilon,
      );
    }
    let first = 0;
    return texts.map(({ length }) => {
      const end = first + length;
      const vector = this.#pool(x.array.subarray(first * embeddingLength, end * embeddingLength));
      first = end;
      return vector;
    });
  }

  /** The embeddings of tokens, with those of their positions. */
  #embeddings(texts: readonly ArrayLike<number>[]): Floats {
    const { embeddingLength, normEpsilon } = this.config;
    const tokens = texts.flatMap((text) => Array.from(text));
    const x = this.workspace.floats("x", tokens.length * embeddingLength);
    this.tokens.rowsSync(tokens, { out: x.array });
    let first = 0;
    for (const { length } of texts) {
      const text = x.part(first * embeddingLength, length * embeddingLength);
      addAndNorm(text, this.positions, this.tokenType, this.norm, normEpsilon);
      first += length;
    }
    return x;
  }

  #attend(layer: Layer, x: Floats, texts: readonly ArrayLike<number>[]): Floats {
    const queries = this.#multiply(layer.attnQ, x, "queries");
    add(queries, layer.attnQ.bias);
    const keys = this.#multiply(layer.attnK, x, "keys");
    // Half of all that rounding to 8 bits does to a vector is done here, in a twelfth of the products.
    const values = this.#multiply(layer.attnV, x, "values", "f32");
    const heard = this.workspace.floats("heard", x.length);
    const { embeddingLength } = this.config;
    let first = 0;
    for (const { length } of texts) {
      const ofText = (all: Floats): Floats => all.part(first * embeddingLength, length * embeddingLength);
      const text = { queries: ofText(queries), keys: ofText(keys), values: ofText(values) };
      attention(this.config, text, this.options.threads, ofText(heard));
      first += length;
    }
    return heard;
  }

  /** The vector of a text, from those of its tokens. */
  #pool(x: Float32Array): Float32Array {
    const { embeddingLength, pooling } = this.config;
    const vector = POOL[pooling](x, embeddingLength);
    return this.options.normalize === false ? vector : normalize(vector);
  }

  /** The products of a matrix with the vectors in `x`, in an array of the workspace, still without the bias. */
  #multiply(linear: Linear, x: Floats, name: string, activations = this.options.activations): Floats {
    const [columns, rows] = linear.weight.shape as [number, number];
    const out = this.workspace.floats(name, (x.length / columns) * rows);
    return multiply(linear, x, { ...this.options, activations }, out);
  }
}

/** The vector of a text of each kind, from those of its tokens, which have `width` numbers. */
const POOL: Readonly<Record<Pooling, (x: Float32Array, width: number) => Float32Array>> = {
  mean: meanOf,
  cls: (x, width) => x.slice(0, width),
  last: (x, width) => x.slice(-width),
};

function meanOf(x: Float32Array, width: number): Float32Array {
  return Float32Array.from({ length: width }, (_, i) => {
    let sum = 0;
    for (let at = i; at < x.length; at += width) sum += x[at]!;
    return (sum * width) / x.length;
  });
}
