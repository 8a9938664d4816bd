/** What the benchmarks write and compare with; not how fast anything is. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { writeCharts } from "../../bench/charts";
import { Results } from "../../bench/results";
import { WEIGHT_TYPES } from "../../bench/weights";
import { projectRoot, temporaryFolder } from "../support/paths";

test("every type has a floor for each family of processors", () => {
  const path = join(projectRoot, "bench", "floors.json");
  const families = JSON.parse(readFileSync(path, "utf8")) as Record<string, Record<string, object>>;
  for (const [family, floors] of Object.entries(families)) {
    for (const type of WEIGHT_TYPES) {
      const its = { ...floors.default, ...floors[type] };
      for (const name of ["native-vs-ts", "products", "stats"]) assert.ok(name in its, `${family}: ${type}, ${name}`);
    }
  }
});

test("charts have a mark for everything that was measured", () => {
  const results = new Results();
  const timing = { best: 1e-3, median: 1e-3, rounds: 3 };
  for (const [i, subject] of WEIGHT_TYPES.entries()) {
    const later = { ...timing, best: 1e-3 * (1 + i / 10) };
    const weights = 2 ** 28;
    for (const side of ["native", "typescript"]) {
      results.add({ task: "dequantize", subject, side, bytes: 2 ** 18 }, later);
      results.add({ task: "product", subject, side, bytes: 2 ** 28, weights }, later);
    }
  }
  for (const bytes of [2 ** 14, 2 ** 18, 2 ** 30]) {
    results.add({ task: "scaling by size", subject: "Q4_K", side: "native", bytes }, timing);
    results.add({ task: "limit", subject: "Q4_K", side: "store", bytes }, timing);
  }
  const folder = temporaryFolder();
  writeCharts(results, false, folder);
  const names = ["dequantize-256KiB.svg", "products-256MiB.svg", "scaling-by-size.svg"];
  assert.deepEqual(readdirSync(folder), names);
  const [dequantized, products, scaling] = names.map((name) => readFileSync(join(folder, name), "utf8"));
  const count = (svg: string, mark: string) => svg.split(`<${mark} `).length - 1;
  // The ground, a key for each side, and a limit for each type.
  assert.equal(count(dequantized!, "rect"), 1 + 3 + 3 * WEIGHT_TYPES.length);
  assert.equal(count(products!, "rect"), 1 + 2 + 2 * WEIGHT_TYPES.length);
  assert.deepEqual([count(scaling!, "polyline"), count(scaling!, "circle")], [2, 6]);
  for (const svg of [dequantized, products, scaling]) assert.doesNotMatch(svg!, /NaN|undefined|Infinity/);
});
