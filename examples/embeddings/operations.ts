/**
 * The operations of a model between its matrices. One array holds the vectors of several tokens, one after the other.
 * Numbers are stored as float32, and computed in JavaScript's float64, in an order that nothing changes: the same bits
 * everywhere. Each operation also adds the bias of the matrix before it, since a pass of its own takes as long.
 */
import { matmulSync } from "gguf-native";
import { exponentiate } from "../llama/operations";
import { preciseExp } from "../network/elementary";
import type { Workspace } from "../network/workspace";
import { dot } from "../vectors";
import type { BertConfig } from "./config";

/** The weight and the bias of a norm. */
export interface Norm {
  weight: Float32Array;
  bias: Float32Array;
}

/**
 * Adds `y` and `bias` to `x`. Then shifts and scales each vector of `x` to a mean of 0 and a variance of 1, multiplies it
 * with the norm's weight, and adds the norm's bias.
 */
export function addAndNorm(
  x: Float32Array,
  y: Float32Array,
  bias: Float32Array,
  norm: Norm,
  epsilon: number,
): void {
  const width = bias.length;
  const { weight, bias: shift } = norm;
  for (let start = 0; start < x.length; start += width) {
    let sum = 0;
    let squares = 0;
    for (let i = 0; i < width; i++) {
      const value = x[start + i]! + y[start + i]! + bias[i]!;
      x[start + i] = value;
      sum += value;
      squares += value * value;
    }
    const mean = sum / width;
    const scale = 1 / Math.sqrt(Math.max(0, squares / width - mean * mean) + epsilon);
    for (let i = 0; i < width; i++) x[start + i] = (x[start + i]! - mean) * scale * weight[i]! + shift[i]!;
  }
}

/** GELU is a straight line between points: so many from one whole number to the next, as far as it is curved. */
const STEPS = 256;
const END = 6;
/** Of each piece, its number at 0 and its slope. The first one is where GELU is 0, the last one where it is `x`. */
const PIECES = new Float64Array(2 * (2 * END * STEPS + 1));
for (let i = 1; i < 2 * END * STEPS; i++) {
  const [x, next] = [i / STEPS - END, (i + 1) / STEPS - END];
  const slope = (preciseGelu(next) - preciseGelu(x)) * STEPS;
  PIECES[2 * i] = preciseGelu(x) - slope * x;
  PIECES[2 * i + 1] = slope;
}
PIECES.set([0, 1], 4 * END * STEPS);

/** `x` times the distribution function of the standard normal distribution, for numbers from -6 to 6. */
function preciseGelu(x: number): number {
  const density = preciseExp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
  // x + x^3 / 3 + x^5 / (3 * 5) + x^7 / (3 * 5 * 7) ...
  let sum = 0;
  for (let i = 121; i > 0; i -= 2) sum = (x / i) * (1 + x * sum);
  return x * (0.5 + density * sum);
}

/**
 * Adds `bias` to each vector of `x`, and then replaces each number by its GELU, the one with the error function. It is off by
 * 2e-6 at most.
 */
export function addAndGelu(x: Float32Array, bias: Float32Array): void {
  const width = bias.length;
  for (let start = 0; start < x.length; start += width) {
    for (let i = 0; i < width; i++) {
      const value = x[start + i]! + bias[i]!;
      const piece = Math.max(0, Math.min((value + END) * STEPS, 2 * END * STEPS)) << 1;
      x[start + i] = PIECES[piece]! + PIECES[piece + 1]! * value;
    }
  }
}

/** The queries, keys or values of tokens, still without the bias. */
export interface Projection {
  numbers: Float32Array;
  bias: Float32Array;
}

/**
 * The attention of the `count` tokens of a text from token `first` on: for each of its heads, the mean of the values of all
 * these tokens, weighted by the softmax of the dot products of their keys with the token's query. Both are matrix products,
 * with the keys and the values as matrices. Written to `result`.
 */
export function attention(
  { headCount, headLength, embeddingLength }: BertConfig,
  { numbers: queries, bias: queryBias }: Projection,
  { numbers: keys, bias: keyBias }: Projection,
  { numbers: values, bias: valueBias }: Projection,
  first: number,
  count: number,
  workspace: Workspace,
  threads: number | undefined,
  result: Float32Array,
): void {
  const scale = 1 / Math.sqrt(headLength);
  const begin = first * embeddingLength;
  const headQueries = workspace.floats("head's queries", count * headLength);
  const headKeys = workspace.floats("head's keys", count * headLength);
  const headValues = workspace.floats("head's values", count * headLength);
  const scores = workspace.floats("scores", count * count);
  const sums = workspace.floats("sums of values", count * headLength);
  const totals = new Float64Array(count);
  for (let head = 0; head < headCount; head++) {
    const offset = head * headLength;
    for (let token = 0; token < count; token++) {
      const from = begin + token * embeddingLength + offset;
      const to = token * headLength;
      for (let i = 0; i < headLength; i++) {
        headQueries[to + i] = (queries[from + i]! + queryBias[offset + i]!) * scale;
        headKeys[to + i] = keys[from + i]! + keyBias[offset + i]!;
        headValues[i * count + token] = values[from + i]! + valueBias[offset + i]!;
      }
    }
    matmulSync("F32", bytesOf(headKeys), headLength, headQueries, { out: scores, threads });
    for (let token = 0; token < count; token++) {
      totals[token] = exponentiate(scores, token * count, (token + 1) * count);
    }
    matmulSync("F32", bytesOf(headValues), count, scores, { out: sums, threads });
    for (let token = 0; token < count; token++) {
      const factor = 1 / totals[token]!;
      const from = token * headLength;
      const to = begin + token * embeddingLength + offset;
      for (let i = 0; i < headLength; i++) result[to + i] = sums[from + i]! * factor;
    }
  }
}

function bytesOf({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** Scales a vector to a length of 1, in place; a vector of zeros stays as it is. */
export function normalize(vector: Float32Array): Float32Array {
  const length = Math.sqrt(dot(vector, 0, vector, 0, vector.length));
  if (length > 0) for (let i = 0; i < vector.length; i++) vector[i]! /= length;
  return vector;
}
