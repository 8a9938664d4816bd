/** Models of which only names, shapes and metadata matter: what the mixes of llama.cpp choose types by. */
import { type GgmlType, GgufWriter, ggmlTypes } from "gguf-native";

/** A tensor of F16, or of another type. */
export type MixTensor = readonly [name: string, shape: readonly number[], type?: GgmlType];

export interface MixModel {
  readonly architecture: string;
  /** Keys of the architecture. */
  readonly metadata: Readonly<Record<string, number | number[] | boolean>>;
  readonly tensors: readonly MixTensor[];
}

interface Shape {
  layers: number;
  heads: number;
  keyHeads: number | number[];
  columns?: number;
  feedForward?: number;
  experts?: number;
  isTied?: boolean;
  more?: MixModel["metadata"];
  /** The matrices of a layer, in place of those of a llama. */
  perLayer?: (prefix: string, columns: number) => MixTensor[];
  others?: MixTensor[];
}

function model(architecture: string, shape: Shape): MixModel {
  const { layers, heads, keyHeads, columns = 256, feedForward = 512, experts } = shape;
  const perLayer = shape.perLayer ?? ((prefix) => llamaLayer(prefix, columns, feedForward, experts));
  const tensors: MixTensor[] = [["token_embd.weight", [columns, 4]]];
  for (let i = 0; i < layers; i++) tensors.push(...perLayer(`blk.${i}.`, columns));
  tensors.push(...(shape.others ?? []), ["output_norm.weight", [columns], "F32"]);
  if (!shape.isTied) tensors.push(["output.weight", [columns, 4]]);
  return {
    architecture,
    metadata: {
      ...{ context_length: 64, embedding_length: columns },
      ...{ block_count: layers, feed_forward_length: feedForward },
      ...{ "attention.head_count": heads, "attention.head_count_kv": keyHeads },
      ...(experts === undefined ? {} : { expert_count: experts, expert_used_count: 2 }),
      ...shape.more,
    },
    tensors,
  };
}

function llamaLayer(prefix: string, columns: number, feedForward: number, experts?: number): MixTensor[] {
  const ffn = (name: string, shape: [number, number]): MixTensor =>
    experts === undefined
      ? [`${prefix}ffn_${name}.weight`, shape]
      : [`${prefix}ffn_${name}_exps.weight`, [...shape, experts]];
  return [
    [`${prefix}attn_norm.weight`, [columns], "F32"],
    ...["q", "k", "v", "output"].map((name): MixTensor => [`${prefix}attn_${name}.weight`, [columns, 2]]),
    ...(experts === undefined ? [] : [[`${prefix}ffn_gate_inp.weight`, [columns, experts]] as const]),
    ...[ffn("gate", [columns, 2]), ffn("up", [columns, 2]), ffn("down", [feedForward, 2])],
  ];
}

const rms = { "attention.layer_norm_rms_epsilon": 1e-5 };
const norm = { "attention.layer_norm_epsilon": 1e-5 };
const named = (prefix: string, columns: number, names: string): MixTensor[] =>
  names.split(" ").map((name) => [`${prefix}${name}.weight`, [columns, 2]]);

const joinedLayer = (prefix: string, columns: number): MixTensor[] =>
  named(prefix, columns, "attn_qkv attn_output ffn_up ffn_down");

/** By what they are called here. */
export const mixModels: Readonly<Record<string, MixModel>> = {
  "llama, 1 layer, tied": model("llama", { layers: 1, heads: 1, keyHeads: 1, isTied: true, more: rms }),
  "llama, 7 layers": model("llama", { layers: 7, heads: 4, keyHeads: 2, more: rms }),
  "llama, 32 layers": model("llama", { layers: 32, heads: 8, keyHeads: 8, more: rms }),
  "llama, 40 layers, 4 heads share": model("llama", { layers: 40, heads: 8, keyHeads: 2, more: rms }),
  "llama, 80 layers, 8 heads share": model("llama", { layers: 80, heads: 8, keyHeads: 1, more: rms }),
  "llama, 80 layers, own heads": model("llama", { layers: 80, heads: 8, keyHeads: 8, more: rms }),
  "llama, 8 experts": model("llama", { layers: 32, heads: 8, keyHeads: 2, experts: 8, more: rms }),
  "llama, 8 experts, tensors of their own": model("llama", {
    ...{ layers: 12, heads: 8, keyHeads: 8, experts: 8, more: rms },
    perLayer: (prefix, columns) => [
      ...named(prefix, columns, "attn_q attn_k attn_v attn_output ffn_gate_inp"),
      ...[0, 1, 2].flatMap((i) => named(prefix, columns, `ffn_gate.${i} ffn_up.${i} ffn_down.${i}`)),
    ],
  }),
  "llama, 4 experts, tied": model("llama", {
    ...{ layers: 9, heads: 4, keyHeads: 4, experts: 4, isTied: true, more: rms },
  }),
  "qwen2, odd rows, tied": model("qwen2", {
    ...{ layers: 24, heads: 14, keyHeads: 2, columns: 896, feedForward: 4864, isTied: true, more: rms },
  }),
  "qwen2, 80 layers": model("qwen2", { layers: 80, heads: 64, keyHeads: 8, more: rms }),
  "qwen2, rows of 96": model("qwen2", {
    ...{ layers: 5, heads: 3, keyHeads: 1, columns: 96, feedForward: 320, more: rms },
  }),
  "qwen3moe, 128 experts": model("qwen3moe", {
    ...{ layers: 10, heads: 8, keyHeads: 1, experts: 128 },
    more: { ...rms, expert_feed_forward_length: 512 },
  }),
  "gemma2, tied": model("gemma2", {
    ...{ layers: 26, heads: 8, keyHeads: 4, isTied: true },
    more: { ...rms, "attention.sliding_window": 4096 },
  }),
  "gemma3, heads by layer": model("gemma3", {
    ...{ layers: 4, heads: 8, keyHeads: [2, 1, 4, 8], isTied: true },
    more: { ...rms, "attention.sliding_window": 512 },
  }),
  "falcon, 32 layers": model("falcon", {
    ...{ layers: 32, heads: 8, keyHeads: 1, more: norm },
    perLayer: joinedLayer,
  }),
  "falcon, tied": model("falcon", {
    ...{ layers: 20, heads: 4, keyHeads: 4, isTied: true, more: norm },
    perLayer: joinedLayer,
  }),
  phi3: model("phi3", {
    ...{ layers: 16, heads: 8, keyHeads: 2, more: rms },
    perLayer: joinedLayer,
  }),
  bert: model("bert", {
    ...{ layers: 6, heads: 8, keyHeads: 8, columns: 384, isTied: true },
    more: { ...norm, "attention.causal": false },
    others: [
      ["position_embd.weight", [384, 8]],
      ["token_types.weight", [384, 2]],
      ["token_embd_norm.weight", [384], "F32"],
    ],
  }),
  "deepseek2, experts and latent attention": model("deepseek2", {
    ...{ layers: 6, heads: 8, keyHeads: 1, experts: 16 },
    more: {
      ...rms,
      ...{ "attention.kv_lora_rank": 256, "attention.q_lora_rank": 256, leading_dense_block_count: 1 },
      ...{ "attention.key_length": 288, "attention.value_length": 256, expert_feed_forward_length: 256 },
      ...{ "attention.key_length_mla": 96, "attention.value_length_mla": 64, "rope.dimension_count": 32 },
      ...{ expert_shared_count: 1, expert_weights_scale: 1, vocab_size: 4 },
    },
    perLayer: (prefix, columns) => [
      ...named(prefix, columns, "attn_q_a attn_q_b attn_kv_a_mqa attn_kv_b attn_output"),
      [`${prefix}attn_k_b.weight`, [64, 256, 8]],
      [`${prefix}attn_v_b.weight`, [256, 64, 8]],
      [`${prefix}ffn_gate_inp.weight`, [columns, 16]],
      ...["gate", "up", "down"].flatMap((name): MixTensor[] => [
        [`${prefix}ffn_${name}_exps.weight`, [columns, 2, 16]],
        [`${prefix}ffn_${name}_shexp.weight`, [columns, 2]],
      ]),
    ],
  }),
  "bailingmoe3, attention in three dimensions": model("bailingmoe3", {
    ...{ layers: 4, heads: 8, keyHeads: 8, experts: 16 },
    more: {
      ...rms,
      ...{ "attention.kv_lora_rank": 256, "attention.key_length_mla": 96, "attention.value_length_mla": 64 },
      ...{ "ssm.conv_kernel": 4, "kda.head_dim": 32, "kda.gate_lower_bound": -5 },
      ...{
        expert_feed_forward_length: 256,
        expert_shared_count: 1,
        leading_dense_block_count: 1,
        expert_gating_func: 2,
      },
    },
    perLayer: (prefix, columns) => [
      ...named(prefix, columns, "attn_kv_a_mqa attn_kv_b attn_output"),
      [`${prefix}attn_k_b.weight`, [64, 256, 8]],
      ...["gate", "up", "down"].map((name): MixTensor => [`${prefix}ffn_${name}_exps.weight`, [columns, 2, 16]]),
    ],
  }),
  "llama with names of everything": model("llama", {
    ...{ layers: 2, heads: 8, keyHeads: 4, more: rms },
    others: [
      ...named("blk.0.", 256, "attn_rel_b ssm_conv1d shortconv.conv indexer.k_proj indexer.q_proj"),
      ...named("blk.0.", 256, "altup_router laurel_l ssm_in time_mix_w1 time_mix_key per_layer_proj"),
      ...named("blk.1.", 256, "time_mix_first time_mix_a0 time_mix_a2 time_mix_g2 time_mix_lerp_fused"),
      ...named("blk.1.", 256, "time_mix_decay_w1 time_mix_decay_w2 time_mix_decay time_mix_v0 time_mix_b1"),
      ...named("blk.1.", 256, "ffn_gate_tid2eid channel_mix_key cross_attn_v attn_q_norm"),
      ...named("", 256, "per_layer_token_embd per_layer_model_proj position_embd v.position_embd mm.0"),
      ...named("", 256, "v.patch_embd mm.patch_merger sam.pos_embd sam.neck.0 sam.net_2 v.rel_pos_w"),
      ...named("", 256, "a.rvq.codebook.0 mm.a.code_embd cls cls.output token_types"),
      ["blk.0.attn_v.bias", [256], "F32"],
      ["blk.0.one_row.weight", [256, 1]],
      ["blk.0.one_in_four.weight", [256, 1, 1, 2]],
      ["blk.0.attn_k.scale", [256, 2]],
      ["blk.0.rows_of_48.weight", [48, 4]],
      ["blk.0.rows_of_64.weight", [64, 4]],
      ["blk.0.rows_of_128.weight", [128, 4]],
      ["blk.10.ffn_down.weight", [256, 4]],
      ["blk.9.ffn_down.weight", [256, 4]],
      ["blk.1.as_q8_0.weight", [256, 2], "Q8_0"],
    ],
  }),
};

/** A writer of the model, with zeros. */
export function mixModelWriter({ architecture, metadata, tensors }: MixModel): GgufWriter {
  const writer = new GgufWriter().set("general.architecture", architecture);
  for (const [key, value] of Object.entries(metadata)) {
    const isFloat = /epsilon|weights_scale|lower_bound/.test(key);
    const type = typeof value === "boolean" ? "bool" : isFloat ? "float32" : "uint32";
    writer.set(`${architecture}.${key}`, value, Array.isArray(value) ? "uint32[]" : type);
  }
  for (const [name, shape, type = "F16"] of tensors) {
    const { blockSize, typeSize } = ggmlTypes[type];
    const count = shape.reduce((product, dim) => product * dim, 1);
    writer.addTensor(name, type, shape, new Uint8Array((count / blockSize) * typeSize));
  }
  return writer;
}
