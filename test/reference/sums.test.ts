/** docs/sums.md: its table of levels and scales has every type, as the reference decodes it. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type GgmlType, ggmlTypes } from "gguf-native";
import { codeDecoders } from "#dist/reference/decoders";
import { projectRoot } from "../support/paths";

test("docs/sums.md names the run of every type, and whether it has an m", () => {
  const page = readFileSync(join(projectRoot, "docs", "sums.md"), "utf8");
  const rows = page.matchAll(/^\| ([A-Z][\w, ]*) \| (16|32) \|.*\|([^|]*)\|$/gm);
  const named = Array.from(rows, ([, types, run, m]) =>
    (types as string).split(", ").map((type) => [type, Number(run), m?.trim() !== ""] as const),
  ).flat();
  const expected = (Object.keys(ggmlTypes) as GgmlType[]).flatMap((type) => {
    const decoder = codeDecoders[type];
    return decoder === undefined ? [] : [[type, decoder.run, decoder.affine ?? false] as const];
  });
  assert.deepEqual(named.sort(), expected.sort());
});
