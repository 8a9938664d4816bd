/**
 * The operations of a model between its matrices. One array holds the activations of several tokens, one after the
 * other. Their loops are in WebAssembly (../network/simd), in an order that nothing changes: the same bits everywhere.
 */
import { matmulSync } from "gguf-native";
import { cosAndSin, ln, preciseExp } from "../network/elementary";
import type { Floats, Workspace } from "../network/workspace";
import type { LayerCache } from "./cache";
import type { Activation, LayerAttention, LlamaConfig } from "./config";

/**
 * Scales each vector to a root mean square of 1, then multiplies it with `weight`, element by element. Returns `out`, which
 * may be `x`.
 */
export function rmsNorm(x: Floats, weight: Floats, epsilon: number, out: Floats): Floats {
  const width = weight.length;
  x.simd.rmsNorm(x.address, x.length / width, width, weight.address, epsilon, out.address);
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

/** The rotations of some tokens: for each token, the cosines of the angles of all pairs, and then their sines. */
export type Rotations = Floats;

/** The rotations of `count` tokens, the first of which is at `position`; in `out`. */
export function rotationsOf(
  frequencies: Float64Array,
  position: number,
  count: number,
  out: Rotations,
): Rotations {
  const { array } = out;
  const pairs = frequencies.length;
  for (let token = 0; token < count; token++) {
    for (let pair = 0; pair < pairs; pair++) {
      const [cos, sin] = cosAndSin((position + token) * frequencies[pair]!);
      array[2 * token * pairs + pair] = cos;
      array[(2 * token + 1) * pairs + pair] = sin;
    }
  }
  return out;
}

/** Rotary position embedding, in place: rotates the pairs of each of the `headCount` heads of each token. */
export function rope(x: Floats, headCount: number, config: LlamaConfig, rotations: Rotations): void {
  const { keyLength, ropeLength, ropePairs } = config;
  const count = x.length / (headCount * keyLength);
  const adjacent = ropePairs === "adjacent";
  x.simd.rope(x.address, count, headCount, keyLength, ropeLength / 2, adjacent, rotations.address);
}

/**
 * Grouped-query attention, for each head of the tokens in `queries`, whose keys and values are the last in `cache`. The
 * result is the mean of the values in the window that ends with the token, weighted by the softmax of the dot products of
 * their keys with the token's query. For each head of keys, the products of all its queries are two matrix products.
 */
export function attention(
  config: LlamaConfig,
  { window }: LayerAttention,
  queries: Floats,
  cache: LayerCache,
  workspace: Workspace,
  threads: number | undefined,
): Floats {
  const { headCount, kvHeadCount, keyLength, valueLength, scoreScale } = config;
  const { simd } = workspace;
  const count = queries.length / (headCount * keyLength);
  const { columns } = cache;
  const groupSize = headCount / kvHeadCount;
  const rows = count * groupSize;
  const seen = cache.length - count + 1;
  const groupQueries = workspace.floats("group's queries", rows * keyLength);
  const scores = workspace.floats("scores", rows * columns);
  const factors = workspace.floats("factors", rows);
  const sums = workspace.floats("sums of values", rows * valueLength);
  const result = workspace.floats("heard", count * headCount * valueLength);
  // The heads of a group are next to each other.
  const queryBytes = 4 * groupSize * keyLength;
  const valueBytes = 4 * groupSize * valueLength;
  for (let group = 0; group < kvHeadCount; group++) {
    simd.copyRuns(
      queries.address + group * queryBytes,
      kvHeadCount * queryBytes,
      groupQueries.address,
      queryBytes,
      groupSize * keyLength,
      count,
      scoreScale,
    );
    matmulSync("F16", cache.keys(group), keyLength, groupQueries.array, { out: scores.array, threads });
    simd.softmax(
      scores.address,
      rows,
      columns,
      groupSize,
      seen,
      Math.min(window, 2 ** 31 - 1),
      scores.address,
      columns,
      factors.address,
    );
    matmulSync("F16", cache.values(group), columns, scores.array, { out: sums.array, threads });
    simd.spread(
      sums.address,
      rows,
      valueLength,
      factors.address,
      result.address + group * valueBytes,
      groupSize,
      kvHeadCount * valueBytes,
    );
  }
  return result;
}

/** ln of the sum of e to the power of each number: what a logit is lower by is its probability's -ln. */
export function logSumExp({ simd, address, length }: Floats): number {
  const greatest = simd.greatestOf(address, length);
  return greatest + ln(simd.sumOfPowers(address, length, greatest));
}

/** SwiGLU or GeGLU, into `gate`: `activation(gate) * up`. */
export function gated(activation: Activation, gate: Floats, up: Floats): Floats {
  const { simd, address, length } = gate;
  if (activation === "silu") simd.gatedBySilu(address, up.address, length);
  else simd.gatedByGelu(address, up.address, length);
  return gate;
}

/** Limits logits smoothly to numbers between -cap and cap, in place. */
export function capLogits(logits: Float32Array, cap: number): void {
  for (let i = 0; i < logits.length; i++) logits[i] = cap * tanh(logits[i]! / cap);
}

const tanh = (x: number): number => 1 - 2 / (1 + preciseExp(2 * Math.max(-300, Math.min(x, 300))));

/** Adds the vectors of `y` to those of `x`, each scaled by {@link rmsNorm} in place first if there is a weight for that. */
export function addNormed(x: Floats, y: Floats, weight: Floats | undefined, epsilon: number): void {
  add(x, weight === undefined ? y : rmsNorm(y, weight, epsilon, y));
}

/** Multiplies all numbers with `factor`, in place. */
export function scale(x: Floats, factor: number): void {
  x.simd.scale(x.address, x.length, factor);
}

/** Adds `y` to `x`, which is as long, or to each of its vectors. */
export function add(x: Floats, y: Floats): void {
  x.simd.add(x.address, x.length / y.length, y.length, y.address);
}
