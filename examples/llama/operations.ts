/**
 * The operations of a llama model between its matrices. One array holds the activations of several tokens, one after
 * the other. Numbers are stored as float32, and computed in JavaScript's float64.
 */
import { dot } from "../vectors";
import type { LayerCache } from "./cache";
import type { LlamaConfig } from "./config";

/** Scales each token's vector to a root mean square of 1, then multiplies it with `weight`, element by element. */
export function rmsNorm(x: Float32Array, weight: Float32Array, epsilon: number): Float32Array {
  const width = weight.length;
  const result = new Float32Array(x.length);
  for (let start = 0; start < x.length; start += width) {
    const scale = 1 / Math.sqrt(dot(x, start, x, start, width) / width + epsilon);
    for (let i = 0; i < width; i++) result[start + i] = x[start + i]! * scale * weight[i]!;
  }
  return result;
}

/** The angle by which each pair of a head is rotated from one position to the next, in radians. */
export function ropeFrequencies(config: LlamaConfig, factors: Float32Array | undefined): Float64Array {
  const { ropeLength, ropeBase, ropeScale } = config;
  return Float64Array.from(
    { length: ropeLength / 2 },
    (_, pair) => ropeBase ** ((-2 * pair) / ropeLength) / ropeScale / (factors?.[pair] ?? 1),
  );
}

/**
 * Rotary position embedding, in place: elements 2i and 2i + 1 of every head are rotated by an angle that grows with the
 * token's position. `x` holds the tokens from `position` on. Each token consists of heads of `headLength` elements.
 */
export function rope(
  x: Float32Array,
  tokenLength: number,
  headLength: number,
  position: number,
  frequencies: Float64Array,
): void {
  for (let token = 0; token * tokenLength < x.length; token++) {
    for (let pair = 0; pair < frequencies.length; pair++) {
      const angle = (position + token) * frequencies[pair]!;
      const cos = Math.cos(angle);
      const sin = Math.sin(angle);
      for (let head = 0; head < tokenLength; head += headLength) {
        const at = token * tokenLength + head + 2 * pair;
        const a = x[at]!;
        const b = x[at + 1]!;
        x[at] = a * cos - b * sin;
        x[at + 1] = a * sin + b * cos;
      }
    }
  }
}

/**
 * Grouped-query attention, for each of `count` new tokens and each head. The keys and values of the new tokens are the
 * last in `cache`. The result is the mean of all values up to the token, weighted by the softmax of the dot products of
 * their keys with the token's query.
 */
export function attention(
  config: LlamaConfig,
  queries: Float32Array,
  count: number,
  cache: LayerCache,
): Float32Array {
  const { headCount, kvHeadCount, keyLength, valueLength } = config;
  const queriesPerKey = headCount / kvHeadCount;
  const result = new Float32Array(count * headCount * valueLength);
  const scores = new Float32Array(cache.length);
  for (let token = 0; token < count; token++) {
    const visible = scores.subarray(0, cache.length - count + token + 1);
    for (let head = 0; head < headCount; head++) {
      const kvHead = Math.floor(head / queriesPerKey);
      const query = (token * headCount + head) * keyLength;
      for (let past = 0; past < visible.length; past++) {
        const key = (past * kvHeadCount + kvHead) * keyLength;
        visible[past] = dot(queries, query, cache.keys, key, keyLength) / Math.sqrt(keyLength);
      }
      softmax(visible);
      const to = (token * headCount + head) * valueLength;
      for (let past = 0; past < visible.length; past++) {
        const value = (past * kvHeadCount + kvHead) * valueLength;
        for (let i = 0; i < valueLength; i++) result[to + i]! += visible[past]! * cache.values[value + i]!;
      }
    }
  }
  return result;
}

/** Turns scores into probabilities, in place. */
export function softmax(scores: Float32Array): void {
  const greatest = scores.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  let sum = 0;
  for (let i = 0; i < scores.length; i++) {
    scores[i] = Math.exp(scores[i]! - greatest);
    sum += scores[i]!;
  }
  for (let i = 0; i < scores.length; i++) scores[i]! /= sum;
}

/** SwiGLU, into `gate`: `gate * sigmoid(gate) * up`. */
export function swiglu(gate: Float32Array, up: Float32Array): Float32Array {
  for (let i = 0; i < gate.length; i++) gate[i] = (gate[i]! / (1 + Math.exp(-gate[i]!))) * up[i]!;
  return gate;
}

/** Adds `y` to `x`. */
export function add(x: Float32Array, y: Float32Array): void {
  for (let i = 0; i < x.length; i++) x[i]! += y[i]!;
}
