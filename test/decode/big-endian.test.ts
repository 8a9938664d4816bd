/** Big-endian files: the golden file and random blocks, with the bytes of every number reversed. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { dequantizeSync, type GgmlType, type GgufFile, ggmlTypes, openSync, parse } from "gguf-native";
import * as reference from "gguf-native/reference";
import { randomBlocks } from "../support/blocks";
import { isOnlyBytes, swapBlocks } from "../support/byte-order";
import { firstDifference } from "../support/compare";
import { writeGguf } from "../support/gguf-writer";
import { ALL_TYPES, readGolden } from "../support/golden";
import { temporaryFolder } from "../support/paths";
import { Random } from "../support/random";

interface Case {
  name: string;
  type: GgmlType;
  blocks: Uint8Array;
  expected: Float32Array;
}

const DTYPES = ["f32", "f16", "bf16"] as const;
const path = join(temporaryFolder(), "big.gguf");
const bytesOf = (values: Float32Array) => new Uint8Array(values.buffer, values.byteOffset, values.byteLength);

// Enough blocks that their bytes are swapped in more than one piece.
const random = new Random(99);
const randomCases = ALL_TYPES.map((type): Case => {
  const blocks = randomBlocks(type, Math.ceil(20_000 / ggmlTypes[type].typeSize) * 2, random);
  return { name: `${type}.many`, type, blocks, expected: reference.dequantizeSync(type, blocks) };
});
const goldenCases = readGolden().map((golden): Case => {
  return { ...golden, expected: reference.dequantizeSync(golden.type, golden.blocks) };
});
const cases = [...goldenCases, ...randomCases];

const image = writeGguf({
  byteOrder: "big",
  tensors: cases.map(({ name, type, blocks, expected }) => {
    const shape = [expected.length / 2, 2];
    return { name, type: ggmlTypes[type].id, shape, bytes: swapBlocks(type, blocks) };
  }),
});
writeFileSync(path, image);

const files: Record<string, () => GgufFile> = {
  mapped: () => openSync(path),
  read: () => openSync(path, { access: "read" }),
  "in memory": () => parse(image),
};

for (const [how, open] of Object.entries(files)) {
  describe(`big-endian, ${how}`, () => {
    const file = open();
    assert.equal(file.byteOrder, "big");
    assert.equal(file.tensors.size, cases.length);

    for (const { name, type, blocks, expected } of cases) {
      test(name, async () => {
        const tensor = file.tensor(name);
        assert.deepEqual(Buffer.from(tensor.bytes()), Buffer.from(swapBlocks(type, blocks)));
        for (const dtype of DTYPES) {
          const rounded = reference.dequantizeSync("F32", bytesOf(expected), { dtype });
          assert.equal(firstDifference(tensor.dequantizeSync({ dtype }), rounded, dtype), -1, dtype);
        }
        assert.equal(firstDifference(await tensor.dequantize(), expected), -1, "asynchronously");

        const { blockSize } = ggmlTypes[type];
        const part = tensor.dequantizeSync({ start: blockSize, end: expected.length - blockSize });
        assert.equal(firstDifference(part, expected.subarray(blockSize, expected.length - blockSize)), -1);

        const half = expected.length / 2;
        const rows = [tensor.rowsSync([1, 0]), await tensor.rows([1, 0])];
        for (const row of rows) {
          assert.equal(firstDifference(row.subarray(0, half), expected.subarray(half)), -1, "row 1");
          assert.equal(firstDifference(row.subarray(half), expected.subarray(0, half)), -1, "row 0");
        }
      });
    }
  });
}

test("swapping changes something wherever there are numbers", () => {
  for (const { type, blocks, expected } of randomCases) {
    const swapped = swapBlocks(type, blocks);
    assert.deepEqual(swapBlocks(type, swapped), blocks);
    if (isOnlyBytes(type)) assert.deepEqual(swapped, blocks);
    else assert.notEqual(firstDifference(dequantizeSync(type, swapped), expected), -1, type);
  }
});
