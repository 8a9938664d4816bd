/** The importance matrix that the llama example writes, against what llama.cpp multiplies matrices with. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openSync } from "gguf-native";
import { Tokenizer } from "gguf-native/tokenizer";
import { readPieces } from "../../examples/llama/measure";
import { Llama } from "../../examples/llama/model";
import { noLlamaCpp, observeProducts } from "../support/libllama";
import { projectRoot, temporaryFolder } from "../support/paths";
import { modelPath, needsModel, SMOLLM2, widened } from "./support";

const PIECE = 128;

/** Sums of squares by matrix and column. */
class Sums {
  readonly byName = new Map<string, Float64Array>();

  add(name: string, columns: number, vectors: Float32Array): void {
    if (!name.startsWith("blk.")) return;
    const sums = this.byName.get(name) ?? new Float64Array(columns);
    this.byName.set(name, sums);
    for (const [i, x] of vectors.entries()) sums[i % columns]! += x * x;
  }
}

const { skip } = needsModel(SMOLLM2);
// llama.cpp rounds what it multiplies quantized weights with, so it has the same weights as F32 here.
test("sums of squares are those of llama.cpp", { skip: skip || noLlamaCpp }, async () => {
  using file = openSync(modelPath(SMOLLM2));
  const text = readFileSync(join(projectRoot, "docs", "safety.md"), "utf8");
  const tokens = [...new Tokenizer(file.metadata).encode(text)].slice(0, PIECE);

  const ours = new Sums();
  const llama = Llama.load(file, { activations: "f32", observe: ours.add.bind(ours) });
  readPieces(llama, tokens, undefined, PIECE);
  const theirs = new Sums();
  await observeProducts(await widened(temporaryFolder(), SMOLLM2), tokens, theirs.add.bind(theirs));

  assert.deepEqual([...ours.byName.keys()].sort(), [...theirs.byName.keys()].sort());
  for (const [name, sums] of ours.byName) {
    const expected = theirs.byName.get(name) as Float64Array;
    assert.equal(sums.length, expected.length, name);
    for (const [column, square] of sums.entries()) {
      const share = square / expected[column]!;
      // Half a percent in most heads.
      assert.ok(Math.abs(share - 1) < 0.01, `${name}, column ${column}: ${share}`);
    }
  }
});
