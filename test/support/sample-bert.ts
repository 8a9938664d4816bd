/** A BERT model in miniature with random weights, whose vocabulary spells any English text. */
import { type GgmlType, ggmlTypes } from "gguf-native/reference";
import { gaussianBlocks } from "./blocks";
import { arr, bool, f32, str, type TensorSpec, type TypedValue, u32, writeGguf } from "./gguf-writer";
import { Random } from "./random";

const EMBEDDING = 128;
const FEED_FORWARD = 512;
const CONTEXT = 128;
const LAYERS = 2;

const SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
const CHARACTERS = [..."abcdefghijklmnopqrstuvwxyz0123456789.,:;!?'\"()[]{}<>|/\\-_+*=#%&@$^~`"];
const WORDS = "the of and to in a is that it for model file memory page browser tensor number test cat dog";

const token = (text: string): string => `\u2581${text}`;
const VOCABULARY = [...new Set([...SPECIAL, ...CHARACTERS.map(token), ...CHARACTERS, ...WORDS.split(" ").map(token)])];

/** The metadata of the vocabulary. */
export const WORD_PIECES: [string, TypedValue][] = [
  ["tokenizer.ggml.model", str("bert")],
  ["tokenizer.ggml.tokens", arr("string", VOCABULARY)],
  [
    "tokenizer.ggml.token_type",
    arr(
      "int32",
      VOCABULARY.map((_, i) => (i < SPECIAL.length ? 3 : 1)),
    ),
  ],
  ["tokenizer.ggml.padding_token_id", u32(0)],
  ["tokenizer.ggml.unknown_token_id", u32(1)],
  ["tokenizer.ggml.bos_token_id", u32(2)],
  ["tokenizer.ggml.cls_token_id", u32(2)],
  ["tokenizer.ggml.seperator_token_id", u32(3)],
  ["tokenizer.ggml.mask_token_id", u32(4)],
];
export const WORD_PIECE_COUNT = VOCABULARY.length;

export function sampleBert({ metadata = [] as [string, TypedValue][] } = {}): Uint8Array {
  const random = new Random(31);
  const tensors: TensorSpec[] = [];
  const add = (name: string, type: GgmlType, ...shape: number[]): void => {
    const count = shape.reduce((product, dim) => product * dim, 1) / ggmlTypes[type].blockSize;
    const bytes = gaussianBlocks(type, count, random);
    tensors.push({ name, type: ggmlTypes[type].id, shape, bytes });
  };
  const norm = (name: string): void => {
    add(`${name}.weight`, "F32", EMBEDDING);
    add(`${name}.bias`, "F32", EMBEDDING);
  };
  const linear = (name: string, type: GgmlType, columns: number, rows: number): void => {
    add(`${name}.weight`, type, columns, rows);
    add(`${name}.bias`, "F32", rows);
  };
  add("token_embd.weight", "F16", EMBEDDING, VOCABULARY.length);
  add("position_embd.weight", "F32", EMBEDDING, CONTEXT);
  add("token_types.weight", "F32", EMBEDDING, 2);
  norm("token_embd_norm");
  for (let layer = 0; layer < LAYERS; layer++) {
    const type = layer === 0 ? "Q8_0" : "F16";
    linear(`blk.${layer}.attn_q`, type, EMBEDDING, EMBEDDING);
    linear(`blk.${layer}.attn_k`, "Q4_0", EMBEDDING, EMBEDDING);
    linear(`blk.${layer}.attn_v`, type, EMBEDDING, EMBEDDING);
    linear(`blk.${layer}.attn_output`, type, EMBEDDING, EMBEDDING);
    norm(`blk.${layer}.attn_output_norm`);
    linear(`blk.${layer}.ffn_up`, type, EMBEDDING, FEED_FORWARD);
    linear(`blk.${layer}.ffn_down`, type, FEED_FORWARD, EMBEDDING);
    norm(`blk.${layer}.layer_output_norm`);
  }
  return writeGguf({
    metadata: [
      ...new Map([
        ["general.architecture", str("bert")],
        ["general.name", str("Sample BERT, random weights")],
        ["bert.context_length", u32(CONTEXT)],
        ["bert.embedding_length", u32(EMBEDDING)],
        ["bert.feed_forward_length", u32(FEED_FORWARD)],
        ["bert.block_count", u32(LAYERS)],
        ["bert.attention.head_count", u32(4)],
        ["bert.attention.layer_norm_epsilon", f32(1e-12)],
        ["bert.attention.causal", bool(false)],
        ["bert.pooling_type", u32(1)],
        ...WORD_PIECES,
        ...metadata,
      ]),
    ],
    tensors,
  });
}
