/** What the benchmarks write and compare with; not how fast anything is. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { publish } from "../../bench/publish";
import { Results } from "../../bench/results";
import { WEIGHT_TYPES } from "../../bench/weights";
import { projectRoot, temporaryFolder } from "../support/paths";

test("a page of figures keeps what another run measured, and has each table once", () => {
  const folder = temporaryFolder();
  const { machine } = new Results();
  const write = (title: string, cell: string, note: string) => {
    const tables = [{ title, columns: ["", "native"], rows: [["Q4_K", cell]] }];
    return readFileSync(publish({ machine, date: "2026-01-31T00:00:00Z", tables }, note, folder), "utf8");
  };
  write("Products, GB/s", "1", "first");
  write("Statistics, GB/s", "2", "first");
  const page = write("Products, GB/s", "3", "second");
  assert.deepEqual(page.match(/^## .*$/gm), ["## Products, GB/s", "## Statistics, GB/s"]);
  assert.deepEqual(page.match(/^\| Q4_K \| \d \|$/gm), ["| Q4_K | 3 |", "| Q4_K | 2 |"]);
  assert.deepEqual(page.match(/^2026-01-31, .*$/gm), ["2026-01-31, second", "2026-01-31, first"]);
});

test("every type has a floor for each family of processors", () => {
  const path = join(projectRoot, "bench", "floors.json");
  const families = JSON.parse(readFileSync(path, "utf8")) as Record<string, Record<string, object>>;
  for (const [family, floors] of Object.entries(families)) {
    for (const type of WEIGHT_TYPES) {
      const its = { ...floors.default, ...floors[type] };
      for (const name of ["native-vs-ts", "products", "stats"])
        assert.ok(name in its, `${family}: ${type}, ${name}`);
    }
  }
});
