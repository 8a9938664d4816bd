/** The llama example on small models of random weights, mixtures of experts and LoRA adapters, against llama.cpp. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openSync } from "gguf-native";
import { Llama } from "../../examples/llama/model";
import { f32, str, type TensorSpec, u32, writeGguf } from "../support/gguf-writer";
import { LlamaCpp, noLlamaCpp } from "../support/libllama";
import { temporaryFolder } from "../support/paths";
import { Random } from "../support/random";

const [WIDTH, HEADS, HEAD, HIDDEN, EXPERTS, USED, TOKENS] = [64, 4, 16, 96, 8, 3, 100];
const PROMPT = Array.from({ length: 40 }, (_, i) => (i * 37 + 5) % TOKENS);
/** Logits may differ by so much of their root mean square: llama.cpp rounds more in its attention to binary16. */
const TOLERANCE = 0.01;

const folder = temporaryFolder();
const random = new Random(39);

function tensor(name: string, ...shape: number[]): TensorSpec {
  const length = shape.reduce((product, dim) => product * dim, 1);
  // What a matrix makes is as large as what it is multiplied with; other numbers are near 1.
  const [centre, size] = shape.length > 1 ? [0, 1 / Math.sqrt(shape[0]!)] : [1, 0.2];
  const numbers = Float32Array.from({ length }, () => centre + size * random.gaussian());
  return { name, type: 0, shape, bytes: new Uint8Array(numbers.buffer) };
}

const network = (suffix: string, ...more: number[]): TensorSpec[] => [
  tensor(`ffn_gate${suffix}.weight`, WIDTH, HIDDEN, ...more),
  tensor(`ffn_up${suffix}.weight`, WIDTH, HIDDEN, ...more),
  tensor(`ffn_down${suffix}.weight`, HIDDEN, WIDTH, ...more),
];
const experts = (): TensorSpec[] => [
  ...network("_exps", EXPERTS),
  tensor("ffn_gate_inp.weight", WIDTH, EXPERTS),
];

/** What a layer of each has beside the common matrices. */
const MODELS: Record<string, { architecture: string; layer: () => TensorSpec[] }> = {
  llama: { architecture: "llama", layer: () => network("") },
  "llama with experts": { architecture: "llama", layer: experts },
  qwen2moe: {
    architecture: "qwen2moe",
    layer: () => [
      ...[...experts(), ...network("_shexp"), tensor("ffn_gate_inp_shexp.weight", WIDTH)],
      tensor("attn_q.bias", WIDTH),
      ...["k", "v"].map((name) => tensor(`attn_${name}.bias`, WIDTH / 2)),
    ],
  },
  qwen3moe: {
    architecture: "qwen3moe",
    layer: () => [...experts(), tensor("attn_q_norm.weight", HEAD), tensor("attn_k_norm.weight", HEAD)],
  },
};

function writeModel(architecture: string, layer: () => TensorSpec[]): string {
  const layers = ["blk.0.", "blk.1."].flatMap((block) =>
    [
      ...[tensor("attn_norm.weight", WIDTH), tensor("ffn_norm.weight", WIDTH)],
      ...[tensor("attn_q.weight", WIDTH, WIDTH), tensor("attn_output.weight", WIDTH, WIDTH)],
      ...["k", "v"].map((name) => tensor(`attn_${name}.weight`, WIDTH, WIDTH / 2)),
      ...layer(),
    ].map((each) => ({ ...each, name: `${block}${each.name}` })),
  );
  const tensors = [
    tensor("token_embd.weight", WIDTH, TOKENS),
    ...layers,
    tensor("output_norm.weight", WIDTH),
    tensor("output.weight", WIDTH, TOKENS),
  ];
  const hasExperts = layers.some(({ name }) => `${name}`.includes("_exps"));
  const numbers = {
    ...{ context_length: 64, embedding_length: WIDTH, block_count: 2, vocab_size: TOKENS },
    ...{ feed_forward_length: HIDDEN, "attention.head_count": HEADS, "attention.head_count_kv": HEADS / 2 },
    ...{ "attention.key_length": HEAD, "attention.value_length": HEAD, "rope.dimension_count": HEAD },
    ...(hasExperts ? { expert_count: EXPERTS, expert_used_count: USED } : {}),
    ...{ expert_feed_forward_length: HIDDEN, expert_shared_feed_forward_length: HIDDEN },
  };
  const path = join(folder, "model.gguf");
  const metadata = [
    ["general.architecture", str(architecture)],
    ["tokenizer.ggml.model", str("no_vocab")],
    [`${architecture}.attention.layer_norm_rms_epsilon`, f32(1e-5)],
    ...Object.entries(numbers).map(([key, value]) => [`${architecture}.${key}`, u32(value)] as const),
  ] as const;
  writeFileSync(path, writeGguf({ metadata, tensors }));
  return path;
}

/** An adapter of a rank of 4 for all matrices of a model but those of routers, in the order of convert_lora_to_gguf. */
function writeAdapter(path: string, name: string, alpha: number): string {
  using file = openSync(path);
  const matrices = [...file.tensors.values()].filter(({ shape }) => shape.length > 1);
  const tensors = matrices.flatMap(({ name, shape: [columns = 0, rows = 0, ...more] }) => {
    const [a, b] = name.startsWith("token_embd")
      ? [
          [4, rows],
          [4, columns],
        ]
      : [
          [columns, 4],
          [4, rows],
        ];
    return [tensor(`${name}.lora_a`, ...a!, ...more), tensor(`${name}.lora_b`, ...b!, ...more)];
  });
  const metadata = [
    ["general.type", str("adapter")],
    ["general.architecture", str(file.metadata.architecture!)],
    ["adapter.type", str("lora")],
    ["adapter.lora.alpha", f32(alpha)],
  ] as const;
  const adapter = join(folder, name);
  writeFileSync(adapter, writeGguf({ metadata, tensors }));
  return adapter;
}

const rootMeanSquare = (numbers: Float32Array): number =>
  Math.sqrt(numbers.reduce((sum, x) => sum + x * x, 0) / numbers.length);

for (const [name, { architecture, layer }] of Object.entries(MODELS)) {
  for (const scales of [[], [0.5, -0.25]]) {
    test(`${name}, ${scales.length} adapters`, { skip: noLlamaCpp }, async (context) => {
      const path = writeModel(architecture, layer);
      const adapters = scales.map((scale, i) => ({ path: writeAdapter(path, `${i}.gguf`, 2 * i), scale }));
      const llamaCpp = await LlamaCpp.load(path, 64, { adapters });
      using file = openSync(path);
      const llama = Llama.load(file, {
        activations: "f32",
        adapters: adapters.map(({ path, scale }) => ({ file: openSync(path), scale })),
      });
      const theirs = llamaCpp.read(PROMPT);
      let most = 0;
      llama.forwardEach(PROMPT, llama.createCache(64), 0, (i, logits) => {
        const expected = theirs.at(i);
        const error = rootMeanSquare(logits.map((x, j) => x - expected[j]!)) / rootMeanSquare(expected);
        most = Math.max(most, error);
      });
      context.diagnostic(`logits differ by ${most.toExponential(1)} at most`);
      assert.ok(most < TOLERANCE, `${most}`);
    });
  }
}
