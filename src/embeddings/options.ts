/** The public options of embedders. */
import type { Activations, AsyncOptions, ThreadOptions } from "../base/options";

/** How the vectors of a text's tokens become one: their mean, that of the first token, or that of the last. */
export type Pooling = "mean" | "cls" | "last";

export const POOLINGS: readonly Pooling[] = ["mean", "cls", "last"];

/** Options of {@link Embedder.open}. */
export interface EmbedderOptions extends ThreadOptions {
  /**
   * Default `"int8"`: inputs of quantized matrices are rounded to 8 bits, which is faster. For the matrices of values, which matter
   * most, what this loses is multiplied, too, and added. Weights that are plain numbers, such as F16, are multiplied exactly in both cases. Matrices of a checkpoint
   * become Q8_0 with `"int8"`, and stay as they are with `"f32"`.
   */
  activations?: Activations | undefined;
  /** In place of what the model says. */
  pooling?: Pooling | undefined;
  /**
   * Whether quantized matrices are unpacked once, rather than for each batch: a short text alone takes a sixth less time then. It
   * takes memory, a byte for each weight. By default, an embedder with a thread of its own does it after the first call if the model has
   * at most 2^25 weights in its layers; with `true`, it does so before it is open.
   */
  prepare?: boolean | undefined;
  /** Aborts the opening. */
  signal?: AbortSignal | undefined;
}

/** Options of {@link Embedder.score}. */
export interface ScoreOptions {
  /** Aborting makes the promise reject with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Called with the number of finished texts, and of all. */
  onProgress?: AsyncOptions["onProgress"];
}

/** Options of {@link Embedder.embed}. */
export interface EmbedOptions extends ScoreOptions {
  /** Numbers of a vector: its first ones, for models that were trained for it (Matryoshka). Default: all. */
  dimensions?: number | undefined;
  /** Whether vectors are scaled to a length of 1, after they are cut. Default true. */
  normalize?: boolean | undefined;
  /** The name of what the model's own files want before each text, such as `"query"`: see {@link Embedder.prompts}. */
  prompt?: string | undefined;
}
