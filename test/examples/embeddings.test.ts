/** examples/embeddings: passages, and the search for them. */
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { parse } from "gguf-native";
import { Embedder } from "gguf-native/embeddings";
import { Index, passagesOf } from "../../examples/embeddings/search";
import { sampleBert } from "../support/sample-bert";

const opening = Embedder.open(parse(sampleBert()));
after(async () => (await opening).close());

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
    assert.ok(sentences.length > 2 && sentences.every(({ text }) => text.endsWith(".") && text.length <= 600));
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

  test("that equal the query are found first, wherever they are", async () => {
    const passages = passagesOf(
      Array.from({ length: 70 }, (_, i) => `the ${"cat ".repeat(i % 9)}dog ${i}`).join("\n\n"),
    );
    const index = new Index(await opening, passages);
    await index.build();
    for (const i of [0, 33, 69]) {
      const found = await index.search(passages[i]!.text, 3);
      assert.deepEqual([found.length, found[0]!.line], [3, 2 * i + 1]);
      assert.ok(Math.abs(found[0]!.similarity - 1) < 1e-6 && found[1]!.similarity < 1);
    }
  });

  test("get the prefix that the model wants", async () => {
    const index = new Index(await opening, passagesOf("cat\n\ndog"));
    await index.build("passage: ");
    assert.ok(Math.abs((await index.search("passage: dog", 1))[0]!.similarity - 1) < 1e-6);
    assert.ok((await index.search("dog", 1))[0]!.similarity < 0.99999);
  });
});
