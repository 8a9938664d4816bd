/** What test/examples/embeddings-bits.test.ts, its child process and its page have in common. */
import type { GgufFile } from "gguf-native";
import { Embedder } from "../../examples/embeddings/embedder";
import type { LoadOptions } from "../../examples/embeddings/model";

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

export function embedTexts(file: GgufFile, threads: readonly number[]): EmbeddingsRun[] {
  return (["int8", "f32"] as const).flatMap((activations) =>
    threads.map((count) => {
      const options: LoadOptions = { activations, threads: count };
      const embedder = new Embedder(file, options);
      return {
        ...{ activations, threads: count },
        together: embedder.embed(TEXTS).map(bitsOf),
        alone: TEXTS.map((text) => bitsOf(embedder.embed([text])[0]!)),
      };
    }),
  );
}

function bitsOf({ buffer, byteOffset, length }: Float32Array): number[] {
  return Array.from(new Uint32Array(buffer, byteOffset, length));
}
