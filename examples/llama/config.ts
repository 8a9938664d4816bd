/** The parameters of the network, from the metadata of a llama model. */
import type { GgufMetadata } from "gguf-native";

export interface LlamaConfig {
  /** The maximum number of tokens that the network supports. */
  contextLength: number;
  /** Length of the vector that represents a token. */
  embeddingLength: number;
  layerCount: number;
  /** Number of query heads. */
  headCount: number;
  /** Number of key and value heads. `headCount / kvHeadCount` query heads share one. */
  kvHeadCount: number;
  /** Length of one head's query and key vectors. */
  keyLength: number;
  /** Length of one head's value vector. */
  valueLength: number;
  /** How many elements of a head are rotated by position, in pairs. */
  ropeLength: number;
  ropeBase: number;
  /** Positions are divided by this. */
  ropeScale: number;
  normEpsilon: number;
}

/** @throws Error if the example does not support the network, or if the metadata lacks a required key */
export function readConfig(metadata: GgufMetadata): LlamaConfig {
  const { architecture } = metadata;
  if (architecture !== "llama") {
    throw new Error(`this example runs models of architecture llama, not ${architecture ?? "(none)"}`);
  }
  if (metadata.arch("expert_count")) throw new Error("this example does not support a mixture of experts");
  const scaling = metadata.string("llama.rope.scaling.type") ?? "none";
  if (scaling !== "none" && scaling !== "linear") {
    throw new Error(`this example does not support RoPE scaling of type ${scaling}`);
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
  if (value === undefined) throw new Error(`the model's metadata has no key ${metadata.architecture}.${key}`);
  return value;
}
