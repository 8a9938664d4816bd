/**
 * The operations of a model between its matrices. One array holds the activations of several tokens, one after the
 * other. Numbers are stored as float32, and computed in JavaScript's float64, in an order that nothing changes: the same
 * bits everywhere.
 */
import { matmulSync } from "gguf-native";
import { cosAndSin, exp, ln, preciseExp } from "../network/elementary";
import type { Workspace } from "../network/workspace";
import { dot } from "../vectors";
import type { LayerCache } from "./cache";
import type { Activation, LayerAttention, LlamaConfig } from "./config";

/**
 * Scales each vector to a root mean square of 1, then multiplies it with `weight`, element by element. Returns `out`, which
 * may be `x`.
 */
export function rmsNorm(
  x: Float32Array,
  weight: Float32Array,
  epsilon: number,
  out: Float32Array,
): Float32Array {
  const width = weight.length;
  for (let start = 0; start < x.length; start += width) {
    const scale = 1 / Math.sqrt(dot(x, start, x, start, width) / width + epsilon);
    for (let i = 0; i < width; i++) out[start + i] = x[start + i]! * scale * weight[i]!;
  }
  return out;
}

/** The angle by which each pair of a head is rotated from one position to the next, in radians. */
export function ropeFrequencies(
  { ropeLength }: LlamaConfig,
  { ropeBase, ropeScale }: LayerAttention,
  factors: Float32Array | undefined,
): Float64Array {
  return Float64Array.from(
    { length: ropeLength / 2 },
    // ropeBase to the power of -2 pair / ropeLength
    (_, pair) => preciseExp(((-2 * pair) / ropeLength) * ln(ropeBase)) / ropeScale / (factors?.[pair] ?? 1),
  );
}

/** The rotations of some tokens: for each token, the cosine and the sine of the angle of each pair. */
export type Rotations = Float64Array;

/** The rotations of `count` tokens, the first of which is at `position`. */
export function rotationsOf(frequencies: Float64Array, position: number, count: number): Rotations {
  const rotations = new Float64Array(2 * frequencies.length * count);
  for (let i = 0, token = position; token < position + count; token++) {
    for (const frequency of frequencies) {
      const [cos, sin] = cosAndSin(token * frequency);
      rotations[i++] = cos;
      rotations[i++] = sin;
    }
  }
  return rotations;
}

/** Rotary position embedding, in place: rotates the pairs of each of the `headCount` heads of each token. */
export function rope(x: Float32Array, headCount: number, config: LlamaConfig, rotations: Rotations): void {
  const { keyLength, ropeLength, ropePairs } = config;
  const pairs = ropeLength / 2;
  // Where the first element of pair i is: i * step. How far the second is from it: distance.
  const [step, distance] = ropePairs === "adjacent" ? [2, 1] : [1, pairs];
  for (let head = 0; head * keyLength < x.length; head++) {
    const start = head * keyLength;
    const rotation = 2 * pairs * Math.floor(head / headCount);
    for (let pair = 0; pair < pairs; pair++) {
      const cos = rotations[rotation + 2 * pair]!;
      const sin = rotations[rotation + 2 * pair + 1]!;
      const at = start + step * pair;
      const a = x[at]!;
      const b = x[at + distance]!;
      x[at] = a * cos - b * sin;
      x[at + distance] = a * sin + b * cos;
    }
  }
}

/**
 * Grouped-query attention, for each head of the tokens in `queries`, whose keys and values are the last in `cache`. The
 * result is the mean of the values in the window that ends with the token, weighted by the softmax of the dot products of
 * their keys with the token's query. For each head of keys, the products of all its queries are two matrix products.
 */
export function attention(
  config: LlamaConfig,
  { window }: LayerAttention,
  queries: Float32Array,
  cache: LayerCache,
  workspace: Workspace,
  threads: number | undefined,
): Float32Array {
  const { headCount, kvHeadCount, keyLength, valueLength, scoreScale } = config;
  const count = queries.length / (headCount * keyLength);
  const { columns } = cache;
  const groupSize = headCount / kvHeadCount;
  const rows = count * groupSize;
  const first = cache.length - count;
  const groupQueries = workspace.floats("group's queries", rows * keyLength);
  const scores = workspace.floats("scores", rows * columns);
  const totals = new Float64Array(rows);
  const sums = workspace.floats("sums of values", rows * valueLength);
  const result = workspace.floats("heard", count * headCount * valueLength);
  for (let group = 0; group < kvHeadCount; group++) {
    for (let row = 0; row < rows; row++) {
      const from = headOf(row, group) * keyLength;
      const to = row * keyLength;
      for (let i = 0; i < keyLength; i++) groupQueries[to + i] = queries[from + i]! * scoreScale;
    }
    matmulSync("F16", cache.keys(group), keyLength, groupQueries, { out: scores, threads });
    for (let row = 0; row < rows; row++) {
      const start = row * columns;
      const end = start + first + Math.floor(row / groupSize) + 1;
      const begin = Math.max(start, end - window);
      totals[row] = exponentiate(scores, begin, end);
      scores.fill(0, start, begin);
      scores.fill(0, end, start + columns);
    }
    matmulSync("F16", cache.values(group), columns, scores, { out: sums, threads });
    for (let row = 0; row < rows; row++) {
      const factor = 1 / totals[row]!;
      const from = row * valueLength;
      const to = headOf(row, group) * valueLength;
      for (let i = 0; i < valueLength; i++) result[to + i] = sums[from + i]! * factor;
    }
  }
  return result;

  /** The query head, counted through all tokens, that a row of a group is about. */
  function headOf(row: number, group: number): number {
    return Math.floor(row / groupSize) * headCount + group * groupSize + (row % groupSize);
  }
}

/** Replaces scores by e to the power of what they exceed the greatest by, and returns the sum of these powers. */
export function exponentiate(scores: Float32Array, begin: number, end: number): number {
  let greatest = Number.NEGATIVE_INFINITY;
  for (let i = begin; i < end; i++) if (scores[i]! > greatest) greatest = scores[i]!;
  let sum = 0;
  for (let i = begin; i < end; i++) {
    const power = exp(scores[i]! - greatest);
    scores[i] = power;
    sum += power;
  }
  return sum;
}

/** Turns scores into probabilities, in place. */
export function softmax(scores: Float32Array): void {
  scale(scores, 1 / exponentiate(scores, 0, scores.length));
}

/** ln of the sum of e to the power of each number: what a logit is lower by is its probability's -ln. */
export function logSumExp(logits: Float32Array): number {
  let greatest = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < logits.length; i++) if (logits[i]! > greatest) greatest = logits[i]!;
  let sum = 0;
  for (let i = 0; i < logits.length; i++) sum += exp(logits[i]! - greatest);
  return greatest + ln(sum);
}

/** SwiGLU or GeGLU, into `gate`: `activation(gate) * up`. */
export function gated(activation: Activation, gate: Float32Array, up: Float32Array): Float32Array {
  const f = ACTIVATIONS[activation];
  for (let i = 0; i < gate.length; i++) gate[i] = f(gate[i]!) * up[i]!;
  return gate;
}

const ACTIVATIONS: Readonly<Record<Activation, (x: number) => number>> = {
  silu: (x) => x / (1 + exp(-x)),
  // With tanh in place of the error function, as the models were trained. x * (1 + tanh(z)) / 2 is x / (1 + e^(-2z)).
  gelu: (x) => x / (1 + exp(-2 * Math.sqrt(2 / Math.PI) * x * (1 + 0.044715 * x * x))),
};

/** Limits logits smoothly to numbers between -cap and cap, in place. */
export function capLogits(logits: Float32Array, cap: number): void {
  for (let i = 0; i < logits.length; i++) logits[i] = cap * tanh(logits[i]! / cap);
}

const tanh = (x: number): number => 1 - 2 / (1 + preciseExp(2 * Math.max(-300, Math.min(x, 300))));

/** Adds the vectors of `y` to those of `x`, each scaled by {@link rmsNorm} in place first if there is a weight for that. */
export function addNormed(
  x: Float32Array,
  y: Float32Array,
  weight: Float32Array | undefined,
  epsilon: number,
): void {
  add(x, weight === undefined ? y : rmsNorm(y, weight, epsilon, y));
}

/** Multiplies all numbers with `factor`, in place. */
export function scale(x: Float32Array, factor: number): void {
  for (let i = 0; i < x.length; i++) x[i]! *= factor;
}

/** Adds to each vector of `x` what `y` has for it: a vector of its own, or one for all. */
export function add(x: Float32Array, y: Float32Array): void {
  for (let start = 0; start < x.length; start += y.length) {
    for (let i = 0; i < y.length; i++) x[start + i]! += y[i]!;
  }
}
