/** Every format is in every place that CONTRIBUTING.md's recipe names, and says the same in each. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { ggmlTypes } from "gguf-native";
import { ALL_TYPES, readGolden, WITHOUT_GOLDEN } from "../support/golden";
import { projectRoot } from "../support/paths";

const text = (...path: string[]) => readFileSync(join(projectRoot, ...path), "utf8");
/** The files of a folder, one after the other. */
const allText = (...folder: string[]) =>
  readdirSync(join(projectRoot, ...folder))
    .map((name) => text(...folder, name))
    .join("\n");
/** What is under the heading `heading` of a page. */
const section = (page: string, heading: string) => page.split(/^## /m).find((part) => part.startsWith(heading))!;

/** The places, with what there has to be for a format: in the order of the recipe. */
const PLACES: Record<string, { text: string; entry: (name: string) => string }> = {
  "native/dequant/blocks.h": {
    text: text("native", "dequant", "blocks.h"),
    entry: (name) => `struct Block${name} `,
  },
  "native/dequant/formats.def": {
    text: text("native", "dequant", "formats.def"),
    entry: (name) => `(${name}, `,
  },
  "native/dequant/kernels": {
    // Those of numbers.h and of codebooks.h have one function for all; kernel_blocks.cc is for those without kernels.
    text: `${allText("native", "dequant", "kernels")}${text("native", "dequant", "kernel_blocks.cc")}`.replaceAll(
      /Floats16 sixteen\(|signs_of\(|rewrite\(/g,
      "dequantize(",
    ),
    entry: (name) => `dequantize(const Block${name}*`,
  },
  "src/base/types.ts, GgmlType": { text: text("src", "base", "types.ts"), entry: (name) => `| "${name}"` },
  "src/base/types.ts, ggmlTypes": {
    text: text("src", "base", "types.ts"),
    entry: (name) => `  ${name}: info(`,
  },
  "src/reference": { text: allText("src", "reference"), entry: (name) => `  ${name}` },
  "test/support/byte-order.ts": {
    text: text("test", "support", "byte-order.ts"),
    entry: (name) => `  ${name}: "`,
  },
  "docs/formats.md, Types": {
    text: section(text("docs", "formats.md"), "Types").replaceAll(/\W+/g, " "),
    entry: (name) => ` ${name} `,
  },
};

const listed = [...PLACES["native/dequant/formats.def"]!.text.matchAll(/^(?:FORMAT|REPACKED)\((\w+), (\d+), /gm)];
const names = [...new Set([...listed.map((match) => match[1]!), ...ALL_TYPES])];

describe("every format is in", () => {
  for (const [place, { text, entry }] of Object.entries(PLACES)) {
    test(place, () => {
      assert.deepEqual(
        names.filter((name) => !text.includes(entry(name))),
        [],
        `formats that are missing in ${place}`,
      );
    });
  }
  test("test/fixtures/golden.gguf, or WITHOUT_GOLDEN of test/support/golden.ts", () => {
    const withResult = new Set(readGolden().flatMap(({ type, hash }) => (hash ? [type] : [])));
    assert.deepEqual([...withResult, ...WITHOUT_GOLDEN].sort(), [...names].sort());
  });
});

test("the addon and TypeScript have the same table", () => {
  const { native } = require(join(projectRoot, "dist", "backend", "native.js")) as {
    native: { formats(): { name: string; id: number; blockSize: number; typeSize: number }[] };
  };
  const fromAddon = native.formats().map(({ name, id, blockSize, typeSize }) => [name, { id, blockSize, typeSize }]);
  assert.deepEqual(Object.fromEntries(fromAddon), { ...ggmlTypes });
  assert.deepEqual(
    listed.map((match) => [match[1], Number(match[2])]),
    Object.entries(ggmlTypes).map(([name, { id }]) => [name, id]),
    "in the same order",
  );
});
