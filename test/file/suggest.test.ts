/** "Did you mean": which name is suggested, and that looking for it costs little whatever the names are. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { projectRoot } from "../support/paths";

// Not part of the package's interface: loaded from where it was built.
const { closest } = require(join(projectRoot, "dist", "base", "suggest.js")) as {
  closest(name: string, candidates: Iterable<string>): string | undefined;
};

const TENSORS = [
  "token_embd.weight",
  "blk.0.attn_q.weight",
  "blk.0.attn_k.weight",
  "blk.0.ffn_up.weight",
  "output.weight",
];

const CASES: readonly (readonly [name: string, candidates: readonly string[], expected: string | undefined])[] = [
  ["blk.0.attn_q.wieght", TENSORS, "blk.0.attn_q.weight"],
  ["blk.0.atn_k.weight", TENSORS, "blk.0.attn_k.weight"],
  ["blk.0.attn.q.weights", TENSORS, "blk.0.attn_q.weight"],
  ["BLK.0.FFN_UP.WEIGHT", TENSORS, "blk.0.ffn_up.weight"],
  ["output", TENSORS, "output.weight"],
  ["blk.0.ffn_up", TENSORS, "blk.0.ffn_up.weight"],
  ["context_length", ["llama.block_count", "llama.context_length"], "llama.context_length"],
  ["lm_head.weight", TENSORS, undefined],
  ["q4_k", ["Q4_0", "Q4_K", "Q5_K"], "Q4_K"],
  ["outt", ["dtype", "start", "end", "out"], "out"],
  ["dtpye", ["dtype", "start", "end", "out"], "dtype"],
  ["ab", ["ba", "AB"], "AB"],
  ["cat", ["bat", "hat"], "bat"],
  ["x", ["y", ""], undefined],
  ["x", ["X"], "X"],
  ["", ["", "a", "a.b"], undefined],
  ["a", [], undefined],
  ["a".repeat(128), ["a".repeat(127)], "a".repeat(127)],
  ["a".repeat(129), ["a".repeat(129)], undefined],
];

for (const [name, candidates, expected] of CASES) {
  test(`'${name.slice(0, 30)}' of ${candidates.length}: ${expected?.slice(0, 30)}`, () => {
    assert.equal(closest(name, candidates), expected);
  });
}

/** The edits between two texts, the slow way: letters swapped with the next one count as one. */
function editsBetween(a: string, b: string): number {
  const rows = Array.from({ length: a.length + 1 }, (_, i) =>
    Array.from({ length: b.length + 1 }, (_, j) => (i === 0 ? j : j === 0 ? i : 0)),
  );
  const at = (i: number, j: number): number => rows[i]?.[j] ?? Number.POSITIVE_INFINITY;
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      (rows[i] as number[])[j] = Math.min(
        at(i - 1, j) + 1,
        at(i, j - 1) + 1,
        at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1),
        swapped ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
  }
  return at(a.length, b.length);
}

test("suggests the first of the nearest, and nothing that is too far", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(text, fc.array(text, { maxLength: 8 }), (name, candidates) => {
      const limit = Math.min(4, Math.floor((name.length + 1) / 3));
      const edits = candidates.map((candidate) => editsBetween(name, candidate));
      const least = Math.min(...edits);
      const expected = least <= limit ? candidates[edits.indexOf(least)] : undefined;
      assert.equal(closest(name, candidates), expected);
    }),
    { numRuns: 2000 },
  );
});

test("costs milliseconds for 200,000 names that are made to be slow", () => {
  const long = "a".repeat(124);
  const huge = "a".repeat(60_000);
  const names: Record<string, string[]> = {
    similar: Array.from({ length: 200_000 }, (_, i) => `${long}${String.fromCharCode(98 + (i % 20))}bcd`),
    distinct: Array.from({ length: 200_000 }, (_, i) => `blk.${i}.attn_q.weight`),
    huge: Array.from({ length: 200_000 }, (_, i) => `${i}${huge}`),
  };
  for (const [kind, candidates] of Object.entries(names)) {
    const times = ["blk.x.attn_k.weights", `${long}wxyz`, "a.a"].map((name) => {
      const runs = Array.from({ length: 5 }, () => {
        const begin = performance.now();
        closest(name, candidates);
        return performance.now() - begin;
      });
      return Math.min(...runs);
    });
    // Far more than it takes, for a machine that is busy; without the limit it is seconds.
    assert.ok(Math.max(...times) < 100, `${kind}: ${times.map((ms) => ms.toFixed(1)).join(", ")} ms`);
  }
});
