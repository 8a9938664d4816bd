/**
 * The operations of a model between its matrices. One array holds the vectors of several tokens, one after the other.
 * Numbers are stored as float32, and computed in JavaScript's float64, in an order that nothing changes: the same bits
 * everywhere. Each operation also adds the bias of the matrix before it, since a pass of its own takes as long. Loops take
 * four numbers at a time, which is a third faster: the lengths of vectors are multiples of 4.
 */
import { cpu, matmulSync } from "gguf-native";
import { exp, preciseExp } from "../network/elementary";
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
  { weight, bias: shift }: Norm,
  epsilon: number,
): void {
  const width = bias.length;
  for (let start = 0; start < x.length; start += width) {
    let sum = 0;
    let squares = 0;
    for (let i = 0; i < width; i += 4) {
      const at = start + i;
      const a = x[at]! + y[at]! + bias[i]!;
      const b = x[at + 1]! + y[at + 1]! + bias[i + 1]!;
      const c = x[at + 2]! + y[at + 2]! + bias[i + 2]!;
      const d = x[at + 3]! + y[at + 3]! + bias[i + 3]!;
      x[at] = a;
      x[at + 1] = b;
      x[at + 2] = c;
      x[at + 3] = d;
      sum += a + b + (c + d);
      squares += a * a + b * b + (c * c + d * d);
    }
    const mean = sum / width;
    const scale = 1 / Math.sqrt(Math.max(0, squares / width - mean * mean) + epsilon);
    for (let i = 0; i < width; i += 4) {
      const at = start + i;
      x[at] = (x[at]! - mean) * scale * weight[i]! + shift[i]!;
      x[at + 1] = (x[at + 1]! - mean) * scale * weight[i + 1]! + shift[i + 1]!;
      x[at + 2] = (x[at + 2]! - mean) * scale * weight[i + 2]! + shift[i + 2]!;
      x[at + 3] = (x[at + 3]! - mean) * scale * weight[i + 3]! + shift[i + 3]!;
    }
  }
}

/** What GELU is less than the greater of 0 and `x` is a straight line between points: so many from one `|x|` to the next. */
const STEPS = 256;
/** From here on it is nothing. */
const END = 6;
/** Of each piece, its number at 0 and its slope. */
const PIECES = new Float64Array(2 * (END * STEPS + 1));
for (let i = 0; i < END * STEPS; i++) {
  const [x, next] = [i / STEPS, (i + 1) / STEPS];
  const slope = (preciseGelu(-next) - preciseGelu(-x)) * STEPS;
  PIECES[2 * i] = preciseGelu(-x) - slope * x;
  PIECES[2 * i + 1] = slope;
}

/** `x` times the distribution function of the standard normal distribution, for numbers from -6 to 6. */
function preciseGelu(x: number): number {
  const density = preciseExp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
  // x + x^3 / 3 + x^5 / (3 * 5) + x^7 / (3 * 5 * 7) ...
  let sum = 0;
  for (let i = 121; i > 0; i -= 2) sum = (x / i) * (1 + x * sum);
  return x * (0.5 + density * sum);
}

/** GELU, the one with the error function. It is off by 2e-6 at most. */
function gelu(x: number): number {
  const size = Math.abs(x);
  const piece = ((size < END ? size : END) * STEPS) << 1;
  return (x + size) * 0.5 + (PIECES[piece]! + PIECES[piece + 1]! * size);
}

/** Adds `bias` to each vector of `x`, and then replaces each number by its GELU. */
export function addAndGelu(x: Float32Array, bias: Float32Array): void {
  const width = bias.length;
  for (let start = 0; start < x.length; start += width) {
    for (let i = 0; i < width; i += 4) {
      const at = start + i;
      x[at] = gelu(x[at]! + bias[i]!);
      x[at + 1] = gelu(x[at + 1]! + bias[i + 1]!);
      x[at + 2] = gelu(x[at + 2]! + bias[i + 2]!);
      x[at + 3] = gelu(x[at + 3]! + bias[i + 3]!);
    }
  }
}

/**
 * Rows of 64 numbers are multiplied faster than shorter ones, so these end with zeros, which change no bit. In WebAssembly, zeros
 * take as long as other numbers.
 */
const padded = (length: number): number => (cpu().isa === "wasm" ? length : Math.ceil(length / 64) * 64);

/**
 * The attention of the `count` tokens of a text from token `first` on: for each of its heads, the mean of the values of all
 * these tokens, weighted by the softmax of the dot products of their keys with the token's query. Both are matrix products,
 * with the keys and the values as matrices. Written to `result`.
 *
 * Biases are added to queries alone. That of the keys changes all of a query's products by the same, which softmax ignores;
 * that of the values is added to every mean, so it may as well be added later.
 */
export function attention(
  { headCount, headLength, embeddingLength }: BertConfig,
  queries: Float32Array,
  queryBias: Float32Array,
  keys: Float32Array,
  values: Float32Array,
  first: number,
  count: number,
  workspace: Workspace,
  threads: number | undefined,
  result: Float32Array,
): void {
  const scale = 1 / Math.sqrt(headLength);
  const begin = first * embeddingLength;
  const width = padded(headLength);
  const columns = padded(count);
  const headQueries = workspace.zeros("head's queries", count * width);
  const headKeys = workspace.zeros("head's keys", count * width);
  const headValues = workspace.zeros("head's values", headLength * columns);
  const scores = workspace.floats("scores", count * count);
  const powers = workspace.zeros("powers", count * columns);
  const sums = workspace.floats("sums of values", count * headLength);
  const totals = new Float64Array(count);
  for (let head = 0; head < headCount; head++) {
    const offset = head * headLength;
    for (let token = 0; token < count; token++) {
      const from = begin + token * embeddingLength + offset;
      const to = token * width;
      for (let i = 0; i < headLength; i++) {
        headQueries[to + i] = queries[from + i]! + queryBias[offset + i]!;
        headKeys[to + i] = keys[from + i]!;
        headValues[i * columns + token] = values[from + i]!;
      }
    }
    matmulSync("F32", bytesOf(headKeys), width, headQueries, { out: scores, threads });
    for (let token = 0; token < count; token++)
      totals[token] = exponentiate(scores, token * count, count, scale, powers, token * columns);
    matmulSync("F32", bytesOf(headValues), columns, powers, { out: sums, threads });
    for (let token = 0; token < count; token++) {
      const factor = 1 / totals[token]!;
      const from = token * headLength;
      const to = begin + token * embeddingLength + offset;
      for (let i = 0; i < headLength; i++) result[to + i] = sums[from + i]! * factor;
    }
  }
}

/**
 * Writes to `powers`, from `to` on, e to the power of what `count` scores from `from` on exceed the greatest by, times
 * `scale`. Returns the sum of these powers.
 */
function exponentiate(
  scores: Float32Array,
  from: number,
  count: number,
  scale: number,
  powers: Float32Array,
  to: number,
): number {
  let greatest = scores[from]!;
  for (let i = 1; i < count; i++) if (scores[from + i]! > greatest) greatest = scores[from + i]!;
  let sum = 0;
  for (let i = 0; i < count; i++) {
    const power = exp((scores[from + i]! - greatest) * scale);
    powers[to + i] = power;
    sum += power;
  }
  return sum;
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
