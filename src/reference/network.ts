/**
 * What lies between products, in plain TypeScript: the rules of docs/sums.md, written down as simply as they are. Numbers are
 * binary32, and `Math.fround` is around each operation, or the result goes to a Float32Array.
 */
import type { NativeCache, NativeNetwork } from "../backend/native-surface";
import { plain } from "../base/typed-arrays";
import { type GgmlType, ggmlTypes } from "../base/types";
import * as calls from "../network/calls";
import { KeyValueCache, restored } from "../network/kv-cache";
import type { CacheType, KvCacheOptions } from "../network/options";
import { decoders } from "./decoders";
import { roundVector } from "./integer-products";
import { endings } from "./products";
import { quantizeSync } from "./quantize";

const fround = Math.fround;

/** c[0] + c[1] x + c[2] x^2 ... */
function horner(x: number, coefficients: readonly number[]): number {
  let sum = coefficients.at(-1)!;
  for (let i = coefficients.length - 2; i >= 0; i--) sum = fround(fround(sum * x) + coefficients[i]!);
  return sum;
}

/** A score of attention is a sum of sums of so many products. */
const SUMMED = 16;

const bits = new Uint32Array(1);
const number = new Float32Array(bits.buffer);

/** 2^n for the exponents of normal numbers. */
function powerOfTwo(n: number): number {
  bits[0] = (n + 127) << 23;
  return number[0]!;
}

/** With this added, a small number has no fraction: it is rounded to the nearest integer, halves to even. */
const ROUNDING = 1.5 * 2 ** 23;

const EXP = [0.4999999403953552, 0.1666651964187622, 0.041668400168418884, 0.00836885068565607, 0.0013814320554956794];

/** e^x. */
export function exp(given: number): number {
  const above = -104 > given ? -104 : given;
  const x = 89 < above ? 89 : above;
  if (Number.isNaN(x)) return x;
  const n = fround(fround(fround(x * 1.4426950216293335) + ROUNDING) - ROUNDING);
  const r = fround(fround(x - fround(n * 0.693359375)) - fround(n * -0.00021219444170128554));
  const s = fround(r * r);
  const y = fround(fround(fround(horner(r, EXP) * s) + r) + 1);
  const m = Math.floor(n / 2);
  return fround(fround(y * powerOfTwo(m)) * powerOfTwo(n - m));
}

/** `magnitude` with the sign bit of x. */
function withSignOf(x: number, magnitude: number): number {
  return x < 0 || Object.is(x, -0) ? -magnitude : magnitude;
}

const TANH = [
  -0.3333328366279602, 0.13331490755081177, -0.05374349653720856, 0.02065058797597885, -0.0057170456275343895,
];

export function tanh(x: number): number {
  const a = Math.abs(x);
  if (a < 0.625) {
    const s = fround(a * a);
    return withSignOf(x, fround(fround(fround(horner(s, TANH) * s) * a) + a));
  }
  return withSignOf(x, fround(1 - fround(2 / fround(exp(fround(2 * a)) + 1))));
}

const ERF_NEAR_0 = [
  ...[0.12837916612625122, -0.37612631916999817, 0.11283686012029648, -0.026858851313591003],
  ...[0.005199600011110306, -0.0008125807507894933, 0.00008296612941194326],
];
const ERF = [
  ...[1.128504753112793, 0.6357510685920715, 0.10521844029426575],
  ...[-0.02286197803914547, 0.003206180641427636, -0.00021291519806254655],
];

export function erf(x: number): number {
  const a = Math.abs(x);
  if (a < 0.9375) return withSignOf(x, fround(fround(horner(fround(a * a), ERF_NEAR_0) * a) + a));
  const t = 4 < a ? 4 : a;
  return withSignOf(x, fround(1 - exp(-fround(horner(t, ERF) * t))));
}

/** x / (1 + exp(z)) */
const gate = (x: number, z: number): number => fround(x / fround(1 + exp(z)));
const relu = (x: number): number => (x < 0 ? 0 : x);

/** In the order of their numbers on the native surface. */
const activations: readonly ((x: number) => number)[] = [
  (x) => gate(x, -x),
  (x) => {
    const factor = fround(1 + fround(0.044714998453855515 * fround(x * x)));
    return gate(x, fround(fround(-1.5957691669464111 * x) * factor));
  },
  (x) => fround(fround(0.5 * x) * fround(1 + erf(fround(x * 0.7071067690849304)))),
  relu,
  (x) => fround(relu(x) * relu(x)),
  (x) => gate(1, -x),
  tanh,
];

/** 16 partial sums: number i goes to i mod 16. */
class Sum {
  readonly #parts = new Float32Array(16);

  add(i: number, x: number): void {
    this.#parts[i % 16]! += x;
  }

  fold(): number {
    for (let h = 8; h >= 1; h /= 2) for (let i = 0; i < h; i++) this.#parts[i]! += this.#parts[i + h]!;
    return this.#parts[0]!;
  }
}

function sumOf(x: Float32Array, term: (x: number) => number): number {
  const sum = new Sum();
  x.forEach((each, i) => {
    sum.add(i, term(each));
  });
  return sum.fold();
}

const sumOfSquares = (x: Float32Array): number => sumOf(x, (each) => fround(each * each));

/** NaNs do not count. */
const maximum = (x: Float32Array): number =>
  x.reduce((most, each) => (each > most ? each : most), Number.NEGATIVE_INFINITY);

/** What a number becomes before the softmax. */
function scaled(x: number, scale: number, cap: number): number {
  const v = fround(x * scale);
  return cap === 0 ? v : fround(cap * tanh(fround(v / cap)));
}

const inverseRoot = (x: number): number => fround(1 / fround(Math.sqrt(x)));

/** Calls `work` for each vector, with its place in `out`. */
function forEachVector(
  x: Float32Array,
  width: number,
  out: Float32Array,
  work: (x: Float32Array, out: Float32Array) => void,
): void {
  const [from, to] = [plain(x), plain(out)];
  for (let at = 0; at < from.length; at += width) {
    work(from.subarray(at, at + width), to.subarray(at, at + width));
  }
}

/** Keys and values of a token: blocks, and the numbers that these are. */
interface Token {
  keyBlocks: Uint8Array;
  valueBlocks: Uint8Array;
  keys: Float32Array;
  values: Float32Array;
}

interface Cache {
  heads: number;
  keyWidth: number;
  valueWidth: number;
  type: CacheType;
  tokens: Token[];
}

const cacheOf = (cache: NativeCache): Cache => cache as unknown as Cache;
const handleOf = (cache: Cache): NativeCache => cache as unknown as NativeCache;

function numbersOf(type: CacheType, blocks: Uint8Array): Float32Array {
  const { blockSize, typeSize } = ggmlTypes[type as GgmlType];
  const count = blocks.length / typeSize;
  const numbers = new Float32Array(count * blockSize);
  decoders[type](blocks, 0, count, numbers, 0);
  return numbers;
}

/** Cuts the blocks of some tokens, and appends these. */
function appendBlocks(cache: Cache, keys: Uint8Array, values: Uint8Array): void {
  const { heads, keyWidth, type, tokens } = cache;
  const { blockSize, typeSize } = ggmlTypes[type];
  const count = keys.length / ((heads * keyWidth * typeSize) / blockSize);
  for (let i = 0; i < count; i++) {
    const part = (blocks: Uint8Array): Uint8Array =>
      blocks.slice((i * blocks.length) / count, ((i + 1) * blocks.length) / count);
    const [keyBlocks, valueBlocks] = [part(keys), part(values)];
    const numbers = { keys: numbersOf(type, keyBlocks), values: numbersOf(type, valueBlocks) };
    tokens.push({ keyBlocks, valueBlocks, ...numbers });
  }
}

export const plainNetwork: NativeNetwork = {
  rmsNorm: (x, weight, width, epsilon, out) => {
    forEachVector(x, width, out, (x, out) => {
      const r = inverseRoot(fround(fround(sumOfSquares(x) / width) + fround(epsilon)));
      for (let i = 0; i < width; i++) out[i] = fround(x[i]! * r) * (weight?.[i] ?? 1);
    });
  },
  layerNorm: (x, weight, bias, width, epsilon, out) => {
    forEachVector(x, width, out, (x, out) => {
      const mean = fround(sumOf(x, (each) => each) / width);
      const distances = x.map((each) => each - mean);
      const r = inverseRoot(fround(fround(sumOfSquares(distances) / width) + fround(epsilon)));
      for (let i = 0; i < width; i++) {
        const y = fround(fround(distances[i]! * r) * (weight?.[i] ?? 1));
        out[i] = bias === undefined ? y : y + bias[i]!;
      }
    });
  },
  normalizeVectors: (x, width, out) => {
    forEachVector(x, width, out, (x, out) => {
      const sum = sumOfSquares(x);
      const r = sum === 0 ? 1 : inverseRoot(sum);
      for (let i = 0; i < width; i++) out[i] = x[i]! * r;
    });
  },
  roundingError: (x, out) => {
    const { codes, scales } = roundVector(plain(x));
    for (let i = 0; i < codes.length; i++) out[i] = x[i]! - fround(codes[i]! * scales[i >> 5]!);
  },
  activate: (x, up, kind, out) => {
    const f = activations[kind]!;
    const count = plain(x).length;
    for (let i = 0; i < count; i++) out[i] = f(x[i]!) * (up?.[i] ?? 1);
  },
  softmax: (x, width, scale, cap, out) => {
    const [s, c] = [fround(scale), fround(cap)];
    forEachVector(x, width, out, (x, out) => {
      const scores = x.map((each) => scaled(each, s, c));
      const most = maximum(scores);
      const powers = scores.map((v) => exp(fround(v - most)));
      const sum = sumOf(powers, (e) => e);
      for (let i = 0; i < width; i++) out[i] = powers[i]! / sum;
    });
  },
  sumOfPowers: (x, out) => {
    const numbers = plain(x);
    const most = maximum(numbers);
    out[0] = most;
    out[1] = sumOf(numbers, (each) => exp(fround(each - most)));
  },
  meanOfRows: (x, width, out) => {
    const numbers = plain(x);
    const sums = new Float32Array(width);
    for (let i = 0; i < numbers.length; i++) sums[i % width]! += numbers[i]!;
    for (let i = 0; i < width; i++) out[i] = sums[i]! / (numbers.length / width);
  },
  ...endings,
  rope: (x, headWidth, headCount, table, pairs, adjacent, out) => {
    let head = 0;
    forEachVector(x, headWidth, out, (x, out) => {
      const angles = 2 * pairs * Math.floor(head++ / headCount);
      out.set(x);
      for (let pair = 0; pair < pairs; pair++) {
        const [i, j] = adjacent ? [2 * pair, 2 * pair + 1] : [pair, pair + pairs];
        const [a, b] = [out[i]!, out[j]!];
        const [cos, sin] = [table[angles + pair]!, table[angles + pairs + pair]!];
        out[i] = fround(a * cos) - fround(b * sin);
        out[j] = fround(a * sin) + fround(b * cos);
      }
    });
  },
  newCache: (heads, keyWidth, valueWidth, id) => {
    const types: readonly CacheType[] = ["F16", "F32", "Q8_0"];
    const type = types.find((each) => ggmlTypes[each].id === id)!;
    return handleOf({ heads, keyWidth, valueWidth, type, tokens: [] });
  },
  cacheAppend: (cache, keys, values) => {
    const { type } = cacheOf(cache);
    appendBlocks(cacheOf(cache), quantizeSync(type, keys), quantizeSync(type, values));
  },
  cacheTruncate: (cache, length) => {
    cacheOf(cache).tokens.length = length;
  },
  cacheFork: (cache) => handleOf({ ...cacheOf(cache), tokens: [...cacheOf(cache).tokens] }),
  cacheRead: (cache, first, count, keys, values) => {
    const { tokens } = cacheOf(cache);
    tokens.slice(first, first + count).forEach(({ keyBlocks, valueBlocks }, i) => {
      keys.set(keyBlocks, i * keyBlocks.length);
      values.set(valueBlocks, i * valueBlocks.length);
    });
  },
  cacheRestore: (cache, keys, values) => appendBlocks(cacheOf(cache), keys, values),
  attention: (given, handle, heads, scale, causal, window, cap, sinks, out) => {
    const queries = plain(given).slice();
    const cache = cacheOf(handle);
    const { keyWidth, valueWidth } = cache;
    const count = queries.length / (heads * keyWidth);
    for (let row = 0; row < count * heads; row++) {
      const head = row % heads;
      const position = cache.tokens.length - count + Math.floor(row / heads);
      const first = window === 0 ? 0 : Math.max(0, position - window + 1);
      const seen = cache.tokens.slice(first, causal ? position + 1 : undefined);
      const group = Math.floor(head / (heads / cache.heads));
      const query = queries.subarray(row * keyWidth, (row + 1) * keyWidth);
      const scores = Float32Array.from(seen, ({ keys }) => {
        let score = 0;
        for (let begin = 0; begin < keyWidth; begin += SUMMED) {
          let sum = 0;
          for (let w = begin; w < Math.min(keyWidth, begin + SUMMED); w++)
            sum = fround(sum + fround(query[w]! * keys[group * keyWidth + w]!));
          score = fround(score + sum);
        }
        return scaled(score, fround(scale), fround(cap));
      });
      const sink = sinks?.[head] ?? Number.NEGATIVE_INFINITY;
      const most = Math.max(maximum(scores), Number.isNaN(sink) ? Number.NEGATIVE_INFINITY : sink);
      const powers = scores.map((v) => exp(fround(v - most)));
      const sum = new Sum();
      powers.forEach((e, i) => {
        sum.add(first + i, e);
      });
      const total = fround(sum.fold() + (sinks === undefined ? 0 : exp(fround(sink - most))));
      for (let w = 0; w < valueWidth; w++) {
        let all = 0;
        let page = 0;
        powers.forEach((e, i) => {
          page = fround(page + fround(e * seen[i]!.values[group * valueWidth + w]!));
          if ((first + i) % 256 !== 255 && i !== seen.length - 1) return;
          all = fround(all + page);
          page = 0;
        });
        out[row * valueWidth + w] = all / total;
      }
    }
  },
};

type Network = typeof import("../network/public");

/** As `rmsNorm` of `gguf-native/network`. */
export const rmsNorm: Network["rmsNorm"] = (x, weight, options) => calls.rmsNorm(plainNetwork, x, weight, options);
/** As `layerNorm` of `gguf-native/network`. */
export const layerNorm: Network["layerNorm"] = (x, weight, bias, options) =>
  calls.layerNorm(plainNetwork, x, weight, bias, options);
/** As `normalize` of `gguf-native/network`. */
export const normalize: Network["normalize"] = (x, width, options) => calls.normalize(plainNetwork, x, width, options);
/** As `roundingError` of `gguf-native/network`. */
export const roundingError: Network["roundingError"] = (x, options) => calls.roundingError(plainNetwork, x, options);
/** As `meanOfRows` of `gguf-native/network`. */
export const meanOfRows: Network["meanOfRows"] = (x, width, options) =>
  calls.meanOfRows(plainNetwork, x, width, options);
/** As `add` of `gguf-native/network`. */
export const add: Network["add"] = (x, y) => calls.add(plainNetwork, x, y);
/** As `scale` of `gguf-native/network`. */
export const scale: Network["scale"] = (x, factor) => calls.scale(plainNetwork, x, factor);
/** As `activate` of `gguf-native/network`. */
export const activate: Network["activate"] = (x, activation, options) =>
  calls.activate(plainNetwork, x, activation, options);
/** As `gated` of `gguf-native/network`. */
export const gated: Network["gated"] = (gate, up, activation, options) =>
  calls.gated(plainNetwork, gate, up, activation, options);
/** As `softmax` of `gguf-native/network`. */
export const softmax: Network["softmax"] = (x, width, options) => calls.softmax(plainNetwork, x, width, options);
/** As `logSumExp` of `gguf-native/network`. */
export const logSumExp: Network["logSumExp"] = (x) => calls.logSumExp(plainNetwork, x);
/** As `rope` of `gguf-native/network`. */
export const rope: Network["rope"] = (x, headWidth, rotations, position, options) =>
  calls.rope(plainNetwork, x, headWidth, rotations, position, options);
/** As `attention` of `gguf-native/network`, for caches of this module. */
export const attention: Network["attention"] = (queries, cache, options) =>
  calls.attention(plainNetwork, queries, cache, options);

/** As `KvCache` of `gguf-native/network`. */
export class KvCache extends KeyValueCache {
  constructor(options: KvCacheOptions) {
    super(plainNetwork, options);
  }

  /** The cache that {@link KvCache.serialize} made bytes of. */
  static deserialize(bytes: Uint8Array): KvCache {
    return restored(bytes, (options) => new KvCache(options));
  }

  /** @internal */
  protected override empty(): this {
    return new KvCache(this) as this;
  }
}
