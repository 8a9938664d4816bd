/**
 * The weights of a GGUF file as a checkpoint of Hugging Face has them: names, shapes, and the order of the rows of
 * `attn_q` and `attn_k`; and the way back. For dense decoders: llama and those that differ from it in little. docs/names.md
 * describes what is done here, and what other architectures need.
 */
import type { GgufMetadata, GgufModel } from "gguf-native";

/** Names in a block, without `blk.N.` or `model.layers.N.`, and without `.weight` or `.bias`. */
const BLOCK_NAMES: readonly (readonly [gguf: string, huggingFace: string])[] = [
  ["attn_norm", "input_layernorm"],
  ["attn_q", "self_attn.q_proj"],
  ["attn_k", "self_attn.k_proj"],
  ["attn_v", "self_attn.v_proj"],
  ["attn_q_norm", "self_attn.q_norm"],
  ["attn_k_norm", "self_attn.k_norm"],
  ["attn_output", "self_attn.o_proj"],
  ["ffn_norm", "post_attention_layernorm"],
  ["ffn_gate", "mlp.gate_proj"],
  ["ffn_up", "mlp.up_proj"],
  ["ffn_down", "mlp.down_proj"],
];

const OTHER_NAMES: readonly (readonly [gguf: string, huggingFace: string])[] = [
  ["token_embd", "model.embed_tokens"],
  ["output_norm", "model.norm"],
  ["output", "lm_head"],
];

/** "blk.3.attn_q.weight" is "model.layers.3.self_attn.q_proj.weight"; undefined for a name that is not in the lists. */
export function huggingFaceName(name: string): string | undefined {
  const [, block, part, end] = /^(?:blk\.(\d+)\.)?(\w+)\.(weight|bias)$/.exec(name) ?? [];
  const pair = (block === undefined ? OTHER_NAMES : BLOCK_NAMES).find(([gguf]) => gguf === part);
  if (pair === undefined) return undefined;
  return block === undefined ? `${pair[1]}.${end}` : `model.layers.${block}.${pair[1]}.${end}`;
}

/** The opposite of {@link huggingFaceName}. */
export function ggufName(name: string): string | undefined {
  const [, block, part, end] = /^(?:model\.layers\.(\d+)\.)?([\w.]+)\.(weight|bias)$/.exec(name) ?? [];
  const pair = (block === undefined ? OTHER_NAMES : BLOCK_NAMES).find(([, theirs]) => theirs === part);
  if (pair === undefined) return undefined;
  return block === undefined ? `${pair[0]}.${end}` : `blk.${block}.${pair[0]}.${end}`;
}

/** The architectures of which llama.cpp's converter reorders the rows of queries and keys, among those with these names. */
const REORDERED = new Set(["llama", "arcee", "smollm3", "granite", "minicpm"]);

/**
 * For each row of a matrix of queries or keys as Hugging Face has it: which row of the file that is. So
 * `tensor.rowsSync(rowsForHuggingFace(rows, heads))` undoes the order of the file.
 *
 * A rotary embedding rotates the numbers of a head in pairs. Hugging Face's code pairs number i with number i + half
 * ("rotate_half"), ggml pairs number 2i with number 2i + 1 for these architectures. So that both compute the same, the
 * converter makes the rows of both halves of a head alternate.
 *
 * @param heads `attention.head_count` for attn_q, `attention.head_count_kv` for attn_k
 */
export function rowsForHuggingFace(rows: number, heads: number): Uint32Array {
  return rowOrder(rows, heads, (i, half) => (i < half ? 2 * i : 2 * (i - half) + 1));
}

/** The opposite: for each row of the file, which row of Hugging Face's matrix that is. */
export function rowsForGguf(rows: number, heads: number): Uint32Array {
  return rowOrder(rows, heads, (i, half) => (i % 2 === 0 ? i / 2 : half + (i - 1) / 2));
}

function rowOrder(rows: number, heads: number, source: (i: number, half: number) => number): Uint32Array {
  const length = rows / heads;
  if (!Number.isInteger(length / 2)) throw new Error(`${rows} rows are not ${heads} heads of an even length`);
  return Uint32Array.from({ length: rows }, (_, row) => {
    const i = row % length;
    return row - i + source(i, length / 2);
  });
}

/** The rows of a matrix in another order: row r of the result is row `order[r]`. Of a bias, rows of one number. */
export function reorderRows(matrix: Float32Array, columns: number, order: ArrayLike<number>): Float32Array {
  const result = new Float32Array(matrix.length);
  for (let row = 0; row < order.length; row++) {
    result.set(matrix.subarray(order[row]! * columns, (order[row]! + 1) * columns), row * columns);
  }
  return result;
}

/** How many heads the rows of a tensor are, if it is one whose rows are in another order; otherwise undefined. */
function reorderedHeads(name: string, metadata: GgufMetadata): number | undefined {
  const { architecture } = metadata;
  const part = /^blk\.\d+\.attn_([qk])\.(?:weight|bias)$/.exec(name)?.[1];
  if (part === undefined || architecture === undefined || !REORDERED.has(architecture)) return undefined;
  const heads = metadata.arch("attention.head_count");
  return part === "q" ? heads : (metadata.arch("attention.head_count_kv") ?? heads);
}

/** A weight as a checkpoint has it: rows before columns. */
export interface CheckpointWeight {
  name: string;
  shape: number[];
  data: Float32Array;
}

/** A tensor of a GGUF file as Hugging Face has it. */
export async function toHuggingFace(model: GgufModel, name: string): Promise<CheckpointWeight> {
  const theirs = huggingFaceName(name);
  if (theirs === undefined) throw new Error(`there is no name for ${name} in the lists of this example`);
  const tensor = model.tensor(name);
  const shape = [...tensor.shape].reverse();
  const heads = reorderedHeads(name, model.metadata);
  const data = await tensor.dequantize();
  if (heads === undefined) return { name: theirs, shape, data };
  const [rows = 1, columns = 1] = shape;
  return { name: theirs, shape, data: reorderRows(data, columns, rowsForHuggingFace(rows, heads)) };
}

/** The opposite: name, shape and numbers for `GgufWriter.addTensor`, for a model with this metadata. */
export function fromHuggingFace(weight: CheckpointWeight, metadata: GgufMetadata): CheckpointWeight {
  const name = ggufName(weight.name);
  if (name === undefined) throw new Error(`there is no name for ${weight.name} in the lists of this example`);
  const shape = [...weight.shape].reverse();
  const heads = reorderedHeads(name, metadata);
  if (heads === undefined) return { name, shape, data: weight.data };
  const [rows = 1, columns = 1] = weight.shape;
  return { name, shape, data: reorderRows(weight.data, columns, rowsForGguf(rows, heads)) };
}
