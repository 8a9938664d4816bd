/** What test/embeddings/bits.test.ts, its child process and its page have in common. */
import type { GgufFile } from "gguf-native";
import { Embedder } from "gguf-native/embeddings";

/** Short and long ones: more tokens together than the model processes at a time. */
export const TEXTS = [
  "",
  "a cat",
  "The dog, and the cat!",
  ...Array.from({ length: 12 }, (_, i) => `the number of ${"tensor ".repeat(5 * i)}`),
  "naïve x = {y: 1}",
];

export interface EmbeddingsRun {
  activations: "int8" | "f32";
  threads: number;
  /** The bits of the vectors of the texts: computed together, and one by one. */
  together: number[][];
  alone: number[][];
}

export async function embedTexts(file: GgufFile, threads: readonly number[]): Promise<EmbeddingsRun[]> {
  const runs: EmbeddingsRun[] = [];
  for (const activations of ["int8", "f32"] as const) {
    for (const count of threads) {
      using embedder = await Embedder.open(file, { activations, threads: count });
      const together = (await embedder.embed(TEXTS)).map(bitsOf);
      const alone: number[][] = [];
      for (const text of TEXTS) alone.push(...(await embedder.embed([text])).map(bitsOf));
      runs.push({ activations, threads: count, together, alone });
    }
  }
  return runs;
}

function bitsOf({ buffer, byteOffset, length }: Float32Array): number[] {
  return Array.from(new Uint32Array(buffer, byteOffset, length));
}
