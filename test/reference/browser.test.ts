/** `gguf-native/reference` where no addon can be: bundled for browsers, and run in headless Chromium. */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { bundleForBrowser, noChromium, runInChromium } from "../support/browser";
import { ALL_TYPES } from "../support/golden";
import { factsOf, type PageResult } from "../support/reference-page";

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

  describe("in Chromium", { skip: noChromium }, () => {
    let result: PageResult;
    before(async () => {
      result = (await runInChromium(outputFiles[0]!.contents, [])) as PageResult;
    });

    test("there is nothing of Node", () => assert.deepEqual(result.globals, []));
    test("every type has the numbers and products that it has in Node, to the bit", () => {
      assert.deepEqual(result.facts, factsOf());
      assert.deepEqual(Object.keys(result.facts), ALL_TYPES);
      assert.equal(new Set(Object.values(result.facts).flat()).size, 4 * ALL_TYPES.length);
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
