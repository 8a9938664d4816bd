/** The public options of `gguf-native/network`. */
import type { Dequantized, ThreadOptions } from "../base/options";

/** An array that a function makes where no `out` is given. */
export type Floats = Dequantized<"f32">;

/** Where a result goes. */
export interface OutOptions<A extends Float32Array = Float32Array> {
  /**
   * Filled and returned; exactly as long as the result. It may be the input itself, but not overlap it otherwise. May be
   * backed by a SharedArrayBuffer.
   */
  out?: A | undefined;
}

/** Options of {@link activate}, {@link gated} and {@link roundingError}. */
export interface ActivateOptions<A extends Float32Array = Float32Array> extends OutOptions<A>, ThreadOptions {}

/** Options of {@link rmsNorm} and {@link layerNorm}. */
export interface NormOptions<A extends Float32Array = Float32Array> extends ActivateOptions<A> {
  /** Added to the mean of the squares: 0 or more. */
  epsilon: number;
  /** Numbers of a vector, at most 2^24; default: those of `weight` or `bias`, and without these all numbers are one vector. */
  width?: number | undefined;
}

/** Options of {@link softmax}. */
export interface SoftmaxOptions<A extends Float32Array = Float32Array> extends ActivateOptions<A> {
  /** Numbers are multiplied with it first; default 1. */
  scale?: number | undefined;
  /** Then v becomes `cap * tanh(v / cap)`: above 0. Default: none. */
  cap?: number | undefined;
}

/** Options of {@link rope}. */
export interface RopeOptions<A extends Float32Array = Float32Array> extends ActivateOptions<A> {
  /** Heads of a token, one after the other; default 1. */
  headCount?: number | undefined;
}

/** Options of {@link attention}. */
export interface AttentionOptions<A extends Float32Array = Float32Array> extends ActivateOptions<A> {
  /** Heads of queries: a multiple of the cache's heads. Query head h asks head `floor(h / (heads / cache.heads))`. */
  heads: number;
  /** The products of queries and keys are multiplied with it; default `1 / sqrt(keyWidth)`. */
  scale?: number | undefined;
  /** Default true: a token sees no token after it. With false, every token sees all that come after it. */
  causal?: boolean | undefined;
  /** How far back a token sees, itself included: 1 or more. Default: all. */
  window?: number | undefined;
  /** Scores s become `cap * tanh(s / cap)`: above 0. Default: none. */
  cap?: number | undefined;
  /** For each head, a score that takes part in the sum of the softmax and has no value. Default: none. */
  sinks?: Float32Array | undefined;
}

/** The functions of {@link activate}; `"gelu"` is the one by tanh, `"relu2"` is relu squared. */
export type Activation = "silu" | "gelu" | "gelu_erf" | "relu" | "relu2" | "sigmoid" | "tanh";

/** How a cache holds numbers: as they are, as binary16, or as 8 bits with a scale for every 32. */
export type CacheType = "F16" | "F32" | "Q8_0";

/** Options of a cache. */
export interface KvCacheOptions {
  /** Heads of keys and values. */
  heads: number;
  /** Numbers of a key of one head. */
  keyWidth: number;
  /** Numbers of a value of one head; default `keyWidth`. */
  valueWidth?: number | undefined;
  /** The most tokens; default 2^31 - 1. Memory grows with what is appended, whatever this is. */
  capacity?: number | undefined;
  /** Default `"F16"`. For `"Q8_0"`, widths are multiples of 32. */
  type?: CacheType | undefined;
}

/**
 * YaRN: stretched angles for contexts that are longer than in the training of the model, as llama.cpp computes them.
 */
export interface YarnOptions {
  /** How many times longer the context is: above 0. It takes the place of {@link RotationsOptions.scale}. */
  factor: number;
  /** The tokens of the context that the model was trained with. */
  originalContext: number;
  /** Cosines and sines are multiplied with it, and, unless `extrapolation` is 0, with `1 + 0.1 ln(factor)`. Default 1. */
  attentionFactor?: number | undefined;
  /** Pairs that turn more often than that in the original context keep their angles; default 32. */
  betaFast?: number | undefined;
  /** Pairs that turn less often than that have their angles divided by `factor`; default 1. */
  betaSlow?: number | undefined;
  /** How much of that is done: 0, all angles are divided, to 1, the default. */
  extrapolation?: number | undefined;
}

/** Options of {@link Rotations}. */
export interface RotationsOptions {
  /** How many numbers of a head are rotated, from its first on: an even number. */
  width: number;
  /** Pair i turns by `base^(-2 i / width)` radians from one position to the next; above 1. */
  base: number;
  /** Linear scaling: positions are divided by it; default 1. */
  scale?: number | undefined;
  /** For each pair, what its angle is divided by. */
  factors?: Float32Array | undefined;
  /** Pair i is numbers 2 i and 2 i + 1 (`"adjacent"`), or i and i + width / 2 (`"halves"`). */
  pairs: "adjacent" | "halves";
  /** Default: none. */
  yarn?: YarnOptions | undefined;
  /**
   * For tokens with several positions, such as time, row and column: how many pairs turn by the first position, by the
   * second, and so on. If pairs are left, it starts again with the first. Default: tokens have one position.
   */
  sections?: readonly number[] | undefined;
}
