/**
 * What commands print at several widths: compared with files in test/fixtures/terminal, most of them with hashes. Where
 * a change of them is meant, `GGUF_NATIVE_UPDATE_GOLDEN=1 npm test -- cli-golden` writes them again; look at the difference.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { at, blocks, EVIL, expectTidy, floats, run, withoutColors, writeModel } from "../support/cli";
import { arr, f32, str, u32, u64 } from "../support/gguf-writer";
import { projectRoot } from "../support/paths";
import { assertRecorded, hashOf, writeRecorded } from "../support/recorded";
import { sampleBert } from "../support/sample-bert";
import { sampleModel } from "../support/sample-model";

const goldenFolder = join(projectRoot, "test", "fixtures", "terminal");
const isUpdate = process.env.GGUF_NATIVE_UPDATE_GOLDEN === "1";

writeFileSync(at("sample.gguf"), sampleModel());
writeModel("mixture.gguf", {
  metadata: [
    ["tokenizer.ggml.model", str("llama")],
    ["tokenizer.ggml.tokens", arr("string", ["<unk>", "<s>", "</s>", "▁hello", "▁漢字"])],
    ["tokenizer.ggml.scores", arr("float32", [0, 0, 0, -1.5, -2])],
    ["tokenizer.ggml.token_type", arr("int32", [2, 3, 3, 1, 1])],
    ["gemma3.block_count", u32(4)],
    ["gemma3.context_length", u32(131072)],
    ["gemma3.embedding_length", u32(256)],
    ["gemma3.attention.head_count", u32(4)],
    ["gemma3.attention.head_count_kv", arr("uint32", [2, 2, 2, 1])],
    ["gemma3.attention.key_length", u32(64)],
    ["gemma3.attention.value_length", u32(64)],
    ["gemma3.attention.sliding_window", u32(512)],
    ["gemma3.attention.sliding_window_pattern", u32(2)],
    ["gemma3.rope.freq_base", f32(1e6)],
    ["general.architecture", str("gemma3")],
    ["general.name", str("A mixture of blocks, 混合, with a name that is longer than a narrow terminal")],
    ["general.file_type", u32(15)],
    ["general.big", u64(2n ** 64n - 1n)],
  ],
  tensors: [
    blocks("token_embd.weight", "Q6_K", [256, 5], 1),
    ...[0, 1, 2, 3].flatMap((i) => [
      floats(`blk.${i}.attn_norm.weight`, Array(256).fill(1)),
      blocks(`blk.${i}.attn_q.weight`, i % 2 === 0 ? "Q4_K" : "Q6_K", [256, 256], i),
      ...(i === 0 ? [blocks("blk.0.ffn_up.weight", "Q4_K", [256, 64], 7)] : []),
      ...(i > 0 ? [blocks(`blk.${i}.ffn_up_exps.weight`, "Q4_K", [256, 16, 2 + (i % 2)], 8)] : []),
    ]),
    floats("output_norm.weight", Array(256).fill(0.5)),
  ],
});
writeModel("hostile.gguf", {
  metadata: [
    ["general.architecture", str(EVIL)],
    ["general.name", str("x".repeat(500))],
    [EVIL, arr("string", [EVIL, "漢字".repeat(50)])],
    ["k".repeat(300), u32(1)],
    [Uint8Array.of(0xff, 0x41), u32(2)],
  ],
  tensors: [
    floats(EVIL, [1]),
    floats(`blk.0.${EVIL}`, [1]),
    floats(`blk.1.${EVIL}`, [2]),
    { name: "n".repeat(200), type: 99, shape: [2 ** 40, 2, 3, 4], bytes: new Uint8Array(4) },
    floats("漢字".repeat(40), [1]),
  ],
});

writeModel("changed.gguf", {
  metadata: [
    ["gemma3.context_length", u32(8192)],
    ["general.architecture", str("gemma3")],
    [EVIL, str("漢字".repeat(50))],
  ],
  tensors: [
    blocks("token_embd.weight", "Q4_K", [256, 5], 1),
    floats("blk.0.attn_norm.weight", Array(256).fill(1.125)),
    blocks("blk.0.attn_q.weight", "Q6_K", [256, 256], 3),
    floats("blk.1.attn_norm.weight", Array(64).fill(1), [8, 8]),
    floats("output_norm.weight", Array(256).fill(0.5)),
    floats(EVIL, [Number.NaN, Infinity, 1e-30, -1e30]),
    floats("漢字".repeat(40), [0, 0, Number.NaN]),
  ],
});
writeFileSync(at("bert.gguf"), sampleBert());
writeFileSync(at("texts.txt"), `the cat\n${"漢字 and the dog ".repeat(20)}\n${EVIL}\n`);
const cutOff = "cut-off-with-a-name-that-is-longer-than-a-narrow-terminal.gguf";
writeFileSync(at(cutOff), sampleModel().subarray(0, 1e6));

const CASES: Readonly<Record<string, readonly string[]>> = {
  inspect: ["inspect", "mixture.gguf"],
  "inspect-sample": ["inspect", "sample.gguf"],
  "inspect-tensors": ["inspect", "--tensors", "mixture.gguf"],
  "inspect-hostile": ["inspect", "hostile.gguf"],
  memory: ["inspect", "--memory", "--context", "3000", "mixture.gguf"],
  tokens: ["tokens", "mixture.gguf"],
  embed: ["embed", "bert.gguf", "texts.txt", "--query", "a cat"],
  show: ["show", "mixture.gguf", "blk.0.attn_q.weight", "--columns", ":12"],
  stats: ["stats", "mixture.gguf", "blk.0.attn_q.weight", "--bins", "8"],
  "stats-table": ["stats", "sample.gguf", "*"],
  "stats-hostile": ["stats", "changed.gguf", "*"],
  verify: ["verify", "sample.gguf", "mixture.gguf", "changed.gguf", cutOff],
  diff: ["diff", "mixture.gguf", "changed.gguf"],
};
/** Of those that do not exit with 0: their complaints. */
const COMPLAINTS: Readonly<Record<string, RegExp>> = {
  // Three findings, and what the specification asks.
  verify: /^(gguf-native: (warning: )?[^\n]*\n){7}$/,
  diff: /^$/,
};
const WIDTHS = [40, 60, 80, 140];
/** Those of which others show what they look like. */
const HASHED = /hostile|sample|table/;

/** Columns that a line takes in a terminal: here only these characters are wide. */
const columnsOf = (line: string): number => line.replace(/[漢字混合]/g, "xx").length;

/** Compares with a file, or writes it. */
function compare(name: string, found: string): void {
  const path = join(goldenFolder, name);
  if (isUpdate) writeFileSync(path, found);
  assert.equal(found, readFileSync(path, "utf8"));
}

const hashes: Record<string, string> = {};
/** The same with a hash. */
function compareHash(name: string, found: string): void {
  if (isUpdate) hashes[name] = hashOf(found);
  else assertRecorded("terminal", name, found);
}
after(() => {
  if (isUpdate) writeRecorded("terminal", hashes);
});

for (const [name, args] of Object.entries(CASES)) {
  describe(name, () => {
    for (const width of WIDTHS) {
      test(`at ${width} columns`, async () => {
        const { status, stdout, stderr } = await run(args, { COLUMNS: String(width) });
        assert.equal(status, name in COMPLAINTS ? 1 : 0);
        assert.match(stderr, COMPLAINTS[name] ?? /^$/);
        expectTidy(stdout, width);
        for (const line of stdout.split("\n")) assert.ok(columnsOf(line) <= width, line);
        if (width === 80 && !HASHED.test(name)) compare(`${name}-${width}.txt`, stdout);
        else compareHash(`${name}-${width}`, stdout);
        const colored = (await run(args, { COLUMNS: String(width), FORCE_COLOR: "1" })).stdout;
        assert.equal(withoutColors(colored), stdout);
        assert.notEqual(colored, stdout);
      });
    }
  });
}
test("colours", async () => {
  const { stdout } = await run("inspect mixture.gguf", { COLUMNS: "80", FORCE_COLOR: "1" });
  compareHash("inspect-colors", stdout.replaceAll("\x1b", "ESC"));
});
test("Markdown", async () => {
  for (const name of ["mixture", "hostile"]) {
    const { status, stdout } = await run(["inspect", "--markdown", `${name}.gguf`]);
    assert.equal(status, 0);
    expectTidy(stdout, Number.POSITIVE_INFINITY);
    if (HASHED.test(name)) compareHash(`${name}.md`, stdout);
    else compare(`${name}.md`, stdout);
  }
});
