/** Choosing the next token. */
import { preciseExp } from "../network/elementary";
import { topK } from "../vectors";

/** Chooses a token from the logits of all tokens. */
export type Sampler = (logits: Float32Array) => number;

/** The most probable token. */
export const greedy: Sampler = (logits) => {
  let best = 0;
  for (let i = 1; i < logits.length; i++) if (logits[i]! > logits[best]!) best = i;
  return best;
};

/** Chooses one of the `k` most probable tokens at random. The same `seed`, a whole number, gives the same choices. */
export function topKSampler(k: number, seed: number): Sampler {
  const random = randomNumbers(seed);
  return (logits) => {
    const candidates = topK(logits, k);
    const probabilities = Float32Array.from(candidates, (token) => logits[token]!);
    softmax(probabilities);
    let left = random();
    const chosen = probabilities.findIndex((probability) => {
      left -= probability;
      return left < 0;
    });
    return candidates.at(chosen)!; // at(-1) if rounding leaves a small rest
  };
}

/** The `count` most probable next tokens, with their probabilities. */
export function mostProbable(logits: Float32Array, count: number): { token: number; probability: number }[] {
  const probabilities = logits.slice();
  softmax(probabilities);
  return topK(logits, count).map((token) => ({ token, probability: probabilities[token]! }));
}

/** Turns logits into probabilities, in place. */
function softmax(logits: Float32Array): void {
  const greatest = logits[greedy(logits)]!;
  let sum = 0;
  for (let i = 0; i < logits.length; i++) {
    logits[i] = preciseExp(Math.max(-700, logits[i]! - greatest));
    sum += logits[i]!;
  }
  for (let i = 0; i < logits.length; i++) logits[i]! /= sum;
}

/** Random numbers from 0 to 1 (excluded) that depend only on the seed: a counter with mixed bits (splitmix32). */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let bits = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    bits = Math.imul(bits ^ (bits >>> 15), 0x735a2d97);
    return ((bits ^ (bits >>> 15)) >>> 0) / 2 ** 32;
  };
}
