/** A llama with weights that mean nothing, in the types of Q4_K_M: for measuring speed. */
import { writeFileSync } from "node:fs";
import { type GgmlType, ggmlTypes } from "gguf-native";
import { f32, str, type TypedValue, u32, writeGguf } from "../test/support/gguf-writer";
import { temporaryFile } from "./paths";
import { gaussianBlocks } from "./weights";

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

export interface WrittenModel {
  path: string;
  weights: number;
  tensorCount: number;
}

/** Writes the model to a temporary file, which is removed when the process ends. */
export function writeModel(shape: ModelShape): WrittenModel {
  const tensors = modelTensors(shape);
  const path = temporaryFile(`${Object.values(shape).join("-")}.gguf`);
  writeFileSync(path, writeGguf({ metadata: modelMetadata(shape), tensors }));
  const weights = tensors.reduce((sum, { shape }) => sum + shape.reduce(product, 1), 0);
  return { path, weights, tensorCount: tensors.length };
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

const product = (a: number, b: number) => a * b;

function modelTensors({ layers, embedding, feedForward, heads, kvHeads, vocabulary }: ModelShape) {
  const keys = (embedding / heads) * kvHeads;
  const made = new Map<string, Uint8Array>();
  const tensor = (name: string, type: GgmlType, shape: number[]) => {
    const key = `${type} ${shape}`;
    const bytes = made.get(key) ?? gaussianBlocks(type, shape.reduce(product, 1));
    made.set(key, bytes);
    return { name: `${name}.weight`, type: ggmlTypes[type].id, shape, bytes };
  };
  const norm = (name: string) => {
    const ones = new Float32Array(embedding).fill(1);
    const bytes = new Uint8Array(ones.buffer);
    return { name: `${name}.weight`, type: ggmlTypes.F32.id, shape: [embedding], bytes };
  };
  const tensors = [tensor("token_embd", "Q4_K", [embedding, vocabulary])];
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
