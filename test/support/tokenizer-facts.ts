/** What a tokenizer makes of texts: in Node, and in a browser, where test/tokenizer/browser.test.ts compares. */
import type { Tokenizer } from "gguf-native/tokenizer";

export interface TokenizerInput {
  /** A file for each vocabulary. */
  urls: string[];
  texts: string[];
}

/** What is made of a text: its tokens, without and with names of control tokens, and the text again in three ways. */
export type TextFacts = [ids: number[], special: number[], decoded: string, named: string, streamed: string[]];

function streamed(tokenizer: Tokenizer, ids: Int32Array): string[] {
  const next = tokenizer.decoder({ special: true });
  return Array.from(ids, (id) => next(id));
}

/** An error counts as what it says. */
export function tokenizerFacts(tokenizer: Tokenizer, texts: readonly string[]): (TextFacts | string)[] {
  return texts.map((text) => {
    try {
      const ids = tokenizer.encode(text);
      const special = tokenizer.encode(text, { special: true });
      return [
        ...([Array.from(ids), Array.from(special)] as const),
        ...([tokenizer.decode(ids), tokenizer.decode(special, { special: true })] as const),
        streamed(tokenizer, special),
      ];
    } catch (error) {
      const { name, code, message } = error as Error & { code?: string };
      return `${name} ${code}: ${message}`;
    }
  });
}
