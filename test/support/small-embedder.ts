/** Small models of the architectures of gguf-native/embeddings, with random weights in float32. */
import { bool, f32, str, type TensorSpec, type TypedValue, u32, writeGguf } from "./gguf-writer";
import { Random } from "./random";
import { WORD_PIECE_COUNT, WORD_PIECES } from "./sample-bert";
import { tensorsOf } from "./small-llama";

export const SMALL_EMBEDDER = { width: 16, hidden: 24, heads: 4, headWidth: 6, window: 8, context: 64 };

export type SmallArchitecture = "bert" | "nomic-bert" | "nomic-bert-moe" | "qwen3" | "gemma-embedding";

export interface SmallEmbedder {
  metadata?: [string, TypedValue][];
  /** With a head that scores. */
  hasScores?: boolean;
}

export function smallEmbedder(architecture: SmallArchitecture, change: SmallEmbedder = {}): Uint8Array {
  const { width, hidden, heads, window, context } = SMALL_EMBEDDER;
  const isBert = architecture.includes("bert");
  const isNomic = architecture.startsWith("nomic");
  const isMixed = architecture === "nomic-bert-moe";
  const isGemma = architecture === "gemma-embedding";
  const headWidth = isBert ? width / heads : SMALL_EMBEDDER.headWidth;
  const keyHeads = isBert ? heads : 2;
  const [queryWidth, keyWidth] = [heads * headWidth, keyHeads * headWidth];
  const layers = isGemma ? 7 : 2;
  const tensor = tensorsOf(new Random(5));
  const matrix = (name: string, columns: number, rows: number): TensorSpec[] => [
    tensor(`${name}.weight`, columns, rows),
    ...(architecture === "bert" || isMixed ? [tensor(`${name}.bias`, rows)] : []),
  ];
  const norm = (name: string, length = width): TensorSpec[] => [
    tensor(`${name}.weight`, length),
    ...(isBert ? [tensor(`${name}.bias`, length)] : []),
  ];
  const [before, after] = isBert ? ["attn_output_norm", "layer_output_norm"] : ["attn_norm", "ffn_norm"];
  const tensors = [
    tensor("token_embd.weight", width, WORD_PIECE_COUNT),
    ...(architecture === "bert" ? [tensor("position_embd.weight", width, context)] : []),
    ...(isBert ? [tensor("token_types.weight", width, 2), ...norm("token_embd_norm")] : norm("output_norm")),
    ...Array.from({ length: layers }, (_, i) => `blk.${i}.`).flatMap((block) => [
      ...(isNomic
        ? matrix(`${block}attn_qkv`, width, queryWidth + 2 * keyWidth)
        : [
            ...matrix(`${block}attn_q`, width, queryWidth),
            ...matrix(`${block}attn_k`, width, keyWidth),
            ...matrix(`${block}attn_v`, width, keyWidth),
          ]),
      ...matrix(`${block}attn_output`, queryWidth, width),
      ...norm(block + before),
      ...(isBert ? [] : [...norm(`${block}attn_q_norm`, headWidth), ...norm(`${block}attn_k_norm`, headWidth)]),
      ...(architecture === "bert" || isMixed ? [] : matrix(`${block}ffn_gate`, width, hidden)),
      ...(isMixed && block === "blk.1."
        ? [
            tensor(`${block}ffn_gate_inp.weight`, width, 3),
            tensor(`${block}ffn_up_exps.weight`, width, hidden, 3),
            tensor(`${block}ffn_down_exps.weight`, hidden, width, 3),
          ]
        : [...matrix(`${block}ffn_up`, width, hidden), ...matrix(`${block}ffn_down`, hidden, width)]),
      ...norm(block + after),
      ...(isGemma ? [...norm(`${block}post_attention_norm`), ...norm(`${block}post_ffw_norm`)] : []),
    ]),
    ...(isGemma ? [tensor("dense_2.weight", width, 40), tensor("dense_3.weight", 40, 20)] : []),
    ...(change.hasScores ? [...matrix("cls", width, width), ...matrix("cls.output", width, 1)] : []),
  ];
  const keys: [string, TypedValue][] = [
    ["context_length", u32(context)],
    ["embedding_length", u32(width)],
    ["feed_forward_length", u32(hidden)],
    ["block_count", u32(layers)],
    ["attention.head_count", u32(heads)],
    ["attention.causal", bool(architecture === "qwen3")],
    [isBert ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", f32(1e-5)],
    ...(isBert
      ? []
      : ([
          ["attention.head_count_kv", u32(keyHeads)],
          ["attention.key_length", u32(headWidth)],
          ["attention.value_length", u32(headWidth)],
        ] as [string, TypedValue][])),
    ...(architecture === "bert" ? [] : ([["rope.freq_base", f32(1000)]] as [string, TypedValue][])),
    ...(isGemma ? ([["attention.sliding_window", u32(window)]] as [string, TypedValue][]) : []),
    ["expert_count", u32(3)],
    ["expert_used_count", u32(2)],
    ["pooling_type", u32(architecture === "qwen3" ? 3 : 1)],
  ];
  return writeGguf({
    metadata: [
      ...new Map([
        ["general.architecture", str(architecture)],
        ...keys.map(([key, value]): [string, TypedValue] => [`${architecture}.${key}`, value]),
        ...WORD_PIECES,
        ["tokenizer.ggml.eos_token_id", u32(3)],
        ...(change.metadata ?? []),
      ]),
    ],
    tensors,
  });
}
