/** A GGUF file of all-MiniLM-L6-v2, as llama.cpp names its tensors and keys. */
import { readFileSync } from "node:fs";
import { type GgmlType, GgufWriter, quantizeSync } from "gguf-native";
import { MINILM, MINILM_VOCABULARY, modelPath } from "./support";

/** Parts of names in the checkpoint, and in GGUF. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/^embeddings\.word_embeddings/, "token_embd"],
  [/^embeddings\.position_embeddings/, "position_embd"],
  [/^embeddings\.token_type_embeddings/, "token_types"],
  [/^embeddings\.LayerNorm/, "token_embd_norm"],
  [/^encoder\.layer\.(\d+)\.attention\.self\.query/, "blk.$1.attn_q"],
  [/^encoder\.layer\.(\d+)\.attention\.self\.key/, "blk.$1.attn_k"],
  [/^encoder\.layer\.(\d+)\.attention\.self\.value/, "blk.$1.attn_v"],
  [/^encoder\.layer\.(\d+)\.attention\.output\.dense/, "blk.$1.attn_output"],
  [/^encoder\.layer\.(\d+)\.attention\.output\.LayerNorm/, "blk.$1.attn_output_norm"],
  [/^encoder\.layer\.(\d+)\.intermediate\.dense/, "blk.$1.ffn_up"],
  [/^encoder\.layer\.(\d+)\.output\.dense/, "blk.$1.ffn_down"],
  [/^encoder\.layer\.(\d+)\.output\.LayerNorm/, "blk.$1.layer_output_norm"],
];

/** Vectors stay as they are; matrices have one of two types, so that a file has three. */
function typeOf(name: string, shape: readonly number[]): GgmlType & ("F32" | "F16" | "Q8_0") {
  if (shape.length === 1) return "F32";
  return name.startsWith("token_embd") ? "Q8_0" : "F16";
}

/** Writes the file; every matrix is rounded as ggml does. */
export async function writeMiniLm(path: string): Promise<void> {
  const file = readFileSync(modelPath(MINILM));
  const headerBytes = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.toString("utf8", 8, 8 + headerBytes)) as Record<
    string,
    { dtype: string; shape: number[]; data_offsets: [number, number] }
  >;
  const data = file.subarray(8 + headerBytes);

  // WordPiece marks what continues a word; llama.cpp's vocabulary what begins one.
  const tokens = readFileSync(modelPath(MINILM_VOCABULARY), "utf8")
    .trimEnd()
    .split("\n")
    .map((token) => {
      if (/^\[.+\]$/.test(token)) return token;
      return token.startsWith("##") ? token.slice(2) : `\u2581${token}`;
    });
  const writer = new GgufWriter()
    .set("general.architecture", "bert")
    .set("general.name", "all-MiniLM-L6-v2")
    .set("general.file_type", 1)
    .set("bert.context_length", 512)
    .set("bert.embedding_length", 384)
    .set("bert.feed_forward_length", 1536)
    .set("bert.block_count", 6)
    .set("bert.attention.head_count", 12)
    .set("bert.attention.layer_norm_epsilon", 1e-12)
    .set("bert.attention.causal", false)
    .set("bert.pooling_type", 1)
    .set("tokenizer.ggml.model", "bert")
    .set("tokenizer.ggml.token_type_count", 2)
    .set("tokenizer.ggml.tokens", tokens)
    .set(
      "tokenizer.ggml.token_type",
      tokens.map((token) => (/^\[.+\]$/.test(token) ? 3 : 1)),
      "int32[]",
    );
  for (const [key, token] of Object.entries({
    unknown: 100,
    seperator: 102,
    padding: 0,
    cls: 101,
    mask: 103,
  })) {
    writer.set(`tokenizer.ggml.${key}_token_id`, token, "uint32");
  }
  for (const [name, { dtype, shape, data_offsets }] of Object.entries(header)) {
    const entry = NAMES.find(([pattern]) => pattern.test(name));
    if (entry === undefined || dtype !== "F32") continue; // positions as numbers, and the pooler
    const values = new Float32Array(new Uint8Array(data.subarray(...data_offsets)).buffer);
    const ours = name.replace(...entry);
    const type = typeOf(ours, shape);
    writer.addTensor(ours, type, shape.toReversed(), quantizeSync(type, values));
  }
  await writer.write(path);
}
