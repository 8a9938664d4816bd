/** gguf-native/tokenizer: the tokens of llama.cpp itself for many lines, with every kind of vocabulary and rule for words. */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { openSync, setMetadata } from "gguf-native";
import { Tokenizer, wordRuleNames } from "gguf-native/tokenizer";
import { noLlamaCpp, withLlamaVocabulary } from "../support/libllama";
import { temporaryFolder } from "../support/paths";
import { needsShared, sharedPath, tinyLlama, vocabularies } from "../support/shared-data";
import { mixedLines } from "./mixed-lines";

const folder = temporaryFolder();

/** Asserts that a vocabulary gives the tokens of llama.cpp, with names of control tokens in the lines and without. */
async function assertEqualTokens(path: string, lines: readonly string[]): Promise<void> {
  using file = openSync(path);
  const tokenizer = new Tokenizer(file.metadata);
  const types = file.metadata.numbers("tokenizer.ggml.token_type") ?? [];
  const names: string[] = [];
  for (let id = 0; id < types.length && names.length < 40; id++) {
    if ([2, 3, 4].includes(Number(types[id]))) names.push(tokenizer.piece(id));
  }
  await withLlamaVocabulary(path, (vocabulary) => {
    assert.equal(tokenizer.size, vocabulary.size);
    for (const [i, line] of lines.entries()) {
      const name = names[i % names.length] ?? "";
      for (const text of [line, `${line}${name}${[...line].slice(0, 9).join("")}${name}`]) {
        for (const special of [false, true]) {
          const found = [...tokenizer.encode(text, { special })];
          assert.deepEqual(found, vocabulary.tokens(text, special), JSON.stringify({ text, special }));
        }
      }
    }
  });
}

for (const name of [...vocabularies, tinyLlama]) {
  const { skip } = needsShared(name);
  test(`${name}: a thousand lines`, { skip: skip || noLlamaCpp }, () =>
    assertEqualTokens(sharedPath(name), ["", " ", ...mixedLines(1000)]),
  );
}

describe("every rule for words, with the vocabulary of GPT-2", () => {
  const gpt2 = "ggml-vocab-gpt-2.gguf";
  const { skip } = needsShared(gpt2);
  for (const name of wordRuleNames) {
    test(name, { skip: skip || noLlamaCpp }, async () => {
      const path = join(folder, `${name}.gguf`);
      const model = name === "gemma4" ? name : "gpt2";
      const changes = { "tokenizer.ggml.pre": name, "tokenizer.ggml.model": model };
      await setMetadata(sharedPath(gpt2), changes, { output: path });
      await assertEqualTokens(path, mixedLines(60, 2));
      rmSync(path);
    });
  }
});
