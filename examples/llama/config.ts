/** What a network is, from the metadata of the model and its architecture. */
import type { GgufFile } from "gguf-native";

/**
 * The architectures that this example runs, and all that is different in them. Biases, norms of queries and keys, norms of
 * what a layer adds, a cap of the logits and experts are used where the file has them.
 */
const ARCHITECTURES: ReadonlyMap<string, Architecture> = new Map<string, Architecture>([
  ["llama", { pairs: "adjacent", normalizedExperts: true }],
  ["qwen2", { pairs: "halves" }],
  ["qwen2moe", { pairs: "halves" }],
  ["qwen3", { pairs: "halves" }],
  ["qwen3moe", { pairs: "halves", normalizedExperts: true }],
  ["gemma3", { pairs: "halves", activation: "gelu", isGemma: true }],
]);

interface Architecture {
  /** Which numbers of a head are rotated together: 2i and 2i + 1, or i and i + half of those that are rotated. */
  pairs: "adjacent" | "halves";
  /** The function of the gate in a feed-forward network; default silu. */
  activation?: "gelu";
  /** Whether the weights of the experts that are chosen for a token have the sum 1. */
  normalizedExperts?: boolean;
  /** Embeddings are scaled by the root of their length; most layers have a sliding window, and rotations of their own. */
  isGemma?: boolean;
}

/** The attention of a layer: the tokens that it sees, itself included, and its rotations. Layers that see the same share it. */
export interface LayerAttention {
  window: number | undefined;
  base: number;
  scale: number;
}

export type LlamaConfig = ReturnType<typeof readConfig>;

/** Numbers of the metadata are below it; none of a real model comes near. */
const MOST = 2 ** 24;

/** @throws Error if the example does not support the network, or if the metadata lacks a key or has a wrong value */
export function readConfig({ metadata, tensors }: GgufFile) {
  const { architecture: name = "(none)" } = metadata;
  const architecture = ARCHITECTURES.get(name);
  if (architecture === undefined) {
    const known = [...ARCHITECTURES.keys()].join(", ");
    throw new Error(`this example runs models of the architectures ${known}, not ${name}`);
  }
  const expect = (isRight: boolean, key: string, expected: string, found: number | string): void => {
    if (!isRight) throw new Error(`${name}.${key} must be ${expected}, found ${found}`);
  };
  const number = (key: string, absent?: number): number => {
    const value = metadata.arch(key) ?? absent;
    if (value === undefined) throw new Error(`the model's metadata has no key ${name}.${key}`);
    return value;
  };
  const count = (key: string, absent?: number, most = MOST): number => {
    const value = number(key, absent);
    const isCount = Number.isInteger(value) && value >= 1 && value <= most;
    expect(isCount, key, `a whole number from 1 to ${most}`, value);
    return value;
  };
  const positive = (key: string, absent?: number): number => {
    const value = number(key, absent);
    expect(value > 0 && value < Number.POSITIVE_INFINITY, key, "above 0", value);
    return value;
  };

  const width = count("embedding_length");
  const heads = count("attention.head_count");
  const keyHeads = count("attention.head_count_kv", heads);
  expect(heads % keyHeads === 0, "attention.head_count_kv", `a divisor of the ${heads} heads`, keyHeads);
  const keyWidth = count("attention.key_length", width / heads);
  const rotated = count("rope.dimension_count", keyWidth);
  const isEven = rotated % 2 === 0 && rotated <= keyWidth;
  expect(isEven, "rope.dimension_count", `an even number up to the ${keyWidth} of a head`, rotated);
  const layers = count("block_count");
  const found = new Set(Array.from(tensors.keys(), (tensor) => /^blk\.\d+\./.exec(tensor)?.[0]));
  found.delete(undefined);
  expect(layers === found.size, "block_count", `${found.size}, as many as there are tensors for`, layers);
  const experts = metadata.arch("expert_count") ? count("expert_count") : 0;

  const { isGemma = false } = architecture;
  const scaling = metadata.string(`${name}.rope.scaling.type`) ?? "none";
  expect(["none", "linear"].includes(scaling), "rope.scaling.type", "none or linear", scaling);
  const everything: LayerAttention = {
    window: undefined,
    base: positive("rope.freq_base", 10000),
    scale: scaling === "linear" ? positive("rope.scaling.factor") : 1,
  };
  const hasWindow = isGemma && metadata.arch("attention.sliding_window");
  const local: LayerAttention = hasWindow
    ? { window: count("attention.sliding_window"), base: positive("rope.freq_base_swa", 10000), scale: 1 }
    : everything;
  // Every so many layers, one sees everything; or there is a bool for each layer.
  const pattern = metadata.get(`${name}.attention.sliding_window_pattern`) ?? 6;
  const isLocal = (layer: number): boolean =>
    Array.isArray(pattern) ? pattern[layer] === true : (layer + 1) % Number(pattern) !== 0;

  return {
    /** Tokens that the network supports. */
    contextLength: count("context_length"),
    /** Numbers of the vector that represents a token, and what its embedding is multiplied with. */
    ...{ width, embeddingScale: isGemma ? Math.fround(Math.sqrt(width)) : 1 },
    /** Heads of queries, and of keys and values; the numbers of each in a key, of these the rotated ones, and in a value. */
    ...{ heads, keyHeads, keyWidth, rotated, valueWidth: count("attention.value_length", width / heads) },
    /** What products of queries and keys are multiplied with: in the Gemma 3 of 62 layers, it is not by the key's width. */
    scoreScale: 1 / Math.sqrt(isGemma && layers === 62 ? width / heads : keyWidth),
    epsilon: positive("attention.layer_norm_rms_epsilon"),
    pairs: architecture.pairs,
    activation: architecture.activation ?? ("silu" as const),
    /** Experts of a layer, how many of them a token uses, and whether their weights have the sum 1. */
    ...{ experts, expertsUsed: experts && count("expert_used_count", undefined, experts) },
    normalizedExperts: architecture.normalizedExperts ?? false,
    /** Logits are `cap * tanh(logit / cap)`. */
    logitCap: metadata.arch("final_logit_softcapping") || undefined,
    attention: Array.from({ length: layers }, (_, layer) => (isLocal(layer) ? local : everything)),
  };
}
