/** The functions between products in many ways, compared with the reference to the bit. */
import type * as Network from "gguf-native/network";
import * as reference from "gguf-native/reference";
import { firstDifference } from "./compare";
import { Random } from "./random";

type Functions = typeof Network;

const STRANGE = [Number.NaN, Infinity, -Infinity, 0, -0, 1e-40, -1e-45, 1e38, -1e38, 88.8, -104.5, 1e-20];

/** Kinds of numbers: ordinary ones, of very different sizes, and of every kind. */
const KINDS = {
  ordinary: (random: Random) => random.gaussian(),
  spread: (random: Random) => random.gaussian() * 2 ** (random.below(40) - 20),
  strange: (random: Random) =>
    random.below(12) === 0 ? STRANGE[random.below(STRANGE.length)]! : random.gaussian() * 10,
};
type Kind = keyof typeof KINDS;

export const numbersOf = (random: Random, length: number, kind: Kind = "ordinary"): Float32Array =>
  Float32Array.from({ length }, () => KINDS[kind](random));

const ACTIVATIONS: Network.Activation[] = ["silu", "gelu", "gelu_erf", "relu", "relu2", "sigmoid", "tanh"];
const WIDTHS = [...Array.from({ length: 70 }, (_, i) => i + 1), 127, 256, 1000, 4097];

/** Attention: [heads, heads of the cache, key width, value width, tokens in the cache, queries, options]. */
const ATTENTIONS: [
  ...[number, number, number, number, number, number],
  Partial<Network.AttentionOptions> & { withSinks?: boolean },
][] = [
  [4, 2, 32, 32, 1, 1, {}],
  [4, 2, 32, 64, 300, 7, {}],
  [6, 2, 64, 32, 600, 3, { window: 257 }],
  [3, 3, 96, 96, 70, 70, { cap: 5, scale: 0.3 }],
  [8, 1, 64, 64, 40, 40, { causal: false, withSinks: true }],
  [4, 2, 128, 128, 520, 2, { window: 3, withSinks: true }],
  [2, 2, 32, 32, 20, 20, { causal: false, window: 5 }],
  [5, 5, 32, 32, 257, 9, { scale: 0, cap: 30 }],
];
/** Widths that Q8_0 has not. */
const ODD_ATTENTIONS: typeof ATTENTIONS = [
  [1, 1, 1, 1, 1, 1, {}],
  [4, 2, 7, 5, 33, 4, {}],
  [2, 1, 80, 72, 530, 5, { window: 300, cap: 50 }],
];

/** Compares everything; returns how many cases there were, and what differed. */
export function compareWithReference(network: Functions): { cases: number; failures: string[] } {
  const random = new Random(39);
  const failures: string[] = [];
  let cases = 0;
  /** Runs both with the same arrays, of which one writes into its first. */
  const same = (what: string, run: (functions: Functions, threads: number | undefined) => Float32Array) => {
    cases++;
    const expected = run(reference as unknown as Functions, 1);
    for (const threads of [1, 2, undefined]) {
      const actual = run(network, threads);
      const at = firstDifference(actual, expected);
      if (at >= 0) failures.push(`${what}, threads ${threads}: number ${at} is ${actual[at]}, not ${expected[at]}`);
    }
  };
  for (const width of WIDTHS) {
    for (const kind of Object.keys(KINDS) as Kind[]) {
      const count = width > 1000 ? 3 : 1 + random.below(5);
      const numbers = (n: number): Float32Array => numbersOf(random, n, kind);
      const [x, y] = [numbers(width * count), numbers(width * count)];
      const [weight, bias] = [numbers(width), numbers(width)];
      const at = `${width} ${kind} numbers x ${count}`;
      const epsilon = 1e-5;
      same(`rmsNorm ${at}`, (f, threads) => f.rmsNorm(x, weight, { epsilon, threads }));
      same(`rmsNorm without weight ${at}`, (f, threads) => {
        const out = x.slice();
        return f.rmsNorm(out, undefined, { epsilon, width, threads, out });
      });
      same(`layerNorm ${at}`, (f, threads) => f.layerNorm(x, weight, bias, { epsilon, threads }));
      same(`layerNorm, less ${at}`, (f) => f.layerNorm(x, undefined, bias, { epsilon: 0 }));
      same(`layerNorm, bare ${at}`, (f) => f.layerNorm(x, undefined, undefined, { epsilon, width }));
      same(`normalize ${at}`, (f) => f.normalize(x, width));
      if (width % 32 === 0) {
        same(`roundingError ${at}`, (f, threads) => f.roundingError(x, { threads }));
        same(`roundingError, in place ${at}`, (f) => f.roundingError(x.slice(), { out: x.slice() }));
      }
      same(`meanOfRows ${at}`, (f) => f.meanOfRows(x, width));
      same(`add ${at}`, (f) => f.add(x.slice(), y));
      same(`add a vector ${at}`, (f) => f.add(x.slice(), bias));
      same(`scale ${at}`, (f) => f.scale(x.slice(), weight[0]!));
      same(`softmax ${at}`, (f, threads) => f.softmax(x, width, { threads }));
      same(`softmax, scaled ${at}`, (f, threads) => {
        const out = x.slice();
        return f.softmax(out, width, { scale: 0.7, cap: 3, threads, out });
      });
      same(`logSumExp ${at}`, (f) => Float32Array.of(f.logSumExp(x)));
      for (const activation of ACTIVATIONS) {
        same(`${activation} ${at}`, (f, threads) => f.activate(x, activation, { threads }));
        same(`gated ${activation} ${at}`, (f, threads) => {
          const out = y.slice();
          return f.gated(x, out, activation, { threads, out });
        });
      }
      const even = 2 * Math.ceil(width / 2);
      for (const pairs of ["adjacent", "halves"] as const) {
        const rotations = new network.Rotations({ width: even, base: 10000, pairs });
        const own = new reference.Rotations({ width: even, base: 10000, pairs });
        const heads = numbers(2 * count * (even + 3));
        same(`rope ${pairs} ${at}`, (f, threads) => {
          const turns = (f === network ? rotations : own) as Network.Rotations;
          return f.rope(heads, even + 3, turns, 1000, { headCount: 2, threads });
        });
      }
    }
  }
  for (const type of ["F32", "F16", "Q8_0"] as const) {
    for (const kind of ["ordinary", "spread", "strange"] as const) {
      if (type === "Q8_0" && kind === "strange") continue; // it has no infinity
      for (const row of [...ATTENTIONS, ...(type === "Q8_0" ? [] : ODD_ATTENTIONS)]) {
        const [heads, cacheHeads, keyWidth, valueWidth, length, n, { withSinks, ...options }] = row;
        const keys = numbersOf(random, length * cacheHeads * keyWidth, kind);
        const values = numbersOf(random, length * cacheHeads * valueWidth, kind);
        const queries = numbersOf(random, n * heads * keyWidth, kind);
        const sinks = withSinks === true ? numbersOf(random, heads, kind) : undefined;
        same(`attention ${JSON.stringify(row)} ${type} ${kind}`, (f, threads) => {
          const cache = new f.KvCache({ heads: cacheHeads, keyWidth, valueWidth, type });
          const cut = random.below(length + 1);
          cache.append(
            keys.subarray(0, cut * cacheHeads * keyWidth),
            values.subarray(0, cut * cacheHeads * valueWidth),
          );
          cache.append(keys.subarray(cut * cacheHeads * keyWidth), values.subarray(cut * cacheHeads * valueWidth));
          return f.attention(queries, cache, { heads, ...options, sinks, threads });
        });
      }
    }
  }
  // Enough for several threads.
  const large = numbersOf(random, 300 * 4096);
  const weight = numbersOf(random, 4096);
  same("rmsNorm, large", (f, threads) => f.rmsNorm(large, weight, { epsilon: 1e-6, threads }));
  same("gelu, large", (f, threads) => f.activate(large, "gelu", { threads }));
  same("softmax, large", (f, threads) => f.softmax(large, 300, { threads }));
  return { cases, failures: failures.slice(0, 20) };
}
