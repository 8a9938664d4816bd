/** gguf-native/tokenizer: the tokens of llama.cpp itself for many lines, with every kind of vocabulary and rule for words. */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { openSync, setMetadata } from "gguf-native";
import { Tokenizer, wordRuleNames } from "gguf-native/tokenizer";
import { arr, str, type TypedValue } from "../support/gguf-writer";
import { noLlamaCpp, withLlamaVocabulary } from "../support/libllama";
import { temporaryFolder } from "../support/paths";
import { Random } from "../support/random";
import { needsShared, sharedPath, tinyLlama, vocabularies } from "../support/shared-data";
import { smallModel } from "../support/small-llama";
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

describe("vocabularies of pieces of lines", () => {
  const random = new Random(11);
  const letters = mixedLines(200, 3).flatMap((line) => [...line]);
  const pieces = Array.from({ length: 600 }, () => {
    const at = random.below(letters.length);
    return letters.slice(at, at + 1 + random.below(5)).join("");
  });
  const hex = (byte: number): string => byte.toString(16).padStart(2, "0");
  const escaped = (bytes: Uint8Array): string =>
    Array.from(bytes, (byte) =>
      byte < 32 || byte > 126 || byte === 92 ? `\\x${hex(byte)}` : String.fromCharCode(byte),
    ).join("");
  const bytes = Array.from({ length: 256 }, (_, byte) => byte);
  const plamo2 = new Set(["<unk>", "<s>", ...bytes.map((byte) => `<0x${hex(byte).toUpperCase()}>`), ...pieces]);
  const escapes = bytes.map((byte) => escaped(Uint8Array.of(byte)));
  const rwkv = new Set(["<s>", ...escapes, ...pieces.map((piece) => escaped(Buffer.from(piece)))]);
  const typeOf = (token: string, id: number) => (/^<0x..>$/.test(token) ? 6 : id < 2 && token.startsWith("<") ? 3 : 1);
  for (const [model, set] of Object.entries({ rwkv, plamo2 })) {
    test(model, { skip: noLlamaCpp }, async () => {
      const tokens = [...set];
      const scores = tokens.map((_, id) => (id % 50 === 0 ? -1999.99 : -random.below(12)));
      const path = join(folder, `${model}.gguf`);
      const keys: [string, TypedValue][] = [
        ["model", str(model)],
        ["tokens", arr("string", tokens)],
        ["scores", arr("float32", scores)],
        ["token_type", arr("int32", tokens.map(typeOf))],
      ];
      writeFileSync(path, smallModel({ metadata: keys.map(([key, value]) => [`tokenizer.ggml.${key}`, value]) }));
      await assertEqualTokens(path, mixedLines(300, 4));
    });
  }
});

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
