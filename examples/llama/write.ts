/** Writing a text, token by token. */
import type { Llama } from "./model";
import type { Sampler } from "./sampling";

/** What is used of a tokenizer. */
export interface TokenDecoder {
  isEnd(token: number): boolean;
  /** A function that turns one token after the other into text. */
  decoder(): (token: number) => string;
}

export interface Written {
  token: number;
  text: string;
}

/**
 * Continues `prompt` by up to `count` tokens, as `sample` chooses them, until the model ends the text.
 *
 * @throws Error if there is no prompt, or if the model has no room for all tokens
 */
export function* write(
  llama: Llama,
  tokenizer: TokenDecoder,
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
    const token = sample(llama.forward(next, cache));
    if (tokenizer.isEnd(token)) return;
    yield { token, text: decode(token) };
    next = [token];
  }
}
