/**
 * `gguf-native/network`: the steps of a network between its products, with the same bits on every machine, in Node.js
 * and in WebAssembly; `gguf-native/reference` has the same functions in plain TypeScript. The rules are in
 * docs/sums.md.
 *
 * Vectors lie one after the other in an array, and so do the heads of a token. All functions block the calling thread.
 * They check their arguments before they write anything. NaN and infinities are ordinary inputs.
 */
import { native } from "../backend/native";
import type { Returned } from "../base/options";
import * as calls from "./calls";
import { KeyValueCache, restored } from "./kv-cache";
import type {
  ActivateOptions,
  Activation,
  AttentionOptions,
  Floats,
  KvCacheOptions,
  NormOptions,
  OutOptions,
  RopeOptions,
  SoftmaxOptions,
} from "./options";
import type { Rotations } from "./rotations";

export { GgufError, type GgufErrorCode } from "../base/errors";
export type { ThreadOptions } from "../base/options";
export type {
  ActivateOptions,
  Activation,
  AttentionOptions,
  CacheType,
  Floats,
  KvCacheOptions,
  NormOptions,
  OutOptions,
  RopeOptions,
  RotationsOptions,
  SoftmaxOptions,
  YarnOptions,
} from "./options";
export { Rotations } from "./rotations";
export { type TopK, topK } from "./top-k";
export { KeyValueCache };

/**
 * Scales each vector to a root mean square of 1: `x / sqrt(mean(x^2) + epsilon)`, and multiplies it with `weight`, number by
 * number.
 *
 * @param x vectors, one after the other
 * @param weight as long as a vector; undefined: without
 * @returns as long as `x`
 * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
 * @throws GgufError ERR_GGUF_RANGE for an argument that does not fit: a length, a width, an `epsilon` below 0, arrays that
 *   overlap without being the same
 */
export function rmsNorm<A extends Float32Array = Floats>(
  x: Float32Array,
  weight: Float32Array | undefined,
  options: NormOptions<A>,
): Returned<A> {
  return calls.rmsNorm(native, x, weight, options);
}

/**
 * Brings each vector to mean 0 and variance 1: `(x - mean) / sqrt(variance + epsilon)`, multiplies it with `weight` and adds
 * `bias`.
 *
 * @param x vectors, one after the other
 * @param weight as long as a vector; undefined: without
 * @param bias as long as a vector; undefined: without
 * @returns as long as `x`
 * @throws TypeError, GgufError as {@link rmsNorm}
 */
export function layerNorm<A extends Float32Array = Floats>(
  x: Float32Array,
  weight: Float32Array | undefined,
  bias: Float32Array | undefined,
  options: NormOptions<A>,
): Returned<A> {
  return calls.layerNorm(native, x, weight, bias, options);
}

/**
 * Scales each vector to length 1; one whose squares add up to 0 is not changed.
 *
 * @param x vectors, one after the other
 * @param width numbers of a vector
 * @returns as long as `x`
 * @throws TypeError, GgufError as {@link rmsNorm}
 */
export function normalize<A extends Float32Array = Floats>(
  x: Float32Array,
  width: number,
  options?: OutOptions<A>,
): Returned<A> {
  return calls.normalize(native, x, width, options);
}

/**
 * What products with `activations: "int8"` lose of vectors when they round them. The products of a matrix with this, added to
 * those with the vectors, come near those of binary32, in half the time (768 vectors, 384 columns of Q8_0, AVX-512).
 *
 * @param x vectors, one after the other, of whole runs of 32 numbers
 * @returns as long as `x`; NaN for the numbers of a run that has one that is not finite
 * @throws TypeError, GgufError as {@link rmsNorm}
 */
export function roundingError<A extends Float32Array = Floats>(
  x: Float32Array,
  options?: ActivateOptions<A>,
): Returned<A> {
  return calls.roundingError(native, x, options);
}

/**
 * The mean of vectors, number by number.
 *
 * @param x vectors, one after the other: 1 to 2^24
 * @param width numbers of a vector
 * @returns one vector
 * @throws TypeError, GgufError as {@link rmsNorm}
 */
export function meanOfRows<A extends Float32Array = Floats>(
  x: Float32Array,
  width: number,
  options?: OutOptions<A>,
): Returned<A> {
  return calls.meanOfRows(native, x, width, options);
}

/**
 * Adds `y` to `x`, in place. `y` is as long as `x`, such as a residual, or it is one vector that is added to each
 * vector of `x`, such as a bias.
 *
 * @returns `x`
 * @throws TypeError, GgufError as {@link rmsNorm}
 */
export function add<A extends Float32Array>(x: A, y: Float32Array): A {
  return calls.add(native, x, y);
}

/**
 * Multiplies all numbers of `x` with `factor`, rounded to binary32, in place.
 *
 * @returns `x`
 * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
 */
export function scale<A extends Float32Array>(x: A, factor: number): A {
  return calls.scale(native, x, factor);
}

/**
 * Applies an activation to each number.
 *
 * @returns as long as `x`
 * @throws TypeError ERR_INVALID_ARG_VALUE for an activation of another name; GgufError as {@link rmsNorm}
 */
export function activate<A extends Float32Array = Floats>(
  x: Float32Array,
  activation: Activation,
  options?: ActivateOptions<A>,
): Returned<A> {
  return calls.activate(native, x, activation, options);
}

/**
 * `activation(gate) * up`, number by number: with silu, SwiGLU.
 *
 * @param up as long as `gate`
 * @returns as long as `gate`; `out` may be either of them
 * @throws TypeError, GgufError as {@link activate}
 */
export function gated<A extends Float32Array = Floats>(
  gate: Float32Array,
  up: Float32Array,
  activation: Activation,
  options?: ActivateOptions<A>,
): Returned<A> {
  return calls.gated(native, gate, up, activation, options);
}

/**
 * Turns each vector into numbers above 0 with the sum 1: e to the power of each number, divided by the sum of these
 * powers. A number that is 104 less than the largest, such as -Infinity, becomes 0 or nearly 0. A vector with a NaN
 * becomes NaNs, and so does a vector of -Infinity alone.
 *
 * @param x vectors, one after the other
 * @param width numbers of a vector
 * @returns as long as `x`
 * @throws TypeError, GgufError as {@link rmsNorm}; ERR_GGUF_RANGE for a `cap` of 0 or less, too
 */
export function softmax<A extends Float32Array = Floats>(
  x: Float32Array,
  width: number,
  options?: SoftmaxOptions<A>,
): Returned<A> {
  return calls.softmax(native, x, width, options);
}

/**
 * The natural logarithm of the sum of e to the power of each number. A logit minus this is the logarithm of its
 * probability. NaN if a number is NaN; the largest number if that is infinite; -Infinity for no numbers.
 *
 * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
 */
export function logSumExp(x: Float32Array): number {
  return calls.logSumExp(native, x);
}

/**
 * Rotary position embedding: rotates pairs of numbers of each head by angles that grow with the position of its token.
 * Numbers beyond the width of the rotations stay.
 *
 * @param x tokens, one after the other, each with its heads
 * @param headWidth numbers of a head
 * @param position the position of the first token, after which each token is one further; or the positions of all
 *   tokens. Rotations with sections need a position for each section of each token, one after the other
 * @returns as long as `x`
 * @throws TypeError, GgufError as {@link rmsNorm}
 */
export function rope<A extends Float32Array = Floats>(
  x: Float32Array,
  headWidth: number,
  rotations: Rotations,
  position: number | Int32Array,
  options?: RopeOptions<A>,
): Returned<A> {
  return calls.rope(native, x, headWidth, rotations, position, options);
}

/**
 * Attention of the last tokens of `cache`, whose queries are given, to all tokens that they may see. For each head, it
 * is the mean of the values, weighted by the softmax of the products of keys and query. Append the keys and values of
 * the tokens first. The bits are the same for any number of tokens at a time and of threads.
 *
 * Each of several texts needs its own cache: call this for each, with its part of the queries and of the result
 * (`subarray`).
 *
 * @param queries n tokens, one after the other, each with `heads` queries of `cache.keyWidth` numbers
 * @returns n tokens, each with `heads` vectors of `cache.valueWidth` numbers
 * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
 * @throws GgufError ERR_GGUF_RANGE for an argument that does not fit: a length, more tokens than the cache holds,
 *   `heads` that are no multiple of the cache's, arrays that overlap without being the same
 */
export function attention<A extends Float32Array = Floats>(
  queries: Float32Array,
  cache: KvCache,
  options: AttentionOptions<A>,
): Returned<A> {
  return calls.attention(native, queries, cache, options);
}

/**
 * The keys and values of tokens, for {@link attention}. Each layer of a model needs one for each text. Its memory grows
 * in pages of 256 tokens, and is freed when nothing refers to it.
 *
 * Numbers are rounded when they are appended: to binary16, or to the blocks of `quantizeSync("Q8_0")` for each key and
 * value.
 */
export class KvCache extends KeyValueCache {
  /**
   * @throws TypeError ERR_INVALID_ARG_TYPE for an option of the wrong type, ERR_INVALID_ARG_VALUE for a `type` of another name
   * @throws GgufError ERR_GGUF_RANGE for sizes that are not whole numbers of 1 or more, widths that are no multiple of 32 for
   *   `"Q8_0"`, and more than 2^18 numbers of all heads of a token
   */
  constructor(options: KvCacheOptions) {
    super(native, options);
  }

  /**
   * Makes a cache from the bytes of {@link KvCache.serialize}. They may come from anywhere: all of them are checked.
   *
   * @throws TypeError ERR_INVALID_ARG_TYPE if they are no Uint8Array
   * @throws GgufError ERR_GGUF_INVALID for bytes of something else, or too many or too few; ERR_GGUF_RANGE for sizes
   *   that no cache has; ERR_GGUF_OUT_OF_MEMORY
   */
  static deserialize(bytes: Uint8Array): KvCache {
    return restored(bytes, (options) => new KvCache(options));
  }

  /** @internal */
  protected override empty(): this {
    return new KvCache(this) as this;
  }
}
