/** `gguf-native tokens`: vocabularies, and texts in them. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { runNode } from "../support/child";
import { bin, EVIL, expectFailure, expectTidy, folder, json, output, run, writeModel } from "../support/cli";
import { arr, str, u32 } from "../support/gguf-writer";

const pieces = ["<unk>", "<s>", "</s>", "▁", "a", "b", "ab", "▁a", "▁ab", EVIL, Uint8Array.of(0xff)];
writeModel("model.gguf", {
  metadata: [
    ["tokenizer.ggml.model", str("llama")],
    ["tokenizer.ggml.tokens", arr("string", pieces)],
    ["tokenizer.ggml.scores", arr("float32", [0, 0, 0, -1, -1, -1, -2, -3, -4, 0, 0])],
    ["tokenizer.ggml.token_type", arr("int32", [2, 3, 3, 1, 1, 1, 1, 1, 1, 4, 77])],
    ["tokenizer.ggml.bos_token_id", u32(1)],
    ["tokenizer.ggml.eos_token_id", u32(2)],
    ["tokenizer.ggml.padding_token_id", u32(99)],
  ],
});

describe("the vocabulary", () => {
  test("its kind, special tokens, types and scores", async () => {
    const stdout = await output("tokens model.gguf");
    assert.match(stdout, /^model\.gguf\n {2}kind +llama\n {2}tokens +11\n/);
    assert.match(stdout, /\n {2}types +1 unknown, 2 control, 6 normal, 1 user, 1 77\n/);
    assert.match(stdout, /\n {2}begin +1 <s>\n {2}end +2 <\/s>\n {2}padding +99 \(no such token\)\n/);
    assert.match(stdout, /\nTokens \(11\)\n +id +type +score +text\n +0 +unknown +0 +<unk>\n/);
    assert.match(stdout, /\n +8 +normal +-4 +▁ab\n/);
    expectTidy(stdout);
  });
  test("--limit, --all and --filter choose what is listed", async () => {
    assert.match(await output("tokens model.gguf --limit 2"), /<s>\n {2}\.\.\. 9 more: --all lists them\n$/);
    const filtered = await output("tokens model.gguf --filter", "▁*", "--all");
    assert.match(filtered, /\nTokens \(3 of 11\)\n.*\n +3 .*▁\n +7 .*▁a\n +8 .*▁ab\n$/);
    assert.match(await output("tokens model.gguf --filter none"), /\nTokens \(0 of 11\)\n$/);
  });
  test("in JSON exactly, with the bytes of what is not UTF-8", async () => {
    const { model, pre, tokenCount, special, tokens } = await json("tokens model.gguf");
    assert.deepEqual([model, pre, tokenCount, special], ["llama", null, 11, { bos: 1, eos: 2, padding: 99 }]);
    assert.equal(tokens.length, 11);
    assert.deepEqual(tokens[8], { id: 8, text: "▁ab", type: "normal", score: -4 });
    assert.deepEqual(tokens[9], { id: 9, text: EVIL, type: "user", score: 0 });
    assert.deepEqual(tokens[10], { id: 10, text: "\ufffd", bytes: "ff", type: "77", score: 0 });
    assert.deepEqual((await json("tokens model.gguf --limit 0")).tokens, []);
  });
  test("without types and scores", async () => {
    const metadata: [string, ReturnType<typeof str>][] = [["tokenizer.ggml.tokens", arr("string", ["a"])]];
    writeModel("bare.gguf", { metadata });
    assert.match(await output("tokens bare.gguf"), /\nTokens \(1\)\n {2}id +text\n +0 +a\n$/);
    assert.deepEqual((await json("tokens bare.gguf")).tokens, [{ id: 0, text: "a" }]);
  });
  test("a file that has none", async () => {
    writeModel("none.gguf", {});
    writeModel("odd.gguf", { metadata: [["tokenizer.ggml.tokens", str("a")]] });
    for (const file of ["none.gguf", "odd.gguf"]) {
      for (const args of [[file], [file, "text"], [file, "--decode", "1"]]) {
        await expectFailure(["tokens", ...args], 1, /the file has no vocabulary/);
      }
    }
  });
});

describe("texts", () => {
  test("into tokens", async () => {
    assert.equal(await output("tokens model.gguf ab"), "2 tokens\n  id  text\n   1  <s>\n   8  ▁ab\n");
    assert.equal(await output("tokens model.gguf ab --ids"), "1 8\n");
    assert.deepEqual(await json("tokens model.gguf ab"), { tokens: [1, 8], pieces: ["<s>", "▁ab"] });
    assert.equal(await output("tokens model.gguf", "", "--ids"), "1\n");
  });
  test("from standard input", () => {
    const { stdout } = runNode([bin, "tokens", "model.gguf", "-", "--ids"], {
      cwd: folder,
      input: "ab",
    });
    assert.equal(stdout, "1 8\n");
  });
  test("and back", async () => {
    for (const ids of [["1", "8", "4"], ["1,8,4"], ["[1, 8, 4]"]]) {
      assert.equal(await output("tokens model.gguf --decode", ...ids), "aba\n");
    }
    assert.deepEqual(await json("tokens model.gguf --decode 8"), {
      tokens: [8],
      pieces: ["▁ab"],
      text: "ab",
    });
    expectTidy(await output("tokens model.gguf --decode 9"));
  });
  test("U+FEFF at the beginning is kept", async () => {
    const pieces = ["<unk>", "\ufeff", "a"];
    writeModel("mark.gguf", {
      metadata: [
        ["tokenizer.ggml.model", str("llama")],
        ["tokenizer.ggml.tokens", arr("string", pieces)],
        ["tokenizer.ggml.scores", arr("float32", [0, 0, 0])],
      ],
    });
    const decoded = await json("tokens mark.gguf --decode 1 2");
    assert.deepEqual(decoded, { tokens: [1, 2], pieces: pieces.slice(1), text: "\ufeffa" });
  });
  test("long ones take no longer than they should", async () => {
    const { status } = await run(["tokens", "model.gguf", "ab".repeat(50_000), "--ids"]);
    assert.equal(status, 0);
  });
  test("wrong usage, and vocabularies of other kinds", async () => {
    await expectFailure("tokens model.gguf --decode 11", 2, /there is no token 11: the last one is 10/);
    await expectFailure("tokens model.gguf --decode x", 2, /ID must be a whole number/);
    await expectFailure("tokens model.gguf --decode", 2, /missing ID/);
    await expectFailure("tokens model.gguf --ids", 2, /--ids is for TEXT/);
    await expectFailure("tokens model.gguf a --all", 2, /--all, --limit and --filter are for the list/);
    await expectFailure("tokens model.gguf a b", 2, /unexpected argument 'b'/);
    await expectFailure("tokens bare.gguf a", 1, /names no kind .* known are llama, gpt2, bert/);
  });
});
