/**
 * A whole model: the llama example with activations of 8 bits and with others, and llama.cpp, reading prompts and writing
 * tokens. They take turns, in one process.
 */
import { openSync } from "gguf-native";
import { Llama } from "../../examples/llama/model";
import { LlamaCpp, noLlamaCpp } from "../../test/support/libllama";
import { type Context, threadCounts } from "../context";
import { summary } from "../measure";
import { type ModelShape, QUICK_SHAPE, SHAPE, writeModel } from "../model";
import type { Results } from "../results";
import { digits, progress } from "../table";

export interface LlamaWork {
  shape: ModelShape;
  /** Tokens of a prompt. Writing begins after them. */
  prompt: number;
  /** Tokens of a long text, after which writing is slower. */
  long: number;
  /** Tokens that are written in a turn. */
  written: number;
  rounds: number;
}

const WORK: LlamaWork = { shape: SHAPE, prompt: 128, long: 1000, written: 8, rounds: 12 };
const QUICK_WORK: LlamaWork = { ...WORK, shape: QUICK_SHAPE, rounds: 4 };

export const LLAMA_SIDES = ["int8", "f32", "llama.cpp"] as const;
export type LlamaSide = (typeof LLAMA_SIDES)[number];

/** Logits may differ from those with exact products by so much of their own root mean square. */
const TOLERANCE = 0.1;

/** What reads and writes. */
interface Runner {
  side: LlamaSide;
  /** Forgets all tokens. */
  start(): void;
  /** Processes tokens that follow those before. Returns the logits after the last one, good until the next call. */
  forward(tokens: readonly number[]): Float32Array;
}

/** The name of a work in the results. */
export const llamaSubject = {
  reading: (tokens: number) => `reading ${tokens} tokens`,
  writing: (tokens: number) => `writing after ${tokens} tokens`,
};

/** Measures and prints. Returns what was measured. */
export async function runLlama({ options, results }: Context, given?: LlamaWork): Promise<LlamaWork> {
  const work = given ?? (options.quick ? QUICK_WORK : WORK);
  const { path, weights } = writeModel(work.shape);
  const capacity = work.long + work.rounds * work.written;
  if (noLlamaCpp) results.miss(noLlamaCpp);
  const peer = noLlamaCpp ? undefined : await LlamaCpp.load(path, capacity);
  using file = openSync(path);
  for (const threads of threadCounts()) {
    const example = (activations: "int8" | "f32"): Runner => {
      const llama = Llama.load(file, { activations, threads });
      let cache = llama.createCache(capacity);
      return {
        side: activations,
        start: () => {
          cache = llama.createCache(capacity);
        },
        forward: (tokens) => llama.forward(tokens, cache),
      };
    };
    const runners = [example("int8"), example("f32")];
    if (peer) {
      peer.setThreads(threads);
      runners.push({
        side: "llama.cpp",
        start: () => peer.clear(),
        forward: (tokens) => peer.forward(tokens),
      });
    }
    expectSameLogits(runners, tokensOf(work, work.prompt));
    measure(results, work, runners, threads);
  }
  progress("");
  for (const threads of threadCounts()) {
    const title = `A llama of ${digits(weights / 1e6)} M weights in Q4_K and Q6_K, threads: ${threads}`;
    results.compare(title, { task: "llama", threads }, "tokens/s", LLAMA_SIDES);
  }
  if (peer) console.log(`  llama.cpp: with ${peer.build}`);
  return work;
}

/** Tokens of a text: any. */
function tokensOf({ shape }: LlamaWork, count: number): number[] {
  return Array.from({ length: count }, (_, i) => (i * 7919 + 1) % shape.vocabulary);
}

function measure(results: Results, work: LlamaWork, runners: readonly Runner[], threads: number): void {
  const none = (): number[] => [];
  const entrants = runners.map((runner) => ({
    runner,
    reading: none(),
    writing: none(),
    writingLate: none(),
  }));
  const prompt = tokensOf(work, work.prompt);
  for (let round = 0; round < work.rounds; round++) {
    for (const { runner, reading, writing } of entrants) {
      progress(`llama: ${runner.side}, threads: ${threads}, round ${round + 1}`);
      runner.start();
      reading.push(seconds(() => runner.forward(prompt)) / prompt.length);
      writing.push(secondsToWrite(runner, work));
    }
  }
  const long = tokensOf(work, work.long);
  for (const { runner } of entrants) {
    progress(`llama: ${runner.side}, threads: ${threads}, a long text`);
    runner.start();
    runner.forward(long);
  }
  for (let round = 0; round < work.rounds; round++) {
    for (const { runner, writingLate } of entrants) writingLate.push(secondsToWrite(runner, work));
  }
  for (const { runner, reading, writing, writingLate } of entrants) {
    const add = (subject: string, samples: readonly number[]) =>
      results.add({ task: "llama", subject, side: runner.side, threads }, summary(samples));
    add(llamaSubject.reading(prompt.length), reading);
    add(llamaSubject.writing(prompt.length), writing);
    add(llamaSubject.writing(long.length), writingLate);
  }
}

/** Seconds for each token. */
function secondsToWrite(runner: Runner, work: LlamaWork): number {
  const tokens = tokensOf(work, work.written);
  return (
    seconds(() => {
      for (const token of tokens) runner.forward([token]);
    }) / tokens.length
  );
}

function seconds(work: () => void): number {
  const begin = performance.now();
  work();
  return (performance.now() - begin) / 1000;
}

/** All compute the same network, or their times mean nothing. */
function expectSameLogits(runners: readonly Runner[], prompt: readonly number[]): void {
  const logits = new Map(
    runners.map((runner) => {
      runner.start();
      return [runner.side, Float32Array.from(runner.forward(prompt))];
    }),
  );
  const exact = logits.get("f32")!;
  for (const [side, found] of logits) {
    const error = rootMeanSquare(found.map((logit, i) => logit - exact[i]!)) / rootMeanSquare(exact);
    if (found.length === exact.length && error <= TOLERANCE) continue;
    console.error(`llama: the logits of ${side} and of f32 differ by ${digits(100 * error)} %`);
    process.exitCode = 1;
  }
}

function rootMeanSquare(numbers: Float32Array): number {
  return Math.sqrt(numbers.reduce((sum, x) => sum + x * x, 0) / numbers.length);
}
