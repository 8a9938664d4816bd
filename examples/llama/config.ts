/** The parameters of the network, from the metadata of the model. */
import type { GgufMetadata } from "gguf-native";

/**
 * The architectures that this example runs, and which elements of a head their rotary position embedding rotates
 * together: `adjacent`, 2i and 2i + 1, or `halves`, i and i + half of the rotated elements. They differ in nothing else:
 * biases (Qwen2) and the norms of queries and keys (Qwen3) are used where the file has them.
 */
const ROPE_PAIRS = { llama: "adjacent", qwen2: "halves", qwen3: "halves" } as const;

export type RopePairs = "adjacent" | "halves";

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
  ropePairs: RopePairs;
  ropeBase: number;
  /** Positions are divided by this. */
  ropeScale: number;
  normEpsilon: number;
}

/** @throws Error if the example does not support the network, or if the metadata lacks a required key */
export function readConfig(metadata: GgufMetadata): LlamaConfig {
  const { architecture = "(none)" } = metadata;
  const ropePairs = new Map<string, RopePairs>(Object.entries(ROPE_PAIRS)).get(architecture);
  if (ropePairs === undefined) {
    const known = Object.keys(ROPE_PAIRS).join(", ");
    throw new Error(`this example runs models of the architectures ${known}, not ${architecture}`);
  }
  if (metadata.arch("expert_count")) throw new Error("this example does not support a mixture of experts");
  const scaling = metadata.string(`${architecture}.rope.scaling.type`) ?? "none";
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
    ropePairs,
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
