/**
 * The llama example on real models, against llama.cpp.
 *
 * llama.cpp rounds activations to 8 bits before it multiplies them with quantized weights. In a model of many layers a
 * difference in the last bit of a sum then becomes another code here and there, and after all layers logits that differ by
 * percents. So texts are compared with those that llama.cpp writes with the same weights as F32, which it multiplies as they
 * are, and that the example writes with activations that are not rounded. How many of its choices are other ones with the
 * quantized file is printed. Perplexity is a mean over many tokens, and is compared with the quantized file, with rounded
 * activations and with others; of what differs, .01 to .8 % on different texts, that rounding is the likely cause. So its
 * text is a fixed one: documentation of this project as it once was.
 */
import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { openSync } from "gguf-native";
import { Tokenizer } from "gguf-native/tokenizer";
import { perplexity } from "../../examples/llama/measure";
import { Llama } from "../../examples/llama/model";
import { greedy } from "../../examples/llama/write";
import { LlamaCpp, noLlamaCpp } from "../support/libllama";
import { projectRoot, temporaryFolder } from "../support/paths";
import { GEMMA3, modelPath, needsModel, SMOLLM2, widened } from "./support";

const PROMPTS = [
  "Once upon a time",
  "The capital of France is",
  "def fibonacci(n):",
  "To make a good cup of tea,",
  "The three laws of thermodynamics",
  "Dear Sir or Madam,",
  "In 1969, people",
  "Water boils when",
  "A list of prime numbers: 2, 3, 5,",
  "My favourite animal is the",
];
const WRITTEN = 64;
/** Two tokens are equally good if their logits differ by less than this share. */
const TIE = 0.001;

/** Tokens that a perplexity is measured over, and the length of the pieces that they are cut to. */
const MEASURED = 4096;
const PIECE = 512;
const measuredText = readFileSync(join(projectRoot, "docs", "safety.md"), "utf8");

/** A text of some 10,000 tokens: documentation of this project. */
const text = ["guide", "cli", "safety"]
  .map((name) => readFileSync(join(projectRoot, "docs", `${name}.md`), "utf8"))
  .join("\n");
/** What tokenizers may stumble over. */
const ODD =
  "  two  spaces\n\n\n\ttab <b>tags</b> 漢字 🦙 naïve 1234567 don't [multimodal] <|im_end|> \u2581 e\u0301\r\n ";

/** What a logit is lower by is its probability's -ln. */
function logSumExp(logits: Float32Array): number {
  const greatest = logits.reduce((a, b) => Math.max(a, b));
  return greatest + Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - greatest), 0));
}

const folder = temporaryFolder();

/** Continues a prompt, token by token, from `begin` on, until the model ends the text or `length` tokens are there. */
function continueText(llama: Llama, isEnd: (token: number) => boolean, begin: number[], length: number): number[] {
  const tokens = [...begin];
  const cache = llama.createCache(length);
  let logits = llama.forward(tokens, cache);
  while (tokens.length < length) {
    const token = greedy(logits);
    tokens.push(token);
    if (isEnd(token) || tokens.length === length) break;
    logits = llama.forward([token], cache);
  }
  return tokens;
}

/**
 * Asserts that each token of a text is llama.cpp's choice after those before it, which makes the text the one that it
 * writes. At a token that is as good, goes on from llama.cpp's. Returns the whole text.
 */
function compareText(
  context: TestContext,
  llamaCpp: LlamaCpp,
  prompt: number[],
  write: (begin: number[]) => number[],
): number[] {
  for (let tokens = write(prompt); ; ) {
    const logits = llamaCpp.read(tokens);
    let at = prompt.length;
    let theirs = 0;
    for (; at < tokens.length; at++) {
      theirs = greedy(logits.at(at - 1));
      if (theirs !== tokens[at]) break;
    }
    if (at === tokens.length) return tokens;
    const after = logits.at(at - 1);
    const gap = (after[theirs]! - after[tokens[at]!]!) / Math.abs(after[theirs]!);
    const where = `token ${at - prompt.length}: llama.cpp chooses ${theirs}, not ${tokens[at]}, whose logit is ${(100 * gap).toFixed(3)} % lower`;
    assert.ok(gap < TIE, where);
    context.diagnostic(`${where}; going on from it`);
    tokens = write([...tokens.slice(0, at), theirs]);
  }
}

for (const [name, model] of Object.entries({ SmolLM2: SMOLLM2, "Gemma 3": GEMMA3 })) {
  const { skip } = needsModel(model);
  describe(name, { skip: skip || noLlamaCpp }, () => {
    // Opened for all tests; the process ends after them.
    const open = () => {
      const file = openSync(modelPath(model));
      const tokenizer = new Tokenizer(file.metadata);
      return { llama: Llama.load(file, { activations: "f32" }), rounding: Llama.load(file), tokenizer };
    };
    let opened: ReturnType<typeof open> | undefined;
    const ours = () => {
      opened ??= open();
      return opened;
    };
    let quantized: Promise<LlamaCpp> | undefined;
    const theirs = () => {
      quantized ??= LlamaCpp.load(modelPath(model), 1024);
      return quantized;
    };
    /** The texts that were written, with the lengths of their prompts. */
    const texts: { begin: number; tokens: number[] }[] = [];

    test("reads texts as the same tokens", async () => {
      const { tokenizer } = ours();
      const llamaCpp = await theirs();
      for (const sample of [text, measuredText, ODD, "", " ", ...PROMPTS, ...text.split("\n")]) {
        assert.deepEqual(
          [...tokenizer.encode(sample)],
          llamaCpp.vocabulary.tokens(sample),
          JSON.stringify(sample.slice(0, 80)),
        );
      }
    });

    test(`writes ${WRITTEN} tokens as llama.cpp does, after ${PROMPTS.length} prompts`, async (context) => {
      const { llama, tokenizer } = ours();
      const path = await widened(folder, model);
      const llamaCpp = await LlamaCpp.load(path, 256);
      for (const prompt of PROMPTS) {
        const begin = [...tokenizer.encode(prompt)];
        const write = (first: number[]) =>
          continueText(llama, (token) => tokenizer.isEnd(token), first, begin.length + WRITTEN);
        const tokens = compareText(context, llamaCpp, begin, write);
        const last = tokens.at(-1)!;
        for (const token of tokens.slice(begin.length)) {
          assert.equal(tokenizer.isEnd(token), llamaCpp.vocabulary.isEnd(token), `${token} ends the text`);
        }
        assert.ok(tokens.length === begin.length + WRITTEN || tokenizer.isEnd(last), prompt);
        texts.push({ begin: begin.length, tokens });
      }
      rmSync(path); // a gigabyte, which is mapped until the process ends
    });

    test("llama.cpp makes almost the same choices with the quantized weights", async (context) => {
      const llamaCpp = await theirs();
      if (texts.length === 0) return context.skip("no texts were written");
      let [other, all] = [0, 0];
      for (const { begin, tokens } of texts) {
        const logits = llamaCpp.read(tokens);
        for (let at = begin; at < tokens.length; at++) {
          if (greedy(logits.at(at - 1)) !== tokens[at]) other++;
          all++;
        }
      }
      context.diagnostic(`${other} of ${all} are other ones`);
      assert.ok(other <= all * 0.06, `${other} of ${all}`);
    });

    test(`has llama.cpp's perplexity over ${MEASURED} tokens`, async (context) => {
      const { llama, rounding, tokenizer } = ours();
      const llamaCpp = await theirs();
      const tokens = [...tokenizer.encode(measuredText).subarray(0, MEASURED)];
      assert.equal(tokens.length, MEASURED);
      const [begin] = tokenizer.encode("");
      const found = perplexity(llama, tokens, { context: PIECE, begin });
      const rounded = perplexity(rounding, tokens, { context: PIECE, begin });
      let sum = 0;
      let count = 0;
      for (let start = 0; start + PIECE <= MEASURED; start += PIECE) {
        const piece = tokens.slice(start, start + PIECE);
        if (begin !== undefined) piece[0] = begin;
        const logits = llamaCpp.read(piece);
        for (let i = PIECE / 2; i < PIECE - 1; i++, count++) {
          const after = logits.at(i);
          sum += logSumExp(after) - after[piece[i + 1]!]!;
        }
      }
      const expected = Math.exp(sum / count);
      const figures = [found.perplexity, rounded.perplexity, expected].map((x) => x.toFixed(4));
      context.diagnostic(`f32 ${figures[0]}, int8 ${figures[1]}, llama.cpp ${figures[2]}`);
      assert.equal(found.count, count);
      // llama.cpp rounds 256 numbers together: what that does to a text is up to 0.7 %, of Gemma in Q4_K.
      for (const [a, b, most] of [
        [found.perplexity, expected, 0.01],
        [rounded.perplexity, expected, 0.01],
        [rounded.perplexity, found.perplexity, 0.005],
      ] as const) {
        assert.ok(Math.abs(a / b - 1) < most, figures.join(", "));
      }
    });
  });
}
