/** The reference's packed tables against the published ones. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { projectRoot } from "../support/paths";
import { needsShared, sharedPath } from "../support/shared-data";

type Module<Name extends string> = Record<Name, ArrayLike<number>>;
const inside = <T>(name: string): T => require(join(projectRoot, "dist", "reference", name)) as T;

const tables = inside<Module<"iq2xxs" | "iq2xs" | "iq2s" | "iq3xxs" | "iq3s" | "iq1s">>("codebook-tables.js");
const levels = inside<Module<"NONLINEAR_LEVELS" | "FP4_LEVELS">>("levels.js");
const { evenSigns } = inside<{ evenSigns: (bits: number) => number }>("codebooks.js");

const ours: Record<string, ArrayLike<number>> = {
  iq2xxs_grid: tables.iq2xxs,
  iq2xs_grid: tables.iq2xs,
  iq2s_grid: tables.iq2s,
  iq3xxs_grid: tables.iq3xxs,
  iq3s_grid: tables.iq3s,
  iq1s_grid: tables.iq1s,
  kvalues_iq4nl: levels.NONLINEAR_LEVELS,
  kvalues_fp4: levels.FP4_LEVELS,
  ksigns_iq2xs: Array.from({ length: 128 }, (_, bits) => evenSigns(bits)),
};

describe("codebooks.json", needsShared("codebooks.json"), () => {
  test("is what the reference decodes with", () => {
    const published = JSON.parse(readFileSync(sharedPath("codebooks.json"), "utf8")) as Record<
      string,
      { rows: number; columns: number; values: number[] }
    >;
    assert.deepEqual(Object.keys(published).sort(), Object.keys(ours).sort());
    for (const [name, { rows, columns, values }] of Object.entries(published)) {
      assert.equal(values.length, rows * columns);
      assert.deepStrictEqual(Array.from(ours[name]!), values, name);
    }
  });
});

test("evenSigns ignores what is above its seven bits", () => {
  for (const bits of [0, 1, 0x7f, 0x55]) assert.equal(evenSigns(bits | 0xffff80), evenSigns(bits));
});
