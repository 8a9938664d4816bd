/** What a network is, from the metadata of the model and its architecture. */
import type { GgufFile } from "gguf-native";

interface Architecture {
  /** Which numbers of a head are rotated together: 2i and 2i + 1, or i and i + half of those that are rotated. */
  pairs: "adjacent" | "halves";
  /** Whether the weights of the experts that are chosen for a token have the sum 1. */
  normalizedExperts?: boolean;
  /** Gelu for silu, scaled embeddings, and in most layers a sliding window and rotations of their own. */
  isGemma?: boolean;
}

/**
 * The architectures that this example runs, and all that is different in them. Biases, norms of queries and keys, norms of
 * what a layer adds, a cap of the logits and experts are used where the file has them.
 */
const ARCHITECTURES = new Map<string | undefined, Architecture>([
  ["llama", { pairs: "adjacent", normalizedExperts: true }],
  ["qwen2", { pairs: "halves" }],
  ["qwen2moe", { pairs: "halves" }],
  ["qwen3", { pairs: "halves" }],
  ["qwen3moe", { pairs: "halves", normalizedExperts: true }],
  ["gemma3", { pairs: "halves", isGemma: true }],
]);

/** The attention of a layer: how many tokens it sees, itself included, and its rotations. Layers that see the same share it. */
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
  const { architecture: name } = metadata;
  const architecture = ARCHITECTURES.get(name);
  if (architecture === undefined) {
    const known = [...ARCHITECTURES.keys()].join(", ");
    throw new Error(`this example runs models of the architectures ${known}, not ${name ?? "(none)"}`);
  }
  const { isGemma = false, normalizedExperts = false, pairs } = architecture;
  /** The number of a key, of which `isRight` tells whether it is as `expected` says. */
  const read = (key: string, isRight: (value: number) => boolean, expected: string, absent?: number): number => {
    const value = metadata.arch(key) ?? absent;
    if (value === undefined) throw new Error(`the model's metadata has no key ${name}.${key}`);
    if (!isRight(value)) throw new Error(`${name}.${key} must be ${expected}, found ${value}`);
    return value;
  };
  const count = (key: string, absent?: number, most = MOST): number => {
    const isCount = (n: number): boolean => Number.isInteger(n) && n >= 1 && n <= most;
    return read(key, isCount, `a whole number from 1 to ${most}`, absent);
  };
  const positive = (key: string, absent?: number): number =>
    read(key, (n) => n > 0 && n < Number.POSITIVE_INFINITY, "above 0", absent);

  const width = count("embedding_length");
  const heads = count("attention.head_count");
  const keyHeads = count("attention.head_count_kv", heads);
  read("attention.head_count_kv", (n) => heads % n === 0, `a divisor of the ${heads} heads`, heads);
  const keyWidth = count("attention.key_length", width / heads);
  const rotated = count("rope.dimension_count", keyWidth);
  const evenUpTo = `an even number up to the ${keyWidth} of a head`;
  read("rope.dimension_count", (n) => n % 2 === 0 && n <= keyWidth, evenUpTo, keyWidth);
  const layers = count("block_count");
  const found = new Set(Array.from(tensors.keys(), (tensor) => /^blk\.\d+\./.exec(tensor)?.[0]));
  found.delete(undefined);
  read("block_count", (n) => n === found.size, `${found.size}, as many as there are tensors for`);
  const experts = metadata.arch("expert_count") ? count("expert_count") : 0;

  const scaling = metadata.string(`${name}.rope.scaling.type`) ?? "none";
  if (scaling !== "none" && scaling !== "linear")
    throw new Error(`${name}.rope.scaling.type must be none or linear, found ${scaling}`);
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
    ...{ width, heads, keyHeads, keyWidth, rotated, pairs, experts, normalizedExperts },
    contextLength: count("context_length"),
    embeddingScale: isGemma ? Math.fround(Math.sqrt(width)) : 1,
    valueWidth: count("attention.value_length", width / heads),
    /** What products of queries and keys are multiplied with: not by the key's width in the Gemma 3 of 62 layers. */
    scoreScale: 1 / Math.sqrt(isGemma && layers === 62 ? width / heads : keyWidth),
    epsilon: positive("attention.layer_norm_rms_epsilon"),
    activation: isGemma ? ("gelu" as const) : ("silu" as const),
    expertsUsed: experts && count("expert_used_count", undefined, experts),
    /** Logits are `cap * tanh(logit / cap)`. */
    logitCap: metadata.arch("final_logit_softcapping") || undefined,
    attention: Array.from({ length: layers }, (_, layer) => (isLocal(layer) ? local : everything)),
  };
}
