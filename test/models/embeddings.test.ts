/**
 * gguf-native/embeddings on all-MiniLM-L6-v2: its vectors beside those that PyTorch computes with the checkpoint's weights,
 * which test/models/minilm_vectors.py wrote.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { convertModel, type GgufFile, openSync, quantizeModel } from "gguf-native";
import { Embedder, type EmbedderOptions } from "gguf-native/embeddings";
import { Tokenizer } from "gguf-native/tokenizer";
import { Index, passagesOf } from "../../examples/embeddings/search";
import { projectRoot, temporaryFolder } from "../support/paths";
import { MINILM, modelPath, needsModel } from "./support";

const fixture = join(projectRoot, "test", "fixtures", "minilm-vectors.json");
const expected = JSON.parse(readFileSync(fixture, "utf8")) as {
  text: string;
  tokens: number[];
  vector: number[];
}[];

// Here, not in the hook, whose end would remove it: an embedder opens files again.
const folder = temporaryFolder();

describe("all-MiniLM-L6-v2", needsModel(MINILM), () => {
  let f16: GgufFile;
  let q8: GgufFile;
  before(async () => {
    const path = join(folder, "f16.gguf");
    await convertModel(modelPath(MINILM), path, { type: "f16" });
    await quantizeModel(path, join(folder, "q8_0.gguf"), { type: "Q8_0" });
    f16 = openSync(path);
    q8 = openSync(join(folder, "q8_0.gguf"));
  });

  test("texts have the tokens of the reference", () => {
    const tokenizer = new Tokenizer(f16.metadata);
    for (const { text, tokens } of expected) assert.deepEqual([...tokenizer.encode(text)], tokens, text);
  });

  const cases: [name: string, file: () => GgufFile, least: number, options?: EmbedderOptions][] = [
    ["F16", () => f16, 0.9999],
    ["Q8_0", () => q8, 0.999],
    ["Q8_0, activations f32", () => q8, 0.9995, { activations: "f32" }],
  ];
  for (const [name, file, least, options] of cases) {
    test(`${name}: cosines with the reference are ${least} at least`, async (context) => {
      using embedder = await Embedder.open(file(), options);
      const vectors = await embedder.embed(expected.map(({ text }) => text));
      const cosines = vectors.map((vector, i) =>
        vector.reduce((sum, value, j) => sum + value * expected[i]!.vector[j]!, 0),
      );
      context.diagnostic(`the lowest is ${Math.min(...cosines).toFixed(6)}`);
      for (const [i, { text, tokens }] of expected.entries()) {
        // Errors of rounding are not averaged over two or three tokens.
        const enough = tokens.length > 3 ? least : least - 0.0005;
        assert.ok(cosines[i]! >= enough, `${cosines[i]} of ${JSON.stringify(text)}`);
      }
    });
  }

  test("finds what is meant, in other words", async () => {
    using embedder = await Embedder.open(q8);
    const sentences = expected.map(({ text }) => text).join("\n\n");
    const index = new Index(embedder, passagesOf(sentences));
    await index.build();
    for (const [query, found] of [
      ["Fuel becomes more expensive.", /^The price of oil/],
      ["A predator is running after an animal.", /^A cheetah/],
      ["Which hour do the clocks show in Germany?", /^Wie spät/],
    ] as const)
      assert.match((await index.search(query, 1))[0]!.text, found);
  });
});
