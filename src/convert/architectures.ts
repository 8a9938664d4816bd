/** The architectures that are converted: their tensors, and what their configuration says. Tables, of which convert reads all. */
import { GgufError } from "../base/errors";
import type { GgufInput, GgufInputType } from "../writer/values";

/** `config.json`; of nobody's types. */
export type Config = Readonly<Record<string, unknown>>;

/** A key of the metadata, without the architecture, with its value and type. */
export type Entry = readonly [key: string, value: GgufInput, type: GgufInputType];

export interface Architecture {
  /** `general.architecture`. */
  readonly name: string;
  /** What `architectures` of the configuration may have. */
  readonly classes: readonly string[];
  /** What the configuration means where it says nothing. */
  readonly defaults: Config;
  /** Names of tensors, `N` being the layer: in the checkpoint, and here. Without `.weight` and `.bias`. */
  readonly names: readonly (readonly [theirs: string, ours: string])[];
  /** What comes before names in some checkpoints. */
  readonly prefix?: RegExp;
  /** Tensors that are left out. */
  readonly unused?: RegExp;
  /** Whether the rows of queries and keys get another order: pairs of neighbours are rotated, not halves. */
  readonly isPermuted?: true;
  /** Norms to which 1 is added. */
  readonly shifted?: RegExp;
  /** Which kinds of vocabularies it may have, in the order in which they are looked for. */
  readonly vocabularies: readonly ("sentencepiece" | "llama-hf" | "gpt2" | "bert")[];
  /** Entries that no other has. */
  readonly entries?: (config: Config) => Entry[];
}

const ATTENTION = [
  ["model.layers.N.self_attn.q_proj", "blk.N.attn_q"],
  ["model.layers.N.self_attn.k_proj", "blk.N.attn_k"],
  ["model.layers.N.self_attn.v_proj", "blk.N.attn_v"],
  ["model.layers.N.self_attn.o_proj", "blk.N.attn_output"],
  ["model.layers.N.self_attn.q_norm", "blk.N.attn_q_norm"],
  ["model.layers.N.self_attn.k_norm", "blk.N.attn_k_norm"],
  ["model.layers.N.mlp.gate_proj", "blk.N.ffn_gate"],
  ["model.layers.N.mlp.up_proj", "blk.N.ffn_up"],
  ["model.layers.N.mlp.down_proj", "blk.N.ffn_down"],
  ["model.layers.N.input_layernorm", "blk.N.attn_norm"],
  ["model.embed_tokens", "token_embd"],
  ["model.norm", "output_norm"],
  ["lm_head", "output"],
] as const;

const DECODER = [...ATTENTION, ["model.layers.N.post_attention_layernorm", "blk.N.ffn_norm"]] as const;

/** The most numbers of a head, of which known models have some hundreds. */
const MAX_HEAD = 2 ** 16;

const ROPE = { rope_theta: 10000 };

/** The length of a head. */
export function headLength(config: Config): number {
  const given = config.head_dim;
  return typeof given === "number"
    ? given
    : Math.floor(Number(config.hidden_size) / Number(config.num_attention_heads));
}

const llamaEntries = (config: Config): Entry[] => [
  ["vocab_size", Number(config.vocab_size), "uint32"],
  ["rope.dimension_count", headLength(config), "uint32"],
];

/** What a classifier would tell apart: BGE names one class, and two without names stand for none. */
function labelEntries(given: unknown): Entry[] {
  const labels = Object.values(Object(given)).filter((each) => typeof each === "string");
  const isMade = labels.length === 2 && labels[0] === "LABEL_0";
  return labels.length === 0 || isMade ? [] : [["classifier.output_labels", labels, "string[]"]];
}

export const ARCHITECTURES: readonly Architecture[] = [
  {
    name: "llama",
    classes: ["LlamaForCausalLM", "LLaMAForCausalLM", "MistralForCausalLM"],
    defaults: { ...ROPE, head_dim: undefined, rms_norm_eps: 1e-6, max_position_embeddings: 2048 },
    names: DECODER,
    isPermuted: true,
    vocabularies: ["sentencepiece", "llama-hf", "gpt2"],
    entries: llamaEntries,
  },
  {
    name: "qwen2",
    classes: ["Qwen2ForCausalLM", "Qwen2Model"],
    defaults: { ...ROPE, rms_norm_eps: 1e-6, max_position_embeddings: 32768 },
    names: DECODER,
    vocabularies: ["sentencepiece", "gpt2"],
  },
  {
    name: "qwen3",
    classes: ["Qwen3ForCausalLM", "Qwen3Model"],
    defaults: { ...ROPE, head_dim: 128, rms_norm_eps: 1e-6, max_position_embeddings: 32768 },
    names: DECODER,
    vocabularies: ["sentencepiece", "gpt2"],
  },
  {
    name: "gemma3",
    classes: ["Gemma3ForCausalLM"],
    defaults: {
      ...{ rope_theta: 1e6, rope_local_base_freq: 10000, head_dim: 256, rms_norm_eps: 1e-6 },
      ...{
        max_position_embeddings: 131072,
        num_attention_heads: 8,
        num_key_value_heads: 4,
        sliding_window: 4096,
      },
    },
    names: [
      ...ATTENTION,
      ["model.layers.N.post_attention_layernorm", "blk.N.post_attention_norm"],
      ["model.layers.N.pre_feedforward_layernorm", "blk.N.ffn_norm"],
      ["model.layers.N.post_feedforward_layernorm", "blk.N.post_ffw_norm"],
    ],
    shifted: /norm\.weight$/,
    vocabularies: ["sentencepiece", "gpt2"],
    entries: ({ sliding_window, sliding_window_pattern, final_logit_softcapping: cap }) => [
      ...(sliding_window_pattern === 1
        ? []
        : [["attention.sliding_window", Number(sliding_window), "uint32"] as const]),
      ...(cap ? [["final_logit_softcapping", Number(cap), "float32"] as const] : []),
    ],
  },
  {
    name: "bert",
    classes: ["BertModel", "BertForMaskedLM"],
    defaults: { layer_norm_eps: 1e-12, max_position_embeddings: 512, type_vocab_size: 2 },
    names: [
      ["embeddings.word_embeddings", "token_embd"],
      ["embeddings.position_embeddings", "position_embd"],
      ["embeddings.token_type_embeddings", "token_types"],
      ["embeddings.LayerNorm", "token_embd_norm"],
      ["encoder.layer.N.attention.self.query", "blk.N.attn_q"],
      ["encoder.layer.N.attention.self.key", "blk.N.attn_k"],
      ["encoder.layer.N.attention.self.value", "blk.N.attn_v"],
      ["encoder.layer.N.attention.output.dense", "blk.N.attn_output"],
      ["encoder.layer.N.attention.output.LayerNorm", "blk.N.attn_output_norm"],
      ["encoder.layer.N.intermediate.dense", "blk.N.ffn_up"],
      ["encoder.layer.N.output.dense", "blk.N.ffn_down"],
      ["encoder.layer.N.output.LayerNorm", "blk.N.layer_output_norm"],
    ],
    prefix: /^bert\./,
    unused: /^(embeddings\.position_ids|pooler\.|cls\.)/,
    vocabularies: ["bert"],
    entries: ({ id2label }) => [["attention.causal", false, "bool"], ...labelEntries(id2label)],
  },
];

/** Names of the configuration, the keys that they become, and their types. The last one of a key counts. */
const KEYS: readonly (readonly [theirs: string, key: string, type: "uint32" | "float32"])[] = [
  ["num_hidden_layers", "block_count", "uint32"],
  ["max_position_embeddings", "context_length", "uint32"],
  ["hidden_size", "embedding_length", "uint32"],
  ["intermediate_size", "feed_forward_length", "uint32"],
  ["num_attention_heads", "attention.head_count", "uint32"],
  ["num_key_value_heads", "attention.head_count_kv", "uint32"],
  ["rms_norm_eps", "attention.layer_norm_rms_epsilon", "float32"],
  ["layer_norm_eps", "attention.layer_norm_epsilon", "float32"],
  ["head_dim", "attention.key_length", "uint32"],
  ["head_dim", "attention.value_length", "uint32"],
];

/** What must be a number where it is there. */
export const NUMBERS: readonly string[] = [
  ...KEYS.map(([name]) => name),
  ...["vocab_size", "type_vocab_size", "sliding_window", "final_logit_softcapping"],
  ...["rope_theta", "rope_local_base_freq"],
];

/** How positions are rotated: `rope_parameters`, as it is now, or `rope_scaling` and `rope_theta`, as it was. */
function ropeOf(config: Config): { all: Config; local: Config | undefined } {
  const plain = (value: unknown): Record<string, unknown> =>
    Object.fromEntries(Object.entries(Object(value)).filter(([, each]) => typeof each !== "object"));
  const given = Object(config.rope_parameters ?? config.rope_scaling);
  const all = plain(given.full_attention ?? given);
  const base = { rope_theta: config.rope_theta, rope_type: all.type ?? "default" };
  const theta = config.rope_local_base_freq;
  const local = theta === undefined ? undefined : { rope_theta: theta };
  return {
    all: { ...base, ...all },
    local: given.sliding_attention ? plain(given.sliding_attention) : local,
  };
}

/** What scaling of positions of type `yarn` has, and its keys. The last one of a key counts. */
const YARN: readonly (readonly [theirs: string, key: string])[] = [
  ["extrapolation_factor", "rope.scaling.yarn_ext_factor"],
  ["attn_factor", "rope.scaling.yarn_attn_factor"],
  ["attention_factor", "rope.scaling.yarn_attn_factor"],
  ["beta_fast", "rope.scaling.yarn_beta_fast"],
  ["beta_slow", "rope.scaling.yarn_beta_slow"],
];

function ropeEntries(config: Config): Entry[] {
  if (config.rope_theta === undefined) return [];
  const { all, local } = ropeOf(config);
  const entries: Entry[] = [["rope.freq_base", Number(all.rope_theta), "float32"]];
  if (local !== undefined) entries.push(["rope.freq_base_swa", Number(local.rope_theta), "float32"]);
  const { rope_type: type, factor } = all;
  if (type === "longrope" || type === "su") entries.push(["rope.scaling.type", "longrope", "string"]);
  if ((type !== "linear" && type !== "yarn") || typeof factor !== "number") return entries;
  entries.push(["rope.scaling.type", type, "string"], ["rope.scaling.factor", factor, "float32"]);
  if (type === "linear") return entries;
  const original = all.original_max_position_embeddings ?? config.max_position_embeddings;
  entries.push(["rope.scaling.original_context_length", Number(original), "uint32"]);
  for (const [name, key] of YARN) {
    if (typeof all[name] === "number") entries.push([key, all[name], "float32"]);
  }
  return entries;
}

/** The keys of the architecture. */
export function architectureEntries({ entries }: Architecture, config: Config): Entry[] {
  const known = KEYS.flatMap(([name, key, type]): Entry[] => {
    const value = config[name];
    return typeof value === "number" ? [[key, value, type]] : [];
  });
  const causal: Entry[] = config.is_causal === false ? [["attention.causal", false, "bool"]] : [];
  return [...known, ...causal, ...ropeEntries(config), ...(entries?.(config) ?? [])];
}

/**
 * Divisors of the frequencies of positions, as Llama 3.1 has them: 1 for high ones, `factor` for low ones, and between these
 * what lies between. In binary32, where each operation rounds.
 * @throws GgufError ERR_GGUF_INVALID, with the path of the configuration, for a head of a length that no model has
 */
export function ropeFactors(config: Config, path: string): Float32Array | undefined {
  const { all } = ropeOf(config);
  if (all.rope_type !== "llama3") return undefined;
  const number = (name: string, missing: number): number => Number(all[name] ?? missing);
  const [factor, low, high] = [
    number("factor", 8),
    number("low_freq_factor", 1),
    number("high_freq_factor", 4),
  ];
  const context = number("original_max_position_embeddings", 8192);
  const length = headLength(config);
  if (!(length > 0 && length <= MAX_HEAD)) {
    throw new GgufError("ERR_GGUF_INVALID", `a head has ${length} numbers, not 1 to ${MAX_HEAD}`, { path });
  }
  const { fround } = Math;
  return Float32Array.from({ length: Math.ceil(length / 2) }, (_, i) => {
    const frequency = fround(1 / fround(number("rope_theta", 10000) ** fround((2 * i) / length)));
    // A number over a tensor is that number times the reciprocal, each rounded.
    const over = (number: number, x: number): number => fround(fround(number) * fround(1 / x));
    const wave = over(2 * Math.PI, frequency);
    if (wave < fround(context / high)) return 1;
    if (wave > fround(context / low)) return factor;
    const smooth = fround(fround(over(context, wave) - low) / (high - low));
    return 1 / fround(fround(fround(1 - smooth) / factor) + smooth);
  });
}
