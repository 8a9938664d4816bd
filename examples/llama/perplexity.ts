/** How well a model predicts a text. */

import { logSumExp } from "gguf-native/network";
import type { Llama } from "./model";

export interface Perplexity {
  /** e to the mean of -ln(probability) of the tokens that were predicted: 1 if the model was sure of each and right. */
  perplexity: number;
  /** Number of tokens that were predicted. */
  count: number;
}

export interface PerplexityOptions {
  /**
   * Cuts the text into pieces of so many tokens, and predicts the second half of each from what comes before it in the
   * piece, as llama.cpp's `llama-perplexity -c` does. What is left at the end is not used. Default: predicts every token
   * but the first, from all before it.
   */
  context?: number | undefined;
  /** The token that each piece begins with, in place of its own, if the model wants one. */
  begin?: number | undefined;
}

/** @throws RangeError for fewer than two pieces, or than two tokens */
export function perplexity(
  llama: Llama,
  tokens: readonly number[],
  { context, begin }: PerplexityOptions = {},
): Perplexity {
  const length = context ?? tokens.length;
  const first = context === undefined ? 0 : Math.floor(length / 2);
  const pieces = Math.floor(tokens.length / length);
  if (length < 2) throw new RangeError("a perplexity needs two tokens at least");
  if (context !== undefined && pieces < 2)
    throw new RangeError(`the text has ${tokens.length} tokens, which is less than two pieces of ${length}`);
  let sum = 0;
  let count = 0;
  for (let piece = 0; piece < pieces; piece++) {
    const own = tokens.slice(piece * length, (piece + 1) * length);
    if (begin !== undefined) own[0] = begin;
    // Nothing is predicted after the last token.
    llama.forwardEach(own.slice(0, -1), llama.createCache(length), first, (place, logits) => {
      sum += logSumExp(logits) - logits[own[place + 1]!]!;
      count++;
    });
  }
  return { perplexity: Math.exp(sum / count), count };
}
