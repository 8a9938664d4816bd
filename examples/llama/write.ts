/** Writing a text, token by token. */
import { softmax, topK } from "gguf-native/network";
import type { Tokenizer } from "gguf-native/tokenizer";
import type { Llama } from "./model";

/** Chooses a token from the logits of all tokens. */
export type Sampler = (logits: Float32Array) => number;

/** The most probable token. */
export const greedy: Sampler = (logits) => topK(logits, 1).indexes[0]!;

/** Chooses one of the `k` most probable tokens at random. The same `seed`, a whole number, gives the same choices. */
export function topKSampler(k: number, seed: number): Sampler {
  let state = seed;
  return (logits) => {
    const { indexes, values } = topK(logits, Math.min(k, logits.length));
    // A random number that depends only on the seed: a counter with mixed bits (splitmix32).
    state = (state + 0x9e3779b9) | 0;
    let bits = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    bits = Math.imul(bits ^ (bits >>> 15), 0x735a2d97);
    let left = ((bits ^ (bits >>> 15)) >>> 0) / 2 ** 32;
    const chosen = softmax(values, values.length).findIndex((probability) => {
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

export interface Written {
  token: number;
  text: string;
  /** Those that the token was chosen from. */
  logits: Float32Array<ArrayBuffer>;
}

/**
 * Continues `prompt` by up to `count` tokens, as `sample` chooses them, until the model ends the text.
 *
 * @throws Error if there is no prompt, or if the model has no room for all tokens
 */
export function* write(
  llama: Llama,
  tokenizer: Pick<Tokenizer, "isEnd" | "decoder">,
  prompt: readonly number[],
  count: number,
  sample: Sampler,
): Generator<Written, void> {
  const { contextLength } = llama.config;
  if (prompt.length === 0) throw new Error("the prompt is empty");
  if (prompt.length + count > contextLength) {
    throw new Error(
      `the prompt has ${prompt.length} tokens; with ${count} more it does not fit in the model's context of ${contextLength} tokens`,
    );
  }
  const cache = llama.createCache(prompt.length + count);
  const decode = tokenizer.decoder();
  // What is written goes on from there: without the prompt, a space before the first word would be left out.
  for (const token of prompt) decode(token);
  let next = prompt;
  for (let written = 0; written < count; written++) {
    const logits = llama.forward(next, cache);
    const token = sample(logits);
    if (tokenizer.isEnd(token)) return;
    yield { token, text: decode(token), logits };
    next = [token];
  }
}
