/**
 * The functions of `gguf-native/network`, as checks and a call of what computes: the addon, the WebAssembly module or the
 * reference. public.ts describes them.
 */
import type { NativeNetwork } from "../backend/native-surface";
import { checkBoolean, checkOptionNames, checkThreads, type OptionNames } from "../base/arguments";
import type { Returned } from "../base/options";
import * as check from "./checks";
import { ln } from "./elementary";
import { handleOf, type KeyValueCache } from "./kv-cache";
import type * as option from "./options";
import { type Rotations, tableOf } from "./rotations";

const OUT: OptionNames<option.OutOptions> = { out: true };
const ACTIVATE: OptionNames<option.ActivateOptions> = { ...OUT, threads: true };
const NORM: OptionNames<option.NormOptions> = { epsilon: true, width: true, ...ACTIVATE };
const SOFTMAX: OptionNames<option.SoftmaxOptions> = { scale: true, cap: true, ...ACTIVATE };
const ROPE: OptionNames<option.RopeOptions> = { headCount: true, ...ACTIVATE };
const ATTENTION: OptionNames<option.AttentionOptions> = {
  ...{ heads: true, scale: true, causal: true, window: true, cap: true, sinks: true },
  ...ACTIVATE,
};

/** Sizes that take part in a quotient are binary32 numbers. */
const MOST = 2 ** 24;

/** In the order of the numbers that they have in {@link NativeNetwork.activate}. */
const ACTIVATIONS: readonly option.Activation[] = [
  ...(["silu", "gelu", "gelu_erf", "relu", "relu2", "sigmoid", "tanh"] as const),
];

function read<Name extends string>(
  options: unknown,
  names: Readonly<Record<Name, true | "async">>,
): { readonly [N in Name]?: unknown } {
  if (options === undefined) return {};
  checkOptionNames(options, names);
  return options as { readonly [N in Name]?: unknown };
}

/** What the two norms have in common. */
function checkNorm(
  x: Float32Array,
  weight: Float32Array | undefined,
  bias: Float32Array | undefined,
  options: unknown,
): [width: number, epsilon: number, out: Float32Array, threads: number | undefined] {
  const { epsilon: givenEpsilon, width: givenWidth, out: givenOut, threads } = read(options, NORM);
  const epsilon = check.numeric("options.epsilon", givenEpsilon);
  if (!(epsilon >= 0 && epsilon < 2 ** 127)) {
    throw check.outOfRange(`options.epsilon must be 0 or more, and finite, found ${epsilon}`);
  }
  const length = check.floats("x", x);
  const weights = check.floatsOrNone("weight", weight);
  const biases = check.floatsOrNone("bias", bias);
  const width =
    givenWidth === undefined
      ? check.whole("the width", weights ?? biases ?? Math.max(length, 1), 1, MOST)
      : check.whole("options.width", givenWidth, 1, MOST);
  check.sameLength("weight", weights, width, "a vector has");
  check.sameLength("bias", biases, width, "a vector has");
  check.vectorCount("x", length, width);
  const out = check.resultArray(givenOut, length, { x, weight, bias });
  return [width, epsilon, out, checkThreads(threads)];
}

export function rmsNorm<A>(
  backend: NativeNetwork,
  x: Float32Array,
  weight: Float32Array | undefined,
  options: unknown,
): Returned<A> {
  const [width, epsilon, out, threads] = checkNorm(x, weight, undefined, options);
  backend.rmsNorm(x, weight, width, epsilon, out, threads);
  return out as Returned<A>;
}

export function layerNorm<A>(
  backend: NativeNetwork,
  x: Float32Array,
  weight: Float32Array | undefined,
  bias: Float32Array | undefined,
  options: unknown,
): Returned<A> {
  const [width, epsilon, out, threads] = checkNorm(x, weight, bias, options);
  backend.layerNorm(x, weight, bias, width, epsilon, out, threads);
  return out as Returned<A>;
}

export function normalize<A>(
  backend: NativeNetwork,
  x: Float32Array,
  givenWidth: number,
  options: unknown,
): Returned<A> {
  const { out: givenOut } = read(options, OUT);
  const width = check.whole("width", givenWidth);
  const length = check.floats("x", x);
  check.vectorCount("x", length, width);
  const out = check.resultArray(givenOut, length, { x });
  backend.normalizeVectors(x, width, out);
  return out as Returned<A>;
}

export function roundingError<A>(backend: NativeNetwork, x: Float32Array, options: unknown): Returned<A> {
  const { out: givenOut, threads } = read(options, ACTIVATE);
  const length = check.floats("x", x);
  check.vectorCount("x", length, 32);
  const out = check.resultArray(givenOut, length, { x });
  backend.roundingError(x, out, checkThreads(threads));
  return out as Returned<A>;
}

export function meanOfRows<A>(
  backend: NativeNetwork,
  x: Float32Array,
  givenWidth: number,
  options: unknown,
): Returned<A> {
  const { out: givenOut } = read(options, OUT);
  const width = check.whole("width", givenWidth);
  const count = check.vectorCount("x", check.floats("x", x), width);
  check.whole("the number of vectors of x", count, 1, MOST);
  const out = check.resultArray(givenOut, width, { x });
  backend.meanOfRows(x, width, out);
  return out as Returned<A>;
}

export function add<A extends Float32Array>(backend: NativeNetwork, x: A, y: Float32Array): A {
  const length = check.floats("x", x);
  const width = check.floats("y", y);
  if (length % width !== 0 && length + width !== 0) {
    throw check.outOfRange(`x has ${length} elements, not a multiple of the ${width} of y`);
  }
  check.checkOverlap("x", x, { y });
  if (length > 0) backend.addInto(x, y);
  return x;
}

export function scale<A extends Float32Array>(backend: NativeNetwork, x: A, factor: number): A {
  check.floats("x", x);
  backend.scaleInto(x, check.numeric("factor", factor));
  return x;
}

export function activate<A>(
  backend: NativeNetwork,
  x: Float32Array,
  activation: option.Activation,
  options: unknown,
): Returned<A> {
  const { out: givenOut, threads } = read(options, ACTIVATE);
  const kind = ACTIVATIONS.indexOf(check.oneOf("activation", activation, ACTIVATIONS));
  const out = check.resultArray(givenOut, check.floats("x", x), { x });
  backend.activate(x, undefined, kind, out, checkThreads(threads));
  return out as Returned<A>;
}

export function gated<A>(
  backend: NativeNetwork,
  gate: Float32Array,
  up: Float32Array,
  activation: option.Activation,
  options: unknown,
): Returned<A> {
  const { out: givenOut, threads } = read(options, ACTIVATE);
  const kind = ACTIVATIONS.indexOf(check.oneOf("activation", activation, ACTIVATIONS));
  const length = check.floats("gate", gate);
  check.sameLength("up", check.floats("up", up), length, "gate has");
  const out = check.resultArray(givenOut, length, { gate, up });
  backend.activate(gate, up, kind, out, checkThreads(threads));
  return out as Returned<A>;
}

const factorOr = (name: string, value: unknown, whenAbsent: number): number =>
  value === undefined ? whenAbsent : check.numeric(name, value);

const capOr0 = (value: unknown): number => (value === undefined ? 0 : check.positive("options.cap", value));

export function softmax<A>(backend: NativeNetwork, x: Float32Array, givenWidth: number, options: unknown): Returned<A> {
  const { scale, cap: givenCap, out: givenOut, threads } = read(options, SOFTMAX);
  const width = check.whole("width", givenWidth);
  const factor = factorOr("options.scale", scale, 1);
  const cap = capOr0(givenCap);
  const length = check.floats("x", x);
  check.vectorCount("x", length, width);
  const out = check.resultArray(givenOut, length, { x });
  backend.softmax(x, width, factor, cap, out, checkThreads(threads));
  return out as Returned<A>;
}

export function logSumExp(backend: NativeNetwork, x: Float32Array): number {
  if (check.floats("x", x) === 0) return Number.NEGATIVE_INFINITY;
  const found = new Float32Array(2);
  backend.sumOfPowers(x, found);
  const [most, sum] = found as unknown as [number, number];
  if (Number.isFinite(most)) return Number.isNaN(sum) ? sum : most + ln(sum);
  const hasNaN = Array.prototype.some.call(x, Number.isNaN);
  return hasNaN ? Number.NaN : most;
}

export function rope<A>(
  backend: NativeNetwork,
  x: Float32Array,
  givenWidth: number,
  rotations: Rotations,
  position: number | Int32Array,
  options: unknown,
): Returned<A> {
  const { headCount: givenCount, out: givenOut, threads } = read(options, ROPE);
  const headWidth = check.whole("headWidth", givenWidth);
  const headCount = givenCount === undefined ? 1 : check.whole("options.headCount", givenCount);
  const length = check.floats("x", x);
  const tokens = check.vectorCount("x", length, headWidth * headCount);
  const { pairs, adjacent, table } = tableOf(rotations, headWidth, position, tokens);
  const out = check.resultArray(givenOut, length, { x });
  backend.rope(x, headWidth, headCount, table, pairs, adjacent, out, checkThreads(threads));
  return out as Returned<A>;
}

export function attention<A>(
  backend: NativeNetwork,
  queries: Float32Array,
  cache: KeyValueCache,
  options: unknown,
): Returned<A> {
  const given = { ...read(options, ATTENTION) };
  const { scale, window: givenWindow, out: givenOut, threads } = given;
  const heads = check.whole("options.heads", given.heads);
  const sinks = given.sinks as Float32Array | undefined;
  const causal = checkBoolean("options.causal", given.causal, true);
  const cap = capOr0(given.cap);
  const window = givenWindow === undefined ? 0 : check.whole("options.window", givenWindow, 1, Number.MAX_SAFE_INTEGER);
  const handle = handleOf(cache, backend);
  const { keyWidth, valueWidth, length } = cache;
  const factor = factorOr("options.scale", scale, 1 / Math.sqrt(keyWidth));
  if (heads % cache.heads !== 0) {
    throw check.outOfRange(`options.heads, ${heads}, is not a multiple of the ${cache.heads} of the cache`);
  }
  const tokens = check.vectorCount("queries", check.floats("queries", queries), heads * keyWidth);
  if (tokens > length) {
    throw check.outOfRange(`queries of ${tokens} tokens ask a cache that has ${length}: append theirs first`);
  }
  check.sameLength("options.sinks", check.floatsOrNone("options.sinks", sinks), heads, "options.heads is");
  const out = check.resultArray(givenOut, tokens * heads * valueWidth, { queries, "options.sinks": sinks });
  const seen = window > length ? 0 : window;
  backend.attention(queries, handle, heads, factor, causal, seen, cap, sinks, out, checkThreads(threads));
  return out as Returned<A>;
}
