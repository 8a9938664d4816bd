/** `gguf-native/reference` where no addon can be: bundled for browsers, and run in headless Chromium. */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { dequantizeSync, matmulSync } from "gguf-native";
import { gaussianBlocks } from "../support/blocks";
import { bundleForBrowser, chromium, runInChromium } from "../support/browser";
import { ALL_TYPES, readGolden } from "../support/golden";
import { Random } from "../support/random";
import type { PageCase, PageResult } from "../support/reference-page";

const COLUMNS = 512;
const random = new Random(77);

const base64 = ({ buffer, byteOffset, byteLength }: ArrayBufferView) =>
  Buffer.from(buffer, byteOffset, byteLength).toString("base64");

/** The blocks of the golden file, and some of the one type that it lacks. */
const inputs: { name: string; type: PageCase["type"]; blocks: Uint8Array }[] = [
  ...readGolden(),
  { name: "Q8_1", type: "Q8_1", blocks: gaussianBlocks("Q8_1", 2048 / 32, random) },
];

/** What the addon makes of the blocks. */
const cases = inputs.map(({ name, type, blocks }): PageCase => {
  const x = Float32Array.from({ length: 3 * COLUMNS }, () => random.gaussian());
  return {
    ...{ name, type, columns: COLUMNS, blocks: base64(blocks), x: base64(x) },
    numbers: {
      f32: base64(dequantizeSync(type, blocks)),
      f16: base64(dequantizeSync(type, blocks, { dtype: "f16" })),
      bf16: base64(dequantizeSync(type, blocks, { dtype: "bf16" })),
    },
    product: base64(matmulSync(type, blocks, COLUMNS, x)),
  };
});

/** The same results with one bit of each changed. */
function spoiled({ numbers, product, ...rest }: PageCase): PageCase {
  const change = (text: string) => {
    const bytes = Buffer.from(text, "base64");
    bytes[4]! ^= 1;
    return base64(bytes);
  };
  const { f32, f16, bf16 } = numbers;
  const changed = { f32: change(f32), f16: change(f16), bf16: change(bf16) };
  return { ...rest, name: "spoiled", numbers: changed, product: change(product) };
}

describe("the bundle for browsers", () => {
  const { metafile, outputFiles, warnings } = bundleForBrowser("reference-page");

  test("is made without warnings, of the package's own files", () => {
    assert.deepEqual(warnings, []);
    const foreign = Object.keys(metafile.inputs).filter((path) => !/^(dist|test\/support)\//.test(path));
    assert.deepEqual(foreign, []);
    const imports = Object.values(metafile.outputs).flatMap((output) => output.imports);
    assert.deepEqual(imports, []);
    assert.ok(!Object.keys(metafile.inputs).includes("dist/backend/native.js"));
  });

  const skip = chromium === undefined && "chromium is not installed (apt-get install chromium)";
  describe("in Chromium", { skip }, () => {
    let result: PageResult;
    before(async () => {
      const input = [...cases, spoiled(cases.find(({ name }) => name === "Q4_K.gaussian")!)];
      result = (await runInChromium(outputFiles[0]!.contents, input)) as PageResult;
    });

    test("there is nothing of Node", () => assert.deepEqual(result.globals, []));
    test("every type is there", () => {
      assert.deepEqual(result.types, ALL_TYPES);
      assert.deepEqual(new Set(cases.map(({ type }) => type)), new Set(ALL_TYPES));
    });
    for (const { name } of cases) {
      test(`${name}: numbers in every output type, and products, to the bit`, () => {
        assert.deepEqual(result.differences[name], { f32: -1, f16: -1, bf16: -1, product: -1 });
      });
    }
    test("a difference would be seen", () => {
      assert.deepEqual(result.differences.spoiled, { f32: 1, f16: 2, bf16: 2, product: 1 });
    });
    test("errors have their codes", () => {
      assert.deepEqual(result.error, {
        name: "GgufError",
        code: "ERR_GGUF_UNSUPPORTED_TYPE",
        message: "cannot dequantize the tensor type Q9_0; did you mean Q4_0?",
      });
    });
  });
});
