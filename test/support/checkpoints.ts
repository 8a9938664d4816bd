/**
 * Tiny checkpoints of every architecture that is converted, with random weights: the same ones each time, so that hashes of what
 * llama.cpp's converter makes of them can be compared with.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Random } from "./random";
import { safetensorsOf } from "./safetensors-files";

export interface CheckpointCase {
  /** The name of its folder, which the converter reads, too. */
  readonly name: string;
  readonly config: Record<string, unknown>;
  readonly dtype: "F32" | "F16" | "BF16";
  /** Names and shapes, rows first. */
  readonly tensors: Record<string, readonly number[]>;
  readonly files: Record<string, string | Uint8Array>;
  /** In how many files of safetensors. */
  readonly shards?: number;
  /** What the rule for words is called: the vocabularies are too small for the converter to know it. */
  readonly wordRule?: string | undefined;
  readonly types: readonly string[];
}

// biome-ignore lint/suspicious/noExplicitAny: what is read of it is known
type Json = any;
const json = (value: unknown): string => JSON.stringify(value, undefined, 1);

/** Characters that stand for bytes. */
function byteCharacters(): string[] {
  const printable = (byte: number): boolean => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : next++));
}

const added = (id: number, content: string, special: boolean): object => ({
  ...{ id, content, special },
  ...{ single_word: false, lstrip: false, rstrip: false, normalized: false },
});

type Files = Record<string, string>;

const tokenizerFiles = (tokenizer: object, config: object): Files => ({
  "tokenizer.json": json({ version: "1.0", normalizer: null, ...tokenizer }),
  "tokenizer_config.json": json({ tokenizer_class: "PreTrainedTokenizerFast", ...config }),
});

/** Changed copies of the same. */
function changedFiles(files: Files, change: (tokenizer: Json, config: Json) => void): Files {
  const [tokenizer, config] = Object.values(files).map((text) => JSON.parse(text)) as [Json, Json];
  change(tokenizer, config);
  return tokenizerFiles(tokenizer, config);
}

/** What is put around one text, A, and around two; other words are special tokens with these numbers. */
function template(single: string, pair: string, ids: Record<string, number>): object {
  const parts = (text: string): object[] =>
    text.split(" ").map((id) => ({ [id in ids ? "SpecialToken" : "Sequence"]: { id, type_id: 0 } }));
  const special = Object.entries(ids).map(([id, number]) => [id, { id, ids: [number], tokens: [id] }]);
  return {
    ...{ type: "TemplateProcessing", single: parts(single), pair: parts(pair) },
    special_tokens: Object.fromEntries(special),
  };
}

const numbered = (tokens: readonly string[]): object => Object.fromEntries(tokens.map((token, id) => [token, id]));

const BYTE_LEVEL = { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false };
const END_OF_TEXT = "<|endoftext|>";

/** A byte-level vocabulary of 261 tokens. */
function byteLevel(preTokenizer: object, processor: object = BYTE_LEVEL): Files {
  const merges = ["t h", "Ġ t", "Ġt h"].map((merge) => merge.split(" "));
  const vocab = numbered([...byteCharacters(), ...merges.map((merge) => merge.join(""))]);
  const tokenizer = {
    added_tokens: [added(259, END_OF_TEXT, true), added(260, "<tool▁call>", false)],
    ...{ pre_tokenizer: preTokenizer, post_processor: processor, decoder: BYTE_LEVEL },
    model: { type: "BPE", vocab, merges, ignore_merges: false },
  };
  return tokenizerFiles(tokenizer, {
    ...{ eos_token: END_OF_TEXT, pad_token: { __type: "AddedToken", ...added(259, END_OF_TEXT, true) } },
    ...{ add_bos_token: false, chat_template: "{% for m in messages %}{{ m.content }}{% endfor %}" },
  });
}

/** A field of a protocol buffer. */
function field(number: number, value: number | string | Uint8Array): Buffer {
  if (typeof value === "number") return Buffer.from([8 * number, value]);
  const bytes = Buffer.from(value as string);
  const length = bytes.length < 128 ? [bytes.length] : [(bytes.length & 127) | 128, bytes.length >> 7];
  return Buffer.concat([Buffer.from([8 * number + 2, ...length]), bytes]);
}

function piece(text: string, score: number, type: number): Buffer {
  const bytes = Buffer.alloc(5);
  bytes[0] = 8 * 2 + 5;
  bytes.writeFloatLE(score, 1);
  return field(1, Buffer.concat([field(1, text), bytes, field(3, type)]));
}

const byteToken = (byte: number): string => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;

/** A model of SentencePiece of 263 pieces. */
function sentencePiece(): Buffer {
  const pieces = [piece("<unk>", 0, 2), piece("<s>", 0, 3), piece("</s>", 0, 3)];
  for (let byte = 0; byte < 256; byte++) pieces.push(piece(byteToken(byte), 0, 6));
  return Buffer.concat([
    ...pieces,
    piece("▁t", -1.5, 1),
    piece("e", -2.25, 1),
    piece("mine", -3, 4),
    piece("none", 0, 5),
    // The description of the training says that there are tokens of bytes.
    field(2, Buffer.from([0x98, 0x02, 1])),
  ]);
}

/** The same as a `tokenizer.json`. */
function byteFallback(): Files {
  const special = { bos_token: "<s>", eos_token: "</s>", unk_token: "<unk>" };
  const tokens = ["<unk>", "<s>", "</s>"];
  const addedTokens = [...tokens.map((token, id) => added(id, token, true)), added(262, "[INST]", false)];
  tokens.push(...Array.from({ length: 256 }, (_, byte) => byteToken(byte)), "▁", "t", "▁t");
  const tokenizer = {
    added_tokens: addedTokens,
    normalizer: { type: "Sequence", normalizers: [{ type: "Prepend", prepend: "▁" }] },
    pre_tokenizer: null,
    post_processor: template("<s> A", "<s> A <s> B", { "<s>": 1 }),
    decoder: { type: "Sequence", decoders: [{ type: "ByteFallback" }, { type: "Fuse" }] },
    model: {
      ...{ type: "BPE", unk_token: "<unk>", fuse_unk: true, byte_fallback: true },
      ...{ vocab: numbered(tokens), merges: [["▁", "t"]] },
    },
  };
  return tokenizerFiles(tokenizer, { ...special, add_prefix_space: false });
}

const pooling = (config: object): Files => ({
  "modules.json": json([{ idx: 1, name: "1", path: "1_Pooling", type: "sentence_transformers.models.Pooling" }]),
  "1_Pooling/config.json": json(config),
});

/** A byte-level vocabulary as other programs write it. */
function otherByteLevel(): Files {
  const files = changedFiles(byteLevel(QWEN2_SPLIT), (tokenizer, config) => {
    // Special is what the configuration names, too.
    tokenizer.model.vocab[END_OF_TEXT] = 259;
    tokenizer.added_tokens.shift();
    delete config.chat_template;
  });
  const templates = ["default", "rag"].map((name) => ({ name, template: `{{ ${name} }}` }));
  return {
    ...files,
    "chat_template.json": json({ chat_template: templates }),
    ...pooling({ embedding_dimension: HIDDEN, pooling_mode: "lasttoken" }),
  };
}

/** A vocabulary of words whose special tokens are objects. */
function objectWordPiece(): Files {
  const { "tokenizer.json": tokenizer, "tokenizer_config.json": config, ...others } = wordPiece();
  const files = changedFiles({ tokenizer, config } as Files, (_, config) => {
    for (const [name, content] of Object.entries<string>(config)) {
      if (name.endsWith("_token")) config[name] = { __type: "AddedToken", ...added(0, content, true) };
    }
  });
  return { ...files, ...others };
}

function wordPiece(): Files {
  const tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "##s", "a", "b", "##a"];
  const tokenizer = {
    added_tokens: tokens.slice(0, 5).map((token, id) => added(id, token, true)),
    normalizer: {
      ...{ type: "BertNormalizer", clean_text: true, handle_chinese_chars: true },
      ...{ strip_accents: null, lowercase: true },
    },
    pre_tokenizer: { type: "BertPreTokenizer" },
    post_processor: template("[CLS] A [SEP]", "[CLS] A [SEP] B [SEP]", { "[CLS]": 2, "[SEP]": 3 }),
    decoder: { type: "WordPiece", prefix: "##", cleanup: true },
    model: {
      ...{ type: "WordPiece", unk_token: "[UNK]", continuing_subword_prefix: "##" },
      ...{ max_input_chars_per_word: 100, vocab: numbered(tokens) },
    },
  };
  const special = ["unk", "sep", "pad", "cls", "mask"].map((name) => [`${name}_token`, `[${name.toUpperCase()}]`]);
  return {
    ...tokenizerFiles(tokenizer, Object.fromEntries(special)),
    ...pooling({ pooling_mode_cls_token: true, pooling_mode_mean_tokens: false }),
  };
}

const XLM_ROBERTA = ["<s>", "<pad>", "</s>", "<unk>"];

/** A map of characters that SentencePiece has made: A becomes a, and the ligature of f and i both. */
function charactersMap(): Buffer {
  const nodes = Uint32Array.from({ length: 256 }, (_, i) => i ^ 1);
  nodes.set([0x10000, 0xd41, 0x80000000, 0x218ac, 0x581, 0x80000002]);
  nodes[175] = 0xef;
  return Buffer.concat([Buffer.from([0, 4, 0, 0]), Buffer.from(nodes.buffer), Buffer.from("a\0fi\0")]);
}

/** A model of SentencePiece of the kind unigram. */
function unigram(): Buffer {
  const pieces = [piece("<unk>", 0, 2), piece("<s>", 0, 3), piece("</s>", 0, 3)];
  for (const [i, text] of ["▁", "a", "b", "▁a", "▁ab"].entries()) pieces.push(piece(text, -i - 4.5, 1));
  const normalizer = [field(2, charactersMap()), field(3, 1), field(4, 0)];
  return Buffer.concat([...pieces, field(2, field(3, 1)), field(3, Buffer.concat(normalizer))]);
}

/** The same as a `tokenizer.json`, with a token for what is left out. */
function unigramJson(): Files {
  const tokens = [...XLM_ROBERTA, "▁", "a", "b", "▁a", "▁ab", "<mask>", "[user]"];
  const map = charactersMap().toString("base64");
  const tokenizer = {
    added_tokens: [0, 1, 2, 3, 9, 10].map((id) => added(id, tokens[id] as string, id < 10)),
    normalizer: { type: "Precompiled", precompiled_charsmap: map },
    pre_tokenizer: { type: "Metaspace", replacement: "▁", prepend_scheme: "always", split: true },
    post_processor: template("<s> A </s>", "<s> A </s> </s> B </s>", { "<s>": 0, "</s>": 2 }),
    decoder: { type: "Metaspace", replacement: "▁", prepend_scheme: "always", split: true },
    model: { type: "Unigram", unk_id: 3, vocab: tokens.map((token, i) => [token, -i - 0.5]) },
  };
  return tokenizerFiles(tokenizer, {
    ...{ tokenizer_class: "XLMRobertaTokenizer", bos_token: "<s>", eos_token: "</s>", sep_token: "</s>" },
    ...{ cls_token: "<s>", unk_token: "<unk>", pad_token: "<pad>", mask_token: "<mask>" },
  });
}

const BYTES = { F32: 4, F16: 2, BF16: 2 } as const;

const HIDDEN = 64;
const HEADS = 4;
const KEY_HEADS = 2;
const LAYERS = 2;

type Shapes = Record<string, readonly number[]>;

/**
 * `NAME:SHAPE` is a weight, `NAME+:SHAPE` one with a bias, `NAME=SHAPE` another tensor. After `NAME/` are those of each layer, whose
 * names begin with that.
 */
function shapes(text: string, before: Shapes = {}, layers = LAYERS): Shapes {
  const [others = "", at = "", inner = ""] = text.split(/(\S+)\/\s/);
  const tensors: Record<string, readonly number[]> = { ...before };
  const add = (prefix: string, some: string): void => {
    for (const [, name = "", bias, sign, lengths = ""] of some.matchAll(/(\S+?)(\+?)([:=])([\d,]+)/g)) {
      const shape = lengths.split(",").map(Number);
      tensors[prefix + name + (sign === ":" ? ".weight" : "")] = shape;
      if (bias) tensors[`${prefix + name}.bias`] = shape.slice(0, 1);
    }
  };
  add("", others);
  for (let layer = 0; layer < layers; layer++) add(`${at}.${layer}.`, inner);
  return tensors;
}

function decoder(vocabulary: number, head: number, norms: readonly string[], kind = "", layers = LAYERS): Shapes {
  const [q, k, bias] = [HEADS * head, KEY_HEADS * head, kind === "biased" ? "+" : ""];
  const lengths = norms.map((norm) => `${norm}:${norm.startsWith("self_attn") ? head : HIDDEN}`);
  const text = `model.embed_tokens:${vocabulary},64 model.norm:64
    ${kind === "tied" ? "" : `lm_head:${vocabulary},64`} model.layers/ self_attn.q_proj${bias}:${q},64
    self_attn.k_proj${bias}:${k},64 self_attn.v_proj${bias}:${k},64 self_attn.o_proj:64,${q}
    mlp.gate_proj:96,64 mlp.up_proj:96,64 mlp.down_proj:64,96 ${lengths.join(" ")}`;
  return shapes(text, {}, layers);
}

function bert(prefix = "bert.", vocabulary = 12): Shapes {
  const at = `${prefix}embeddings`;
  return shapes(`${at}.position_ids=1,40 ${at}.word_embeddings:${vocabulary},64
    ${at}.position_embeddings:40,64 ${at}.token_type_embeddings:${prefix === "bert." ? 2 : 1},64
    ${at}.LayerNorm.gamma=64 ${at}.LayerNorm.beta=64 ${prefix}pooler.dense+:64,64
    cls.predictions.bias=${vocabulary} ${prefix}encoder.layer/ attention.self.query+:64,64
    attention.self.key+:64,64 attention.self.value+:64,64 attention.output.dense+:64,64
    intermediate.dense+:96,64 output.dense+:64,96 attention.output.LayerNorm+:64 output.LayerNorm+:64`);
}

/** A byte-level vocabulary with merges in a file of their own, and a special token before each text of a pair. */
function mergesInFile(): Files {
  const processor = template(`${END_OF_TEXT} A`, `${END_OF_TEXT} A ${END_OF_TEXT} B`, { [END_OF_TEXT]: 259 });
  const files = changedFiles(byteLevel(QWEN2_SPLIT, processor), (tokenizer, config) => {
    delete tokenizer.model.merges;
    delete config.add_bos_token;
  });
  return { ...files, "merges.txt": "#version: 0.2\nt h\nĠ t\n\nĠt h\n" };
}

/** A byte-level vocabulary with the tokens of RoBERTa. */
function robertaFiles(): Files {
  const processor = { type: "RobertaProcessing", sep: ["</s>", 262], cls: ["<s>", 261] };
  return changedFiles(byteLevel({ ...BYTE_LEVEL, use_regex: true }, processor), (tokenizer, config) => {
    const special = ["<s>", "</s>", "<pad>", "<mask>"];
    tokenizer.added_tokens.push(...special.map((token, i) => added(261 + i, token, true)));
    Object.assign(config, { bos_token: "<s>", eos_token: "</s>", pad_token: "<pad>", mask_token: "<mask>" });
    delete config.chat_template;
  });
}

function modernBert(prefix: string): Shapes {
  const tensors = shapes(`${prefix}embeddings.tok_embeddings:264,64 ${prefix}embeddings.norm:64
    ${prefix}final_norm:64 ${prefix}layers/ attn.Wqkv:192,64 attn.Wo:64,64 mlp.Wi:192,64 mlp.Wo:64,96
    attn_norm:64 mlp_norm:64`);
  const first = `${prefix}layers.0.attn_norm.weight`;
  return Object.fromEntries(Object.entries(tensors).filter(([name]) => name !== first));
}

const NORMS = ["input_layernorm", "post_attention_layernorm"];
const QWEN3_NORMS = [...NORMS, "self_attn.q_norm", "self_attn.k_norm"];
const GEMMA_NORMS = [...QWEN3_NORMS, "pre_feedforward_layernorm", "post_feedforward_layernorm"];

/** `NAME=VALUE`, a value being JSON without spaces. */
const settings = (text: string): Record<string, unknown> =>
  Object.fromEntries(Array.from(text.matchAll(/(\w+)=(\S+)/g), ([, name, value = ""]) => [name, JSON.parse(value)]));

/** The configuration of a decoder: its architecture, the size of its vocabulary, and settings. */
function causal(text: string): Record<string, unknown> {
  const [name = "", vocabulary] = text.split(" ");
  return {
    architectures: [`${name}ForCausalLM`],
    model_type: name === "Gemma3" ? "gemma3_text" : name.replace("Moe", "_moe").toLowerCase(),
    ...{ hidden_size: HIDDEN, intermediate_size: 96, num_hidden_layers: LAYERS },
    ...{ num_attention_heads: HEADS, num_key_value_heads: KEY_HEADS, rms_norm_eps: 1e-5 },
    ...{ vocab_size: Number(vocabulary), max_position_embeddings: 512, ...settings(text) },
  };
}

const QWEN2_SPLIT = {
  type: "Sequence",
  pretokenizers: [
    {
      type: "Split",
      pattern: {
        Regex:
          "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
      },
      ...{ behavior: "Isolated", invert: false },
    },
    BYTE_LEVEL,
  ],
};
const SMOLLM_SPLIT = {
  type: "Sequence",
  pretokenizers: [
    { type: "Digits", individual_digits: true },
    { ...BYTE_LEVEL, trim_offsets: true, use_regex: true },
  ],
};

/** Names as they are in a model without a head. */
const headless = (tensors: Shapes): Shapes =>
  Object.fromEntries(Object.entries(tensors).map(([name, shape]) => [name.replace(/^model\./, ""), shape]));

/** A module with a matrix. */
const dense = (folder: string, from: number, to: number): Record<string, string | Uint8Array> => ({
  [`${folder}/config.json`]: json({
    ...{ in_features: from, out_features: to, bias: false },
    activation_function: "torch.nn.modules.linear.Identity",
  }),
  [`${folder}/model.safetensors`]: safetensorsOf({
    "linear.weight": { dtype: "F32", shape: [to, from], bytes: weights(new Random(from), "F32", from * to) },
  }),
});

/** A decoder without some of the tensors in layers, with others in their place. */
function replaced(tensors: Shapes, left: RegExp, inner: string): Shapes {
  const kept = Object.entries(tensors).filter(([name]) => !left.test(name));
  return shapes(`model.layers/ ${inner}`, Object.fromEntries(kept));
}

/** Experts in place of the feed-forward network, and what chooses among them. */
function sparse(tensors: Shapes, at: string, [up, down, gate]: readonly string[], more = ""): Shapes {
  const experts = [0, 1, 2].map((i) => `${at}.experts.${i}.`);
  const inner = experts.map((each) => `${each}${up}:96,64 ${each}${gate}:96,64 ${each}${down}:64,96`);
  return replaced(tensors, /\.mlp\./, `${at}.gate:3,64 ${inner.join(" ")} ${more}`);
}
const PROJECTIONS = ["up_proj", "down_proj", "gate_proj"];

/** A model card. */
const card = (yaml: string): string => `---${yaml.replaceAll(/^ {8}/gm, "")}\n---\n# A model\n`;

const SMOLLM = { files: byteLevel(SMOLLM_SPLIT), wordRule: "smollm" };
const GPT2_SPLIT = { ...BYTE_LEVEL, use_regex: true };
const BOS_EOS = { tokenizer_class: "LlamaTokenizer", bos_token: "<s>", eos_token: "</s>" };
const PIECES = { "tokenizer.model": sentencePiece() };
const MEAN_POOLING = pooling({ pooling_mode_cls_token: false, pooling_mode_mean_tokens: true });
/** A configuration with tokens that are not special, numbered from `first` on. */
const addedTokens = (first: number, ...tokens: readonly string[]): string => {
  const added = tokens.map((content, i) => [first + i, { content, special: false }]);
  return json({ ...BOS_EOS, added_tokens_decoder: Object.fromEntries(added) });
};
const GEMMA_FILES = {
  ...PIECES,
  "tokenizer_config.json": json({ ...BOS_EOS, add_bos_token: true }),
};
const IDS = { bos_token_id: 259, eos_token_id: 259 };

/** A checkpoint of matrices of BF16, with a byte-level vocabulary, where nothing else is said. */
const checkpoint = (
  name: string,
  config: CheckpointCase["config"],
  tensors: Shapes,
  more: Partial<CheckpointCase> = {},
): CheckpointCase => ({
  ...{ name, config, dtype: "BF16", tensors, types: ["auto"], files: byteLevel(QWEN2_SPLIT) },
  wordRule: more.files ? undefined : "qwen2",
  ...more,
});

/** One of the size of a small BERT, with a vocabulary of words. `text`: its architecture, and settings. */
const encoder = (name: string, text: string, more: Partial<CheckpointCase> = {}): CheckpointCase => ({
  ...{ name, dtype: "F32", tensors: bert(), files: wordPiece(), types: ["f16"] },
  config: {
    ...{ architectures: text.split(" ", 1), model_type: "bert", hidden_size: HIDDEN, intermediate_size: 96 },
    ...{ num_hidden_layers: LAYERS, num_attention_heads: HEADS, vocab_size: 12 },
    ...{ max_position_embeddings: 40, ...settings(text) },
  },
  wordRule: more.files && "tokenizer.json" in more.files ? undefined : "jina-v2-en",
  ...more,
});
const nomic = (text: string, isMixed: boolean): string =>
  `NomicBertModel model_type="nomic_bert" max_trained_positions=2048 n_embd=64 n_head=4 n_layer=2 n_inner=96
  layer_norm_epsilon=1e-12 qkv_proj_bias=${isMixed} mlp_fc1_bias=${isMixed} mlp_fc2_bias=${isMixed}
  rotary_emb_base=1000 rotary_emb_fraction=1 rotary_emb_interleaved=false rotary_emb_scale_base=null
  causal=false prenorm=false ${text}
  ${isMixed ? 'activation_function="gelu" n_positions=2048 num_experts=3 moe_every_n_layers=2 moe_top_k=2 pad_token_id=1' : 'activation_function="swiglu" pad_token_id=0'}`;
const XLM_ROBERTA_CONFIG = 'model_type="xlm-roberta" vocab_size=16 type_vocab_size=1 pad_token_id=1';

export const CHECKPOINTS: readonly CheckpointCase[] = [
  {
    name: "Tiny-Llama-3.1-80K-Instruct",
    config: causal(`Llama 270 rope_theta=500000 bos_token_id=1 eos_token_id=[2,3] tie_word_embeddings=false
      rope_scaling={"rope_type":"llama3","factor":32,"low_freq_factor":1,"high_freq_factor":4,"original_max_position_embeddings":256}`),
    dtype: "BF16",
    tensors: decoder(270, 16, NORMS),
    files: {
      "tokenizer.model": sentencePiece(),
      "added_tokens.json": json({ "<extra>": 263 }),
      "tokenizer_config.json": json({
        ...{ bos_token: { content: "<s>" }, eos_token: "</s>", add_bos_token: true, add_eos_token: false },
        added_tokens_decoder: {
          "1": { content: "<s>", special: true },
          "264": { content: "<|user|>", special: false },
          "265": { content: "▁two▁words", special: false },
        },
        chat_template: [
          { name: "default", template: "{{ messages }}" },
          { name: "tool use", template: "{{ tools }}" },
        ],
      }),
      "generation_config.json": json({ temperature: 0.6, top_p: 0.9, top_k: 40, repetition_penalty: 1.1 }),
      "README.md": card(`
        license: llama3.1
        license_name: A licence
        license_link: https://example.com/LICENSE
        language:
        - en
        - no
        - "de"
        tags: [facebook, meta, 'a, b']
        pipeline_tag: text-generation
        author:
        model_creator: Somebody
        base_model: meta-llama/Llama-3.1-8B
        datasets:
        - HuggingFaceTB/smol-talk-v2
        - https://huggingface.co/datasets-of/Some_Data
        - https://example.com/data
        - plain
        model-index:
        - name: Tiny
          results: [{task: {type: text-generation}, metrics: [{type: accuracy, value: 31.5}]}]
        description: >-
          Two lines
          that are one.`),
    },
    types: ["f32", "f16", "bf16", "q8_0"],
  },
  {
    name: "mistral-v0.3",
    config: causal(`Mistral 263 head_dim=32 rope_theta=1000000 sliding_window=null
      _name_or_path="some-owner/Tiny-Mistral-v0.3"`),
    dtype: "F16",
    tensors: decoder(263, 32, NORMS),
    files: {
      ...byteFallback(),
      "README.md": card(`
        name: Another name
        version: v7
        license: [mit, apache-2.0]
        url: https://example.com/model
        doi: 10.1/2
        base_models:
        \t- ssh://example.com/a.git
        \t- name: By hand
        \t  organization: Some people
        \t  doi: 10.3/4
        dataset:
        tags: one
        language: en`),
    },
    types: ["auto", "f32", "q8_0"],
  },
  checkpoint(
    "tiny smollm",
    causal(`Llama 264 tie_word_embeddings=true rope_parameters={"rope_theta":100000,"rope_type":"default"}
      bos_token_id=1 eos_token_id=259`),
    decoder(264, 16, NORMS, "tied"),
    { ...SMOLLM, dtype: "F32", types: ["auto", "bf16"] },
  ),
  checkpoint(
    "Qwen2-tiny",
    causal(`Qwen2 272 rope_theta=1000000 eos_token_id=259
      rope_scaling={"type":"yarn","factor":4,"original_max_position_embeddings":128}`),
    decoder(272, 16, NORMS, "biased"),
    { dtype: "F32", shards: 3, types: ["auto", "q8_0"] },
  ),
  checkpoint("qwen2-plain", causal("Qwen2 264 rope_theta=1000000"), decoder(264, 16, NORMS, "biased")),
  checkpoint(
    "qwen2-embedding",
    causal(`Qwen2 272 architectures=["Qwen2Model"] rope_theta=1000000 is_causal=false
      rope_scaling={"type":"yarn","factor":4,"attn_factor":0.75}`),
    headless(decoder(272, 16, NORMS, "tied")),
    { files: otherByteLevel(), wordRule: "qwen2" },
  ),
  checkpoint(
    "code-llama",
    causal(
      `Llama 32016 rope_scaling={"rope_type":"longrope","factor":4,"original_max_position_embeddings":128,"short_factor":[1,1,1,1,1,1,1,1],"long_factor":[2,2,2,2,2,2,2,2]}`,
    ),
    decoder(8, 16, NORMS),
    { files: byteFallback() },
  ),
  checkpoint(
    "qwen3",
    causal(`Qwen3 261 head_dim=32 rope_theta=1000000 tie_word_embeddings=true`),
    decoder(261, 32, QWEN3_NORMS, "tied"),
    { types: ["auto", "f16"] },
  ),
  checkpoint(
    "gemma-3-tiny-it",
    causal(`Gemma3 263 head_dim=32 rope_theta=1000000 rope_local_base_freq=10000 sliding_window=128
      final_logit_softcapping=null bos_token_id=1 eos_token_id=2 pad_token_id=0`),
    // More rows than tokens.
    decoder(280, 32, GEMMA_NORMS, "tied"),
    { files: GEMMA_FILES, types: ["auto", "f16", "q8_0"] },
  ),
  checkpoint(
    "gemma-3-full",
    causal(`Gemma3 266 head_dim=10 rope_theta=1000000 sliding_window=128 sliding_window_pattern=1
      final_logit_softcapping=30.5`),
    // Rows of 40, which are no whole blocks.
    decoder(266, 10, GEMMA_NORMS, "tied"),
    {
      ...{ dtype: "F16", types: ["auto", "q8_0"] },
      files: { ...PIECES, "tokenizer_config.json": addedTokens(263, "<unused7>", "<pad>", "<used>") },
    },
  ),
  checkpoint(
    "qwen2-merges",
    causal(`Qwen2 261 rope_theta=1000000
      rope_scaling={"type":"yarn","factor":4,"attention_factor":0.5,"beta_fast":16,"beta_slow":2}`),
    shapes("model.norm:64"),
    { files: mergesInFile(), wordRule: "qwen2" },
  ),
  encoder("bert", `BertForMaskedLM`, { types: ["f16", "q8_0"] }),
  encoder("bge-tiny-en-v1.5", `BertModel id2label={"0":"LABEL_0"}`),
  encoder("two-labels", `BertModel id2label={"0":"LABEL_0","1":"LABEL_1"}`, {
    files: objectWordPiece(),
    wordRule: "jina-v2-en",
  }),
  encoder("bert-reranker", `BertForSequenceClassification id2label={"0":"LABEL_0"}`, {
    tensors: { ...bert(), ...shapes("classifier+:1,64") },
  }),
  encoder("multilingual-e5-tiny", `XLMRobertaModel ${XLM_ROBERTA_CONFIG}`, {
    ...{ dtype: "F16", tensors: bert("", 16), types: ["auto", "q8_0"] },
    files: { "sentencepiece.bpe.model": unigram(), ...unigramJson(), ...MEAN_POOLING },
  }),
  encoder("bge-reranker-tiny", `XLMRobertaForSequenceClassification ${XLM_ROBERTA_CONFIG} id2label={"0":"LABEL_0"}`, {
    ...{ dtype: "F16", files: unigramJson(), types: ["auto"] },
    tensors: {
      ...bert("roberta.", 16),
      ...shapes("classifier.dense+:64,64 classifier.out_proj+:1,64"),
    },
  }),
  encoder("roberta", `RobertaModel model_type="roberta" vocab_size=266 type_vocab_size=1 pad_token_id=3`, {
    tensors: bert("roberta.", 266),
    files: robertaFiles(),
    wordRule: "roberta-bpe",
    types: ["auto"],
  }),
  encoder("nomic-embed-text-tiny", nomic(`n_positions=8192 max_position_embeddings=2048`, false), {
    tensors: shapes(`embeddings.word_embeddings:12,64 embeddings.token_type_embeddings:2,64 emb_ln+:64
      encoder.layers/ attn.Wqkv:192,64 attn.out_proj:64,64 mlp.fc11:96,64 mlp.fc12:96,64 mlp.fc2:64,96 norm1+:64
      norm2+:64`),
    types: ["f16", "q8_0"],
  }),
  encoder("nomic-embed-text-moe-tiny", nomic(`max_position_embeddings=514 vocab_size=16 type_vocab_size=1`, true), {
    tensors: shapes(`embeddings.word_embeddings:16,64 embeddings.token_type_embeddings:1,64 emb_ln+:64
      encoder.layers.0.mlp.fc1+:96,64 encoder.layers.0.mlp.fc2+:64,96
      encoder.layers.1.mlp.router.layer:3,64 encoder.layers.1.mlp.experts.bias=64
      encoder.layers.1.mlp.experts.mlp.w1=288,64 encoder.layers.1.mlp.experts.mlp.w2=288,64
      encoder.layers/ attn.Wqkv+:192,64 attn.out_proj+:64,64 norm1+:64 norm2+:64`),
    files: { ...unigramJson(), ...MEAN_POOLING },
    types: ["f16", "q8_0"],
  }),
  encoder("nomic-mask", nomic("vocab_size=250048", true), {
    tensors: shapes("emb_ln+:64"),
    files: { ...unigramJson(), "sentencepiece.bpe.model": unigram() },
  }),
  encoder(
    "modern-bert",
    `ModernBertModel bos_token_id=259 eos_token_id=259 model_type="modernbert" vocab_size=264
      pad_token_id=0 cls_token_id=259 local_attention=16 global_attn_every_n_layers=3
      global_rope_theta=160000 local_rope_theta=10000 norm_eps=1e-05 layer_norm_eps=1e-05 sep_token_id=259`,
    {
      ...{ dtype: "BF16", tensors: modernBert(""), types: ["auto"], wordRule: "modern-bert" },
      files: { ...byteLevel(GPT2_SPLIT), ...MEAN_POOLING },
    },
  ),
  encoder(
    "modern-bert-reranker",
    `ModernBertForSequenceClassification bos_token_id=259 eos_token_id=259 model_type="modernbert"
      vocab_size=264 pad_token_id=0 cls_token_id=259 sep_token_id=259 id2label={"0":"LABEL_0"}
      classifier_pooling="mean" layer_norm_eps=1e-05`,
    {
      tensors: { ...modernBert("model."), ...shapes("head.dense:64,64 head.norm:64 classifier+:1,64") },
      ...{ files: byteLevel(GPT2_SPLIT), wordRule: "modern-bert", types: ["auto"] },
    },
  ),
  checkpoint(
    "embedding-gemma-tiny",
    causal(`Gemma3 263 architectures=["Gemma3TextModel"] head_dim=32 use_bidirectional_attention=true
      sliding_window=16 bos_token_id=1 eos_token_id=2 pad_token_id=0 num_hidden_layers=6
      query_pre_attn_scalar=32`),
    // So many that one sees everything: llama.cpp runs no other.
    headless(decoder(263, 32, GEMMA_NORMS, "tied", 6)),
    {
      ...{ dtype: "F32", types: ["auto", "bf16"] },
      files: {
        ...{
          ...GEMMA_FILES,
          ...MEAN_POOLING,
          ...dense("2_Dense", HIDDEN, 128),
          ...dense("3_Dense", 128, HIDDEN),
        },
        "modules.json": json([
          { type: "sentence_transformers.models.Pooling", path: "1_Pooling" },
          ...["2_Dense", "3_Dense"].map((path) => ({ type: "sentence_transformers.models.Dense", path })),
        ]),
      },
    },
  ),
  checkpoint(
    "llama-headless",
    causal(`Llama 263 architectures=["LlamaModel"] rope_theta=10000`),
    headless(decoder(263, 16, NORMS, "tied")),
    { files: PIECES },
  ),
  checkpoint(
    "Mixtral-8x7B-tiny",
    causal(`Mixtral 263 rope_theta=1000000 num_local_experts=3 num_experts_per_tok=2`),
    sparse(decoder(263, 16, NORMS), "block_sparse_moe", ["w3", "w2", "w1"]),
    { files: PIECES, shards: 2, types: ["auto", "q8_0"] },
  ),
  checkpoint(
    "qwen2moe",
    causal(`Qwen2Moe 264 num_experts=3 num_experts_per_tok=2 moe_intermediate_size=96 rope_theta=1000000
      shared_expert_intermediate_size=32`),
    sparse(
      ...([decoder(264, 16, NORMS, "biased"), "mlp", PROJECTIONS] as const),
      `mlp.shared_expert.gate_proj:32,64 mlp.shared_expert.up_proj:32,64
      mlp.shared_expert.down_proj:64,32 mlp.shared_expert_gate:1,64`,
    ),
  ),
  checkpoint(
    "qwen3moe",
    causal(`Qwen3Moe 264 num_experts=3 num_experts_per_tok=2 moe_intermediate_size=96 rope_theta=1000000
      head_dim=32`),
    sparse(decoder(264, 32, QWEN3_NORMS), "mlp", PROJECTIONS),
    { dtype: "F32", types: ["f16"] },
  ),
  checkpoint(
    "qwen3moe-fused",
    causal(`Qwen3Moe 264 num_local_experts=3 num_experts_per_tok=2 moe_intermediate_size=48 rope_theta=1000000
      head_dim=32`),
    replaced(
      decoder(264, 32, QWEN3_NORMS),
      /\.mlp\./,
      "mlp.gate:3,64 mlp.experts.gate_up_proj=3,96,64 mlp.experts.down_proj=3,64,48",
    ),
    { shards: 2, types: ["auto", "q8_0"] },
  ),
  checkpoint(
    "phi-3",
    causal(`Phi3 270 original_max_position_embeddings=128 sliding_window=64 bos_token_id=1 eos_token_id=2
      pad_token_id=2
      rope_scaling={"type":"longrope","short_factor":[1.5,1.5,1.5,1.5,1.5,1.5,1.5,1.5],"long_factor":[2.25,2.25,2.25,2.25,2.25,2.25,2.25,2.25]}`),
    replaced(decoder(270, 16, NORMS), /\.(q|k|v|gate|up)_proj\./, "self_attn.qkv_proj:128,64 mlp.gate_up_proj:192,64"),
    {
      files: {
        ...{ ...byteFallback(), ...PIECES },
        "tokenizer_config.json": addedTokens(264, "<|user|>", "▁x"),
      },
    },
  ),
  checkpoint(
    "phi-4",
    causal(`Phi3 264 bos_token_id=259 eos_token_id=259 partial_rotary_factor=0.75 pad_token_id=259`),
    shapes("model.norm:64"),
    {
      files: changedFiles(byteLevel(QWEN2_SPLIT), (_, config) => {
        config.tokenizer_class = "GPT2Tokenizer";
      }),
      wordRule: "qwen2",
    },
  ),
  checkpoint(
    "gemma-2",
    causal(`Gemma2 263 head_dim=32 sliding_window=128 pad_token_id=0`),
    decoder(
      263,
      32,
      GEMMA_NORMS.filter((each) => !each.startsWith("self")),
    ),
    { files: PIECES },
  ),
  ...[
    ["olmo2", "Olmo2", "rope_theta=500000"],
    ["olmo3", "Olmo3", "num_hidden_layers=5 sliding_window=4 rope_theta=10000"],
    [
      ...["olmo3-yarn", "Olmo3"],
      `layer_types=["full_attention","sliding_attention"]
      rope_scaling={"rope_type":"yarn","factor":4,"original_max_position_embeddings":128}`,
    ],
  ].map(([name = "", kind, text = ""]) => {
    const config = causal(`${kind} 264 bos_token_id=259 eos_token_id=259 pad_token_id=259 ${text}`);
    const layers = Number(config.num_hidden_layers);
    const norms = ["post_attention_layernorm", "post_feedforward_layernorm"];
    const inner = "self_attn.q_norm:64 self_attn.k_norm:32";
    const tensors = shapes(`model.layers/ ${inner}`, decoder(264, 16, norms, "", layers), layers);
    return checkpoint(name, config, tensors, { dtype: "F32" });
  }),
  checkpoint(
    "granite",
    causal(`Granite 264 bos_token_id=259 eos_token_id=259 attention_multiplier=0.0625 embedding_multiplier=12
      residual_multiplier=0.22 logits_scaling=8`),
    decoder(264, 16, NORMS, "tied"),
    SMOLLM,
  ),
  checkpoint(
    "starcoder2",
    causal(`Starcoder2 264 bos_token_id=259 eos_token_id=259 norm_epsilon=1e-05 rms_norm_eps=null`),
    replaced(
      { ...decoder(264, 16, NORMS, "biased"), "model.norm.bias": [64] },
      /\.mlp\./,
      `mlp.c_fc+:96,64 mlp.c_proj+:64,96 self_attn.o_proj.bias=64 input_layernorm.bias=64
      post_attention_layernorm.bias=64`,
    ),
    { ...SMOLLM, dtype: "F32" },
  ),
  checkpoint(
    "gpt2",
    {
      ...{ ...IDS, architectures: ["GPT2LMHeadModel"], model_type: "gpt2", n_ctx: 40, n_positions: 40 },
      ...{ n_embd: HIDDEN, n_head: HEADS, n_layer: LAYERS, vocab_size: 264, layer_norm_epsilon: 1e-5 },
    },
    shapes(`transformer.wte:264,64 transformer.wpe:40,64 transformer.ln_f+:64 transformer.h/ ln_1+:64 ln_2+:64 attn.c_attn:64,192 attn.c_attn.bias=192 attn.c_proj+:64,64
      mlp.c_fc:64,256 mlp.c_fc.bias=256 mlp.c_proj:256,64 mlp.c_proj.bias=64`),
    { dtype: "F32", files: byteLevel(GPT2_SPLIT), wordRule: "gpt-2", types: ["auto", "q8_0"] },
  ),
];

/** Numbers of all sizes that weights have. */
function weights(random: Random, dtype: CheckpointCase["dtype"], count: number): Uint8Array {
  const bytes = Buffer.alloc(count * BYTES[dtype]);
  for (let i = 0; i < count; i++) {
    const sign = random.unit() < 0.5 ? 0x8000 : 0;
    const mantissa = Math.floor(random.unit() * 65536);
    if (dtype === "F16") bytes.writeUInt16LE(sign | ((9 + (mantissa & 3)) << 10) | (mantissa >> 6), 2 * i);
    else {
      const high = sign | ((120 + (mantissa & 3)) << 7) | (mantissa >> 9);
      if (dtype === "BF16") bytes.writeUInt16LE(high, 2 * i);
      else bytes.writeUInt32LE(high * 65536 + Math.floor(random.unit() * 65536), 4 * i);
    }
  }
  return bytes;
}

/** Writes a checkpoint into a folder of its name; returns that. */
export function writeCheckpoint(
  folder: string,
  { name, config, dtype, tensors, files, shards = 1 }: CheckpointCase,
): string {
  const place = join(folder, name);
  mkdirSync(join(place, "1_Pooling"), { recursive: true });
  writeFileSync(join(place, "config.json"), json(config));
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(dirname(join(place, file)), { recursive: true });
    writeFileSync(join(place, file), content);
  }
  const random = new Random(1);
  const all = Object.entries(tensors).map(([name, shape]) => {
    const count = shape.reduce((product, dim) => product * dim, 1);
    return [name, { dtype, shape, bytes: weights(random, dtype, count) }] as const;
  });
  const map: Record<string, string> = {};
  for (let shard = 0; shard < shards; shard++) {
    const own = all.filter((_, i) => i % shards === shard);
    const number = (n: number): string => String(n).padStart(5, "0");
    const file = shards === 1 ? "model.safetensors" : `model-${number(shard + 1)}-of-${number(shards)}.safetensors`;
    for (const [name] of own) map[name] = file;
    writeFileSync(join(place, file), safetensorsOf(Object.fromEntries(own), { format: "pt" }));
  }
  if (shards > 1) {
    writeFileSync(join(place, "model.safetensors.index.json"), json({ metadata: {}, weight_map: map }));
  }
  return place;
}
