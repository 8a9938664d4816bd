/** What the examples' networks say of models that were changed by hand: which key or tensor, what it must be, what it is. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type GgufFile, GgufWriter, parse } from "gguf-native";
import { Embedder } from "gguf-native/embeddings";
import { Llama } from "../../examples/llama/model";
import { sampleBert } from "../support/sample-bert";
import { sampleModel } from "../support/sample-model";

const llama = parse(sampleModel());
const bert = parse(sampleBert());

/** A key with another number, or a tensor with another shape. */
type Change = readonly [name: string, value: number | readonly number[], message: string];

const CHANGES: Readonly<Record<"llama" | "bert", readonly Change[]>> = {
  llama: [
    ["llama.rope.dimension_count", 3, "an even number up to the 64 of a head, found 3"],
    ["llama.rope.dimension_count", 66, "an even number up to the 64 of a head, found 66"],
    ["llama.block_count", 1e8, "a whole number from 1 to 16777216, found 100000000"],
    ["llama.block_count", 1e6, "2, as many as there are tensors for, found 1000000"],
    ["llama.block_count", 0, "a whole number from 1 to 16777216, found 0"],
    ["llama.attention.head_count", 0, "a whole number from 1 to 16777216, found 0"],
    ["llama.attention.head_count", 1024, "a whole number from 1 to 16777216, found 0.5"],
    ["llama.attention.head_count", 256, "an even number up to the 2 of a head, found 64"],
    ["llama.attention.head_count_kv", 0, "a whole number from 1 to 16777216, found 0"],
    ["llama.attention.head_count_kv", 256, "a divisor of the 8 heads, found 256"],
    ["llama.context_length", 0, "a whole number from 1 to 16777216, found 0"],
    ["llama.embedding_length", 256, "an even number up to the 32 of a head, found 64"],
    ["token_embd.weight", [256, 2048], "shape 512 x any, found 256 x 2048"],
    ["llama.attention.layer_norm_rms_epsilon", 0, "above 0, found 0"],
    ["llama.rope.freq_base", -1, "above 0, found -1"],
    ["output_norm.weight", [1], "shape 512, found 1"],
    ["blk.1.attn_norm.weight", [4], "shape 512, found 4"],
    ["blk.0.attn_q.weight", [512, 0], "shape 512 x 512, found 512 x 0"],
    ["blk.0.attn_k.weight", [512, 64], "shape 512 x 128, found 512 x 64"],
    ["blk.1.attn_output.weight", [512, 511], "shape 512 x 512, found 512 x 511"],
    ["blk.1.ffn_gate.weight", [512, 0], "shape 512 x any, found 512 x 0"],
    ["blk.1.ffn_up.weight", [512, 768], "shape 512 x 1536, found 512 x 768"],
    ["blk.1.ffn_down.weight", [256, 512], "shape 1536 x 512, found 256 x 512"],
    ["blk.1.attn_q.bias", [3], "shape 512, found 3"],
    ["rope_freqs.weight", [3], "must have 32 numbers, found 3"],
    ["output.weight", [512, 7], "shape 512 x 2048, found 512 x 7"],
  ],
  bert: [
    ["bert.block_count", 1e8, "a whole number from 1 to 16777216, found 100000000"],
    ["bert.attention.head_count", 0, "a whole number from 1 to 16777216, found 0"],
    ["bert.attention.head_count", 256, "a divisor of the 128 numbers of a vector, found 256"],
    ["bert.context_length", 129, "up to the 128 positions of the model, found 129"],
    ["bert.attention.layer_norm_epsilon", -1, "above 0, found -1"],
    ["position_embd.weight", [64, 128], "shape 128 x any, found 64 x 128"],
    ["token_types.weight", [128, 0], "shape 128 x any, found 128 x 0"],
    ["token_embd_norm.bias", [1], "shape 128, found 1"],
    ["blk.0.attn_v.weight", [128, 64], "shape 128 x 128, found 128 x 64"],
    ["blk.1.ffn_up.weight", [128, 256], "shape 128 x 512, found 128 x 256"],
    ["blk.1.ffn_up.bias", [4], "shape 512, found 4"],
    ["blk.1.layer_output_norm.weight", [127], "shape 128, found 127"],
  ],
};

for (const [file, load, changes] of [
  [llama, async (file: GgufFile) => Llama.load(file), CHANGES.llama],
  [bert, (file: GgufFile) => Embedder.open(file), CHANGES.bert],
] as const) {
  for (const [name, value, message] of changes) {
    test(`${name}: ${value}`, async () => {
      const writer = GgufWriter.from(file);
      if (typeof value === "number") {
        writer.set(name, value);
      } else {
        if (file.tensors.has(name)) writer.removeTensor(name);
        const count = value.reduce((product, dim) => product * dim, 1);
        writer.addTensor(name, "F32", value, new Float32Array(count));
      }
      const chunks: Uint8Array[] = [];
      for await (const chunk of writer.chunks()) chunks.push(chunk);
      const changed = parse(Buffer.concat(chunks));
      await assert.rejects(load(changed), ({ message: found }: Error) => found.endsWith(message) || assert.fail(found));
    });
  }
}
