/** What lies between products: the bits of the reference on every instruction set and in WebAssembly, for any number of threads. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import type * as Network from "gguf-native/network";
import { resultOf } from "../support/child";
import { comparedIsas } from "../support/emulated";
import { compareWithReference } from "../support/network-cases";
import { projectRoot } from "../support/paths";
import { needsModule } from "../support/wasm";

const CASES = 6500;

describe("every function against the reference", () => {
  for (const isa of comparedIsas) {
    test(`on ${isa}`, async () => {
      const result = await resultOf<{ cases: number }>("network", [], { GGUF_NATIVE_ISA: isa });
      assert.deepEqual(result, { ...result, isa, failures: [] });
      assert.ok(result.cases > CASES, `${result.cases}`);
    });
  }
  test("in WebAssembly", needsModule, () => {
    const network: typeof Network = require(join(projectRoot, "dist", "wasm", "network.cjs"));
    const { cases, failures } = compareWithReference(network);
    assert.deepEqual(failures, []);
    assert.ok(cases > CASES, `${cases}`);
  });
});
