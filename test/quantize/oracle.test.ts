/**
 * Every type that there is an encoder for, on hard numbers with and without importance: the bytes of libggml where that is
 * installed, and their hashes everywhere, on every instruction set.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { cpu, quantizeSync } from "gguf-native";
import { childProgram, lineOf } from "../support/child";
import { encodedTypes } from "../support/encoded-types";
import { assertSameBlocks, libggmlQuantizer } from "../support/libggml";
import { fixtures } from "../support/paths";
import { quantizeCases } from "../support/quantize-cases";

const types = encodedTypes();

describe("libggml makes the same blocks", () => {
  for (const { name, needsImportance } of types) {
    test(name, async (t) => {
      const libggml = await libggmlQuantizer();
      if (typeof libggml === "string") {
        t.skip(libggml);
        return;
      }
      for (const { name: of, numbers, columns, importance } of quantizeCases(name, needsImportance)) {
        const expected = libggml(name, numbers, columns, importance);
        const actual = quantizeSync(name, numbers, { columns, importance });
        assertSameBlocks(name, actual, expected, numbers, of);
      }
    });
  }
});

// Made by scripts/test/quantize-hashes.mjs from libggml.
const golden = JSON.parse(readFileSync(join(fixtures, "quantized-hashes.json"), "utf8")) as Record<string, string>;

describe("the blocks that libggml made", () => {
  for (const isa of cpu().available) {
    test(`${types.length} types on ${isa}`, async () => {
      const env = { ...process.env, GGUF_NATIVE_ISA: isa };
      const line = await lineOf([childProgram("quantize")], { env });
      const { isa: used, hashes } = JSON.parse(line) as { isa: string; hashes: Record<string, string> };
      assert.equal(used, isa);
      for (const { name } of types) {
        assert.equal(hashes[name], golden[name], name);
      }
    });
  }
});
