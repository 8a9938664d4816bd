/** A llama with weights that mean nothing, in the types of Q4_K_M: for measuring speed. */
import type { GgmlType } from "gguf-native";
import { f32, str, type TypedValue, u32 } from "../test/support/gguf-writer";
import { type TensorInput, writeTensors } from "./weights";

export interface ModelShape {
  layers: number;
  /** Length of the vector that represents a token. */
  embedding: number;
  feedForward: number;
  heads: number;
  /** Heads of keys and values. */
  kvHeads: number;
  /** Number of tokens. */
  vocabulary: number;
}

/** 254 M weights, 152 MiB. */
export const SHAPE: ModelShape = {
  layers: 16,
  embedding: 1024,
  feedForward: 2816,
  heads: 16,
  kvHeads: 8,
  vocabulary: 32_000,
};
export const QUICK_SHAPE: ModelShape = { ...SHAPE, layers: 4 };

/** Writes the model to a temporary file, which is removed when the process ends. */
export function writeModel(shape: ModelShape): { path: string; weights: number } {
  const tensors = modelTensors(shape);
  const path = writeTensors(`${Object.values(shape).join("-")}.gguf`, tensors, modelMetadata(shape));
  return { path, weights: tensors.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b), 0) };
}

function modelMetadata(shape: ModelShape): [string, TypedValue][] {
  return [
    ["general.architecture", str("llama")],
    ["llama.context_length", u32(4096)],
    ["llama.embedding_length", u32(shape.embedding)],
    ["llama.block_count", u32(shape.layers)],
    ["llama.feed_forward_length", u32(shape.feedForward)],
    ["llama.attention.head_count", u32(shape.heads)],
    ["llama.attention.head_count_kv", u32(shape.kvHeads)],
    ["llama.attention.layer_norm_rms_epsilon", f32(1e-5)],
    ["llama.rope.dimension_count", u32(shape.embedding / shape.heads)],
    ["llama.vocab_size", u32(shape.vocabulary)],
    // Tokens are numbers here: none has a text.
    ["tokenizer.ggml.model", str("none")],
  ];
}

function modelTensors({ layers, embedding, feedForward, heads, kvHeads, vocabulary }: ModelShape): TensorInput[] {
  const keys = (embedding / heads) * kvHeads;
  const tensor = (name: string, type: GgmlType, shape: number[]) => ({ name: `${name}.weight`, type, shape });
  const ones = new Uint8Array(new Float32Array(embedding).fill(1).buffer);
  const norm = (name: string) => ({ ...tensor(name, "F32", [embedding]), bytes: ones });
  const tensors: TensorInput[] = [tensor("token_embd", "Q4_K", [embedding, vocabulary])];
  for (let layer = 0; layer < layers; layer++) {
    const more = layer % 2 === 0 ? "Q6_K" : "Q4_K";
    const block = `blk.${layer}.`;
    tensors.push(
      norm(`${block}attn_norm`),
      tensor(`${block}attn_q`, "Q4_K", [embedding, embedding]),
      tensor(`${block}attn_k`, "Q4_K", [embedding, keys]),
      tensor(`${block}attn_v`, more, [embedding, keys]),
      tensor(`${block}attn_output`, "Q4_K", [embedding, embedding]),
      norm(`${block}ffn_norm`),
      tensor(`${block}ffn_gate`, "Q4_K", [embedding, feedForward]),
      tensor(`${block}ffn_up`, "Q4_K", [embedding, feedForward]),
      tensor(`${block}ffn_down`, more, [feedForward, embedding]),
    );
  }
  tensors.push(norm("output_norm"), tensor("output", "Q6_K", [embedding, vocabulary]));
  return tensors;
}
