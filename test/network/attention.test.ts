/** Attention and its caches: what they compute, and that it does not depend on how tokens come. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import * as network from "gguf-native/network";
import * as reference from "gguf-native/reference";
import { firstDifference } from "../support/compare";
import { numbersOf } from "../support/network-cases";
import { projectRoot } from "../support/paths";
import { Random } from "../support/random";
import { needsModule } from "../support/wasm";

type Functions = typeof network;
const modules: Record<string, Functions | undefined> = {
  network,
  reference: reference as unknown as Functions,
  wasm: needsModule.skip ? undefined : require(join(projectRoot, "dist", "wasm", "network.cjs")),
};
const random = new Random(77);
const [HEADS, GROUPS, WIDTH, LENGTH] = [4, 2, 32, 530];
const keys = numbersOf(random, LENGTH * GROUPS * WIDTH);
const values = numbersOf(random, LENGTH * GROUPS * WIDTH);
const queries = numbersOf(random, LENGTH * HEADS * WIDTH);
const sinks = numbersOf(random, HEADS);
const sizes = { heads: GROUPS, keyWidth: WIDTH };

const tokens = (x: Float32Array, first: number, end: number): Float32Array =>
  x.subarray((first * x.length) / LENGTH, (end * x.length) / LENGTH);
function append(cache: network.KvCache, first: number, end: number): network.KvCache {
  cache.append(tokens(keys, first, end), tokens(values, first, end));
  return cache;
}
function assertSame(actual: Float32Array, expected: Float32Array): void {
  assert.equal(firstDifference(actual, expected), -1);
}

/** The same in binary64, of one token and head; all numbers are as the cache holds them. */
function naive(
  position: number,
  head: number,
  held: { keys: Float32Array; values: Float32Array },
  { causal = true, window = LENGTH, cap = 0, scale = 1 / Math.sqrt(WIDTH), sinks }: Partial<network.AttentionOptions>,
): number[] {
  const group = Math.floor(head / (HEADS / GROUPS));
  const seen = Array.from({ length: LENGTH }, (_, t) => t).filter(
    (t) => t > position - window && (!causal || t <= position),
  );
  const at = (x: Float32Array, t: number, w: number): number => x[(t * GROUPS + group) * WIDTH + w]!;
  const scores = seen.map((t) => {
    let score = 0;
    for (let w = 0; w < WIDTH; w++) score += queries[(position * HEADS + head) * WIDTH + w]! * at(held.keys, t, w);
    return cap === 0 ? score * scale : cap * Math.tanh((score * scale) / cap);
  });
  const powers = scores.map(Math.exp);
  const total = powers.reduce((sum, each) => sum + each, sinks === undefined ? 0 : Math.exp(sinks[head]!));
  return Array.from({ length: WIDTH }, (_, w) =>
    seen.reduce((sum, t, i) => sum + (powers[i]! / total) * at(held.values, t, w), 0),
  );
}

const WAYS: Partial<network.AttentionOptions>[] = [
  {},
  { window: 300, cap: 4 },
  { window: 1 },
  { sinks, scale: 0.5 },
  { causal: false },
  { causal: false, window: 100, sinks },
];

for (const [name, functions] of Object.entries(modules)) {
  describe(name, { skip: functions === undefined && needsModule.skip }, () => {
    const { attention, KvCache } = functions as Functions;
    for (const type of ["F32", "F16", "Q8_0"] as const) {
      const make = (): network.KvCache => new KvCache({ ...sizes, type });
      const ask = (cache: network.KvCache, first: number, way: Partial<network.AttentionOptions> = {}) =>
        attention(tokens(queries, first, cache.length), cache, { heads: HEADS, ...way });

      test(`${type}: close to binary64`, () => {
        const cache = append(make(), 0, LENGTH);
        const round = (x: Float32Array): Float32Array =>
          reference.dequantizeSync(type, reference.quantizeSync(type, x));
        const held = { keys: round(keys), values: round(values) };
        for (const way of WAYS) {
          const first = LENGTH - 3;
          const actual = ask(cache, first, way);
          for (let row = 0; row < 3 * HEADS; row++) {
            const exact = naive(first + Math.floor(row / HEADS), row % HEADS, held, way);
            for (const [w, each] of exact.entries()) {
              assert.ok(Math.abs(actual[row * WIDTH + w]! - each) < 1e-5, `${JSON.stringify(way)} ${row} ${w}`);
            }
          }
        }
      });
      test(`${type}: the bits of one token at a time`, () => {
        for (const way of WAYS.filter(({ causal }) => causal !== false)) {
          const cache = append(make(), 0, LENGTH - 20);
          const one = Array.from({ length: 20 }, (_, i) => {
            const first = LENGTH - 20 + i;
            return [...ask(append(cache, first, first + 1), first, way)];
          });
          assertSame(ask(cache, LENGTH - 20, way), Float32Array.from(one.flat()));
        }
      });
      test(`${type}: forks, copies, bytes and what was cut off`, () => {
        const whole = ask(append(make(), 0, LENGTH), LENGTH - 2);
        const bytes = append(make(), 0, LENGTH).serialize();
        const start = append(make(), 0, 300);
        const fork = start.fork();
        append(fork, 0, 200); // something else
        const copy = start.clone();
        start.truncate(270);
        append(start, 270, LENGTH);
        append(copy, 300, LENGTH);
        fork.truncate(300);
        append(fork, 300, LENGTH);
        for (const cache of [start, fork, copy, KvCache.deserialize(bytes)]) {
          assert.ok(cache instanceof KvCache);
          assert.deepEqual({ ...cache, length: cache.length }, { ...start, length: LENGTH });
          assertSame(ask(cache, LENGTH - 2), whole);
          assert.deepEqual(cache.serialize(), bytes);
        }
        for (const length of [256, 255, 0]) {
          fork.truncate(length);
          assert.equal(fork.length, length);
        }
        assert.equal(KvCache.deserialize(fork.serialize()).length, 0);
        assertSame(ask(append(fork, 0, LENGTH), LENGTH - 2), whole);
        assertSame(ask(start, LENGTH - 2), whole);
      });
    }
    test("a mean of equal values, of none, and into the queries", () => {
      const cache = new KvCache({ heads: 1, keyWidth: 2, valueWidth: 3, capacity: 2 });
      assert.equal(attention(new Float32Array(0), cache, { heads: 1 }).length, 0);
      cache.append(Float32Array.of(1, 2, 3, 4), Float32Array.of(1, 2, 3, 1, 2, 3));
      assert.deepEqual([...attention(Float32Array.of(5, 6), cache, { heads: 1 })], [1, 2, 3]);
      const square = append(new KvCache(sizes), 0, LENGTH);
      const out = queries.slice();
      assert.equal(attention(out, square, { heads: HEADS, out }), out);
      assertSame(out, attention(queries, square, { heads: HEADS }));
    });
  });
}
