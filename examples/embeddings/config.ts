/** The parameters of the network, from the metadata of the model. */
import type { GgufMetadata } from "gguf-native";

/** How the vectors of a text's tokens become one: their mean, that of the first token, or that of the last. */
export const POOLINGS = ["mean", "cls", "last"] as const;
export type Pooling = (typeof POOLINGS)[number];

export interface BertConfig {
  /** The maximum number of tokens of a text. */
  contextLength: number;
  /** Length of the vector that represents a token, and of the vector of a text. */
  embeddingLength: number;
  layerCount: number;
  headCount: number;
  /** Length of one head's query, key and value vectors. */
  headLength: number;
  normEpsilon: number;
  pooling: Pooling;
}

/**
 * @param pooling in place of the one that the metadata names
 * @throws Error if the example does not support the network, or if the metadata lacks a required key
 */
export function readConfig(metadata: GgufMetadata, pooling?: Pooling): BertConfig {
  const { architecture = "(none)" } = metadata;
  if (architecture !== "bert") {
    throw new Error(`this example runs models of the architecture bert, not ${architecture}`);
  }
  const embeddingLength = required(metadata, "embedding_length");
  const headCount = required(metadata, "attention.head_count");
  const headLength = embeddingLength / headCount;
  if (!Number.isInteger(headLength)) {
    throw new Error(`vectors of ${embeddingLength} numbers cannot be divided among ${headCount} heads`);
  }
  for (const length of [embeddingLength, required(metadata, "feed_forward_length")]) {
    if (length % 4 !== 0) throw new Error(`the length of vectors, ${length}, is not a multiple of 4`);
  }
  return {
    contextLength: required(metadata, "context_length"),
    embeddingLength,
    layerCount: required(metadata, "block_count"),
    headCount,
    headLength,
    normEpsilon: required(metadata, "attention.layer_norm_epsilon"),
    pooling: pooling ?? readPooling(metadata),
  };
}

function readPooling(metadata: GgufMetadata): Pooling {
  const type = required(metadata, "pooling_type");
  const pooling = POOLINGS[type - 1]; // 0 is none
  if (pooling === undefined) {
    const choices = POOLINGS.join(", ");
    throw new Error(`this example does not support bert.pooling_type ${type}: choose one of ${choices}`);
  }
  return pooling;
}

function required(metadata: GgufMetadata, key: string): number {
  const value = metadata.arch(key);
  if (value === undefined) throw new Error(`the model's metadata has no key ${metadata.architecture}.${key}`);
  return value;
}
