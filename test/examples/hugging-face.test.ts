/** examples/hugging-face: names and rows there and back, and the rotary embeddings of both conventions. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { GgufWriter, matmulSync, openSync, parse } from "gguf-native";
import { Rotations, rope } from "gguf-native/network";
import {
  fromHuggingFace,
  ggufName,
  huggingFaceName,
  reorderRows,
  rowsForGguf,
  rowsForHuggingFace,
  toHuggingFace,
} from "../../examples/hugging-face";
import { projectRoot } from "../support/paths";
import { Random } from "../support/random";
import { needsShared, sharedPath, tinyLlama } from "../support/shared-data";

const random = new Random(21);
const gaussian = (length: number): Float32Array => Float32Array.from({ length }, () => random.gaussian());

async function bytesOf(writer: GgufWriter): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of writer.chunks()) chunks.push(Uint8Array.from(chunk));
  return Buffer.concat(chunks);
}

describe("names", () => {
  const PAIRS = [
    ["token_embd.weight", "model.embed_tokens.weight"],
    ["output_norm.weight", "model.norm.weight"],
    ["output.weight", "lm_head.weight"],
    ["blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight"],
    ["blk.12.attn_q.weight", "model.layers.12.self_attn.q_proj.weight"],
    ["blk.12.attn_k.bias", "model.layers.12.self_attn.k_proj.bias"],
    ["blk.3.attn_v.weight", "model.layers.3.self_attn.v_proj.weight"],
    ["blk.3.attn_q_norm.weight", "model.layers.3.self_attn.q_norm.weight"],
    ["blk.3.attn_output.weight", "model.layers.3.self_attn.o_proj.weight"],
    ["blk.3.ffn_norm.weight", "model.layers.3.post_attention_layernorm.weight"],
    ["blk.3.ffn_gate.weight", "model.layers.3.mlp.gate_proj.weight"],
    ["blk.3.ffn_up.weight", "model.layers.3.mlp.up_proj.weight"],
    ["blk.3.ffn_down.weight", "model.layers.3.mlp.down_proj.weight"],
  ] as const;
  for (const [ours, theirs] of PAIRS) {
    test(ours, () => {
      assert.equal(huggingFaceName(ours), theirs);
      assert.equal(ggufName(theirs), ours);
    });
  }

  test("others", () => {
    for (const name of [
      "rope_freqs.weight",
      "blk.0.ffn_gate_exps.weight",
      "attn_q.weight",
      "blk.0.output.weight",
      "",
    ]) {
      assert.equal(huggingFaceName(name), undefined, name);
    }
    for (const name of ["model.layers.0.lm_head.weight", "self_attn.q_proj.weight", "lm_head", ""]) {
      assert.equal(ggufName(name), undefined, name);
    }
  });

  test("every tensor of a real llama has a name", needsShared(tinyLlama), () => {
    using file = openSync(sharedPath(tinyLlama));
    for (const name of file.tensors.keys()) assert.equal(ggufName(huggingFaceName(name) ?? ""), name);
  });
});

describe("rows", () => {
  test("are in the order that llama.cpp's converter makes", () => {
    // weights.reshape(heads, 2, length / 2).swapaxes(1, 2).reshape(rows), for the numbers of the rows.
    for (const [heads, length] of [
      [2, 6],
      [1, 2],
      [5, 8],
    ] as const) {
      const expected: number[] = [];
      for (let head = 0; head < heads; head++) {
        for (let j = 0; j < length / 2; j++) {
          for (let i = 0; i < 2; i++) expected.push(head * length + i * (length / 2) + j);
        }
      }
      assert.deepEqual(Array.from(rowsForGguf(heads * length, heads)), expected);
    }
    assert.deepEqual(Array.from(rowsForGguf(12, 2)), [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]);
  });

  test("come back", () => {
    for (const [rows, heads] of [
      [64, 4],
      [96, 1],
      [12, 6],
    ] as const) {
      const matrix = gaussian(rows * 3);
      const stored = reorderRows(matrix, 3, rowsForGguf(rows, heads));
      assert.deepEqual(reorderRows(stored, 3, rowsForHuggingFace(rows, heads)), matrix);
      const other = reorderRows(matrix, 3, rowsForHuggingFace(rows, heads));
      assert.deepEqual(reorderRows(other, 3, rowsForGguf(rows, heads)), matrix);
    }
  });

  test("must be heads of an even length", () => {
    for (const [rows, heads] of [
      [12, 5],
      [9, 3],
    ] as const) {
      assert.throws(() => rowsForHuggingFace(rows, heads), /heads of an even length/);
    }
  });
});

const KEY_LENGTH = 16;
const COLUMNS = 64;

/** Hugging Face's apply_rotary_pos_emb for one token: x * cos + rotate_half(x) * sin, with the angles of both halves. */
function rotateHalf(x: Float32Array, position: number, base: number): Float32Array {
  const half = KEY_LENGTH / 2;
  return x.map((value, at) => {
    const i = at % KEY_LENGTH;
    const angle = position * base ** ((-2 * (i % half)) / KEY_LENGTH);
    const rotated = i < half ? -x[at + half]! : x[at - half]!;
    return value * Math.cos(angle) + rotated * Math.sin(angle);
  });
}

/** ggml's rotation of adjacent numbers, as complex numbers. */
function rotateAdjacent(x: Float32Array, position: number, base: number): Float32Array {
  const result = new Float32Array(x.length);
  for (let at = 0; at < x.length; at += 2) {
    const angle = position * base ** (-(at % KEY_LENGTH) / KEY_LENGTH);
    const [re, im] = [x[at]!, x[at + 1]!];
    result[at] = re * Math.cos(angle) - im * Math.sin(angle);
    result[at + 1] = re * Math.sin(angle) + im * Math.cos(angle);
  }
  return result;
}

/** The same by gguf-native/network, as examples/llama does, whose results are llama.cpp's. */
function rotateByLibrary(
  x: Float32Array,
  position: number,
  base: number,
  pairs: "adjacent" | "halves",
): Float32Array {
  const rotations = new Rotations({ width: KEY_LENGTH, base, pairs });
  return rope(x, KEY_LENGTH, rotations, position, { headCount: x.length / KEY_LENGTH });
}

/** The product with a matrix of rows of COLUMNS numbers. */
const product = (matrix: Float32Array, x: Float32Array): Float32Array =>
  matmulSync("F32", new Uint8Array(matrix.buffer, matrix.byteOffset, matrix.byteLength), COLUMNS, x);

const difference = (a: Float32Array, b: Float32Array): number =>
  a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i]!)), 0);

describe("rotary embeddings", () => {
  const base = 10000;
  for (const [heads, position] of [
    [4, 0],
    [4, 1],
    [2, 77],
    [1, 4095],
  ] as const) {
    test(`${heads} heads at position ${position}: both conventions compute the same`, () => {
      const rows = heads * KEY_LENGTH;
      const theirs = gaussian(rows * COLUMNS);
      const stored = reorderRows(theirs, COLUMNS, rowsForGguf(rows, heads));
      const x = gaussian(COLUMNS);
      const expected = rotateHalf(product(theirs, x), position, base);
      const adjacent = rotateAdjacent(product(stored, x), position, base);
      assert.ok(difference(rotateByLibrary(product(stored, x), position, base, "adjacent"), adjacent) < 1e-5);
      assert.ok(difference(rotateByLibrary(product(theirs, x), position, base, "halves"), expected) < 1e-5);
      // The same numbers in the other order.
      assert.ok(difference(reorderRows(adjacent, 1, rowsForHuggingFace(rows, heads)), expected) < 1e-5);
      if (position === 0) return;
      // Each convention on the other's rows: the silent garbage.
      const wrong = rotateHalf(product(stored, x), position, base);
      assert.ok(difference(reorderRows(wrong, 1, rowsForHuggingFace(rows, heads)), expected) > 0.1);
      assert.ok(difference(rotateAdjacent(product(theirs, x), position, base), expected) > 0.1);
    });
  }

  test("scores of queries and keys, at different positions and with fewer heads of keys", () => {
    const [heads, kvHeads] = [4, 2];
    const [q, k] = [gaussian(heads * KEY_LENGTH * COLUMNS), gaussian(kvHeads * KEY_LENGTH * COLUMNS)];
    const storedQ = reorderRows(q, COLUMNS, rowsForGguf(heads * KEY_LENGTH, heads));
    const storedK = reorderRows(k, COLUMNS, rowsForGguf(kvHeads * KEY_LENGTH, kvHeads));
    const [x, y] = [gaussian(COLUMNS), gaussian(COLUMNS)];
    const scores = (queries: Float32Array, keys: Float32Array): Float32Array =>
      Float32Array.from({ length: heads }, (_, head) => {
        const key = Math.floor(head / (heads / kvHeads)) * KEY_LENGTH;
        let sum = 0;
        for (let i = 0; i < KEY_LENGTH; i++) sum += queries[head * KEY_LENGTH + i]! * keys[key + i]!;
        return sum;
      });
    const expected = scores(rotateHalf(product(q, x), 9, base), rotateHalf(product(k, y), 2, base));
    const actual = scores(
      rotateAdjacent(product(storedQ, x), 9, base),
      rotateAdjacent(product(storedK, y), 2, base),
    );
    assert.ok(difference(actual, expected) < 1e-3);
  });
});

describe("a model there and back", () => {
  const [heads, kvHeads, layers] = [4, 2, 2];
  const weights = new Map<string, { shape: number[]; data: Float32Array }>();
  const add = (name: string, ...shape: number[]): void => {
    weights.set(name, { shape, data: gaussian(shape.reduce((a, b) => a * b)) });
  };
  add("model.embed_tokens.weight", 10, COLUMNS);
  for (let layer = 0; layer < layers; layer++) {
    add(`model.layers.${layer}.self_attn.q_proj.weight`, heads * KEY_LENGTH, COLUMNS);
    add(`model.layers.${layer}.self_attn.q_proj.bias`, heads * KEY_LENGTH);
    add(`model.layers.${layer}.self_attn.k_proj.weight`, kvHeads * KEY_LENGTH, COLUMNS);
    add(`model.layers.${layer}.self_attn.v_proj.weight`, kvHeads * KEY_LENGTH, COLUMNS);
  }

  for (const architecture of ["llama", "qwen2"]) {
    test(architecture, async () => {
      const writer = new GgufWriter()
        .set("general.architecture", architecture)
        .set(`${architecture}.attention.head_count`, heads)
        .set(`${architecture}.attention.head_count_kv`, kvHeads);
      const { metadata } = parse(await bytesOf(writer));
      for (const [name, weight] of weights) {
        const { name: ours, shape, data } = fromHuggingFace({ name, ...weight }, metadata);
        writer.addTensor(ours, "F32", shape, data);
      }
      const file = parse(await bytesOf(writer));
      const q = weights.get("model.layers.0.self_attn.q_proj.weight")!;
      // Stored in another order for llama alone.
      const isReordered = difference(file.tensor("blk.0.attn_q.weight").dequantizeSync(), q.data) > 0;
      assert.equal(isReordered, architecture === "llama");
      for (const name of file.tensors.keys()) {
        const back = await toHuggingFace(file, name);
        assert.deepEqual(
          { shape: back.shape, data: Float32Array.from(back.data) },
          weights.get(back.name),
          name,
        );
      }
    });
  }

  test("rows of a quantized tensor are read in the other order", async () => {
    const q = weights.get("model.layers.0.self_attn.q_proj.weight")!;
    const order = rowsForHuggingFace(heads * KEY_LENGTH, heads);
    const writer = new GgufWriter().addTensor("q", "Q8_0", [COLUMNS, heads * KEY_LENGTH], q.data);
    const tensor = parse(await bytesOf(writer)).tensor("q");
    assert.deepEqual(tensor.rowsSync(order), reorderRows(tensor.dequantizeSync(), COLUMNS, order));
  });
});

test("the function of docs/names.md gives the same rows as that of the example", () => {
  const page = readFileSync(join(projectRoot, "docs", "names.md"), "utf8");
  const [code] = /^function rowsForHuggingFace[\s\S]*?^}$/m.exec(page)!;
  const printed = new Function(`${code} return rowsForHuggingFace;`)() as typeof rowsForHuggingFace;
  for (const [rows, heads] of [
    [6, 1],
    [8, 2],
    [512, 8],
  ] as const) {
    assert.deepEqual(printed(rows, heads), rowsForHuggingFace(rows, heads));
  }
});
