/** The forward pass of a llama model. */
import type { GgufFile, GgufTensor } from "gguf-native";
import { KvCache } from "./cache";
import { type LlamaConfig, readConfig } from "./config";
import { Matrix } from "./matrix";
import { add, attention, rmsNorm, rope, ropeFrequencies, swiglu } from "./operations";

export interface LoadOptions {
  /** Dequantize weights each time they are used, and not once into shared memory. Default false. */
  perUse?: boolean;
}

interface Layer {
  attnNorm: Float32Array;
  attnQ: Matrix;
  attnK: Matrix;
  attnV: Matrix;
  attnOutput: Matrix;
  ffnNorm: Float32Array;
  ffnGate: Matrix;
  ffnUp: Matrix;
  ffnDown: Matrix;
}

/** A llama model whose weights are ready to use. Its file must stay open. */
export class Llama {
  private constructor(
    readonly config: LlamaConfig,
    private readonly embeddings: GgufTensor,
    private readonly layers: readonly Layer[],
    private readonly outputNorm: Float32Array,
    private readonly output: Matrix,
    private readonly frequencies: Float64Array,
  ) {}

  /** @throws Error if this example does not support the network; GgufError if something is wrong with the file */
  static async load(file: GgufFile, options: LoadOptions = {}): Promise<Llama> {
    const config = readConfig(file.metadata);
    const unused = new Set(file.tensors.keys());
    const find = (name: string): GgufTensor => {
      unused.delete(name);
      return file.tensor(name);
    };
    const vector = (name: string): Float32Array => find(name).dequantizeSync();
    const matrix = async (name: string): Promise<Matrix> =>
      options.perUse ? Matrix.perUse(find(name)) : Matrix.resident(find(name));

    const layers: Layer[] = [];
    for (let i = 0; i < config.layerCount; i++) {
      layers.push({
        attnNorm: vector(`blk.${i}.attn_norm.weight`),
        attnQ: await matrix(`blk.${i}.attn_q.weight`),
        attnK: await matrix(`blk.${i}.attn_k.weight`),
        attnV: await matrix(`blk.${i}.attn_v.weight`),
        attnOutput: await matrix(`blk.${i}.attn_output.weight`),
        ffnNorm: vector(`blk.${i}.ffn_norm.weight`),
        ffnGate: await matrix(`blk.${i}.ffn_gate.weight`),
        ffnUp: await matrix(`blk.${i}.ffn_up.weight`),
        ffnDown: await matrix(`blk.${i}.ffn_down.weight`),
      });
    }
    const has = (name: string): boolean => file.tensors.has(name);
    const llama = new Llama(
      config,
      find("token_embd.weight"),
      layers,
      vector("output_norm.weight"),
      // Many models use the same matrix for the embeddings and for the output.
      await matrix(has("output.weight") ? "output.weight" : "token_embd.weight"),
      ropeFrequencies(config, has("rope_freqs.weight") ? vector("rope_freqs.weight") : undefined),
    );
    for (const name of unused)
      throw new Error(`this example does not know the purpose of the tensor ${name}`);
    return llama;
  }

  /** Bytes of memory that the weights of all matrices take, in addition to the file's. */
  get residentBytes(): number {
    const matrices = [this.output, ...this.layers.flatMap((layer) => Object.values(layer))];
    return matrices.reduce((sum, matrix) => sum + (matrix instanceof Matrix ? matrix.residentBytes : 0), 0);
  }

  /** Creates a cache for up to `capacity` tokens. */
  createCache(capacity: number): KvCache {
    return new KvCache(this.config, capacity);
  }

  /** Processes `tokens`, which follow those in `cache`, and appends them. Returns the logits of the next token. */
  forward(tokens: readonly number[], cache: KvCache): Float32Array {
    const { config } = this;
    const { embeddingLength, headCount, kvHeadCount, keyLength, normEpsilon } = config;
    const count = tokens.length;
    const position = cache.length;
    if (count === 0) throw new RangeError("there are no tokens to process");
    if (position + count > cache.capacity) {
      throw new RangeError(`${position + count} tokens do not fit in a cache for ${cache.capacity}`);
    }

    const x = this.embeddings.rowsSync(tokens);
    for (const [i, layer] of this.layers.entries()) {
      const layerCache = cache.layers[i]!;
      const attentionInput = rmsNorm(x, layer.attnNorm, normEpsilon);
      const queries = layer.attnQ.multiply(attentionInput, count);
      const keys = layer.attnK.multiply(attentionInput, count);
      rope(queries, headCount * keyLength, keyLength, position, this.frequencies);
      rope(keys, kvHeadCount * keyLength, keyLength, position, this.frequencies);
      layerCache.append(keys, layer.attnV.multiply(attentionInput, count));
      add(x, layer.attnOutput.multiply(attention(config, queries, count, layerCache), count));

      const ffnInput = rmsNorm(x, layer.ffnNorm, normEpsilon);
      const hidden = swiglu(layer.ffnGate.multiply(ffnInput, count), layer.ffnUp.multiply(ffnInput, count));
      add(x, layer.ffnDown.multiply(hidden, count));
    }
    const last = x.subarray((count - 1) * embeddingLength);
    return this.output.multiply(rmsNorm(last, this.outputNorm, normEpsilon), 1);
  }
}
