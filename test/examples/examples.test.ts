/** The examples, end to end: what they print and exit with. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { parseReceipt } from "../../examples/llama/receipt";
import { runNode } from "../support/child";
import { emulated } from "../support/emulated";
import { writeGguf } from "../support/gguf-writer";
import { projectRoot, temporaryFolder } from "../support/paths";
import { sampleModel } from "../support/sample-model";
import { smallAdapter } from "../support/small-llama";

const folder = temporaryFolder();
const model = join(folder, "sample.gguf");
writeFileSync(model, sampleModel());
const empty = join(folder, "empty.gguf");
writeFileSync(empty, writeGguf());
const program = (example: string): string => join(projectRoot, "build", "examples", `${example}.js`);

function run(example: string, ...args: string[]) {
  const { status, stdout, stderr } = runNode([program(example), ...args]);
  return { status, stdout, stderr };
}

function runWell(example: string, ...args: string[]): string {
  const { status, stdout, stderr } = run(example, ...args);
  assert.equal(status, 0, stderr);
  return stdout;
}

/** For tests that do not depend on the processor: an emulated one takes seconds to start a process. */
const quick = { skip: emulated && "takes long on an emulated processor, and does not depend on it" };

describe("llama", () => {
  const prompt = ["--prompt", "token7 token8"];

  test("usage and errors", quick, () => {
    const args = ["--prompt", "a"];
    assert.match(runWell("llama", "--help"), /^Usage: llama MODEL.gguf/);
    for (const wrong of [[], [...args, model, model], [...args, model, "--nonsense"]]) {
      const { status, stderr, stdout } = run("llama", ...wrong);
      assert.deepEqual([status, stdout], [2, ""]);
      assert.match(stderr, /\n\nUsage: /);
    }
    const missing = run("llama", join(folder, "missing.gguf"), ...args);
    assert.equal(missing.status, 1);
    assert.match(missing.stderr, /^.*missing\.gguf: cannot open the file: .*\n$/);
  });

  test("continues a text, the same with any number of threads", () => {
    const alone = run("llama", model, ...prompt, "--tokens", "5", "--threads", "1");
    assert.match(alone.stdout, /^token7 token8( token\d+){5}\n$/);
    const rate = "\\d+\\.\\d tokens/s";
    assert.match(alone.stderr, new RegExp(`^\\d+ tokens read at ${rate}, 5 written at ${rate}\n$`));
    assert.equal(runWell("llama", model, ...prompt, "--tokens", "5"), alone.stdout);
  });

  test("chooses by chance with --top-k, the same for the same --seed", quick, () => {
    const text = (seed: string): string =>
      runWell("llama", model, ...prompt, "--tokens", "8", "--top-k", "50", "--seed", seed);
    const first = text("1");
    assert.match(first, /^token7 token8( token\d+){8}\n$/);
    assert.equal(text("1"), first);
    assert.notEqual(text("2"), first);
  });

  test("rounds activations, unless --activations f32 asks for the others", quick, () => {
    const next = (...args: string[]): string => runWell("llama", model, ...prompt, "--next", "9", ...args);
    assert.equal(next("--activations", "int8"), next());
    assert.notEqual(next("--activations", "f32"), next());
  });

  test("lists the most probable tokens, the one that it would choose first", quick, () => {
    const lines = runWell("llama", model, ...prompt, "--next", "3")
      .trimEnd()
      .split("\n");
    assert.equal(lines.length, 3);
    const [, text] = /^ *\d+ {2}\d\.\d{3}e-\d+ {2}" (token\d+)"$/.exec(lines[0]!)!;
    assert.equal(runWell("llama", model, ...prompt, "--tokens", "1"), `token7 token8 ${text}\n`);
  });

  test("says what it is not given, and what it cannot do", quick, () => {
    for (const [args, message] of [
      [[], /^give one of --prompt, --check, --perplexity and --imatrix\n/],
      [[...prompt, "--perplexity", "text"], /^give one of --prompt,/],
      [[...prompt, "--context", "9"], /^--context is for --perplexity and --imatrix/],
      [[...prompt, "--top-k", "0"], /^--top-k must be a whole number of at least 1/],
      [[...prompt, "--activations", "int4"], /^--activations must be int8 or f32, not 'int4'\n/],
    ] as const) {
      assert.match(run("llama", model, ...args).stderr, message);
    }
    for (const [args, message] of [
      [[empty, ...prompt], /^the vocabulary needs 'tokenizer.ggml.tokens'/],
      [[model, ...prompt, "--tokens", "2048"], /more it does not fit in the model's context of 2048 tokens\n$/],
    ] as const) {
      const { status, stderr } = run("llama", ...args);
      assert.equal(status, 1);
      assert.match(stderr, message);
    }
  });

  test("writes a receipt, which holds on other kernels, and says what differs", quick, () => {
    const receipt = join(folder, "receipt.json");
    const args = [model, ...prompt, "--tokens", "4", "--top-k", "9", "--seed", "3"];
    const text = runWell("llama", ...args, "--receipt", receipt);
    const written = JSON.parse(readFileSync(receipt, "utf8"));
    const scalar = { env: { ...process.env, GGUF_NATIVE_ISA: "scalar" } };
    const again = runNode([program("llama"), model, "--check", receipt, "--threads", "1"], scalar);
    const same = `${receipt}: the logits of all 4 tokens have the same bits\n`;
    assert.deepEqual([again.status, again.stdout], [0, `${text}${same}`]);

    const hash = "0".repeat(64);
    const forged = { ...written.tokens[2], sha256: hash };
    for (const [change, message] of [
      [{ activations: "f32" }, /^token 1 differs: in the receipt \d+ of logits \w{64}, here \d+ of logits /],
      [{ count: 2 }, /^token 3 differs: in the receipt \d+ of logits \w{64}, here the end\n$/],
      [{ tokens: written.tokens.slice(0, 3) }, /^token 4 differs: in the receipt the end, here \d+ of /],
      [{ tokens: written.tokens.with(2, forged) }, /^token 3 differs: in the receipt \d+ of logits 0{64}, /],
      [{ model: [hash] }, /^the receipt is of another model: \["0{64}"\], here \["\w{64}"\]\n$/],
      [{ adapters: [{ sha256: hash, scale: 1 }] }, /^the receipt is of other adapters: /],
      [{ topK: 0 }, /changed.json is not a receipt\n$/],
    ] as const) {
      const changed = join(folder, "changed.json");
      writeFileSync(changed, JSON.stringify({ ...written, ...change }));
      const { status, stderr } = run("llama", model, "--check", changed);
      assert.equal(status, 1, JSON.stringify(change));
      assert.match(stderr, message);
    }
    const wrong = {
      tokens: 1,
      seed: "x",
      prompt: 1,
      activations: "",
      model: ["x"],
      adapters: [{ sha256: hash }],
    };
    for (const [key, value] of Object.entries(wrong)) {
      const text = JSON.stringify({ ...written, [key]: value });
      assert.throws(() => parseReceipt(text, "x"), /^Error: x is not a receipt$/, key);
    }
    const twice = run("llama", model, "--check", receipt, "--seed", "1");
    assert.match(twice.stderr, /^--seed is in the receipt\n/);
  });

  test("adds LoRA adapters, as often as it is told", quick, () => {
    const adapter = join(folder, "adapter.gguf");
    writeFileSync(adapter, smallAdapter("llama", 4, [["blk.0.attn_output", 512, 512]]));
    const next = (...args: string[]): string =>
      runWell("llama", model, ...prompt, "--next", "9", ...args.flatMap((arg) => ["--lora", arg]));
    const plain = next();
    assert.notEqual(next(adapter), plain);
    assert.equal(next(`${adapter},0`), plain);
    assert.equal(next(`${adapter},1`), next(adapter));
    assert.equal(next(`${adapter},0.25`, `${adapter},.5`).length, plain.length);
    assert.match(run("llama", model, ...prompt, "--lora", model).stderr, /must have the type lora, not \(none\)\n$/);
  });

  test("measures how well a text is predicted", quick, () => {
    const text = join(folder, "text");
    writeFileSync(text, "token7 token8 ".repeat(40));
    const [, whole, count] = /^perplexity (\d+\.\d{4}) of (\d+) tokens\n$/.exec(
      runWell("llama", model, "--perplexity", text),
    )!;
    assert.ok(Number(whole) > 1 && Number(count) >= 79, `${whole} of ${count}`);
    const inPieces = runWell("llama", model, "--perplexity", text, "--context", "16");
    assert.match(inPieces, /^perplexity \d+\.\d{4} of \d+ tokens\n$/);
    const { status, stderr } = run("llama", model, "--perplexity", text, "--context", "4096");
    assert.equal(status, 1);
    assert.match(stderr, /^4096 tokens at once are more than the model's context of 2048/);
  });
});
