/** What the functions between products refuse, and what they say. The reference has the same checks. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as network from "gguf-native/network";
import * as reference from "gguf-native/reference";
import { firstDifference } from "../support/compare";
import { Random } from "../support/random";

type Functions = typeof network;
const memory = new Float32Array(64);
const x = memory.subarray(0, 8);
const shifted = memory.subarray(4, 12);
const floats = (length: number) => new Float32Array(length);
const four = floats(4);
const epsilon = 1e-5;
const cacheOf = (f: Functions, more = {}): network.KvCache => {
  const cache = new f.KvCache({ heads: 1, keyWidth: 4, ...more });
  cache.append(new Float32Array(8), new Float32Array(8));
  return cache;
};
const turns = (f: Functions, more = {}): network.Rotations =>
  new f.Rotations({ width: 4, base: 10000, pairs: "halves", ...more });
/** Attention of one query to the cache above. */
const attend = (f: Functions, more: object) => f.attention(four, cacheOf(f), { heads: 1, ...more });
const yarn = { factor: 4, originalContext: 100 };
const serialized = cacheOf(reference as Any).serialize();
/** Serialized bytes with another number in place of one: heads, keyWidth, valueWidth, capacity, type, length. */
const withField = (index: number, value: number): Uint8Array => {
  const bytes = serialized.slice();
  new DataView(bytes.buffer).setUint32(8 + 4 * index, value, true);
  return bytes;
};

const RANGE = "ERR_GGUF_RANGE";
// biome-ignore lint/suspicious/noExplicitAny: wrong arguments are the point
type Any = any;

/** By code: the message, and the call. */
const CASES: Record<string, [message: RegExp, call: (f: Any) => unknown][]> = {
  ERR_INVALID_ARG_TYPE: [
    [/"x" argument must be an instance of Float32Array/, (f) => f.rmsNorm([1], undefined, { epsilon })],
    [/"weight" argument/, (f) => f.rmsNorm(x, new Float64Array(8), { epsilon })],
    [/'options\.epsilon' must be of type number/, (f) => f.rmsNorm(x, undefined)],
    [/"options" argument must be of type object/, (f) => f.softmax(x, 4, 5)],
    [/"factor" argument/, (f) => f.scale(x, "2")],
    [/"activation" argument/, (f) => f.gated(x, x, 1)],
    [/'options\.scale'/, (f) => f.softmax(x, 8, { scale: 1n })],
    [/"x" argument/, (f) => f.logSumExp(undefined)],
    [/"rotations" argument must be an instance of Rotations/, (f) => f.rope(x, 4, {}, 0)],
    [/"position" argument must be of type number or an instance of Int32Array/, (f) => f.rope(x, 4, turns(f), [0, 1])],
    [/"options" argument/, (f) => turns(f, { yarn: 4 })],
    [/"options" argument/, (f) => new f.KvCache()],
    [/"cache" argument must be an instance of KvCache/, (f) => f.attention(four, {}, { heads: 1 })],
    [
      /"cache" argument must be an instance of KvCache/,
      (f) => f.attention(four, cacheOf(f === network ? (reference as Any) : network), { heads: 1 }),
    ],
    [/'options\.heads'/, (f) => f.attention(four, cacheOf(f))],
    [/'options\.causal' must be of type boolean|"options\.causal"/, (f) => attend(f, { causal: 1 })],
    [/"bytes" argument must be an instance of Uint8Array/, (f) => f.KvCache.deserialize([])],
  ],
  ERR_INVALID_ARG_VALUE: [
    [/no option 'epsilom'.*'epsilon'/, (f) => f.rmsNorm(x, undefined, { epsilom: 1 })],
    [/"activation" argument must be one of: 'silu'/, (f) => f.activate(x, "swish")],
    [/'options\.pairs' must be one of/, (f) => turns(f, { pairs: "other" })],
    [/no option 'betaslow'/, (f) => turns(f, { yarn: { ...yarn, betaslow: 1 } })],
    [/'options\.scale' must not be given beside options\.yarn/, (f) => turns(f, { yarn, scale: 2 })],
    [
      /'options\.type' must be one of: 'F16', 'F32', 'Q8_0'/,
      (f) => new f.KvCache({ heads: 1, keyWidth: 4, type: "Q4_0" }),
    ],
  ],
  ERR_GGUF_RANGE: [
    [/options\.epsilon must be 0 or more, and finite, found -1/, (f) => f.rmsNorm(x, four, { epsilon: -1 })],
    [/options\.epsilon .*NaN/, (f) => f.layerNorm(x, four, four, { epsilon: Number.NaN })],
    [/x has 8 elements, not a whole number of vectors of 3/, (f) => f.rmsNorm(x, floats(3), { epsilon })],
    [/weight has 4 elements, but a vector has 8/, (f) => f.rmsNorm(x, four, { epsilon, width: 8 })],
    [/bias has 3 elements, but a vector has 4/, (f) => f.layerNorm(x, four, floats(3), { epsilon })],
    [/the width must be a whole number from 1 .* found 0/, (f) => f.rmsNorm(x, floats(0), { epsilon })],
    [/options\.out has 4 elements, but the result has 8/, (f) => f.activate(x, "silu", { out: four })],
    [/options\.out and x overlap/, (f) => f.activate(x, "silu", { out: shifted })],
    [/options\.out and up overlap/, (f) => f.gated(floats(8), x, "silu", { out: shifted })],
    [/options\.out and weight overlap/, (f) => f.rmsNorm(floats(8), x, { epsilon, out: shifted })],
    [/x and y overlap/, (f) => f.add(x, shifted)],
    [/x has 8 elements, not a multiple of the 3 of y/, (f) => f.add(x, floats(3))],
    [/not a multiple of the 0 of y/, (f) => f.add(x, floats(0))],
    [/up has 4 elements, but gate has 8/, (f) => f.gated(x, four, "silu")],
    [/width must be a whole number from 1/, (f) => f.softmax(x, 0)],
    [/options\.cap must be a binary32 number above 0, found 0/, (f) => f.softmax(x, 8, { cap: 0 })],
    [/options\.cap .* found 1e-60/, (f) => f.softmax(x, 8, { cap: 1e-60 })],
    [/options\.threads must be a positive/, (f) => f.softmax(x, 8, { threads: 0 })],
    [/number of vectors of x must be .* found 0/, (f) => f.meanOfRows(floats(0), 8)],
    [/not a whole number of vectors of 5/, (f) => f.normalize(x, 5)],
    [/not a whole number of vectors of 32/, (f) => f.roundingError(x)],
    [/k must be a whole number from 0 to 8, found 9/, (f) => f.topK(x, 9)],
    [/headWidth is 2, but the rotations have a width of 4/, (f) => f.rope(x, 2, turns(f), 0)],
    [/vectors of 12/, (f) => f.rope(x, 4, turns(f), 0, { headCount: 3 })],
    [/position must be .* to 2147483646, found 2147483647/, (f) => f.rope(x, 4, turns(f), 2 ** 31 - 1)],
    [/position has 1 elements, but for 2 tokens it must have 2/, (f) => f.rope(x, 4, turns(f), Int32Array.of(1))],
    [
      /for 2 tokens of 3 positions each it must have 6/,
      (f) => f.rope(x, 4, turns(f, { sections: [1, 1, 0] }), Int32Array.of(1, 2)),
    ],
    [/options\.width must be even, found 3/, (f) => turns(f, { width: 3 })],
    [/options\.base must be above 1/, (f) => turns(f, { base: 1 })],
    [/options\.scale must be a binary32 number above 0/, (f) => turns(f, { scale: 0 })],
    [/options\.factors has 3 elements, but half of options\.width is 2/, (f) => turns(f, { factors: floats(3) })],
    [/options\.factors\[1\] .* found 0/, (f) => turns(f, { factors: Float32Array.of(1, 0) })],
    [/options\.yarn\.extrapolation must be from 0 to 1/, (f) => turns(f, { yarn: { ...yarn, extrapolation: 2 } })],
    [/options\.sections has no pairs/, (f) => turns(f, { sections: [0, 0] })],
    [/options\.sections\[1\] .* found -1/, (f) => turns(f, { sections: [1, -1] })],
    [/options\.heads must be a whole number from 1/, (f) => new f.KvCache({ heads: 0, keyWidth: 4 })],
    [/options\.keyWidth .* to 131072, found 262144/, (f) => new f.KvCache({ heads: 2, keyWidth: 2 ** 18 })],
    [
      /options\.valueWidth must be a multiple of 32 for Q8_0, found 4/,
      (f) => new f.KvCache({ heads: 1, keyWidth: 32, valueWidth: 4, type: "Q8_0" }),
    ],
    [/keys has 3 elements, not a whole number of vectors of 4/, (f) => cacheOf(f).append(floats(3), four)],
    [/values has 8 elements, but for 1 tokens it must have 4/, (f) => cacheOf(f).append(four, floats(8))],
    [/holds 2 of at most 2 tokens: there is no room for 1/, (f) => cacheOf(f, { capacity: 2 }).append(four, four)],
    [/length must be a whole number from 0 to 2, found 3/, (f) => cacheOf(f).truncate(3)],
    [
      /options\.heads, 3, is not a multiple of the 2/,
      (f) => f.attention(four, new f.KvCache({ heads: 2, keyWidth: 4 }), { heads: 3 }),
    ],
    [
      /queries has 6 elements, not a whole number of vectors of 4/,
      (f) => f.attention(floats(6), cacheOf(f), { heads: 1 }),
    ],
    [/queries of 3 tokens ask a cache that has 2/, (f) => f.attention(floats(12), cacheOf(f), { heads: 1 })],
    [/options\.window must be a whole number from 1/, (f) => attend(f, { window: 0 })],
    [/options\.sinks has 2 elements, but options\.heads is 1/, (f) => attend(f, { sinks: floats(2) })],
    [/options\.out has 3 elements, but the result has 4/, (f) => attend(f, { out: floats(3) })],
    [/options\.heads must be a whole number from 1/, (f) => f.KvCache.deserialize(withField(0, 0).subarray(0, 32))],
  ],
  ERR_GGUF_INVALID: [
    [/5 bytes are too few/, (f) => f.KvCache.deserialize(new Uint8Array(5))],
    [/begins with GGUF-KV1/, (f) => f.KvCache.deserialize(new Uint8Array(100))],
    [/32 bytes|have 32 bytes, found 31/, (f) => f.KvCache.deserialize(serialized.subarray(0, -1))],
    [/4294967295 tokens are more than its capacity/, (f) => f.KvCache.deserialize(withField(5, 2 ** 32 - 1))],
    [/no cache has the tensor type 2/, (f) => f.KvCache.deserialize(withField(4, 2))],
    [/tokens of it have \d+ bytes, found 32/, (f) => f.KvCache.deserialize(withField(1, 2 ** 32 - 1))],
  ],
};

for (const [name, functions] of Object.entries({ network, reference })) {
  describe(name, () => {
    const cases = Object.entries(CASES).flatMap(([code, rows]) => rows.map((row) => [code, ...row] as const));
    for (const [code, message, call] of cases) {
      test(`${message}`, () => {
        memory.fill(0.5);
        const error = { code, message, name: code.startsWith("ERR_GGUF") ? "GgufError" : "TypeError" };
        assert.throws(() => call(functions), error);
        assert.ok(memory.every((each) => each === 0.5));
      });
    }
    const f = functions as Functions;
    test("numbers that Q8_0 cannot hold: nothing is appended", () => {
      const cache = new f.KvCache({ heads: 1, keyWidth: 32, type: "Q8_0" });
      const bad = new Float32Array(64).fill(1);
      bad[40] = Infinity;
      for (const [keys, values] of [
        [bad, new Float32Array(64)],
        [new Float32Array(64), bad],
      ] as const) {
        assert.throws(() => cache.append(keys, values), {
          code: RANGE,
          message: /Infinity.*Q8_0|Q8_0.*Infinity/,
        });
        assert.equal(cache.length, 0);
      }
      cache.append(new Float32Array(32), new Float32Array(32));
      assert.equal(f.attention(new Float32Array(32), cache, { heads: 1 })[0], 0);
    });
    test("arrays that options take away", () => {
      const input = new Float32Array(8);
      const options = {
        out: new Float32Array(8),
        get epsilon() {
          structuredClone(input, { transfer: [input.buffer] });
          return 1;
        },
      };
      const lost = { code: RANGE, message: /options\.out has 8 elements, but the result has 0/ };
      assert.throws(() => f.rmsNorm(input, undefined, options), lost);
      const other = new Float32Array(8);
      const out = new Float32Array(8);
      structuredClone(other, { transfer: [other.buffer] });
      assert.throws(() => f.activate(other, "silu", { out }), { code: RANGE, message: /result has 0/ });
      assert.throws(() => f.activate(out, "silu", { out: other }), { code: RANGE, message: /out has 0/ });
    });
    test("shared memory, subclasses and offsets", () => {
      class Odd extends Float32Array {
        override get length(): number {
          return 1;
        }
      }
      const shared = new Float32Array(new SharedArrayBuffer(40), 8, 8).fill(2);
      const odd = new Odd(memory.buffer, 4, 8);
      memory.fill(2);
      const expected = [...f.activate(new Float32Array(8).fill(2), "gelu")];
      assert.deepEqual([...f.activate(shared, "gelu")], expected);
      assert.deepEqual([...f.activate(odd, "gelu")], expected);
      assert.equal(f.activate(shared, "gelu", { out: shared }), shared);
      assert.equal(f.activate(odd, "gelu", { out: odd }), odd);
      assert.deepEqual([...shared], expected);
      assert.deepEqual([...memory.subarray(1, 9)], expected);
      assert.equal(memory[9], 2);
    });
  });
}

test("serialized bytes that were changed: an error or numbers, the same of both", () => {
  const random = new Random(5);
  const cache = new reference.KvCache({ heads: 2, keyWidth: 32, type: "Q8_0" });
  cache.append(new Float32Array(320).fill(1.5), new Float32Array(320).fill(2));
  const whole = cache.serialize();
  let errors = 0;
  for (let round = 0; round < 1000; round++) {
    const bytes = whole.slice(0, random.below(4) === 0 ? random.below(whole.length) : whole.length);
    for (let n = random.below(4); n > 0; n--) {
      bytes[random.below(random.below(2) === 0 ? bytes.length : 40)] = random.bits();
    }
    const [actual, expected] = [network, reference as Any].map((f: Functions) => {
      try {
        const cache = f.KvCache.deserialize(bytes);
        return f.attention(new Float32Array(64).fill(0.3), cache, { heads: 2 });
      } catch (error) {
        assert.ok(error instanceof reference.GgufError, `${error}`);
        errors++;
        return error.message;
      }
    });
    if (typeof expected === "string") assert.equal(actual, expected);
    else assert.equal(firstDifference(actual as Float32Array, expected as Float32Array), -1);
  }
  assert.ok(errors > 500, `${errors}`);
});
