/** The reference of what lies between products against plain mathematics in binary64. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as net from "gguf-native/reference";
import { cosAndSin, ln, preciseExp } from "#dist/network/elementary";
import { erf, exp, tanh } from "#dist/reference/network";
import { numbersOf } from "../support/network-cases";
import { Random } from "../support/random";

const random = new Random(7);

/** How far a binary32 number is from an exact one, in units of the last place of that. */
function ulps(actual: number, exact: number): number {
  return Math.abs(actual - exact) / 2 ** (Math.max(-126, Math.floor(Math.log2(Math.abs(exact)))) - 23);
}

/** erf by its series, and for large numbers by its continued fraction. */
function exactErf(x: number): number {
  const scale = (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x);
  let sum = 0;
  if (x > 3) {
    for (let k = 60; k > 0; k--) sum = k / 2 / (x + sum);
    return 1 - scale / 2 / (x + sum);
  }
  for (let k = 80; k >= 0; k--) sum = x / (2 * k + 1) + (sum * 2 * x * x) / (2 * k + 1);
  return scale * sum;
}

const worst = (least: number, most: number, error: (x: number) => number): number => {
  let found = 0;
  for (let i = 0; i <= 200_000; i++) {
    found = Math.max(found, error(Math.fround(least + ((most - least) * i) / 200_000)));
  }
  return found;
};

/** The largest difference, relative to the largest number. */
function distance(actual: ArrayLike<number>, exact: readonly number[]): number {
  assert.equal(actual.length, exact.length);
  const most = Math.max(...exact.map(Math.abs));
  return Math.max(...exact.map((each, i) => Math.abs(each - actual[i]!))) / most;
}

describe("in units of the last place", () => {
  for (const [name, least, most, limit, error] of [
    ["exp", -87.3, 88.7, 1.5, (x: number) => ulps(exp(x), Math.exp(x))],
    ["exp to subnormal numbers", -103.9, -87.3, 1.5, (x: number) => ulps(exp(x), Math.exp(x))],
    ["tanh", 1e-5, 12, 2, (x: number) => ulps(tanh(x), Math.tanh(x))],
    ["erf", 1e-5, 5, 2, (x: number) => ulps(erf(x), exactErf(x))],
  ] as const) {
    test(`${name}: below ${limit}`, (t) => {
      const found = worst(least, most, error);
      t.diagnostic(`${found}`);
      assert.ok(found < limit, `${found}`);
    });
  }
  test("ends and signs", () => {
    assert.deepEqual([-Infinity, 0, -0, 1000].map(exp), [Math.fround(exp(-104)), 1, 1, Infinity]);
    assert.deepEqual([-Infinity, -0, 0, Infinity].map(tanh), [-1, -0, 0, 1]);
    assert.deepEqual([-Infinity, -0, 0, Infinity].map(erf), [-1, -0, 0, 1]);
    for (const f of [exp, tanh, erf]) assert.ok(Number.isNaN(f(Number.NaN)));
  });
});

test("activations", () => {
  const exact: Record<string, (x: number) => number> = {
    silu: (x) => x / (1 + Math.exp(-x)),
    gelu: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
    gelu_erf: (x) => 0.5 * x * (1 + Math.sign(x) * exactErf(Math.abs(x) / Math.SQRT2)),
    relu: (x) => Math.max(0, x),
    relu2: (x) => Math.max(0, x) ** 2,
    sigmoid: (x) => 1 / (1 + Math.exp(-x)),
    tanh: Math.tanh,
  };
  const x = numbersOf(random, 1000).map((each) => 3 * each);
  for (const [name, f] of Object.entries(exact)) {
    const found = distance(net.activate(x, name as "silu"), Array.from(x, f));
    assert.ok(found < 1e-6, `${name}: ${found}`);
  }
});

test("norms, softmax and its logarithm", () => {
  for (const width of [1, 5, 64, 1000, 5000]) {
    const x = numbersOf(random, width).map((each) => 0.5 + 3 * each);
    const [weight, bias] = [numbersOf(random, width), numbersOf(random, width)];
    const values = [...x];
    const meanOf = (numbers: number[]): number => numbers.reduce((sum, each) => sum + each, 0) / width;
    const mean = meanOf(values);
    const square = meanOf(values.map((each) => each * each));
    const variance = meanOf(values.map((each) => (each - mean) ** 2));
    const epsilon = 1e-5;
    const most = Math.max(...values);
    const powers = values.map((each) => Math.exp(each - most));
    const sum = meanOf(powers) * width;
    for (const [name, actual, exact] of [
      [
        "rms",
        net.rmsNorm(x, weight, { epsilon }),
        values.map((v, i) => (v / Math.sqrt(square + epsilon)) * weight[i]!),
      ],
      [
        ...["layer", net.layerNorm(x, weight, bias, { epsilon: 0.01 })],
        values.map((v, i) => ((v - mean) / Math.sqrt(variance + 0.01)) * weight[i]! + bias[i]!),
      ],
      ["length", net.normalize(x, width), values.map((v) => v / Math.sqrt(square * width))],
      ["softmax", net.softmax(x, width), powers.map((power) => power / sum)],
      ["logSumExp", [net.logSumExp(x)], [most + Math.log(sum)]],
    ] as [string, ArrayLike<number>, number[]][]) {
      const found = distance(actual, exact);
      assert.ok(found < 1e-6, `${name} of ${width}: ${found}`);
    }
  }
  assert.equal(net.logSumExp(Float32Array.of(-Infinity, -Infinity)), -Infinity);
  assert.equal(net.logSumExp(Float32Array.of(1, Infinity)), Infinity);
  assert.equal(net.logSumExp(new Float32Array(0)), -Infinity);
  for (const other of [1, Infinity, -Infinity]) {
    assert.ok(Number.isNaN(net.logSumExp(Float32Array.of(other, Number.NaN))));
  }
});

test("topK", () => {
  const strange = Float32Array.of(1, Number.NaN, 5, 5, -Infinity, 0, -0, Number.NaN);
  assert.deepEqual([...net.topK(strange, 8).indexes], [2, 3, 0, 5, 6, 4, 1, 7]);
  assert.deepEqual([...net.topK(strange, 3).values], [5, 5, 1]);
  const x = numbersOf(random, 500).map((each) => Math.round(each * 20));
  const sorted = Array.from(x, (_, i) => i).sort((i, j) => x[j]! - x[i]! || i - j);
  for (const k of [0, 1, 2, 17, 499, 500]) {
    const { indexes, values } = net.topK(x, k);
    assert.deepEqual([...indexes], sorted.slice(0, k));
    assert.deepEqual(
      [...values],
      sorted.slice(0, k).map((i) => x[i]!),
    );
  }
});

describe("rotations", () => {
  const heads = numbersOf(random, 3 * 2 * 12);
  /** Angles of the pairs of a token, and what cosines and sines are multiplied with. */
  const check = (
    options: Omit<net.RotationsOptions, "pairs" | "width" | "base">,
    position: number | Int32Array,
    angleOf: (token: number, pair: number, frequency: number) => number,
    magnitude = 1,
  ): void => {
    for (const pairs of ["adjacent", "halves"] as const) {
      const rotations = new net.Rotations({ width: 8, base: 10000, pairs, ...options });
      const exact = [...heads];
      for (let head = 0; head < 6; head++) {
        for (let pair = 0; pair < 4; pair++) {
          const [i, j] = pairs === "adjacent" ? [2 * pair, 2 * pair + 1] : [pair, pair + 4];
          const [a, b] = [heads[12 * head + i]!, heads[12 * head + j]!];
          const angle = angleOf(Math.floor(head / 2), pair, 10000 ** (-pair / 4));
          exact[12 * head + i] = magnitude * (a * Math.cos(angle) - b * Math.sin(angle));
          exact[12 * head + j] = magnitude * (a * Math.sin(angle) + b * Math.cos(angle));
        }
      }
      const found = distance(net.rope(heads, 12, rotations, position, { headCount: 2 }), exact);
      assert.ok(found < 1e-6, `${pairs}: ${found}`);
    }
  };
  test("plain, at positions of every token, scaled, with factors", () => {
    check({}, 1000, (token, _, frequency) => (1000 + token) * frequency);
    check({}, Int32Array.of(7, 7, 100_000), (token, _, frequency) => [7, 7, 100_000][token]! * frequency);
    check({ scale: 4 }, 1000, (token, _, frequency) => ((1000 + token) / 4) * frequency);
    const factors = Float32Array.of(1, 2, 4, 8);
    check({ factors }, -5, (token, pair, frequency) => ((token - 5) * frequency) / 2 ** pair);
  });
  test("sections", () => {
    const positions = Int32Array.from({ length: 12 }, (_, i) => 10 * i);
    // Pairs 0 and 1 turn by the first, 2 by the second, 3 by the fourth.
    const sections = [2, 1, 0, 1];
    const at = (token: number, pair: number): number => 10 * (4 * token + [0, 0, 1, 3][pair]!);
    check({ sections }, positions, (token, pair, frequency) => at(token, pair) * frequency);
    check({ sections }, 50, (token, _, frequency) => (50 + token) * frequency);
  });
  test("yarn", () => {
    // Of 128 tokens: pair i turns 128 * frequency / 2 pi times: 20.4, 2.04, .2, .02. Ramp from pair 0 to pair 2.
    const yarn = { factor: 4, originalContext: 128, attentionFactor: 1.5 };
    const kept = [1, 0.5, 0, 0];
    check(
      { yarn },
      90,
      (token, pair, frequency) => (90 + token) * frequency * ((1 - kept[pair]!) / 4 + kept[pair]!),
      1.5 * (1 + 0.1 * Math.log(4)),
    );
    check({ yarn: { ...yarn, extrapolation: 0 } }, 90, (token, _, frequency) => ((90 + token) * frequency) / 4, 1.5);
  });
});

describe("elementary functions are as exact as they say", () => {
  /** The greatest of `error` from `begin` to `end`, at which `next` gives the next place. */
  const worstOf = (begin: number, end: number, next: (x: number) => number, error: (x: number) => number) => {
    let greatest = 0;
    for (let x = begin; x < end; x = next(x)) greatest = Math.max(greatest, error(x));
    return greatest;
  };

  test("preciseExp", () => {
    const error = (x: number): number => Math.abs(preciseExp(x) / Math.exp(x) - 1);
    assert.ok(worstOf(-700, 700, (x) => x + 0.0625 / 3, error) < 4 * Number.EPSILON);
    assert.equal(preciseExp(0), 1);
  });

  test("ln", () => {
    const error = (x: number): number => Math.abs(ln(x) - Math.log(x)) / Math.max(1, Math.abs(Math.log(x)));
    assert.ok(worstOf(1e-9, 1e12, (x) => x * 1.0017, error) < 4 * Number.EPSILON);
    assert.equal(ln(1), 0);
  });

  test("cosine and sine", () => {
    const error = (x: number): number => {
      const [cos, sin] = cosAndSin(x);
      return Math.max(Math.abs(cos - Math.cos(x)), Math.abs(sin - Math.sin(x)));
    };
    assert.ok(worstOf(-50, 50, (x) => x + 0.00137, error) < 2 * Number.EPSILON);
    assert.ok(worstOf(-1e6, 1e6, (x) => x + 17.31, error) < 2 * Number.EPSILON);
    assert.deepEqual(cosAndSin(0), [1, 0]);
  });
});
