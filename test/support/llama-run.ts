/** What test/examples/llama-bits.test.ts and its child process have in common. */

/** Several batches, the last of which is no whole tile. */
export const LLAMA_PROMPT = Array.from({ length: 150 }, (_, i) => (i * 37) % 2000);
/** Tokens that are written. */
export const WRITTEN = 12;

export interface LlamaRun {
  activations: "int8" | "f32";
  threads: number;
  tokens: number[];
  /** SHA-256 of all logits. */
  digest: string;
}
