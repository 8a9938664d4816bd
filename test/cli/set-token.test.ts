/** `gguf-native set --token`: special tokens by their texts. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { at, expectFailure, output } from "../support/cli";
import { arr, str, u32, writeGguf } from "../support/gguf-writer";

const write = (name: string, tokens: (string | Uint8Array)[] | undefined) =>
  writeFileSync(
    at(name),
    writeGguf({
      metadata: [
        ["general.architecture", str("test")],
        ["tokenizer.ggml.eos_token_id", u32(0)],
        ...(tokens === undefined ? [] : [["tokenizer.ggml.tokens", arr("string", tokens)] as const]),
      ],
    }),
  );
write("model.gguf", ["<s>", "</s>", "<|im_end|>", Uint8Array.of(0xff), "twice", "twice", "a=b"]);
write("bare.gguf", undefined);

describe("--token", () => {
  test("sets the number of a token, several at once", async () => {
    const stdout = await output(
      ...["set", "model.gguf", "--token", "eos=<|im_end|>", "--token", "sep=a=b", "--token", "pad=</s>"],
      ...["general.name", "x"],
    );
    assert.match(
      stdout,
      /^- tokenizer\.ggml\.eos_token_id {2}uint32 {2}0\n\+ tokenizer\.ggml\.eos_token_id {2}uint32 {2}2\n/m,
    );
    for (const [key, id] of [
      ["eos", 2],
      ["seperator", 6],
      ["padding", 1],
    ] as const)
      assert.equal(await output("get model.gguf", `tokenizer.ggml.${key}_token_id`), `${id}\n`);
  });
  test("texts that no token has, names that are none, and files without a vocabulary", async () => {
    const before = readFileSync(at("model.gguf"));
    for (const [args, status, message] of [
      [["model.gguf", "--token", "eos=<im_end>"], 2, /no token of the vocabulary is '<im_end>'/],
      [["model.gguf", "--token", "eos=\ufffd"], 2, /no token of the vocabulary/],
      [["model.gguf", "--token", "eos=twice"], 2, /token 4 and token 5: set tokenizer\.ggml\.eos_token_id/],
      [["model.gguf", "--token", "eoss=x"], 2, /no special token is 'eoss'.*Did you mean 'eos'/],
      [["model.gguf", "--token", "constructor=x"], 2, /no special token/],
      [["model.gguf", "--token", "eos"], 2, /must be NAME=TEXT/],
      [["bare.gguf", "--token", "eos=x"], 1, /has no vocabulary/],
    ] as const)
      await expectFailure(["set", ...args], status, message);
    assert.ok(readFileSync(at("model.gguf")).equals(before));
  });
});
