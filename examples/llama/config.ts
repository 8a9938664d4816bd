/** The parameters of the network, from the metadata of the model. */
import type { GgufFile, GgufMetadata } from "gguf-native";
import { Checks } from "../network/checks";

/**
 * The architectures that this example runs, and all that is different in them. Biases (Qwen2), norms of queries and keys
 * (Qwen3, Gemma 3), norms of what a layer adds (Gemma 3) and a cap of the logits are used where the file has them.
 */
const ARCHITECTURES: Readonly<Record<string, Architecture>> = {
  llama: { ropePairs: "adjacent", activation: "silu" },
  qwen2: { ropePairs: "halves", activation: "silu" },
  qwen3: { ropePairs: "halves", activation: "silu" },
  gemma3: {
    ropePairs: "halves",
    activation: "gelu",
    scaledEmbeddings: true,
    globalLayerEvery: 6,
    wideScoresWithLayers: 62,
  },
};

interface Architecture {
  /**
   * Which elements of a head the rotary position embedding rotates together: `adjacent`, 2i and 2i + 1, or `halves`, i
   * and i + half of the rotated elements.
   */
  ropePairs: RopePairs;
  /** The function of the gate in a feed-forward network. */
  activation: Activation;
  /** Whether embeddings are multiplied with the square root of their length. */
  scaledEmbeddings?: boolean;
  /** If the model has a sliding window: every so many layers, one sees all tokens. */
  globalLayerEvery?: number;
  /** Models with so many layers divide scores by the root of the embeddings' length over the number of heads. */
  wideScoresWithLayers?: number;
}

export type RopePairs = "adjacent" | "halves";
export type Activation = "silu" | "gelu";

/** The attention of a layer: of all layers, unless the model has a sliding window. */
export interface LayerAttention {
  /** How many tokens it sees, the token itself included; undefined: all. */
  window: number | undefined;
  ropeBase: number;
  /** Positions are divided by this. */
  ropeScale: number;
}

export interface LlamaConfig {
  /** The maximum number of tokens that the network supports. */
  contextLength: number;
  /** Length of the vector that represents a token. */
  embeddingLength: number;
  /** What embeddings are multiplied with. */
  embeddingScale: number;
  layerCount: number;
  /** Number of query heads. */
  headCount: number;
  /** Number of key and value heads. `headCount / kvHeadCount` query heads share one. */
  kvHeadCount: number;
  /** Length of one head's query and key vectors. */
  keyLength: number;
  /** Length of one head's value vector. */
  valueLength: number;
  /** What the products of queries and keys are multiplied with. */
  scoreScale: number;
  /** How many elements of a head are rotated by position, in pairs. */
  ropeLength: number;
  ropePairs: RopePairs;
  activation: Activation;
  normEpsilon: number;
  /** Logits are `cap * tanh(logit / cap)`; undefined: as they are. */
  logitCap: number | undefined;
  /** What each layer's attention sees. Layers that see the same have the same object. */
  attention: readonly LayerAttention[];
}

/** The base of the rotations in layers with a sliding window, unless the metadata has one. */
const LOCAL_ROPE_BASE = 10000;

/** @throws Error if the example does not support the network, or if the metadata lacks a required key */
export function readConfig(file: GgufFile): LlamaConfig {
  const { metadata } = file;
  const checks = new Checks(file);
  const { architecture: name = "(none)" } = metadata;
  const architecture = new Map(Object.entries(ARCHITECTURES)).get(name);
  if (architecture === undefined) {
    const known = Object.keys(ARCHITECTURES).join(", ");
    throw new Error(`this example runs models of the architectures ${known}, not ${name}`);
  }
  if (metadata.arch("expert_count")) throw new Error("this example does not support a mixture of experts");
  if (metadata.arch("attn_logit_softcapping"))
    throw new Error("this example does not support a cap of attention scores");

  const embeddingLength = checks.count("embedding_length");
  const headCount = checks.count("attention.head_count");
  const headWidth = embeddingLength / headCount;
  const keyLength = checks.count("attention.key_length", headWidth);
  const layerCount = checks.layerCount();
  const kvHeadCount = checks.count("attention.head_count_kv", headCount);
  checks.expect(
    headCount % kvHeadCount === 0,
    "attention.head_count_kv",
    `a divisor of the ${headCount} heads`,
    kvHeadCount,
  );
  const ropeLength = checks.count("rope.dimension_count", keyLength);
  checks.expect(
    ropeLength % 2 === 0 && ropeLength <= keyLength,
    "rope.dimension_count",
    `an even number up to the ${keyLength} of a head`,
    ropeLength,
  );
  const config: LlamaConfig = {
    contextLength: checks.count("context_length"),
    embeddingLength,
    embeddingScale: architecture.scaledEmbeddings ? Math.fround(Math.sqrt(embeddingLength)) : 1,
    layerCount,
    headCount,
    kvHeadCount,
    keyLength,
    valueLength: checks.count("attention.value_length", headWidth),
    scoreScale: 1 / Math.sqrt(layerCount === architecture.wideScoresWithLayers ? headWidth : keyLength),
    ropeLength,
    ropePairs: architecture.ropePairs,
    activation: architecture.activation,
    normEpsilon: checks.positive("attention.layer_norm_rms_epsilon"),
    logitCap: metadata.arch("final_logit_softcapping") || undefined,
    attention: readAttention(metadata, checks, architecture, layerCount),
  };
  checkShapes(file, checks, config);
  return config;
}

function checkShapes(file: GgufFile, checks: Checks, config: LlamaConfig): void {
  const { embeddingLength, headCount, kvHeadCount, keyLength, valueLength, ropeLength } = config;
  const [, vocabulary] = checks.shape("token_embd.weight", embeddingLength, undefined);
  checks.shape("output_norm.weight", embeddingLength);
  if (file.tensors.has("output.weight")) checks.linear("output", embeddingLength, vocabulary);
  const factors = file.tensors.get("rope_freqs.weight")?.elementCount ?? ropeLength / 2;
  if (factors < ropeLength / 2)
    throw new Error(`the tensor rope_freqs.weight must have ${ropeLength / 2} numbers, found ${factors}`);
  for (let i = 0; i < config.layerCount; i++) {
    const block = `blk.${i}.`;
    checks.shape(`${block}attn_norm.weight`, embeddingLength);
    checks.linear(`${block}attn_q`, embeddingLength, headCount * keyLength);
    checks.linear(`${block}attn_k`, embeddingLength, kvHeadCount * keyLength);
    checks.linear(`${block}attn_v`, embeddingLength, kvHeadCount * valueLength);
    checks.optionalShape(`${block}attn_q_norm.weight`, keyLength);
    checks.optionalShape(`${block}attn_k_norm.weight`, keyLength);
    checks.linear(`${block}attn_output`, headCount * valueLength, embeddingLength);
    checks.optionalShape(`${block}post_attention_norm.weight`, embeddingLength);
    checks.shape(`${block}ffn_norm.weight`, embeddingLength);
    const width = checks.linear(`${block}ffn_gate`, embeddingLength);
    checks.linear(`${block}ffn_up`, embeddingLength, width);
    checks.linear(`${block}ffn_down`, width, embeddingLength);
    checks.optionalShape(`${block}post_ffw_norm.weight`, embeddingLength);
  }
}

/** Which layers see all tokens, and which a window. */
function readAttention(
  metadata: GgufMetadata,
  checks: Checks,
  { globalLayerEvery }: Architecture,
  layerCount: number,
): LayerAttention[] {
  const name = metadata.architecture;
  const scaling = metadata.string(`${name}.rope.scaling.type`) ?? "none";
  if (scaling !== "none" && scaling !== "linear") {
    throw new Error(`this example does not support RoPE scaling of type ${scaling}`);
  }
  const global: LayerAttention = {
    window: undefined,
    ropeBase: checks.positive("rope.freq_base", 10000),
    ropeScale: scaling === "linear" ? checks.positive("rope.scaling.factor") : 1,
  };
  const hasWindow = globalLayerEvery !== undefined && metadata.arch("attention.sliding_window");
  const local: LayerAttention | undefined = hasWindow
    ? {
        window: checks.count("attention.sliding_window"),
        ropeBase: metadata.number(`${name}.rope.freq_base_swa`) ?? LOCAL_ROPE_BASE,
        ropeScale: 1,
      }
    : undefined;
  // One number, or a bool for each layer.
  const pattern = metadata.get(`${name}.attention.sliding_window_pattern`);
  const every = typeof pattern === "number" ? pattern : globalLayerEvery!;
  const isLocal = (layer: number): boolean =>
    Array.isArray(pattern) ? pattern[layer] === true : (layer + 1) % every !== 0;
  return Array.from({ length: layerCount }, (_, layer) =>
    local !== undefined && isLocal(layer) ? local : global,
  );
}
