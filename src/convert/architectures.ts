/** The architectures that are converted: their tensors, and what their configuration says. Tables, of which convert reads all. */
import { GgufError } from "../base/errors";
import { tokenIdKey } from "../tokenizer/special-tokens";
import type { GgufInput, GgufInputType } from "../writer/values";

/** `config.json`; of nobody's types. */
export type Config = Readonly<Record<string, unknown>>;

/** A key of the metadata, without the architecture, with its value and type. */
export type Entry = readonly [key: string, value: GgufInput, type: GgufInputType];

/** The kinds of vocabularies. */
export type VocabularyKind = "sentencepiece" | "phi3" | "llama-hf" | "gpt2" | "bert" | "unigram";

export interface Architecture {
  /** `general.architecture`. */
  readonly name: string;
  /** What `architectures` of the configuration may have. */
  readonly classes: readonly string[];
  /** What the configuration means where it says nothing. */
  readonly defaults: Config;
  /** What must be so where the configuration says anything: with other values, the numbers would mean something else. */
  readonly expected?: Config;
  /** Which of those with such a class it is. */
  readonly isMeant?: (config: Config) => boolean;
  /** What follows from the configuration, in place of what it says; `given` is without other names and defaults. */
  readonly derived?: (config: Config, given: Config) => Config;
  /**
   * Names of tensors, `N` being the layer: in the checkpoint, and here. Without `.weight` and `.bias`. `E` is the expert: those of a
   * layer become one tensor, in this order.
   */
  readonly names: readonly Name[];
  /** What comes before names in some checkpoints. */
  readonly prefix?: RegExp;
  /** Tensors that are left out. */
  readonly unused?: RegExp;
  /** Whether the rows of queries and keys get another order: pairs of neighbours are rotated, not halves. */
  readonly isPermuted?: true;
  /** Matrices whose rows become columns. */
  readonly transposed?: RegExp;
  /** Norms to which 1 is added. */
  readonly shifted?: RegExp;
  /** Whether embeddings without a token are left out. */
  readonly isTrimmed?: true;
  /** Rows of the table of positions that no position has. */
  readonly unusedPositions?: (config: Config) => number;
  /** Tensors that come before those of the checkpoint. */
  readonly extraTensors?: (config: Config, path: string) => [name: string, numbers: Float32Array][];
  /** Whether the vector of a text is multiplied with matrices that have folders of their own. */
  readonly hasDense?: true;
  /** Which kinds of vocabularies it may have, in the order in which they are looked for; `gpt2` where nothing is said. */
  readonly vocabularies?: readonly VocabularyKind[];
  /** What the rule `gpt-2` for words is called where vocabularies of this kind have it. */
  readonly gpt2Rule?: string;
  /** The order of all keys, where it is not the usual one; no others are there. */
  readonly order?: string;
  /** Entries before all others. */
  readonly firstEntries?: (config: Config, path: string) => Entry[];
  /** Keys that no other has: what they are made of, and their types. */
  readonly keys?: readonly Key[];
  /** Entries that no other has, before those of these keys. `pooling` is what `modules.json` says. */
  readonly entries?: (config: Config, pooling: readonly Entry[], path: string) => readonly Entry[];
  /** Entries of the vocabulary before and after all others; those after them take the place of others with their keys. */
  readonly vocabularyEntries?: (
    config: Config,
    tokenizerConfig: Config,
    model: string,
  ) => { before?: Entry[]; after?: Entry[] };
}

type Name = readonly [theirs: string, ours: string];

/** Pairs LEFT=RIGHT, and the word GROUP: that they come after. */
function pairs(text: string): [group: string, left: string, right: string][] {
  let group = "";
  return text.split(/\s+/).flatMap((word) => {
    const [left = "", right] = word.split("=");
    if (right !== undefined) return [[group, left, right]];
    group = left.slice(0, -1);
    return [];
  });
}

/** Names of tensors, THEIRS=OURS; in a layer, the group is what all begin with there. */
const names = (text: string): Name[] =>
  pairs(text).map(([layer, theirs, ours]) => (layer === "" ? [theirs, ours] : [`${layer}.${theirs}`, `blk.N.${ours}`]));

const ATTENTION = `model.embed_tokens=token_embd model.norm=output_norm lm_head=output
  model.layers.N: self_attn.q_proj=attn_q self_attn.k_proj=attn_k self_attn.v_proj=attn_v
  self_attn.o_proj=attn_output self_attn.q_norm=attn_q_norm self_attn.k_norm=attn_k_norm
  input_layernorm=attn_norm`;
const PRE_NORMED = `${ATTENTION} post_attention_layernorm=ffn_norm`;
const FEED_FORWARD = "mlp.gate_proj=ffn_gate mlp.up_proj=ffn_up mlp.down_proj=ffn_down";
const DECODER = names(`${PRE_NORMED} ${FEED_FORWARD}`);
/** Experts in one tensor, as newer files have them. */
const FUSED = "mlp.gate=ffn_gate_inp mlp.experts.down_proj=ffn_down_exps mlp.experts.gate_up_proj=ffn_gate_up_exps";
const SPARSE = `${PRE_NORMED} ${FUSED} mlp.experts.E.down_proj=ffn_down_exps
  mlp.experts.E.gate_proj=ffn_gate_exps mlp.experts.E.up_proj=ffn_up_exps`;
const POST_NORMED = names(`${ATTENTION} ${FEED_FORWARD} post_attention_layernorm=post_attention_norm
  pre_feedforward_layernorm=ffn_norm post_feedforward_layernorm=post_ffw_norm`);

/** The most numbers of a head and layers, of which known models have some hundreds. */
const MAX_HEAD = 2 ** 16;
const MAX_LAYERS = 2 ** 16;

const SLIDING = "sliding_attention";

const ROPE = { rope_theta: 10000, rms_norm_eps: 1e-6 };

/** The length of a head. */
function headLength({ head_dim: given, hidden_size: size, num_attention_heads: heads }: Config): number {
  return typeof given === "number" ? given : Math.floor(Number(size) / Number(heads));
}

const llamaEntries = (config: Config): Entry[] => [
  ["vocab_size", Number(config.vocab_size), "uint32"],
  ["rope.dimension_count", headLength(config), "uint32"],
];

/** What a classifier would tell apart: BGE names one class, and two without names stand for none. */
export function labelsOf(given: unknown): string[] {
  const labels = Object.values(Object(given)).filter((each) => typeof each === "string");
  const isMade = labels.length === 2 && labels[0] === "LABEL_0";
  return isMade ? [] : labels;
}

const encoderEntries = ({ id2label }: Config, pooling: readonly Entry[]): Entry[] => {
  const labels = labelsOf(id2label);
  return [
    ["attention.causal", false, "bool"],
    ...pooling,
    ...(labels.length === 0 ? [] : [["classifier.output_labels", labels, "string[]"] as const]),
  ];
};

const LLAMA = {
  name: "llama",
  defaults: { ...ROPE, head_dim: undefined, max_position_embeddings: 2048 },
  names: DECODER,
  isPermuted: true,
  extraTensors: (config, path) => {
    const factors = ropeFactors(config, path);
    return factors === undefined ? [] : [["rope_freqs.weight", factors]];
  },
  vocabularies: ["sentencepiece", "llama-hf", "gpt2"],
  entries: llamaEntries,
  vocabularyEntries: ({ vocab_size: size }, { add_prefix_space: prefix }) => ({
    before: typeof prefix === "boolean" ? [["tokenizer.ggml.add_space_prefix", prefix, "bool"]] : [],
    // The small models of Granite begin without a token, whatever else is said; Code Llama ends what it fills in by one of its own.
    after: [
      ...(size === 49152 ? [["tokenizer.ggml.add_bos_token", false, "bool"] as const] : []),
      ...(size === 32016 ? [[tokenIdKey("eot"), 32010, "uint32"] as const] : []),
    ],
  }),
} satisfies Omit<Architecture, "classes">;

const QWEN2 = {
  name: "qwen2",
  defaults: { ...ROPE, max_position_embeddings: 32768 },
  names: DECODER,
  vocabularies: ["sentencepiece", "gpt2"],
  entries: (_: Config, pooling: readonly Entry[]) => pooling,
} as const;

const GEMMA = {
  name: "gemma3",
  defaults: {
    ...{ rope_theta: 1e6, rope_local_base_freq: 10000, head_dim: 256, rms_norm_eps: 1e-6 },
    ...{ max_position_embeddings: 131072, num_attention_heads: 8, num_key_value_heads: 4 },
    sliding_window: 4096,
  },
  names: POST_NORMED,
  shifted: /norm\.weight$/,
  isTrimmed: true,
  vocabularies: ["sentencepiece", "gpt2"],
  entries: ({ sliding_window, sliding_window_pattern, final_logit_softcapping: cap }) => [
    ...(cap ? [["final_logit_softcapping", Number(cap), "float32"] as const] : []),
    ...(sliding_window_pattern === 1 ? [] : [["attention.sliding_window", Number(sliding_window), "uint32"] as const]),
  ],
  vocabularyEntries: (_config, _tokenizerConfig, model) => ({
    after: model === "llama" ? [["tokenizer.ggml.add_space_prefix", false, "bool"]] : [],
  }),
} satisfies Omit<Architecture, "classes">;

const OLMO2 = {
  name: "olmo2",
  defaults: { ...ROPE, rms_norm_eps: 1e-5, max_position_embeddings: 2048 },
  derived: keyHeads,
  names: POST_NORMED,
  entries: (config, _, path) =>
    config.sliding_window === undefined
      ? []
      : [
          ["attention.sliding_window", Number(config.sliding_window), "uint32"],
          ["attention.sliding_window_pattern", slidingLayers(config, path), "bool[]"],
        ],
} satisfies Omit<Architecture, "classes">;

const BERT = {
  name: "bert",
  defaults: { layer_norm_eps: 1e-12, max_position_embeddings: 512, type_vocab_size: 2 },
  names: names(`embeddings.word_embeddings=token_embd embeddings.position_embeddings=position_embd
      embeddings.token_type_embeddings=token_types embeddings.LayerNorm=token_embd_norm
      classifier=cls classifier.dense=cls classifier.out_proj=cls.output encoder.layer.N:
      attention.self.query=attn_q attention.self.key=attn_k attention.self.value=attn_v
      attention.output.dense=attn_output attention.output.LayerNorm=attn_output_norm
      intermediate.dense=ffn_up output.dense=ffn_down output.LayerNorm=layer_output_norm`),
  prefix: /^bert\./,
  unused: /^(embeddings\.position_ids|pooler\.|cls\.)/,
  // Those of multilingual E5 are of the kind that XLM-RoBERTa has.
  vocabularies: ["unigram", "bert"],
  entries: encoderEntries,
} satisfies Omit<Architecture, "classes">;

const unusedPositions = ({ pad_token_id: pad = -1 }: Config): number => Number(pad) + 1;

/** Positions are counted from that of padding on, which no token has. */
const ROBERTA = {
  ...BERT,
  defaults: { ...BERT.defaults, pad_token_id: 1 },
  prefix: /^roberta\./,
  derived: (config) => ({
    max_position_embeddings: Number(config.max_position_embeddings) - unusedPositions(config),
  }),
  unusedPositions,
} satisfies Omit<Architecture, "classes">;

const NOMIC = {
  ...BERT,
  classes: ["NomicBertModel"],
  defaults: { rope_theta: 1000, layer_norm_eps: 1e-12, max_trained_positions: 2048, type_vocab_size: 2 },
  expected: {
    ...{ causal: false, prenorm: false, rotary_emb_fraction: 1 },
    ...{ rotary_emb_interleaved: false, rotary_emb_scale_base: null },
  },
} satisfies Omit<Architecture, "name" | "names">;

const nomicBiases = (has: boolean): Config => ({ qkv_proj_bias: has, mlp_fc1_bias: has, mlp_fc2_bias: has });

const NOMIC_NAMES = `embeddings.word_embeddings=token_embd embeddings.token_type_embeddings=token_types
  emb_ln=token_embd_norm encoder.layers.N: attn.Wqkv=attn_qkv attn.out_proj=attn_output
  norm1=attn_output_norm norm2=layer_output_norm`;

const LOCAL_KEYS = keys(`uint32: local_attention=attention.sliding_window
  global_attn_every_n_layers=attention.sliding_window_pattern`);
const EXPERT_KEYS = keys(`uint32: moe_intermediate_size=expert_feed_forward_length
  shared_expert_intermediate_size=expert_shared_feed_forward_length`);

export const ARCHITECTURES: readonly Architecture[] = [
  {
    ...LLAMA,
    classes: ["LlamaForCausalLM", "LLaMAForCausalLM", "MistralForCausalLM", "LlamaModel"],
    derived: (config) => ({ ...keyHeads(config), head_dim: headLength(config) }),
  },
  {
    ...LLAMA,
    classes: ["MixtralForCausalLM"],
    defaults: {
      ...{ rope_theta: 1e6, rms_norm_eps: 1e-5, max_position_embeddings: 131072 },
      ...{ num_key_value_heads: 8, num_experts: 8, num_experts_per_tok: 2 },
    },
    names: names(`${PRE_NORMED} ${FUSED} block_sparse_moe.gate=ffn_gate_inp block_sparse_moe.experts.E.w1=ffn_gate_exps
      block_sparse_moe.experts.E.w2=ffn_down_exps block_sparse_moe.experts.E.w3=ffn_up_exps`),
  },
  {
    ...LLAMA,
    ...{ name: "granite", classes: ["GraniteForCausalLM"] },
    defaults: {
      ...{ ...ROPE, max_position_embeddings: 2048, attention_multiplier: 1 },
      ...{ embedding_multiplier: 1, residual_multiplier: 1, logits_scaling: 1 },
    },
    derived: (config) => ({ ...keyHeads(config), head_dim: undefined }),
    keys: keys(`float32: attention_multiplier=attention.scale embedding_multiplier=embedding_scale
      residual_multiplier=residual_scale logits_scaling=logit_scale`),
  },
  { ...QWEN2, classes: ["Qwen2ForCausalLM", "Qwen2Model"] },
  {
    ...QWEN2,
    ...{ name: "qwen3", classes: ["Qwen3ForCausalLM", "Qwen3Model"] },
    defaults: { ...QWEN2.defaults, head_dim: 128 },
  },
  {
    ...{ name: "qwen2moe", classes: ["Qwen2MoeForCausalLM"] },
    defaults: {
      ...{ ...QWEN2.defaults, num_experts: 60, num_experts_per_tok: 4 },
      ...{ moe_intermediate_size: 1408, shared_expert_intermediate_size: 5632 },
    },
    names: names(`${SPARSE} mlp.shared_expert_gate=ffn_gate_inp_shexp
      mlp.shared_expert.gate_proj=ffn_gate_shexp mlp.shared_expert.up_proj=ffn_up_shexp
      mlp.shared_expert.down_proj=ffn_down_shexp`),
    keys: EXPERT_KEYS,
  },
  {
    ...{ name: "qwen3moe", classes: ["Qwen3MoeForCausalLM"] },
    defaults: {
      ...{ ...QWEN2.defaults, num_experts: 128, num_experts_per_tok: 8 },
      ...{ num_key_value_heads: 4, moe_intermediate_size: 768 },
    },
    names: names(SPARSE),
    keys: EXPERT_KEYS,
  },
  {
    ...{ name: "phi3", classes: ["Phi3ForCausalLM"] },
    defaults: {
      ...{ ...ROPE, rms_norm_eps: 1e-5, max_position_embeddings: 4096, sliding_window: 0 },
      original_max_position_embeddings: 4096,
    },
    derived: keyHeads,
    names: names(`${PRE_NORMED} self_attn.qkv_proj=attn_qkv mlp.gate_up_proj=ffn_up mlp.down_proj=ffn_down`),
    extraTensors: phi3Factors,
    vocabularies: ["phi3", "gpt2"],
    order: `context_length rope.scaling.original_context_length embedding_length feed_forward_length
      block_count attention.head_count attention.head_count_kv attention.layer_norm_rms_epsilon
      rope.dimension_count rope.freq_base general.file_type attention.sliding_window`,
    firstEntries: (config, path) => {
      const { original, type } = phi3Rope(config);
      if (phi3Factors(config, path).length === 0) return [];
      const scale = Math.max(1, Number(config.max_position_embeddings) / original);
      const factor = type === "yarn" ? 0.1 * Math.log(scale) + 1 : Math.sqrt(1 + Math.log(scale) / Math.log(original));
      return [["rope.scaling.attn_factor", factor, "float32"]];
    },
    entries: (config) => [
      ["rope.scaling.original_context_length", phi3Rope(config).original, "uint32"],
      ["rope.dimension_count", phi3Rope(config).length, "uint32"],
    ],
    keys: keys(`uint32: sliding_window=attention.sliding_window`),
  },
  {
    ...{ name: "gemma2", classes: ["Gemma2ForCausalLM"] },
    defaults: {
      ...{ ...ROPE, head_dim: 256, max_position_embeddings: 8192 },
      ...{ num_attention_heads: 8, num_key_value_heads: 4, sliding_window: 4096 },
      ...{ attn_logit_softcapping: 50, final_logit_softcapping: 30 },
    },
    names: POST_NORMED,
    unused: /^lm_head\.weight$/,
    shifted: GEMMA.shifted,
    vocabularies: ["sentencepiece"],
    order: `context_length embedding_length block_count feed_forward_length attention.head_count
      attention.head_count_kv attention.layer_norm_rms_epsilon attention.key_length
      attention.value_length general.file_type attn_logit_softcapping final_logit_softcapping
      attention.sliding_window`,
    keys: keys(`float32: attn_logit_softcapping=attn_logit_softcapping
      final_logit_softcapping=final_logit_softcapping uint32:
      sliding_window=attention.sliding_window`),
    vocabularyEntries: GEMMA.vocabularyEntries,
  },
  { ...OLMO2, classes: ["Olmo2ForCausalLM"] },
  {
    ...OLMO2,
    classes: ["Olmo3ForCausalLM"],
    defaults: { ...OLMO2.defaults, rope_theta: 500000, rope_local_base_freq: 500000, sliding_window: 4096 },
    // Only where it tells both kinds of layers apart.
    derived: ({ rope_parameters: rope, ...config }) => ({
      ...keyHeads(config),
      rope_parameters: Object(rope).full_attention === undefined ? undefined : rope,
    }),
  },
  {
    ...{ name: "starcoder2", classes: ["Starcoder2ForCausalLM"] },
    defaults: {
      ...{ rope_theta: 10000, layer_norm_eps: 1e-5, max_position_embeddings: 4096, num_key_value_heads: 2 },
    },
    names: names(`${PRE_NORMED} mlp.c_fc=ffn_up mlp.c_proj=ffn_down`),
  },
  {
    ...{ name: "gpt2", classes: ["GPT2LMHeadModel"] },
    defaults: { layer_norm_eps: 1e-5, max_position_embeddings: 1024 },
    derived: ({ hidden_size }) => ({ intermediate_size: 4 * Number(hidden_size) }),
    names: names(`wte=token_embd wpe=position_embd ln_f=output_norm lm_head=output
      h.N: ln_1=attn_norm attn.c_attn=attn_qkv attn.c_proj=attn_output
      ln_2=ffn_norm mlp.c_fc=ffn_up mlp.c_proj=ffn_down`),
    prefix: /^transformer\./,
    unused: /\.attn\.(masked_)?bias$/,
    transposed: /\.c_(attn|proj|fc)\.weight$/,
    order: `block_count context_length embedding_length feed_forward_length attention.head_count
      attention.layer_norm_epsilon general.file_type`,
  },
  { ...GEMMA, classes: ["Gemma3ForCausalLM"] },
  {
    ...GEMMA,
    ...{ name: "gemma-embedding", classes: ["Gemma3TextModel"], hasDense: true },
    entries: (config, pooling) => [...GEMMA.entries(config), ...pooling],
  },
  { ...BERT, classes: ["BertModel", "BertForMaskedLM", "BertForSequenceClassification"] },
  {
    ...ROBERTA,
    classes: ["RobertaModel", "RobertaForSequenceClassification"],
    vocabularies: ["gpt2"],
    gpt2Rule: "roberta-bpe",
    vocabularyEntries: (config) => ({ after: [typeCount(config)] }),
  },
  {
    ...ROBERTA,
    classes: ["XLMRobertaModel", "XLMRobertaForSequenceClassification"],
    expected: { lora_adaptations: null },
    vocabularies: ["unigram"],
  },
  {
    ...NOMIC,
    ...{ name: "nomic-bert-moe", isMeant: ({ moe_every_n_layers: every }) => Boolean(every) },
    expected: { ...NOMIC.expected, ...nomicBiases(true), activation_function: "gelu", n_positions: [2048, 8192] },
    // Positions are counted as in XLM-RoBERTa where their number is said, and it is trained for fewer than it is made for.
    derived: (config, { max_position_embeddings: given }) => ({
      max_position_embeddings:
        typeof given === "number" ? given - unusedPositions(config) : Number(config.n_positions) / 4,
      head_dim: headLength(config),
    }),
    names: names(`${NOMIC_NAMES} mlp.fc1=ffn_up mlp.fc2=ffn_down mlp.router.layer=ffn_gate_inp
      mlp.experts.mlp.w1=ffn_up_exps mlp.experts.mlp.w2=ffn_down_exps`),
    unused: /\.mlp\.experts\.bias$/,
    vocabularies: ["unigram"],
    keys: keys("uint32: moe_every_n_layers=moe_every_n_layers moe_top_k=expert_used_count"),
  },
  {
    ...NOMIC,
    name: "nomic-bert",
    expected: { ...NOMIC.expected, ...nomicBiases(false), moe_every_n_layers: 0, activation_function: "swiglu" },
    derived: (config) => ({
      max_position_embeddings: Math.min(Number(config.max_position_embeddings), Number(config.max_trained_positions)),
      head_dim: headLength(config),
    }),
    names: names(`${NOMIC_NAMES} mlp.fc11=ffn_up mlp.fc12=ffn_gate mlp.fc2=ffn_down`),
    vocabularies: ["bert"],
  },
  {
    name: "modern-bert",
    classes: ["ModernBertModel", "ModernBertForMaskedLM", "ModernBertForSequenceClassification"],
    defaults: {
      ...{ rope_theta: 160000, rope_local_base_freq: 10000, rms_norm_eps: 1e-5, local_attention: 128 },
      ...{ max_position_embeddings: 8192, hidden_activation: "gelu", classifier_pooling: "cls" },
    },
    names: names(`embeddings.tok_embeddings=token_embd embeddings.norm=token_embd_norm final_norm=output_norm
      head.dense=cls head.norm=cls.norm classifier=cls classifier.out_proj=cls.output layers.N:
      attn_norm=attn_norm attn.Wqkv=attn_qkv attn.Wo=attn_output mlp_norm=ffn_norm mlp.Wi=ffn_up
      mlp.Wo=ffn_down`),
    expected: { classifier_pooling: ["cls", "mean"] },
    prefix: /^model\./,
    gpt2Rule: "modern-bert",
    entries: (config, pooling) => [
      ...encoderEntries(config, [
        ...pooling,
        ["classifier.pooling_type", config.classifier_pooling === "mean" ? 1 : 2, "uint32"],
      ]),
      ...numberEntries(config, LOCAL_KEYS),
      ["rope.scaling.type", "none", "string"],
      ["vocab_size", Number(config.vocab_size), "uint32"],
      ...(typeof config.hidden_activation === "string"
        ? [["hidden_activation", config.hidden_activation, "string"] as const]
        : []),
    ],
    vocabularyEntries: () => ({
      before: ["bos", "eos", "sep"].map((name) => [`tokenizer.ggml.add_${name}_token`, true, "bool"]),
    }),
  },
];

/** How many kinds of tokens there are. */
export function typeCount({ type_vocab_size: count }: Config): Entry {
  return ["tokenizer.ggml.token_type_count", Number(count ?? 1), "uint32"];
}

function keyHeads({ num_attention_heads: heads, num_key_value_heads: keys }: Config): Config {
  return { num_key_value_heads: keys ?? heads };
}

/** Which layers see only what is near: what is said, or all but each fourth one. */
function slidingLayers({ num_hidden_layers: count, layer_types: given }: Config, path: string): boolean[] {
  if (typeof count === "number" && count > 0 && count <= MAX_LAYERS) {
    const types = given ?? Array.from({ length: count }, (_, layer) => (layer % 4 === 3 ? "full" : SLIDING));
    if (Array.isArray(types) && types.length === count) return types.map((type) => type === SLIDING);
  }
  const detail = `layer_types must be a list of num_hidden_layers values, at most ${MAX_LAYERS}`;
  throw new GgufError("ERR_GGUF_INVALID", detail, { path });
}

/** Other names in configurations for the same. */
export const ALIASES = names(`n_layer=num_hidden_layers n_ctx=max_position_embeddings
  n_positions=max_position_embeddings n_embd=hidden_size n_inner=intermediate_size n_head=num_attention_heads
  layer_norm_epsilon=layer_norm_eps norm_epsilon=layer_norm_eps norm_eps=rms_norm_eps rotary_emb_base=rope_theta
  global_rope_theta=rope_theta local_rope_theta=rope_local_base_freq num_local_experts=num_experts`);

/** Names of the configuration, the keys that they become, and their types. */
type Key = readonly [theirs: string, key: string, type: "uint32" | "float32"];

/** Groups are types. */
function keys(text: string): Key[] {
  return pairs(text).map(([type, name, key]) => [name, key, type as Key[2]]);
}

const KEYS = keys(`uint32: num_hidden_layers=block_count max_position_embeddings=context_length
  hidden_size=embedding_length intermediate_size=feed_forward_length
  num_attention_heads=attention.head_count num_key_value_heads=attention.head_count_kv`);

/** Those that come after the positions. */
const LATER_KEYS = keys(`float32: rms_norm_eps=attention.layer_norm_rms_epsilon
  layer_norm_eps=attention.layer_norm_epsilon uint32: num_experts=expert_count
  num_experts_per_tok=expert_used_count head_dim=attention.key_length head_dim=attention.value_length`);

function numberEntries(config: Config, keys: readonly Key[]): Entry[] {
  return keys.flatMap(([name, key, type]): Entry[] => {
    const value = config[name];
    return typeof value === "number" ? [[key, value, type]] : [];
  });
}

/** What must be a number where it is there. */
export const NUMBERS: readonly string[] = [
  ...[...KEYS, ...LATER_KEYS, ...ALIASES, ...ARCHITECTURES.flatMap(({ keys = [] }) => keys)].map(([name]) => name),
  ...["vocab_size", "type_vocab_size", "sliding_window", "final_logit_softcapping", "pad_token_id"],
  ...["attn_logit_softcapping", "original_max_position_embeddings", "partial_rotary_factor"],
  ...["rope_theta", "rope_local_base_freq", "max_trained_positions", "local_attention"],
];

/** How positions are rotated: `rope_parameters`, as it is now, or `rope_scaling` and `rope_theta`, as it was. */
function ropeOf(config: Config): { all: Config; local: Config } {
  const plain = (value: unknown): Record<string, unknown> =>
    Object.fromEntries(Object.entries(Object(value)).filter(([, each]) => typeof each !== "object"));
  const given = Object(config.rope_parameters ?? config.rope_scaling);
  const all = plain(given.full_attention ?? given);
  const base = { rope_theta: config.rope_theta, rope_type: all.type ?? "default" };
  return {
    all: { ...base, ...all },
    local: { rope_theta: config.rope_local_base_freq, ...plain(given.sliding_attention) },
  };
}

/** What scaling of positions of type `yarn` has, and its keys. The last one of a key counts. */
const YARN = keys(`float32: extrapolation_factor=rope.scaling.yarn_ext_factor
  attn_factor=rope.scaling.yarn_attn_factor attention_factor=rope.scaling.yarn_attn_factor
  beta_fast=rope.scaling.yarn_beta_fast beta_slow=rope.scaling.yarn_beta_slow`);

function ropeEntries(config: Config): Entry[] {
  if (config.rope_theta === undefined) return [];
  const { all, local } = ropeOf(config);
  const bases: Entry[] = [["rope.freq_base", Number(all.rope_theta), "float32"]];
  if (local.rope_theta !== undefined) bases.push(["rope.freq_base_swa", Number(local.rope_theta), "float32"]);
  const { rope_type: type, factor } = all;
  if (type === "longrope" || type === "su") return [["rope.scaling.type", "longrope", "string"], ...bases];
  if ((type !== "linear" && type !== "yarn") || typeof factor !== "number") return bases;
  const entries: Entry[] = [
    ["rope.scaling.type", type, "string"],
    ["rope.scaling.factor", factor, "float32"],
  ];
  if (type === "linear") return [...entries, ...bases];
  const original = all.original_max_position_embeddings ?? config.max_position_embeddings;
  entries.push(["rope.scaling.original_context_length", Number(original), "uint32"]);
  return [...entries, ...numberEntries(all, YARN), ...bases];
}

/** The keys of the architecture, and its file type. */
export function architectureEntries(
  { entries, keys = [], order }: Architecture,
  config: Config,
  fileType: number,
  pooling: readonly Entry[],
  path: string,
): Entry[] {
  const causal: Entry[] = config.is_causal === false ? [["attention.causal", false, "bool"]] : [];
  const all: Entry[] = [
    ...[...numberEntries(config, KEYS), ...causal, ...ropeEntries(config)],
    ...numberEntries(config, LATER_KEYS),
    ["general.file_type", fileType, "uint32"],
    ...(entries?.(config, pooling, path) ?? []),
    ...numberEntries(config, keys),
  ];
  return order === undefined
    ? all
    : order.split(/\s+/).flatMap((key) => all.filter((entry) => entry[0] === key).slice(-1));
}

/**
 * Divisors of the frequencies of positions, as Llama 3.1 has them: 1 for high ones, `factor` for low ones, and between these
 * what lies between. In binary32, where each operation rounds.
 * @throws GgufError ERR_GGUF_INVALID, with the path of the configuration, for a head of a length that no model has
 */
function ropeFactors(config: Config, path: string): Float32Array | undefined {
  const { all } = ropeOf(config);
  if (all.rope_type !== "llama3") return undefined;
  const number = (name: string, missing: number): number => Number(all[name] ?? missing);
  const [factor, low, high] = [number("factor", 8), number("low_freq_factor", 1), number("high_freq_factor", 4)];
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

/** How positions of Phi 3 are rotated: in how many numbers of a head, from which length of text on they are stretched, and how. */
function phi3Rope(config: Config): { original: number; length: number; type: unknown } {
  const { all } = ropeOf(config);
  const rotated = Number(all.partial_rotary_factor ?? config.partial_rotary_factor ?? 1);
  const heads = Number(config.num_attention_heads);
  return {
    length: Math.floor(Math.floor(rotated * Number(config.hidden_size)) / heads),
    original: Number(all.original_max_position_embeddings ?? config.original_max_position_embeddings),
    type: all.type ?? all.rope_type,
  };
}

/**
 * Divisors of the frequencies of positions in long and in short texts.
 * @throws GgufError ERR_GGUF_INVALID for others than half as many numbers as are rotated; ERR_GGUF_UNSUPPORTED_TYPE
 */
function phi3Factors(config: Config, path: string): [string, Float32Array][] {
  const { length, original, type } = phi3Rope(config);
  const given = Object(config.rope_parameters ?? config.rope_scaling);
  if (!Array.isArray(given.long_factor) || given.long_factor.length === 0) return [];
  if (type !== "su" && type !== "longrope" && type !== "yarn") {
    const detail = "positions with a long_factor are scaled by su, longrope or yarn";
    throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail, { path });
  }
  return ["long", "short"].map((name) => {
    const factors: unknown = given[`${name}_factor`];
    const isRight = Array.isArray(factors) && factors.every((each) => typeof each === "number");
    if (isRight && factors.length === length / 2 && original > 1)
      return [`rope_factors_${name}.weight`, Float32Array.from(factors)];
    const detail = `${name}_factor must be a list of ${length / 2} numbers, and original_max_position_embeddings above 1`;
    throw new GgufError("ERR_GGUF_INVALID", detail, { path });
  });
}
