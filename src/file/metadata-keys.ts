/**
 * The list of known metadata keys and their types. Editors offer these keys for {@link GgufMetadata.string} and the
 * other methods, and {@link GgufWriter.set} declares values with these types. Where the specification and the files in
 * use differ (it has counts in 64 bits, they have 32), the list follows the files: programs that load models require
 * exactly those types.
 */
import type { GgufTypeName, GgufValue, OwnNumericArray } from "../base/metadata-values";

/** What a file with quantized tensors must have, by the specification. */
export const QUANTIZATION_VERSION_KEY = "general.quantization_version";

/** The key that says what tensor data is aligned to, in bytes. */
export const ALIGNMENT_KEY = "general.alignment";

/** A declared type; `uint32|int32[]` is a number, or one number for each layer. */
type KeyType = Exclude<GgufTypeName, "array"> | "string[]" | "int32[]" | "float32[]" | "uint32|int32[]";
type KeyTypes = Readonly<Record<string, KeyType>>;

const PLAIN_KEYS = {
  "general.architecture": "string",
  "general.quantization_version": "uint32",
  "general.alignment": "uint32",
  "general.type": "string",
  "general.name": "string",
  "general.author": "string",
  "general.version": "string",
  "general.organization": "string",
  "general.basename": "string",
  "general.finetune": "string",
  "general.description": "string",
  "general.quantized_by": "string",
  "general.size_label": "string",
  "general.license": "string",
  "general.license.name": "string",
  "general.license.link": "string",
  "general.url": "string",
  "general.doi": "string",
  "general.uuid": "string",
  "general.repo_url": "string",
  "general.tags": "string[]",
  "general.languages": "string[]",
  "general.datasets": "string[]",
  "general.file_type": "uint32",
  "general.source.url": "string",
  "general.source.doi": "string",
  "general.source.uuid": "string",
  "general.source.repo_url": "string",
  "general.base_model.count": "uint32",

  "split.no": "uint16",
  "split.count": "uint16",
  "split.tensors.count": "int32",

  "tokenizer.ggml.model": "string",
  "tokenizer.ggml.pre": "string",
  "tokenizer.ggml.tokens": "string[]",
  "tokenizer.ggml.scores": "float32[]",
  "tokenizer.ggml.token_type": "int32[]",
  "tokenizer.ggml.token_type_count": "uint32",
  "tokenizer.ggml.merges": "string[]",
  "tokenizer.ggml.added_tokens": "string[]",
  "tokenizer.ggml.bos_token_id": "uint32",
  "tokenizer.ggml.eos_token_id": "uint32",
  "tokenizer.ggml.eot_token_id": "uint32",
  "tokenizer.ggml.eom_token_id": "uint32",
  "tokenizer.ggml.unknown_token_id": "uint32",
  "tokenizer.ggml.seperator_token_id": "uint32", // misspelt in every file
  "tokenizer.ggml.padding_token_id": "uint32",
  "tokenizer.ggml.mask_token_id": "uint32",
  "tokenizer.ggml.cls_token_id": "uint32",
  "tokenizer.ggml.fim_pre_token_id": "uint32",
  "tokenizer.ggml.fim_suf_token_id": "uint32",
  "tokenizer.ggml.fim_mid_token_id": "uint32",
  "tokenizer.ggml.fim_pad_token_id": "uint32",
  "tokenizer.ggml.fim_rep_token_id": "uint32",
  "tokenizer.ggml.fim_sep_token_id": "uint32",
  "tokenizer.ggml.add_bos_token": "bool",
  "tokenizer.ggml.add_eos_token": "bool",
  "tokenizer.ggml.add_space_prefix": "bool",
  "tokenizer.ggml.remove_extra_whitespaces": "bool",
  "tokenizer.huggingface.json": "string",
  "tokenizer.rwkv.world": "string",
  "tokenizer.chat_template": "string",
} as const satisfies KeyTypes;

/** These follow the name of an architecture and a dot. */
const ARCHITECTURE_KEYS = {
  vocab_size: "uint32",
  context_length: "uint32",
  embedding_length: "uint32",
  block_count: "uint32",
  leading_dense_block_count: "uint32",
  feed_forward_length: "uint32|int32[]",
  use_parallel_residual: "bool",
  tensor_data_layout: "string",
  expert_count: "uint32",
  expert_used_count: "uint32",
  expert_shared_count: "uint32",
  expert_feed_forward_length: "uint32",
  expert_shared_feed_forward_length: "uint32",
  expert_weights_scale: "float32",
  expert_weights_norm: "bool",
  expert_gating_func: "uint32",
  pooling_type: "uint32",
  logit_scale: "float32",
  attn_logit_softcapping: "float32",
  final_logit_softcapping: "float32",
  "attention.head_count": "uint32|int32[]",
  "attention.head_count_kv": "uint32|int32[]",
  "attention.max_alibi_bias": "float32",
  "attention.clamp_kqv": "float32",
  "attention.layer_norm_epsilon": "float32",
  "attention.layer_norm_rms_epsilon": "float32",
  "attention.key_length": "uint32",
  "attention.value_length": "uint32",
  "attention.q_lora_rank": "uint32",
  "attention.kv_lora_rank": "uint32",
  "attention.sliding_window": "uint32",
  "attention.scale": "float32",
  "attention.causal": "bool",
  "rope.dimension_count": "uint32",
  "rope.dimension_sections": "int32[]",
  "rope.freq_base": "float32",
  "rope.scale_linear": "float32",
  "rope.scaling.type": "string",
  "rope.scaling.factor": "float32",
  "rope.scaling.attn_factor": "float32",
  "rope.scaling.original_context_length": "uint32",
  "rope.scaling.finetuned": "bool",
  "ssm.conv_kernel": "uint32",
  "ssm.inner_size": "uint32",
  "ssm.state_size": "uint32",
  "ssm.time_step_rank": "uint32",
  "ssm.group_count": "uint32",
} as const satisfies KeyTypes;

/** These follow the number of a base model or dataset and a dot. */
const SOURCE_KEYS = ["name", "author", "version", "organization", "url", "doi", "uuid", "repo_url"] as const;

/** The architectures whose keys are known to TypeScript. Any other can be read and written as well. */
export type Architecture =
  | ("llama" | "llama4" | "deci" | "falcon" | "grok" | "gpt2" | "gptj" | "gptneox" | "gpt-oss" | "mpt")
  | ("baichuan" | "starcoder" | "starcoder2" | "refact" | "bert" | "nomic-bert" | "jina-bert-v2" | "bloom")
  | ("stablelm" | "qwen" | "qwen2" | "qwen2moe" | "qwen2vl" | "qwen3" | "qwen3moe" | "phi2" | "phi3" | "phimoe")
  | ("plamo" | "codeshell" | "orion" | "internlm2" | "minicpm" | "minicpm3" | "gemma" | "gemma2" | "gemma3")
  | ("gemma3n" | "mamba" | "mamba2" | "xverse" | "command-r" | "cohere2" | "dbrx" | "olmo" | "olmo2" | "olmoe")
  | ("openelm" | "arctic" | "deepseek" | "deepseek2" | "chatglm" | "glm4" | "glm4moe" | "bitnet" | "t5")
  | ("t5encoder" | "jais" | "nemotron" | "exaone" | "rwkv" | "rwkv6" | "rwkv7" | "granite" | "granitemoe")
  | ("chameleon" | "smollm3" | "lfm2" | "nomic-bert-moe");

type PlainKeys = typeof PLAIN_KEYS;
type ArchitectureKeys = typeof ARCHITECTURE_KEYS;

interface Values {
  string: string;
  bool: boolean;
  uint64: bigint;
  int64: bigint;
  "string[]": string[];
  "int32[]": OwnNumericArray;
  "float32[]": OwnNumericArray;
  "uint32|int32[]": number | OwnNumericArray;
}
type ValueOf<T extends KeyType> = T extends keyof Values ? Values[T] : number;

/** The keys that follow an architecture's name: `context_length`, `attention.head_count` ... */
export type ArchitectureKey = keyof ArchitectureKeys;

/** The keys of the specification, and those that files commonly have. */
export type KnownKey =
  | keyof PlainKeys
  | `${Architecture}.${ArchitectureKey}`
  | `general.base_model.${number}.${(typeof SOURCE_KEYS)[number]}`;

/** What the value of a known key is, in a file that keeps to the specification. */
export type KnownValue<K extends KnownKey> = K extends keyof PlainKeys
  ? ValueOf<PlainKeys[K]>
  : K extends `${Architecture}.${infer Key extends ArchitectureKey}`
    ? ValueOf<ArchitectureKeys[Key]>
    : string;

/** The known keys whose values are of type `V`; editors offer them, and any other string is accepted. */
export type KeyOf<V extends GgufValue> =
  | { [K in KnownKey]: V extends KnownValue<K> ? K : never }[KnownKey]
  | (string & {});

const SOURCE_KEY = new RegExp(`^general\\.(base_model|dataset)\\.\\d+\\.(${SOURCE_KEYS.join("|")})$`);

/** The declared type of a known key, whatever its architecture; undefined for another key. @internal */
export function knownKeyType(key: string): KeyType | undefined {
  if (Object.hasOwn(PLAIN_KEYS, key)) return PLAIN_KEYS[key as keyof PlainKeys];
  if (SOURCE_KEY.test(key)) return "string";
  const rest = key.slice(key.indexOf(".") + 1);
  const isPlain = /^(general|tokenizer|split)\./.test(key);
  if (isPlain || !Object.hasOwn(ARCHITECTURE_KEYS, rest)) return undefined;
  return ARCHITECTURE_KEYS[rest as ArchitectureKey];
}
