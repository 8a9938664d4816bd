/** What the metadata of a llama says about the network. */
import type { GgufMetadata } from "gguf-native";

export interface LlamaConfig {
  /** The most tokens that the network was made for. */
  contextLength: number;
  /** Length of the vector that stands for a token. */
  embeddingLength: number;
  layerCount: number;
  /** Query heads. */
  headCount: number;
  /** Key and value heads: each serves `headCount / kvHeadCount` query heads. */
  kvHeadCount: number;
  /** Length of one head's query and key vectors. */
  keyLength: number;
  /** Length of one head's value vector. */
  valueLength: number;
  /** How many of a head's elements are rotated by position, two by two. */
  ropeLength: number;
  ropeBase: number;
  /** Positions are divided by this. */
  ropeScale: number;
  normEpsilon: number;
}

/** @throws Error for a network that the forward pass of this example is not right for, or without what it needs */
export function readConfig(metadata: GgufMetadata): LlamaConfig {
  const { architecture } = metadata;
  if (architecture !== "llama") {
    throw new Error(
      `this example runs models of architecture llama, not ${architecture ?? "an unnamed one"}`,
    );
  }
  if (metadata.arch("expert_count")) throw new Error("this example has no mixture of experts");
  const scaling = metadata.string("llama.rope.scaling.type") ?? "none";
  if (scaling !== "none" && scaling !== "linear") {
    throw new Error(`this example has no RoPE scaling of type ${scaling}`);
  }

  const embeddingLength = required(metadata, "embedding_length");
  const headCount = required(metadata, "attention.head_count");
  const keyLength = metadata.arch("attention.key_length") ?? embeddingLength / headCount;
  return {
    contextLength: required(metadata, "context_length"),
    embeddingLength,
    layerCount: required(metadata, "block_count"),
    headCount,
    kvHeadCount: metadata.arch("attention.head_count_kv") ?? headCount,
    keyLength,
    valueLength: metadata.arch("attention.value_length") ?? embeddingLength / headCount,
    ropeLength: metadata.arch("rope.dimension_count") ?? keyLength,
    ropeBase: metadata.arch("rope.freq_base") ?? 10000,
    ropeScale: scaling === "linear" ? required(metadata, "rope.scaling.factor") : 1,
    normEpsilon: required(metadata, "attention.layer_norm_rms_epsilon"),
  };
}

function required(metadata: GgufMetadata, key: string): number {
  const value = metadata.arch(key);
  if (value === undefined) throw new Error(`the model does not say its ${metadata.architecture}.${key}`);
  return value;
}
