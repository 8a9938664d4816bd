/** The parameters of the network, from the metadata of the model. */
import type { GgufFile } from "gguf-native";
import { Checks } from "../network/checks";

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
export function readConfig(file: GgufFile, pooling?: Pooling): BertConfig {
  const { architecture = "(none)" } = file.metadata;
  if (architecture !== "bert") {
    throw new Error(`this example runs models of the architecture bert, not ${architecture}`);
  }
  const checks = new Checks(file);
  const embeddingLength = checks.count("embedding_length");
  const headCount = checks.count("attention.head_count");
  const headLength = embeddingLength / headCount;
  const width = checks.count("feed_forward_length");
  checks.expect(
    Number.isInteger(headLength),
    "attention.head_count",
    `a divisor of the ${embeddingLength} numbers of a vector`,
    headCount,
  );
  // So many numbers are added at a time.
  checks.expect(embeddingLength % 4 === 0, "embedding_length", "a multiple of 4", embeddingLength);
  checks.expect(width % 4 === 0, "feed_forward_length", "a multiple of 4", width);
  const config: BertConfig = {
    contextLength: checks.count("context_length"),
    embeddingLength,
    layerCount: checks.layerCount(),
    headCount,
    headLength,
    normEpsilon: checks.positive("attention.layer_norm_epsilon"),
    pooling: pooling ?? readPooling(checks),
  };
  checkShapes(checks, config, width);
  return config;
}

function checkShapes(checks: Checks, config: BertConfig, width: number): void {
  const { embeddingLength, contextLength, layerCount } = config;
  checks.shape("token_embd.weight", embeddingLength, undefined);
  checks.shape("token_types.weight", embeddingLength, undefined);
  const [, positions = 1] = checks.shape("position_embd.weight", embeddingLength, undefined);
  checks.expect(
    contextLength <= positions,
    "context_length",
    `up to the ${positions} positions of the model`,
    contextLength,
  );
  const norm = (name: string): void => {
    for (const part of ["weight", "bias"]) checks.shape(`${name}.${part}`, embeddingLength);
  };
  norm("token_embd_norm");
  for (let i = 0; i < layerCount; i++) {
    const block = `blk.${i}.`;
    for (const name of ["attn_q", "attn_k", "attn_v", "attn_output"])
      checks.linear(block + name, embeddingLength, embeddingLength);
    checks.linear(`${block}ffn_up`, embeddingLength, width);
    checks.linear(`${block}ffn_down`, width, embeddingLength);
    norm(`${block}attn_output_norm`);
    norm(`${block}layer_output_norm`);
  }
}

function readPooling(checks: Checks): Pooling {
  const type = checks.value("pooling_type");
  const pooling = POOLINGS[type - 1]; // 0 is none
  if (pooling === undefined) {
    const choices = POOLINGS.join(", ");
    throw new Error(`this example does not support bert.pooling_type ${type}: choose one of ${choices}`);
  }
  return pooling;
}
