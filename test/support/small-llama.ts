/** Small models of the architectures of the llama example, with random weights in float32, and adapters for them. */
import { f32, str, type TensorSpec, type TypedValue, u32, writeGguf } from "./gguf-writer";
import { Random } from "./random";

export interface SmallModel {
  architecture?: string;
  /** Length of a head; default 4. */
  keyLength?: number;
  /** Default 1. */
  layers?: number;
  /** Default: one feed-forward network, no experts. */
  experts?: { count: number; used: number; isShared?: boolean };
  metadata?: [string, TypedValue][];
  tensors?: TensorSpec[];
}

export const SMALL = { width: 8, hidden: 12, heads: 2, tokens: 5, epsilon: 1e-5 };

export function floatTensor(name: string, shape: number[], values: Float32Array): TensorSpec {
  return { name, type: 0, shape, bytes: new Uint8Array(values.buffer) };
}

/** Makes tensors of random numbers from -.5 to .5. */
export function tensorsOf(random: Random): (name: string, ...shape: number[]) => TensorSpec {
  return (name, ...shape) => {
    const length = shape.reduce((product, dim) => product * dim, 1);
    const numbers = Float32Array.from({ length }, () => random.unit() - 0.5);
    return floatTensor(name, shape, numbers);
  };
}

/** A model of few layers in float32, two query heads and one of keys, with changes. */
export function smallModel(change: SmallModel = {}): Uint8Array {
  const { architecture = "llama", keyLength = 4, layers = 1, experts } = change;
  const { width, hidden, heads } = SMALL;
  const tensor = tensorsOf(new Random(9));
  const network = (block: string, suffix: string, ...more: number[]): TensorSpec[] => [
    tensor(`${block}ffn_gate${suffix}.weight`, width, hidden, ...more),
    tensor(`${block}ffn_up${suffix}.weight`, width, hidden, ...more),
    tensor(`${block}ffn_down${suffix}.weight`, hidden, width, ...more),
  ];
  const tensors = [
    tensor("token_embd.weight", width, SMALL.tokens),
    ...Array.from({ length: layers }, (_, layer) => `blk.${layer}.`).flatMap((block) => [
      tensor(`${block}attn_norm.weight`, width),
      tensor(`${block}attn_q.weight`, width, heads * keyLength),
      tensor(`${block}attn_k.weight`, width, keyLength),
      tensor(`${block}attn_v.weight`, width, 4),
      tensor(`${block}attn_output.weight`, heads * 4, width),
      tensor(`${block}ffn_norm.weight`, width),
      ...(experts ? network(block, "_exps", experts.count) : network(block, "")),
      ...(experts ? [tensor(`${block}ffn_gate_inp.weight`, width, experts.count)] : []),
      ...(experts?.isShared ? [...network(block, "_shexp"), tensor(`${block}ffn_gate_inp_shexp.weight`, width)] : []),
    ]),
    tensor("output_norm.weight", width),
    ...(change.tensors ?? []),
  ];
  const metadata = new Map<string, TypedValue>([
    ["general.architecture", str(architecture)],
    [`${architecture}.context_length`, u32(16)],
    [`${architecture}.embedding_length`, u32(width)],
    [`${architecture}.block_count`, u32(layers)],
    [`${architecture}.attention.head_count`, u32(heads)],
    [`${architecture}.attention.head_count_kv`, u32(1)],
    [`${architecture}.attention.key_length`, u32(keyLength)],
    [`${architecture}.attention.layer_norm_rms_epsilon`, f32(SMALL.epsilon)],
    // What llama.cpp needs as well.
    ["tokenizer.ggml.model", str("no_vocab")],
    [`${architecture}.vocab_size`, u32(SMALL.tokens)],
    [`${architecture}.feed_forward_length`, u32(hidden)],
    [`${architecture}.expert_feed_forward_length`, u32(hidden)],
    [`${architecture}.expert_shared_feed_forward_length`, u32(hidden)],
    ...(experts === undefined
      ? []
      : ([
          [`${architecture}.expert_count`, u32(experts.count)],
          [`${architecture}.expert_used_count`, u32(experts.used)],
        ] as const)),
    ...(change.metadata ?? []),
  ]);
  return writeGguf({ metadata: [...metadata], tensors });
}

/** Numbers near 1, such as those of norms. */
export function vector(name: string, length: number): TensorSpec {
  const random = new Random(77);
  return floatTensor(
    name,
    [length],
    Float32Array.from({ length }, () => 0.5 + random.unit()),
  );
}

const experts = { count: 6, used: 3 };

/** Mixtures of experts. */
export const MIXTURES = {
  "llama with experts": { architecture: "llama", experts },
  qwen2moe: {
    architecture: "qwen2moe",
    experts: { ...experts, isShared: true },
    tensors: [["q", 8] as const, ["k", 4] as const, ["v", 4] as const].map(([name, length]) =>
      vector(`blk.0.attn_${name}.bias`, length),
    ),
  },
  qwen3moe: {
    architecture: "qwen3moe",
    experts,
    tensors: ["q", "k"].map((name) => vector(`blk.0.attn_${name}_norm.weight`, 4)),
  },
} satisfies Record<string, SmallModel>;

/** An adapter of a rank of 2 for matrices of these shapes. */
export function smallAdapter(
  architecture: string,
  alpha: number,
  matrices: readonly (readonly [name: string, ...shape: number[]])[],
): Uint8Array {
  const tensor = tensorsOf(new Random(alpha));
  const tensors = matrices.flatMap(([name, columns = 0, rows = 0, ...more]) => {
    const [a, b] = name === "token_embd" ? [[2, rows], columns] : [[columns, 2], rows];
    return [tensor(`${name}.weight.lora_a`, ...a, ...more), tensor(`${name}.weight.lora_b`, 2, b, ...more)];
  });
  const metadata = [
    ["general.type", str("adapter")],
    ["adapter.type", str("lora")],
    ["general.architecture", str(architecture)],
    ["adapter.lora.alpha", f32(alpha)],
  ] as const;
  return writeGguf({ metadata, tensors });
}
