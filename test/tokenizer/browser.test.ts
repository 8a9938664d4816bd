/** `gguf-native/tokenizer`, bundled for browsers and run in headless Chromium: the tokens and texts that Node gives. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, describe, test } from "node:test";
import { parse } from "gguf-native";
import { Tokenizer } from "gguf-native/tokenizer";
import { mixedLines } from "../models/mixed-lines";
import { bundleForBrowser, noChromium, runInChromium } from "../support/browser";
import { arr, str, type TypedValue, writeGguf } from "../support/gguf-writer";
import type { Handler } from "../support/range-server";
import { needsShared, sharedPath, vocabularies } from "../support/shared-data";
import { type TextFacts, type TokenizerInput, tokenizerFacts } from "../support/tokenizer-facts";
import { needsModule } from "../support/wasm";

const bytePieces = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);

/** A vocabulary of each kind that has a few tokens. */
function small(model: string, tokens: string[], ...more: [string, TypedValue][]): Uint8Array {
  const metadata: [string, TypedValue][] = [
    ["tokenizer.ggml.model", str(model)],
    ["tokenizer.ggml.tokens", arr("string", tokens)],
    ...more,
  ];
  return writeGguf({ metadata });
}

const llama = ["<unk>", "<s>", "</s>", ...bytePieces, ..."▁thequick", "th", "the", "▁the"];
const files: Record<string, Uint8Array> = {
  "a few pieces with scores": small(
    "llama",
    llama,
    [
      "tokenizer.ggml.scores",
      arr(
        "float32",
        llama.map((_, id) => -id),
      ),
    ],
    [
      "tokenizer.ggml.token_type",
      arr(
        "int32",
        llama.map((_, id) => (id < 3 ? 3 : id < 259 ? 6 : 1)),
      ),
    ],
  ),
  // Not all bytes have a token: some lines are errors.
  "a few tokens with merges": small(
    "gpt2",
    [..."abcdefghijklmnopqrstuvwxyzĠ.,", "th", "the", "<|im_end|>"],
    ["tokenizer.ggml.pre", str("qwen2")],
    ["tokenizer.ggml.merges", arr("string", ["t h", "th e"])],
  ),
  "a few pieces of words": small("bert", ["[UNK]", "▁the", "▁qu", "ick", "▁fox", "▁漢", "▁é"]),
};
for (const name of vocabularies) {
  const { skip } = needsShared(name);
  if (skip) test(`${name} gives in Chromium what it gives in Node`, { skip });
  else files[name] = readFileSync(sharedPath(name));
}

const texts = ["", " ", "the quick fox, the", "a<|im_end|></s>[SEP]<|endoftext|>b", "\ud800", ...mixedLines(200)];
const paths = Object.keys(files).map((_, i) => `/${i}.gguf`);
const input: TokenizerInput = { urls: paths, texts };

const answer: Handler = ({ url = "" }, response) => {
  response.end(Object.values(files)[paths.indexOf(url)]);
};

describe("the tokenizer, bundled for browsers", needsModule, () => {
  if (needsModule.skip) return;
  const { metafile, outputFiles, warnings } = bundleForBrowser("tokenizer-page");

  test("has all it needs in the bundle", () => {
    assert.deepEqual(warnings, []);
    const found = Object.values(metafile.outputs).flatMap((output) => output.imports);
    assert.deepEqual(found, []);
  });

  describe("in Chromium", { skip: noChromium }, () => {
    let result: { globals: string[]; facts: (TextFacts | string)[][] };
    before(async () => {
      result = (await runInChromium(outputFiles[0]!.contents, input, answer)) as typeof result;
    });

    test("there is nothing of Node", () => assert.deepEqual(result.globals, []));
    for (const [i, [name, bytes]] of Object.entries(files).entries()) {
      test(`${name} gives what it gives in Node`, () => {
        const expected = tokenizerFacts(new Tokenizer(parse(bytes).metadata), texts);
        assert.ok(expected.filter((facts) => typeof facts !== "string").length > 2);
        assert.deepEqual(result.facts[i], expected);
      });
    }
  });
});
