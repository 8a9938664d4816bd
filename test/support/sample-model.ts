/** A llama in miniature with random weights: several types, as a real model file mixes them. */
import { type GgmlType, ggmlTypes } from "gguf-native/reference";
import { gaussianBlocks } from "./blocks";
import { arr, f32, str, type TensorSpec, type TypedValue, u32, writeGguf } from "./gguf-writer";
import { Random } from "./random";

const EMBEDDING = 512;
const FEED_FORWARD = 1536;
/** Tokens of its vocabulary. */
export const VOCABULARY = 2048;
const LAYERS = 2;

/** `vocabulary` is the metadata of its tokens, and what else a file is to have. */
export function sampleModel(vocabulary = numberedTokens()): Uint8Array {
  const random = new Random(1);
  const tensors: TensorSpec[] = [];
  const add = (name: string, type: GgmlType, ...shape: number[]): void => {
    const count = shape.reduce((product, dim) => product * dim, 1) / ggmlTypes[type].blockSize;
    tensors.push({ name, type: ggmlTypes[type].id, shape, bytes: gaussianBlocks(type, count, random) });
  };
  add("token_embd.weight", "Q6_K", EMBEDDING, VOCABULARY);
  for (let layer = 0; layer < LAYERS; layer++) {
    const [q, k, v, o, gate, up, down] =
      layer === 0
        ? (["Q4_K", "Q4_K", "Q6_K", "Q5_K", "Q3_K", "Q2_K", "Q8_0"] as const)
        : (["Q4_0", "Q4_1", "Q5_0", "Q5_1", "F16", "BF16", "Q8_K"] as const);
    add(`blk.${layer}.attn_norm.weight`, "F32", EMBEDDING);
    add(`blk.${layer}.attn_q.weight`, q, EMBEDDING, EMBEDDING);
    add(`blk.${layer}.attn_k.weight`, k, EMBEDDING, EMBEDDING / 4);
    add(`blk.${layer}.attn_v.weight`, v, EMBEDDING, EMBEDDING / 4);
    add(`blk.${layer}.attn_output.weight`, o, EMBEDDING, EMBEDDING);
    add(`blk.${layer}.ffn_norm.weight`, "F32", EMBEDDING);
    add(`blk.${layer}.ffn_gate.weight`, gate, EMBEDDING, FEED_FORWARD);
    add(`blk.${layer}.ffn_up.weight`, up, EMBEDDING, FEED_FORWARD);
    add(`blk.${layer}.ffn_down.weight`, down, FEED_FORWARD, EMBEDDING);
  }
  add("output_norm.weight", "F32", EMBEDDING);
  return writeGguf({
    metadata: [
      ["general.architecture", str("llama")],
      ["general.name", str("Sample llama, random weights")],
      ["general.quantization_version", u32(2)],
      ["llama.context_length", u32(2048)],
      ["llama.embedding_length", u32(EMBEDDING)],
      ["llama.feed_forward_length", u32(FEED_FORWARD)],
      ["llama.block_count", u32(LAYERS)],
      ["llama.attention.head_count", u32(8)],
      ["llama.attention.head_count_kv", u32(2)],
      ["llama.attention.layer_norm_rms_epsilon", f32(1e-5)],
      ["llama.rope.dimension_count", u32(EMBEDDING / 8)],
      ...vocabulary,
    ],
    tensors,
  });
}

function numberedTokens(): [string, TypedValue][] {
  const tokens = Array.from({ length: VOCABULARY }, (_, i) => (i < 3 ? ["<unk>", "<s>", "</s>"][i]! : `▁token${i}`));
  return [
    ["tokenizer.ggml.model", str("llama")],
    ["tokenizer.ggml.tokens", arr("string", tokens)],
    [
      "tokenizer.ggml.scores",
      arr(
        "float32",
        tokens.map((_, i) => 0 - i),
      ),
    ],
    ["tokenizer.ggml.bos_token_id", u32(1)],
    ["tokenizer.ggml.eos_token_id", u32(2)],
  ];
}
