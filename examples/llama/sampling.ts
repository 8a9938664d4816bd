/** Choosing the next token. */
import { softmax, topK } from "gguf-native/network";

/** Chooses a token from the logits of all tokens. */
export type Sampler = (logits: Float32Array) => number;

/** The most probable token. */
export const greedy: Sampler = (logits) => topK(logits, 1).indexes[0]!;

/** Chooses one of the `k` most probable tokens at random. The same `seed`, a whole number, gives the same choices. */
export function topKSampler(k: number, seed: number): Sampler {
  const random = randomNumbers(seed);
  return (logits) => {
    const { indexes, values } = topK(logits, Math.min(k, logits.length));
    const probabilities = softmax(values, values.length);
    let left = random();
    const chosen = probabilities.findIndex((probability) => {
      left -= probability;
      return left < 0;
    });
    return indexes.at(chosen)!; // at(-1) if rounding leaves a small rest
  };
}

/** The `count` most probable next tokens, with their probabilities. */
export function mostProbable(logits: Float32Array, count: number): { token: number; probability: number }[] {
  const { indexes, values } = topK(softmax(logits, logits.length), Math.min(count, logits.length));
  return Array.from(indexes, (token, i) => ({ token, probability: values[i]! }));
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
