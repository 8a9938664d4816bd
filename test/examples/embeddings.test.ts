/** examples/embeddings: its vectors against a plain forward pass, its functions, passages, and what it refuses. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type GgufFile, parse } from "gguf-native";
import { Tokenizer } from "gguf-native/tokenizer";
import type { Pooling } from "../../examples/embeddings/config";
import { Embedder } from "../../examples/embeddings/embedder";
import { Bert } from "../../examples/embeddings/model";
import { Index, passagesOf } from "../../examples/embeddings/search";
import { str, u32 } from "../support/gguf-writer";
import { sampleBert } from "../support/sample-bert";

const model = parse(sampleBert());
const HEADS = 4;

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

/** The vectors of the tokens of a text, computed in the plainest way, in float64. */
function plainVectors(file: GgufFile, tokens: readonly number[]): number[][] {
  const numbers = (name: string): number[] => [...file.tensor(name).dequantizeSync()];
  const row = (name: string, index: number): number[] => [...file.tensor(name).rowsSync([index])];
  const linear = (name: string, x: number[]): number[] => {
    const weights = numbers(`${name}.weight`);
    return numbers(`${name}.bias`).map((bias, r) =>
      x.reduce((sum, value, i) => sum + value * weights[r * x.length + i]!, bias),
    );
  };
  const norm = (name: string, x: number[]): number[] => {
    const [weight, bias] = [numbers(`${name}.weight`), numbers(`${name}.bias`)];
    const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
    const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length;
    return x.map((value, i) => ((value - mean) / Math.sqrt(variance + 1e-12)) * weight[i]! + bias[i]!);
  };
  const add = (a: number[], b: number[]): number[] => a.map((value, i) => value + b[i]!);

  let x = tokens.map((token, position) => {
    const embedding = add(row("token_embd.weight", token), row("position_embd.weight", position));
    return norm("token_embd_norm", add(embedding, row("token_types.weight", 0)));
  });
  for (const block of ["blk.0.", "blk.1."]) {
    const [queries, keys, values] = ["q", "k", "v"].map((which) =>
      x.map((vector) => linear(`${block}attn_${which}`, vector)),
    ) as [number[][], number[][], number[][]];
    const width = queries[0]!.length / HEADS;
    x = x.map((vector, token) => {
      const heard = Array.from({ length: HEADS }, (_, head) => {
        const part = (numbers: number[]): number[] => numbers.slice(head * width, (head + 1) * width);
        const powers = keys.map((key) =>
          Math.exp(
            part(key).reduce((sum, k, i) => sum + k * part(queries[token]!)[i]!, 0) / Math.sqrt(width),
          ),
        );
        const total = powers.reduce((sum, power) => sum + power, 0);
        return Array.from({ length: width }, (_, i) =>
          values.reduce((sum, value, other) => sum + (powers[other]! / total) * part(value)[i]!, 0),
        );
      }).flat();
      const attended = norm(`${block}attn_output_norm`, add(vector, linear(`${block}attn_output`, heard)));
      const hidden = linear(`${block}ffn_up`, attended).map(gelu);
      return norm(`${block}layer_output_norm`, add(attended, linear(`${block}ffn_down`, hidden)));
    });
  }
  return x;
}

describe("vectors", () => {
  const text = "The number of tensors in a file: 42.";
  const tokens = [...new Tokenizer(model.metadata).encode(text)];

  const pooled: Record<Pooling, (x: number[][]) => number[]> = {
    mean: (x) => x[0]!.map((_, i) => x.reduce((sum, vector) => sum + vector[i]!, 0) / x.length),
    cls: (x) => x[0]!,
    last: (x) => x.at(-1)!,
  };
  for (const [pooling, pool] of Object.entries(pooled) as [Pooling, (x: number[][]) => number[]][]) {
    test(`are those of a plain forward pass, pooled by ${pooling}`, () => {
      const expected = pool(plainVectors(model, tokens));
      const length = Math.hypot(...expected);
      for (const normalize of [true, false]) {
        const bert = Bert.load(model, { activations: "f32", pooling, normalize });
        const [found] = bert.embed([tokens]);
        const scale = normalize ? 1 / length : 1;
        const error = Math.hypot(...expected.map((value, i) => value * scale - found![i]!));
        assert.ok(error < 1e-5 * length * scale, `${error} of ${length * scale}`);
      }
    });
  }

  test("are pooled as the metadata says", () => {
    for (const [type, pooling] of [
      [1, "mean"],
      [2, "cls"],
      [3, "last"],
    ] as const) {
      const file = parse(sampleBert({ metadata: [["bert.pooling_type", u32(type)]] }));
      assert.deepEqual(new Embedder(file).embed([text]), new Embedder(model, { pooling }).embed([text]));
    }
  });

  test("are of rounded activations unless those are not wanted", () => {
    const [rounded] = new Embedder(model).embed([text]);
    const [exact] = new Embedder(model, { activations: "f32" }).embed([text]);
    const error = Math.hypot(...exact!.map((value, i) => value - rounded![i]!));
    assert.ok(error > 1e-5 && error < 0.05, `${error}`);
  });

  test("of a text that is too long are those of its beginning, with the end that the model wants", () => {
    const embedder = new Embedder(model);
    // 128 tokens, the first and the last of which mark the ends.
    const [long, longer] = embedder.embed(["cat ".repeat(126), "cat ".repeat(500)]);
    assert.deepEqual(longer, long);
  });

  test("of no texts are none, and texts without tokens or with too many are refused", () => {
    const bert = Bert.load(model);
    assert.deepEqual(bert.embed([]), []);
    assert.throws(() => bert.embed([[2, 3], []]), /^RangeError: a text has 1 to 128 tokens, not 0$/);
    assert.throws(
      () => bert.embed([Array(129).fill(2)]),
      /^RangeError: a text has 1 to 128 tokens, not 129$/,
    );
  });

  test("need no biases of matrices", () => {
    const file = parse(sampleBert({ without: /attn_.\.bias$/ }));
    const [vector] = new Embedder(file).embed([text]);
    assert.ok(vector!.every(Number.isFinite));
  });
});

describe("what is not a model for it", () => {
  for (const [what, change, message] of [
    [
      "another architecture",
      { metadata: [["general.architecture", str("llama")]] },
      /^Error: this example runs models of the architecture bert, not llama$/,
    ],
    [
      "pooling that is not known",
      { metadata: [["bert.pooling_type", u32(0)]] },
      /^Error: this example does not support bert\.pooling_type 0: choose one of mean, cls, last$/,
    ],
    [
      "heads that do not divide vectors",
      { metadata: [["bert.attention.head_count", u32(3)]] },
      /^Error: bert\.attention\.head_count must be a divisor of the 128 numbers of a vector, found 3$/,
    ],
    [
      "vectors that are not taken four numbers at a time",
      { metadata: [["bert.feed_forward_length", u32(510)]] },
      /^Error: bert\.feed_forward_length must be a multiple of 4, found 510$/,
    ],
    [
      "a key of the wrong type",
      { metadata: [["bert.block_count", str("two")]] },
      /ERR_GGUF_METADATA_TYPE|'bert\.block_count' is/,
    ],
    ["a tensor that is not there", { without: /^blk\.1\.ffn_up\.weight$/ }, /blk\.1\.ffn_up\.weight/],
    [
      "a tensor that nothing needs",
      { metadata: [["bert.block_count", u32(1)]] },
      /^Error: bert\.block_count must be 2, as many as there are tensors for, found 1$/,
    ],
    [
      "fewer positions than the context",
      { metadata: [["bert.context_length", u32(1000)]] },
      /^Error: bert\.context_length must be up to the 128 positions of the model, found 1000$/,
    ],
    [
      "embeddings of another length",
      { metadata: [["bert.embedding_length", u32(64)]] },
      /^Error: the tensor token_embd\.weight must have the shape 64 x any, found 128 x \d+$/,
    ],
  ] as const) {
    test(what, () => {
      const file = parse(sampleBert(change as Parameters<typeof sampleBert>[0]));
      assert.throws(() => new Embedder(file), message);
    });
  }
});

describe("passages", () => {
  test("are paragraphs, with the lines that they begin in", () => {
    assert.deepEqual(passagesOf("one\ntwo\n\n  three\n \n\n\nfour\r\n\r\nfive\n"), [
      { text: "one\ntwo", line: 1 },
      { text: "three", line: 4 },
      { text: "four", line: 8 },
      { text: "five", line: 10 },
    ]);
    assert.deepEqual(passagesOf(" \n\n"), []);
  });

  test("are cut after sentences, else after words, else anywhere", () => {
    const sentences = passagesOf(`${"A sentence of some words. ".repeat(60)}`);
    assert.ok(
      sentences.length > 2 && sentences.every(({ text }) => text.endsWith(".") && text.length <= 600),
    );
    const words = passagesOf("word\n".repeat(300));
    assert.deepEqual(
      words.map(({ text, line }) => [text.length, line]),
      [
        [599, 1],
        [599, 121],
        [299, 241],
      ],
    );
    const shown = passagesOf("x".repeat(1300)).map(({ text }) => text.length);
    assert.deepEqual(shown, [600, 600, 100]);
    const smileys = passagesOf(`x${"😀".repeat(1000)}`);
    assert.equal(smileys.length, 2);
    assert.ok(smileys.every(({ text }) => !/\p{Surrogate}/u.test(text)));
  });

  test("that equal the query are found first, wherever they are", () => {
    const passages = passagesOf(
      Array.from({ length: 70 }, (_, i) => `the ${"cat ".repeat(i % 9)}dog ${i}`).join("\n\n"),
    );
    const index = new Index(new Embedder(model), passages);
    assert.deepEqual([...index.build()], [32, 64, 70]);
    for (const i of [0, 33, 69]) {
      const found = index.search(passages[i]!.text, 3);
      assert.deepEqual([found.length, found[0]!.line], [3, 2 * i + 1]);
      assert.ok(Math.abs(found[0]!.similarity - 1) < 1e-6 && found[1]!.similarity < 1);
    }
  });

  test("get the prefix that the model wants", () => {
    const index = new Index(new Embedder(model), passagesOf("cat\n\ndog"));
    for (const _ of index.build("passage: "));
    assert.ok(Math.abs(index.search("passage: dog", 1)[0]!.similarity - 1) < 1e-6);
    assert.ok(index.search("dog", 1)[0]!.similarity < 0.99999);
  });
});
