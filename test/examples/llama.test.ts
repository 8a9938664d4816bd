/** examples/llama: its numbers against llama.cpp's and a plain forward pass, its cache, its sampling. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type GgufFile, openSync, parse } from "gguf-native";
import * as plain from "gguf-native/reference";
import { ImportanceMatrix, perplexity, readPieces } from "../../examples/llama/measure";
import { Llama } from "../../examples/llama/model";
import { greedy, mostProbable, topKSampler } from "../../examples/llama/write";
import { runNode } from "../support/child";
import { docBlocks } from "../support/doc-blocks";
import { f32, str, type TensorSpec, u32, writeGguf } from "../support/gguf-writer";
import { projectRoot, temporaryFolder } from "../support/paths";
import { sampleModel } from "../support/sample-model";
import { needsShared, sharedPath, tinyLlama } from "../support/shared-data";
import {
  MIXTURES,
  SMALL,
  type SmallModel,
  smallAdapter,
  smallModel as smallModelBytes,
  vector,
} from "../support/small-llama";

/**
 * What llama.cpp 0.5.0 on an x86 processor finds most probable after some tokens in the tiny llama. It rounds activations
 * to 8 bits, in another way than this forward pass, so the figures are some percent apart.
 */
const LLAMA_CPP: { prompt: number[]; next: [token: number, probability: number][] } = {
  prompt: [1, 15043, 3186, 29892, 445, 338], // "Hello world, this is"
  next: [
    [19773, 5.6552e-4],
    [14827, 5.3784e-4],
    [23671, 5.1766e-4],
    [20862, 4.82125e-4],
    [26073, 4.77189e-4],
    [15466, 4.64447e-4],
    [8195, 4.42247e-4],
    [23552, 4.27087e-4],
  ],
};

/** The logits after `prompt`, in a cache of its own. */
function logitsAfter(llama: Llama, prompt: readonly number[]): Float32Array {
  return llama.forward(prompt, llama.createCache(prompt.length));
}

describe("the next token's probabilities agree with llama.cpp's", () => {
  const { prompt, next } = LLAMA_CPP;
  for (const activations of ["int8", "f32"] as const) {
    test(`with ${activations}`, needsShared(tinyLlama), (context) => {
      using file = openSync(sharedPath(tinyLlama));
      const logits = logitsAfter(Llama.load(file, { activations }), prompt);

      const found = mostProbable(logits, 5).map(({ token }) => token);
      const expected = next.slice(0, 5).map(([token]) => token);
      assert.equal(found[0], expected[0]);
      assert.ok(expected.filter((token) => found.includes(token)).length >= 4, `${found} for ${expected}`);

      const probabilities = new Map(
        mostProbable(logits, logits.length).map(({ token, probability }) => [token, probability]),
      );
      const differences = next.map(([token, theirs]) => Math.abs(probabilities.get(token)! / theirs - 1));
      const mean = differences.reduce((sum, difference) => sum + difference, 0) / differences.length;
      const greatest = Math.max(...differences);
      const percent = (share: number): string => `${(100 * share).toFixed(2)} %`;
      context.diagnostic(`mean difference ${percent(mean)}, greatest ${percent(greatest)}`);
      assert.ok(mean < 0.03, `mean difference ${percent(mean)}`);
      // Where both round, the errors of both add up.
      assert.ok(greatest < (activations === "f32" ? 0.08 : 0.12), `greatest difference ${percent(greatest)}`);
    });
  }
});

describe("forward", () => {
  test("gives the same bits for a long text read together and in parts", () => {
    using file = parse(sampleModel());
    const llama = Llama.load(file);
    const text = Array.from({ length: 300 }, (_, i) => (i * 37) % 2000);
    const cache = llama.createCache(text.length);
    llama.forward(text.slice(0, 127), cache);
    llama.forward(text.slice(127, 129), cache);
    llama.forward(text.slice(129, 299), cache);
    assert.deepEqual(llama.forward(text.slice(299), cache), logitsAfter(llama, text));
  });

  test("rounds activations unless it is asked not to", () => {
    using file = parse(sampleModel());
    const after = (options = {}) => logitsAfter(Llama.load(file, options), [7, 8, 2000, 7, 15]);
    assert.deepEqual(after(), after({ activations: "int8" }));
    assert.notDeepEqual(after(), after({ activations: "f32" }));
  });

  test("rejects more tokens than the cache can store, and none", async () => {
    using file = parse(sampleModel());
    const llama = Llama.load(file);
    const cache = llama.createCache(2);
    assert.throws(() => llama.forward([1, 2, 3], cache), /holds 0 of at most 2 tokens: there is no room for 3/);
    assert.throws(() => llama.forward([], cache), /no tokens/);
  });
});

const smallModel = (change?: SmallModel): GgufFile => parse(smallModelBytes(change));

/** What a plain forward pass must know of an architecture. */
interface PlainArchitecture {
  pairs: "adjacent" | "halves";
  keyLength?: number;
  /** How many tokens each layer sees, and the base of its rotations. Default: one layer that sees all, 10000. */
  layers?: { window?: number; base: number }[];
  activation?: "gelu";
  embeddingScale?: number;
  logitCap?: number;
  /** Of a mixture of experts: how many a token uses, and whether their weights have the sum 1. */
  used?: number;
  isNormalized?: boolean;
  /** What is added to matrices, `factor` times. */
  adapter?: { file: GgufFile; factor: number };
}

/** The logits after `prompt` in the plainest way, by the reference: all tokens at once, expert by expert. */
function plainLogits(file: GgufFile, prompt: number[], architecture: PlainArchitecture): Float32Array {
  const { pairs, keyLength = 4, activation = "silu", embeddingScale = 1, logitCap, adapter } = architecture;
  const { layers = [{ base: 10000 }], used, isNormalized } = architecture;
  const { width, heads, epsilon } = SMALL;
  const vectorsOf = (x: Float32Array, length = width): Float32Array[] =>
    Array.from({ length: x.length / length }, (_, i) => x.subarray(i * length, (i + 1) * length));
  const product = (from: GgufFile, name: string, x: Float32Array, expert = 0): Float32Array => {
    const { shape, elementCount } = from.tensor(name);
    const experts = vectorsOf(from.tensor(name).dequantizeSync(), elementCount / (shape[2] ?? 1));
    return plain.matmulSync("F32", experts[expert]!, shape[0]!, x);
  };
  const addDelta = (to: Float32Array, name: string, inner: () => Float32Array, expert = 0): Float32Array => {
    if (!adapter?.file.tensors.has(`${name}.weight.lora_b`)) return to;
    const delta = product(adapter.file, `${name}.weight.lora_b`, inner(), expert);
    return plain.add(to, plain.scale(delta, adapter.factor));
  };
  const linear = (name: string, x: Float32Array, expert = 0): Float32Array => {
    const y = product(file, `${name}.weight`, x, expert);
    const bias = file.tensors.get(`${name}.bias`)?.dequantizeSync();
    if (bias !== undefined) plain.add(y, bias);
    if (name === "token_embd") return y; // what is added to embeddings is not added to logits
    return addDelta(y, name, () => product(adapter!.file, `${name}.weight.lora_a`, x, expert), expert);
  };
  const norm = (name: string, x: Float32Array): Float32Array => {
    const weights = file.tensors.get(`${name}.weight`)?.dequantizeSync();
    return weights === undefined ? x : plain.rmsNorm(x, weights, { epsilon });
  };
  const feedForward = (block: string, suffix: string, x: Float32Array, expert = 0): Float32Array => {
    const [gate, up] = ["gate", "up"].map((part) => linear(`${block}ffn_${part}${suffix}`, x, expert));
    return linear(`${block}ffn_down${suffix}`, plain.gated(gate!, up!, activation), expert);
  };
  const mixture = (block: string, x: Float32Array): Float32Array => {
    const scores = linear(`${block}ffn_gate_inp`, x);
    const fits = plain.softmax(scores, scores.length);
    const best = [...fits.keys()].sort((i, j) => fits[j]! - fits[i]!).slice(0, used);
    const total = isNormalized ? best.reduce((sum, i) => sum + fits[i]!, 0) : 1;
    const parts = best.map((i) => plain.scale(feedForward(block, "_exps", x, i), fits[i]! / total));
    if (file.tensors.has(`${block}ffn_gate_inp_shexp.weight`)) {
      const [share] = plain.activate(linear(`${block}ffn_gate_inp_shexp`, x), "sigmoid");
      parts.push(plain.scale(feedForward(block, "_shexp", x), share!));
    }
    return parts.reduce((sum, part) => plain.add(sum, part));
  };

  const x = file.tensor("token_embd.weight").rowsSync(prompt);
  addDelta(x, "token_embd", () => adapter!.file.tensor("token_embd.weight.lora_a").rowsSync(prompt));
  plain.scale(x, embeddingScale);
  for (const [layer, { window, base }] of layers.entries()) {
    const block = `blk.${layer}.`;
    const normed = norm(`${block}attn_norm`, x);
    const rotations = new plain.Rotations({ width: keyLength, base, pairs });
    const turned = (kind: "q" | "k", headCount: number): Float32Array => {
      const own = norm(`${block}attn_${kind}_norm`, linear(`${block}attn_${kind}`, normed));
      return plain.rope(own, keyLength, rotations, 0, { headCount });
    };
    const cache = new plain.KvCache({ heads: 1, keyWidth: keyLength, valueWidth: 4 });
    cache.append(turned("k", 1), linear(`${block}attn_v`, normed));
    const heard = plain.attention(turned("q", heads), cache, { heads, ...(window && { window }) });
    plain.add(x, norm(`${block}post_attention_norm`, linear(`${block}attn_output`, heard)));
    for (const vector of vectorsOf(x)) {
      const input = norm(`${block}ffn_norm`, vector);
      const made = used ? mixture(block, input) : feedForward(block, "", input);
      plain.add(vector, norm(`${block}post_ffw_norm`, made));
    }
  }
  const logits = linear("token_embd", norm("output_norm", x.subarray(-width)));
  return logitCap === undefined ? logits : logits.map((logit) => logitCap * Math.tanh(logit / logitCap));
}

describe("architectures agree with a plain forward pass", () => {
  const halves = { pairs: "halves" } as const;
  /** Gemma 3 with a window of 2 tokens in the first of two layers. */
  const gemma3 = (layers: number): SmallModel => ({
    architecture: "gemma3",
    layers,
    tensors: Array.from({ length: layers }, (_, layer) => `blk.${layer}.`).flatMap((block) => [
      vector(`${block}attn_q_norm.weight`, 4),
      vector(`${block}attn_k_norm.weight`, 4),
      vector(`${block}post_attention_norm.weight`, 8),
      vector(`${block}post_ffw_norm.weight`, 8),
    ]),
    metadata: [
      ["gemma3.attention.sliding_window", u32(2)],
      ["gemma3.rope.freq_base", f32(1e6)],
    ],
  });
  const local = { window: 2, base: 10000 };
  const plainGemma3 = { ...halves, activation: "gelu", embeddingScale: Math.sqrt(SMALL.width) } as const;
  const cases: { name?: string; model: SmallModel; plain: PlainArchitecture }[] = [
    { model: { architecture: "llama" }, plain: { pairs: "adjacent" } },
    {
      model: {
        architecture: "qwen2",
        tensors: [vector("blk.0.attn_q.bias", 8), vector("blk.0.attn_k.bias", 4), vector("blk.0.attn_v.bias", 4)],
      },
      plain: halves,
    },
    {
      model: {
        architecture: "qwen3",
        keyLength: 6, // not the width divided by the heads
        tensors: [vector("blk.0.attn_q_norm.weight", 6), vector("blk.0.attn_k_norm.weight", 6)],
        metadata: [["qwen3.attention.value_length", u32(4)]],
      },
      plain: { ...halves, keyLength: 6 },
    },
    {
      // The sixth layer sees all.
      model: gemma3(6),
      plain: { ...plainGemma3, layers: [local, local, local, local, local, { window: 99, base: 1e6 }] },
    },
    {
      name: "gemma3 with other layers, another base and a cap",
      model: ((model) => ({
        ...model,
        metadata: [
          ...model.metadata!,
          ["gemma3.attention.sliding_window_pattern", u32(2)],
          ["gemma3.rope.freq_base_swa", f32(500)],
          ["gemma3.final_logit_softcapping", f32(1.5)],
          ["gemma3.rope.scaling.type", str("none")],
        ],
      }))(gemma3(2)),
      plain: {
        ...plainGemma3,
        layers: [
          { window: 2, base: 500 },
          { window: 99, base: 1e6 },
        ],
        logitCap: 1.5,
      },
    },
  ];
  const mixtures = Object.entries(MIXTURES).map(([name, model]) => ({
    ...{ name, model },
    plain: {
      ...{ pairs: name.startsWith("llama") ? "adjacent" : "halves", used: 3 },
      isNormalized: name !== "qwen2moe",
    },
  }));
  const dense = smallAdapter("llama", 3, [
    ["token_embd", 8, 5],
    ["blk.0.attn_q", 8, 8],
    ["blk.0.ffn_down", 12, 8],
  ]);
  const sparse = smallAdapter("qwen2moe", 0, [
    ["blk.0.ffn_gate_exps", 8, 12, 6],
    ["blk.0.ffn_down_exps", 12, 8, 6],
    ["blk.0.ffn_gate_inp", 8, 6],
    ["blk.0.ffn_up_shexp", 8, 12],
  ]);
  // The scale .5, in one of them times alpha and divided by the rank.
  const adapted = [
    { ...cases[0]!, bytes: dense, factor: 0.75 },
    { ...mixtures[1]!, bytes: sparse, factor: 0.5 },
  ].map(({ model, plain, bytes, factor }) => ({
    ...{ name: `${model.architecture} with an adapter`, model },
    plain: { ...plain, adapter: { file: parse(bytes), factor } },
  }));
  for (const { name, model, plain: kind } of [...cases, ...mixtures, ...adapted] as typeof cases) {
    test(name ?? model.architecture!, () => {
      using file = smallModel(model);
      const prompt = [1, 4, 0, 3, 3];
      const expected = plainLogits(file, prompt, kind);
      const adapters = kind.adapter && [{ file: kind.adapter.file, scale: 0.5 }];
      const llama = Llama.load(file, { adapters });
      const logits = logitsAfter(llama, prompt);
      for (const [i, logit] of logits.entries()) {
        assert.ok(Math.abs(logit - expected[i]!) < 1e-6, `${i}: ${logit}, expected ${expected[i]}`);
      }
      const cache = llama.createCache(prompt.length);
      assert.deepEqual(prompt.map((token) => llama.forward([token], cache)).at(-1), logits);
    });
  }

  test("an adapter that does not fit is an error that says why", () => {
    using file = smallModel();
    const one = (...matrix: [string, number, number]) => smallAdapter("llama", 1, [matrix]);
    for (const [adapter, message] of [
      [sparse, "the adapter is for a qwen2moe, and the model is a llama"],
      [smallModelBytes(), "an adapter must have the type lora, not (none)"],
      [one("blk.1.attn_q", 8, 8), "does not know the purpose of the tensor blk.1.attn_q.weight.lora_a"],
      [one("blk.0.attn_q", 8, 7), "attn_q.weight.lora_b must have the shape any x 8, found 2 x 7"],
      [one("blk.0.attn_q", 9, 8), "attn_q.weight.lora_a must have the shape 8 x 2, found 9 x 2"],
    ] as const) {
      assert.throws(
        () => Llama.load(file, { adapters: [{ file: parse(adapter), scale: 1 }] }),
        ({ message: found }: Error) => found.endsWith(message) || assert.fail(found),
      );
    }
  });
});

test("the runtime of docs/building-a-runtime.md has the logits of the example", () => {
  const folder = temporaryFolder();
  const page = readFileSync(join(projectRoot, "docs", "building-a-runtime.md"), "utf8");
  const block = docBlocks(page).find(({ code }) => code.includes("class Runtime"))!;
  writeFileSync(join(folder, "runtime.mjs"), block.code);
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(projectRoot, join(folder, "node_modules", "gguf-native"), "junction");
  const qwen2 = { architecture: "qwen2", tensors: [vector("blk.0.attn_q.bias", 8)] };
  const models = [sampleModel(), ...[{}, qwen2, ...Object.values(MIXTURES)].map(smallModelBytes)];
  const paths = models.map((_, i) => (i === 0 ? "model.gguf" : `${i}.gguf`)); // the block opens model.gguf
  for (const [i, bytes] of models.entries()) writeFileSync(join(folder, paths[i]!), bytes);
  const prompt = [1, 4, 0, 3, 3, 2];
  const program = `const { Runtime } = await import("./runtime.mjs");
    const logits = (path) => [...new Runtime(path, { activations: "f32" }).forward(${JSON.stringify(prompt)})];
    console.log(JSON.stringify(${JSON.stringify(paths)}.map(logits)));`;
  const { stdout, stderr } = runNode(["--input-type=module", "-e", program], { cwd: folder });
  const found = JSON.parse(stdout.trim().split("\n").at(-1) || assert.fail(stderr)) as number[][];
  for (const [i, bytes] of models.entries()) {
    const expected = logitsAfter(Llama.load(parse(bytes), { activations: "f32" }), prompt);
    assert.equal(found[i]!.length, expected.length);
    for (const [j, logit] of expected.entries())
      assert.ok(Math.abs(logit - found[i]![j]!) < 1e-4, `${paths[i]}: ${found[i]![j]}, expected ${logit}`);
  }
});

describe("optional parts of a model", () => {
  const floats = (...values: number[]): Uint8Array => new Uint8Array(Float32Array.from(values).buffer);

  test("an output matrix of its own", async () => {
    using tied = smallModel();
    const embeddings = tied.tensor("token_embd.weight").dequantizeSync();
    const doubled = floats(...embeddings.map((x) => 2 * x));
    using untied = smallModel({ tensors: [{ name: "output.weight", type: 0, shape: [8, 5], bytes: doubled }] });
    const expected = logitsAfter(Llama.load(tied), [1, 2]).map((x) => 2 * x);
    assert.deepEqual(logitsAfter(Llama.load(untied), [1, 2]), expected);
  });

  test("factors for its rotations, and a scale for all", async () => {
    const logits = async (file: GgufFile): Promise<Float32Array> => {
      const result = logitsAfter(Llama.load(file), [1, 2, 3]);
      file.close();
      return result;
    };
    const factors = (...values: number[]): TensorSpec[] => [
      { name: "rope_freqs.weight", type: 0, shape: [values.length], bytes: floats(...values) },
    ];
    const plain = await logits(smallModel());
    assert.deepEqual(await logits(smallModel({ tensors: factors(1, 1) })), plain);
    const slower = await logits(smallModel({ tensors: factors(4, 4) }));
    assert.notDeepEqual(slower, plain);
    const scaling: SmallModel["metadata"] = [
      ["llama.rope.scaling.type", str("linear")],
      ["llama.rope.scaling.factor", f32(4)],
    ];
    assert.deepEqual(await logits(smallModel({ metadata: scaling })), slower);
    // Wherever the memory grows: a page of it has 16,384 numbers, and so do factors with vectors and constants.
    for (let unused = 15_800; unused < 16_384; unused += 16) {
      const tensors = factors(4, 4, ...Array<number>(unused).fill(1));
      assert.deepEqual(await logits(smallModel({ tensors })), slower, `${unused} more factors`);
    }
  });

  test("a model that the example cannot run is an error that says why", async () => {
    const bare = (name: string) => parse(writeGguf({ metadata: [["general.architecture", str(name)]] }));
    const sinks = { name: "blk.0.attn_sinks", type: 0, shape: [1], bytes: floats(1) };
    for (const [file, message] of [
      [bare("gemma2"), /architectures llama, qwen2, qwen2moe, qwen3, qwen3moe, gemma3, not gemma2/],
      [bare("llama"), /no key llama.embedding_length/],
      [smallModel({ metadata: [["llama.expert_count", u32(8)]] }), /no key llama.expert_used_count/],
      [smallModel({ experts: { count: 4, used: 5 } }), /llama.expert_used_count must be .* from 1 to 4, found 5/],
      [smallModel({ metadata: [["llama.rope.scaling.type", str("yarn")]] }), /type must be none or linear, found yarn/],
      [smallModel({ tensors: [sinks] }), /does not know the purpose of the tensor blk.0.attn_sinks/],
    ] as const) {
      assert.throws(() => Llama.load(file), message);
      file.close();
    }
  });
});

describe("perplexity", () => {
  const tokens = [1, 4, 0, 3, 3, 2, 1, 1, 0];
  /** -ln of the probability of the last token after those before it, one by one. */
  const surprise = (llama: Llama, ...text: number[]): number => {
    const logits = logitsAfter(llama, text.slice(0, -1));
    const total = logits.reduce((sum, logit) => sum + Math.exp(logit), 0);
    return Math.log(total) - logits[text.at(-1)!]!;
  };
  const isNear = (actual: number, expected: number): void =>
    assert.ok(Math.abs(actual / expected - 1) < 1e-5, `${actual}, expected ${expected}`);

  test("of the second halves of pieces, which begin with a token of their own", () => {
    using file = smallModel();
    const llama = Llama.load(file);
    // Of pieces of four tokens, the fourth is predicted, as by llama-perplexity; the ninth token is left.
    const sum = surprise(llama, 2, 4, 0, 3) + surprise(llama, 2, 2, 1, 1);
    const { perplexity: found, count } = perplexity(llama, tokens, { context: 4, begin: 2 });
    assert.equal(count, 2);
    isNear(found, Math.exp(sum / 2));
  });

  test("of all tokens but the first, in several batches", () => {
    using file = parse(sampleModel());
    const llama = Llama.load(file);
    const text = Array.from({ length: 200 }, (_, i) => (i * 37) % 2000);
    const cache = llama.createCache(200);
    let sum = 0;
    for (const [i, token] of text.slice(0, -1).entries()) {
      const logits = llama.forward([token], cache);
      sum += Math.log(logits.reduce((a, b) => a + Math.exp(b), 0)) - logits[text[i + 1]!]!;
    }
    const { perplexity: found, count } = perplexity(llama, text);
    assert.equal(count, 199);
    isNear(found, Math.exp(sum / 199));
  });

  test("needs two tokens, or two pieces", () => {
    using file = smallModel();
    const llama = Llama.load(file);
    assert.throws(() => perplexity(llama, [1]), /two tokens at least/);
    assert.throws(() => perplexity(llama, []), /two tokens at least/);
    assert.throws(() => perplexity(llama, tokens, { context: 5 }), /9 tokens, which is less than two pieces of 5/);
  });
});

describe("sampling", () => {
  const logits = Float32Array.of(0, Math.log(6), -5, Math.log(3), -1);

  test("greedy takes the most probable token, the first of equals", () => {
    assert.equal(greedy(logits), 1);
    assert.equal(greedy(Float32Array.of(1, 3, 3)), 1);
  });

  test("top-k takes each of the k best as often as it is probable", () => {
    const sample = topKSampler(3, 1);
    const counts = [0, 0, 0, 0, 0];
    for (let i = 0; i < 10000; i++) counts[sample(logits)]!++;
    // One, six and three in ten; five standard deviations are 245 at most.
    for (const [token, expected] of [1000, 6000, 0, 3000, 0].entries()) {
      const bound = expected === 0 ? 0 : 245;
      assert.ok(Math.abs(counts[token]! - expected) <= bound, `${token}: ${counts[token]} times`);
    }
  });

  test("top-k makes the same choices for the same seed, others for another", () => {
    const choices = (seed: number): number[] => {
      const sample = topKSampler(4, seed);
      return Array.from({ length: 50 }, () => sample(logits));
    };
    assert.deepEqual(choices(5), choices(5));
    assert.notDeepEqual(choices(5), choices(6));
  });

  test("top-1 is greedy, and more than there are is all", () => {
    assert.equal(topKSampler(1, 3)(logits), 1);
    assert.ok(topKSampler(99, 3)(logits) < logits.length);
    const tokens = mostProbable(logits, 9).map(({ token }) => token);
    assert.deepEqual(tokens, [1, 3, 0, 4, 2]);
  });
});

test("an importance matrix has the sums of what each matrix is multiplied with, and its count", async () => {
  const path = join(temporaryFolder(), "importance.gguf");
  const inputs = new Map<string, Float32Array[]>();
  const matrix = new ImportanceMatrix();
  using file = parse(sampleModel());
  const llama = Llama.load(file, {
    activations: "f32",
    observe(name, columns, vectors) {
      inputs.set(name, [...(inputs.get(name) ?? []), vectors.slice()]);
      matrix.add(name, columns, vectors);
    },
  });
  assert.equal(readPieces(llama, [1, 2, 3, 4, 5, 6, 7], 9, 3), 2);
  await matrix.write(path, "a text", 2, 3);
  using written = openSync(path);
  assert.equal(written.metadata.string("general.type"), "imatrix");
  assert.deepEqual(written.metadata.get("imatrix.chunk_count"), 2);
  const matrices = [...inputs].filter(([name]) => name.startsWith("blk."));
  assert.ok(inputs.has("token_embd.weight") || inputs.has("output.weight"));
  assert.equal(written.tensors.size, 2 * matrices.length);
  for (const [name, vectors] of matrices) {
    const sums = written.tensor(`${name}.in_sum2`).dequantizeSync();
    const expected = new Float64Array(sums.length);
    for (const vector of vectors) {
      for (const [i, x] of vector.entries()) expected[i % sums.length]! += x * x;
    }
    assert.deepEqual(sums, Float32Array.from(expected), name);
    assert.deepEqual([...written.tensor(`${name}.counts`).dequantizeSync()], [6]);
  }
  assert.throws(() => readPieces(llama, [1, 2], undefined, 3), /less than a piece of 3/);
});

test("an importance matrix has the sums and the count of each expert", async () => {
  const path = join(temporaryFolder(), "experts.gguf");
  const matrix = new ImportanceMatrix();
  const llama = Llama.load(smallModel(MIXTURES.qwen3moe), { observe: matrix.add });
  readPieces(llama, [1, 4, 0, 3, 3, 2], undefined, 3);
  await matrix.write(path, "a text", 2, 3);
  using written = openSync(path);
  for (const [name, width] of Object.entries({ gate: 8, up: 8, down: 12 })) {
    const tensor = `blk.0.ffn_${name}_exps.weight`;
    const counts = written.tensor(`${tensor}.counts`);
    const numbers = counts.dequantizeSync();
    assert.deepEqual([...counts.shape], [1, 6]);
    const total = numbers.reduce((a, b) => a + b);
    assert.equal(total, 6 * 3); // tokens times experts of each
    const sums = written.tensor(`${tensor}.in_sum2`);
    assert.deepEqual([...sums.shape], [width, 6]);
    const used = Array.from(numbers.keys(), (expert) => sums.rowsSync([expert]).some((sum) => sum > 0));
    const expected = Array.from(numbers, (count) => count > 0);
    assert.deepEqual(used, expected);
  }
});
