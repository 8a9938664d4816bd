/** `gguf-native get`. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { runNode, runSync, succeeds } from "../support/child";
import { at, bin, expectFailure, folder, json, output, run, runInTerminal } from "../support/cli";
import { arr, bool, f32, str, u8, u64, writeGguf } from "../support/gguf-writer";
import { rangesOf, serve } from "../support/range-server";

const notUtf8 = Uint8Array.of(0x61, 0x80, 0xff);
const template = "{% for m in messages %}\n\t{{ m }}\u001b[2J\n{% endfor %}";
const content = writeGguf({
  metadata: [
    ["general.name", str("漢字 and more")],
    ["tokenizer.chat_template", str(template)],
    ["bytes", str(notUtf8)],
    ["yes", bool(true)],
    ["large", u64(2n ** 64n - 1n)],
    ["tenth", f32(0.1)],
    ["tokenizer.ggml.tokens", arr("string", ["<s>", "▁a", notUtf8, "", ...Array(10_000).fill("x")])],
    ["scores", arr("float32", [0, -1.5, Number.NaN, 1e-20])],
    ["nested", arr("array", [arr("int8", [1, -1]), arr("array", [arr("string", ["a", notUtf8])]), arr("bool", [])])],
    ["with[5]", u8(7)],
    ["long", arr("string", ["a", "b".repeat(3 << 20), "c"])],
  ],
});
writeFileSync(at("model.gguf"), content);
/** The bytes that a process prints. */
const bytesOf = (...args: string[]): Buffer =>
  runSync(process.execPath, [bin, "get", "model.gguf", ...args], { cwd: folder, encoding: "buffer" }).stdout;

describe("get", () => {
  test("single values, a line each", async () => {
    for (const [key, text] of [
      ["general.name", "漢字 and more"],
      ["yes", "true"],
      ["large", "18446744073709551615"],
      ["tenth", "0.1"],
      ["with[5]", "7"],
      ["tokenizer.chat_template", template],
    ] as const)
      assert.equal(await output("get model.gguf", key), `${text}\n`);
  });
  test("arrays, a line for each element; arrays in arrays as JSON", async () => {
    assert.equal(await output("get model.gguf scores"), "0\n-1.5\nNaN\n1e-20\n");
    const tokens = await output("get model.gguf tokenizer.ggml.tokens");
    assert.equal(tokens, `<s>\n▁a\na\ufffd\ufffd\n\n${"x\n".repeat(10_000)}`);
    assert.equal(await output("get model.gguf nested"), '[1,-1]\n[["a","a\ufffd\ufffd"]]\n[]\n');
  });
  test("elements by their index, also in arrays in arrays", async () => {
    for (const [key, text] of [
      ["tokenizer.ggml.tokens[1]", "▁a\n"],
      ["tokenizer.ggml.tokens[10003]", "x\n"],
      ["scores[3]", "1e-20\n"],
      ["nested[0]", "1\n-1\n"],
      ["nested[0][1]", "-1\n"],
      ["nested[1][0][0]", "a\n"],
      ["nested[2]", ""],
      ["long[2]", "c\n"],
    ] as const)
      assert.equal(await output("get model.gguf", key), text, key);
    assert.equal((await output("get model.gguf long[1]")).length, (3 << 20) + 1);
  });
  test("bytes as they are; --raw ends them with nothing", () => {
    assert.deepEqual(bytesOf("bytes"), Buffer.from([...notUtf8, 10]));
    assert.deepEqual(bytesOf("bytes", "--raw"), Buffer.from(notUtf8));
    assert.deepEqual(bytesOf("tokenizer.chat_template", "--raw"), Buffer.from(template));
    assert.equal(bytesOf("long[1]", "--raw").length, 3 << 20);
  });
  test("--json is exact", async () => {
    assert.deepEqual(await json("get model.gguf large"), {
      type: "uint64",
      value: String(2n ** 64n - 1n),
    });
    assert.deepEqual(await json("get model.gguf tokenizer.ggml.tokens[2]"), {
      type: "string",
      value: "a\ufffd\ufffd",
      bytes: "6180ff",
    });
    assert.deepEqual(await json("get model.gguf nested[1]"), {
      ...{ type: "array", elementType: "array", length: 1, value: [["a", "a\ufffd\ufffd"]] },
      bytes: { "0.1": "6180ff" },
    });
  });
  test("of a URL, and of standard input", async () => {
    const { url } = await serve(rangesOf(content));
    assert.equal(await output("get", url, "tenth"), "0.1\n");
    const args = [bin, "get", "-", "general.name"];
    const { stdout } = runNode(args, { input: readFileSync(at("model.gguf")) });
    assert.equal(stdout, "漢字 and more\n");
  });
  test("nothing moves a terminal, without --raw", (t) => {
    if (!succeeds("script")) return t.skip("there is no script");
    const { shown } = runInTerminal(["get", "model.gguf", "tokenizer.chat_template"]);
    assert.match(shown, /\{% for m in messages %\}\r?\n\t\{\{ m \}\}\\x1b\[2J\r?\n/);
  });
  test("wrong usage, and keys that are not there", async () => {
    for (const [args, status, message] of [
      [["general.nam"], 1, /no metadata key is 'general\.nam'\. Did you mean 'general\.name'/],
      [["tenth[0]"], 2, /\[0\] is for arrays, not for float32/],
      [["scores[4]"], 2, /no \[4\] in an array of 4 elements/],
      [["nested[2][0]"], 2, /no \[0\] in an array of 0 elements/],
      [["scores[999999999999999]"], 2, /no \[999999999999999\]/],
      [["scores[-1]"], 1, /no metadata key/],
      [[], 2, /missing KEY/],
      [["tenth", "--raw", "--json"], 2, /either --raw or --json/],
    ] as const)
      await expectFailure(["get", "model.gguf", ...args], status, message);
    const { status } = await run("get nothing.gguf a");
    assert.equal(status, 1);
  });
});
