/** The networks of gguf-native/embeddings against one that is computed in the plainest way, in float64. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type GgufFile, parse } from "gguf-native";
import { Embedder } from "gguf-native/embeddings";
import { Tokenizer } from "gguf-native/tokenizer";
import { arr, bool, str, type TypedValue, u32 } from "../support/gguf-writer";
import { SMALL_EMBEDDER, type SmallArchitecture, smallEmbedder } from "../support/small-embedder";

const { heads, window } = SMALL_EMBEDDER;

/** The error function, by its series. */
function erf(x: number): number {
  if (Math.abs(x) > 5) return Math.sign(x);
  let term = x;
  let sum = x;
  for (let n = 1; n < 200; n++) {
    term *= (-x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}

const gelu = (x: number): number => 0.5 * x * (1 + erf(x / Math.SQRT2));

const ACTIVATIONS: Record<SmallArchitecture, (x: number) => number> = {
  ...{ bert: gelu, "nomic-bert-moe": gelu },
  "nomic-bert": (x) => x / (1 + Math.exp(-x)),
  qwen3: (x) => x / (1 + Math.exp(-x)),
  "gemma-embedding": (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
};

type Vector = number[];
const sum = (x: Iterable<number>): number => [...x].reduce((total, each) => total + each, 0);
const add = (a: Vector, b: Vector): Vector => a.map((value, i) => value + b[i]!);

/** The vectors of the tokens of a text; those from `second` on are of another kind. */
function plainVectors(file: GgufFile, ids: readonly number[], second = ids.length): Vector[] {
  const architecture = file.metadata.architecture as SmallArchitecture;
  const isBert = architecture.includes("bert");
  const isGemma = architecture === "gemma-embedding";
  const x0 = ids.map((id, position) => {
    const row = (name: string, index: number): Vector => [...file.tensor(name).rowsSync([index])];
    let x = row("token_embd.weight", id);
    if (isGemma) x = x.map((value) => value * Math.sqrt(x.length));
    if (isBert) x = add(x, row("token_types.weight", position < second ? 0 : 1));
    if (architecture === "bert") x = add(x, row("position_embd.weight", position));
    return isBert ? norm(file, "token_embd_norm", x) : x;
  });
  let x = x0;
  for (let layer = 0; layer < file.metadata.arch("block_count")!; layer++) {
    const block = `blk.${layer}.`;
    const isNear = isGemma && layer % 6 < 5;
    const heard = attended(file, block, isBert ? x : x.map((each) => norm(file, `${block}attn_norm`, each)), isNear);
    const [afterAttention, afterAll] = isBert
      ? ["attn_output_norm", "layer_output_norm"]
      : ["post_attention_norm", "post_ffw_norm"];
    /** Adds a result: BERT norms the sum, Gemma the result. */
    const plus = (name: string, vector: Vector, result: Vector): Vector => {
      if (isBert) return norm(file, block + name, add(vector, result));
      return add(vector, isGemma ? norm(file, block + name, result) : result);
    };
    x = x.map((vector, i) => plus(afterAttention!, vector, linear(file, `${block}attn_output`, heard[i]!)));
    x = x.map((vector) => {
      const input = isBert ? vector : norm(file, `${block}ffn_norm`, vector);
      const network = (end = "", expert = 0, count = 1): Vector => {
        const up = linear(file, `${block}ffn_up${end}`, input, expert, count);
        const hasGate = file.tensors.has(`${block}ffn_gate.weight`);
        const gate = hasGate ? linear(file, `${block}ffn_gate`, input) : up;
        const factors = hasGate ? up : up.map(() => 1);
        const hidden = gate.map((value, j) => ACTIVATIONS[architecture](value) * factors[j]!);
        return linear(file, `${block}ffn_down${end}`, hidden, expert, count);
      };
      if (!file.tensors.has(`${block}ffn_gate_inp.weight`)) return plus(afterAll!, vector, network());
      const powers = linear(file, `${block}ffn_gate_inp`, input).map(Math.exp);
      const least = Math.min(...powers);
      const results = powers.map((power, i) => {
        const share = power === least ? 0 : power / sum(powers); // two of three are used
        return network("_exps", i, powers.length).map((each) => share * each);
      });
      return plus(afterAll!, vector, results.reduce(add));
    });
  }
  return isBert ? x : x.map((vector) => norm(file, "output_norm", vector));
}

/** The product with a matrix; with that of one of so many experts. */
function linear(file: GgufFile, name: string, x: Vector, expert = 0, count = 1): Vector {
  const all = file.tensor(`${name}.weight`).dequantizeSync();
  const weights = all.subarray((expert * all.length) / count, ((expert + 1) * all.length) / count);
  const bias = file.tensors.get(`${name}.bias`)?.dequantizeSync();
  return Array.from({ length: weights.length / x.length }, (_, r) =>
    sum([bias?.[r] ?? 0, ...x.map((value, i) => value * weights[r * x.length + i]!)]),
  );
}

function norm(file: GgufFile, name: string, x: Vector): Vector {
  const weight = file.tensor(`${name}.weight`).dequantizeSync();
  const bias = file.tensors.get(`${name}.bias`)?.dequantizeSync();
  const mean = bias === undefined ? 0 : sum(x) / x.length;
  const variance = sum(x.map((value) => (value - mean) ** 2)) / x.length;
  return x.map((value, i) => ((value - mean) / Math.sqrt(variance + 1e-5)) * weight[i]! + (bias?.[i] ?? 0));
}

/** What each token hears, before the matrix of outputs. */
function attended(file: GgufFile, block: string, x: Vector[], isNear: boolean): Vector[] {
  const architecture = file.metadata.architecture as SmallArchitecture;
  const width = file.metadata.arch("attention.key_length") ?? x[0]!.length / heads;
  const keyHeads = file.metadata.arch("attention.head_count_kv") ?? heads;
  const isFused = architecture.startsWith("nomic");
  const base = isNear ? 10000 : 1000;
  const headsOf = (which: number, count: number): Vector[][] =>
    x.map((vector, position) => {
      const all = linear(file, block + (isFused ? "attn_qkv" : `attn_${"qkv"[which]}`), vector);
      const first = isFused ? which * heads * width : 0;
      return Array.from({ length: count }, (_, head) => {
        const numbers = all.slice(first + head * width, first + (head + 1) * width);
        const name = `${block}attn_${"qk"[which]}_norm`;
        const normed = file.tensors.has(`${name}.weight`) ? norm(file, name, numbers) : numbers;
        return architecture === "bert" || which === 2 ? normed : rotated(normed, position, base);
      });
    });
  const [queries, keys, values] = [headsOf(0, heads), headsOf(1, keyHeads), headsOf(2, keyHeads)];
  return queries.map((query, i) =>
    query.flatMap((asked, head) => {
      const of = Math.floor(head / (heads / keyHeads));
      const powers = keys.map((key, j) => {
        const isSeen = isNear ? Math.abs(i - j) <= window / 2 : architecture !== "qwen3" || j <= i;
        return isSeen ? Math.exp(sum(asked.map((a, c) => a * key[of]![c]!)) / Math.sqrt(width)) : 0;
      });
      return asked.map((_, c) => sum(powers.map((p, j) => p * values[j]![of]![c]!)) / sum(powers));
    }),
  );
}

function rotated(x: Vector, position: number, base: number): Vector {
  const half = x.length / 2;
  return x.map((value, i) => {
    const angle = position * base ** (-(i % half) / half);
    const other = i < half ? -x[i + half]! : x[i - half]!;
    return value * Math.cos(angle) + other * Math.sin(angle);
  });
}

const pooled = {
  mean: (x: Vector[]): Vector => x[0]!.map((_, i) => sum(x.map((vector) => vector[i]!)) / x.length),
  cls: (x: Vector[]): Vector => x[0]!,
  last: (x: Vector[]): Vector => x.at(-1)!,
};

const TEXT = "The number of tensors in a file: 42, and the cat of the browser.";
/** More tokens than the model has; both ends of what counts are marked. */
const LONG = "the cat is in the file ".repeat(20);

describe("vectors are those of a plain forward pass", () => {
  for (const [architecture, pooling] of [
    ["bert", "mean"],
    ["bert", "cls"],
    ["bert", "last"],
    ["nomic-bert", "mean"],
    ["nomic-bert-moe", "mean"],
    ["qwen3", "last"],
    ["gemma-embedding", "mean"],
  ] as const) {
    test(`${architecture}, pooled by ${pooling}`, async () => {
      const type = u32(["mean", "cls", "last"].indexOf(pooling) + 1);
      const file = parse(smallEmbedder(architecture, { metadata: [[`${architecture}.pooling_type`, type]] }));
      const tokenizer = new Tokenizer(file.metadata);
      using embedder = await Embedder.open(file, { activations: "f32" });
      const found = await embedder.embed([TEXT, LONG, ""], { normalize: false });
      for (const [i, text] of [TEXT, LONG, ""].entries()) {
        const ids = cutToContext([...tokenizer.encode(text)]);
        const vector = pooled[pooling](plainVectors(file, ids));
        const dense = architecture === "gemma-embedding" ? ["dense_2", "dense_3"] : [];
        assertNear(
          found[i]!,
          dense.reduce((each, name) => linear(file, name, each), vector),
        );
      }
    });
  }

  test("the file or an option says how they are pooled", async () => {
    const file = parse(smallEmbedder("bert", { metadata: [["bert.pooling_type", u32(2)]] }));
    using first = await Embedder.open(file);
    using same = await Embedder.open(parse(smallEmbedder("bert")), { pooling: "cls" });
    assert.deepEqual(await first.embed([TEXT]), await same.embed([TEXT]));
  });
});

/** A vocabulary of XLM-RoBERTa's kind: the token that ends a query stands there twice. */
const UNIGRAMS: [string, TypedValue][] = [
  ["tokenizer.ggml.model", str("t5")],
  ["tokenizer.ggml.tokens", arr("string", ["<unk>", "<s>", "</s>", "\u2581", ..."acehnot"])],
  ["tokenizer.ggml.scores", arr("float32", [0, 0, 0, -1, -2, -2, -2, -2, -2, -2, -2])],
  ["tokenizer.ggml.token_type", arr("int32", [2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1])],
  ["tokenizer.ggml.bos_token_id", u32(1)],
  ["tokenizer.ggml.eos_token_id", u32(2)],
  ["tokenizer.ggml.unknown_token_id", u32(0)],
];

describe("scores are those of a plain forward pass, of a query and a text of another kind", () => {
  for (const [kind, vocabulary, between] of [
    ["bert", [], []],
    ["t5", UNIGRAMS, [2]],
  ] as const) {
    test(`with a vocabulary of the kind ${kind}`, async () => {
      const metadata: [string, TypedValue][] = [["bert.pooling_type", u32(4)], ...vocabulary];
      const file = parse(smallEmbedder("bert", { hasScores: true, metadata }));
      const tokenizer = new Tokenizer(file.metadata, { normalization: "model" });
      using reranker = await Embedder.open(file, { activations: "f32" });
      assert.equal(reranker.hasScores, true);
      const found = await reranker.score("the cat", [TEXT, LONG, ""]);
      const query = [...tokenizer.encode("the cat"), ...between];
      for (const [i, text] of [TEXT, LONG, ""].entries()) {
        const ids = cutToContext([...query, ...tokenizer.encode(text, { bos: false })]);
        const [first] = plainVectors(file, ids, query.length) as [Vector];
        const score = linear(file, "cls.output", linear(file, "cls", first).map(Math.tanh));
        assertNear(found.subarray(i, i + 1), score);
      }
      const refused = { code: "ERR_GGUF_UNSUPPORTED_TYPE", message: /call score\(\)/ };
      await assert.rejects(reranker.embed([TEXT]), refused);
    });
  }
});

test("a model that says so is not causal, and one whose positions are stretched is refused", async () => {
  const opened = (key: string, value: TypedValue) =>
    Embedder.open(parse(smallEmbedder("qwen3", { metadata: [[`qwen3.${key}`, value]] })), { pooling: "cls" });
  using causal = await opened("attention.causal", bool(true));
  using other = await opened("attention.causal", bool(false));
  const [a, b] = await causal.embed(["the cat", "the dog"]);
  const [c, d] = await other.embed(["the cat", "the dog"]);
  assert.deepEqual(a, b); // the first token sees itself alone
  assert.notDeepEqual(c, d);
  const metadata: [string, TypedValue][] = [["nomic-bert-moe.expert_used_count", u32(4)]];
  const mixed = Embedder.open(parse(smallEmbedder("nomic-bert-moe", { metadata })));
  await assert.rejects(mixed, /expert_used_count must be at most expert_count, found 4/);
  await assert.rejects(opened("rope.scaling.type", str("yarn")), /qwen3\.rope\.scaling\.type is 'yarn'/);
});

/** What is beyond the context is left out, but for the last token. */
function cutToContext(ids: number[]): number[] {
  const { context } = SMALL_EMBEDDER;
  return ids.length > context ? [...ids.slice(0, context - 1), ids.at(-1)!] : ids;
}

function assertNear(found: Float32Array, expected: Vector): void {
  const error = Math.hypot(...expected.map((value, i) => value - found[i]!)) / Math.hypot(...expected);
  assert.equal(found.length, expected.length);
  assert.ok(error < 2e-5, `${error}`);
}
