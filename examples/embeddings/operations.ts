/**
 * The operations of a model between its matrices. One array holds the vectors of several tokens, one after the other. Their
 * loops are in WebAssembly (../network/simd), in an order that nothing changes: the same bits everywhere. Some also add the
 * bias of the matrix before them, since a pass of its own takes as long.
 */
import { cpu, matmulSync } from "gguf-native";
import type { Floats } from "../network/workspace";
import { dot } from "../vectors";
import type { BertConfig } from "./config";

/** The weight and the bias of a norm. */
export interface Norm {
  weight: Floats;
  bias: Floats;
}

/** Adds `bias` to each vector of `x`. */
export function add(x: Floats, bias: Floats): void {
  x.simd.add(x.address, x.length / bias.length, bias.length, bias.address);
}

/**
 * Adds `y`, which may be longer, and `bias` to `x`. Then shifts and scales each vector of `x` to a mean of 0 and a variance
 * of 1, multiplies it with the norm's weight, and adds the norm's bias.
 */
export function addAndNorm(x: Floats, y: Floats, bias: Floats, norm: Norm, epsilon: number): void {
  const width = bias.length;
  const count = x.length / width;
  const { weight, bias: shift } = norm;
  x.simd.addAndNorm(x.address, count, width, y.address, bias.address, weight.address, shift.address, epsilon);
}

/** Adds `bias` to each vector of `x`, and then replaces each number by its GELU. */
export function addAndGelu(x: Floats, bias: Floats): void {
  x.simd.addAndGelu(x.address, x.length / bias.length, bias.length, bias.address);
}

/**
 * Rows of 64 numbers are multiplied faster than shorter ones, so these end with zeros, which change no bit. In WebAssembly, zeros
 * take as long as other numbers.
 */
const padded = (length: number): number => (cpu().isa === "wasm" ? length : Math.ceil(length / 64) * 64);

/** Of the tokens of a text: for each token, the vectors of its heads. */
export interface Attending {
  queries: Floats;
  keys: Floats;
  values: Floats;
}

/**
 * The attention of the tokens of a text: for each head, the mean of the values of all tokens, weighted by the softmax of the
 * dot products of their keys with the token's query. Both are matrix products, with the keys and the values as matrices.
 * Written to `result`.
 *
 * Biases are added to queries alone. That of the keys changes all of a query's products by the same, which softmax ignores;
 * that of the values is added to every mean, so it may as well be added later.
 */
export function attention(
  { headCount, headLength, embeddingLength }: BertConfig,
  { queries, keys, values }: Attending,
  threads: number | undefined,
  result: Floats,
): void {
  const { workspace, simd } = result;
  const count = result.length / embeddingLength;
  const width = padded(headLength);
  const columns = padded(count);
  const headQueries = workspace.zeros("head's queries", count * width);
  const headKeys = workspace.zeros("head's keys", count * width);
  const headValues = workspace.zeros("head's values", headLength * columns);
  const scores = workspace.floats("scores", count * count);
  const powers = workspace.floats("powers", count * columns);
  const factors = workspace.floats("factors", count);
  const sums = workspace.floats("sums of values", count * headLength);
  const ofToken = 4 * embeddingLength;
  const scale = 1 / Math.sqrt(headLength);
  for (let head = 0; head < headCount; head++) {
    const offset = 4 * head * headLength;
    const headOf = ({ address }: Floats): number => address + offset;
    simd.copyRuns(headOf(queries), ofToken, headQueries.address, 4 * width, headLength, count, scale);
    simd.copyRuns(headOf(keys), ofToken, headKeys.address, 4 * width, headLength, count, 1);
    simd.transpose(headOf(values), ofToken, count, headLength, headValues.address, 4 * columns);
    matmulSync("F32", headKeys.bytes, width, headQueries.array, { out: scores.array, threads });
    simd.softmax(
      scores.address,
      count,
      count,
      1,
      count, // every token sees all
      count,
      powers.address,
      columns,
      factors.address,
    );
    matmulSync("F32", headValues.bytes, columns, powers.array, { out: sums.array, threads });
    simd.spread(sums.address, count, headLength, factors.address, headOf(result), 1, ofToken);
  }
}

/** Scales a vector to a length of 1, in place; a vector of zeros stays as it is. */
export function normalize(vector: Float32Array): Float32Array {
  const length = Math.sqrt(dot(vector, 0, vector, 0, vector.length));
  if (length > 0) for (let i = 0; i < vector.length; i++) vector[i]! /= length;
  return vector;
}
