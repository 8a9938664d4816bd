/** Real files, decoded as `@huggingface/gguf` decodes them. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { gguf } from "@huggingface/gguf";
import { type GgufValue, ggmlTypes, openSync } from "gguf-native";
import * as reference from "gguf-native/reference";
import { firstDifference } from "../support/compare";
import { needsShared, sharedPath, tinyLlama, vocabularies } from "../support/shared-data";

describe("metadata and tensors are what @huggingface/gguf finds", () => {
  for (const name of [...vocabularies, tinyLlama]) {
    test(name, needsShared(name), async () => {
      const file = openSync(sharedPath(name));
      const other = await gguf(sharedPath(name), { allowLocalFile: true, typedMetadata: true });
      const expected = Object.entries(other.metadata).filter(
        ([key]) => key !== "version" && key !== "tensor_count" && key !== "kv_count",
      );
      assert.deepEqual(
        [...file.metadata.keys()],
        expected.map(([key]) => key),
      );
      for (const [key, value] of expected) expectSame(file.metadata.get(key)!, value, key);
      assert.equal(file.version, other.metadata.version);
      assert.equal(BigInt(file.tensors.size), other.metadata.tensor_count);

      assert.deepEqual(
        [...file.tensors.keys()],
        other.tensorInfos.map(({ name }) => name),
      );
      for (const info of other.tensorInfos) {
        const tensor = file.tensor(info.name);
        assert.deepEqual(tensor.shape.map(BigInt), info.shape);
        assert.equal(ggmlTypes[tensor.type as reference.GgmlType].id, info.dtype);
        assert.equal(BigInt(tensor.offset), other.tensorDataOffset + info.offset);
      }
      file.close();
    });
  }
});

/** Its arrays are plain ones; its strings have no byte order mark at the start. */
function expectSame(actual: GgufValue, expected: unknown, where: string): void {
  if (Array.isArray(expected)) {
    const array = actual as ArrayLike<GgufValue>;
    assert.equal(array.length, expected.length, where);
    for (let i = 0; i < expected.length; i++) expectSame(array[i]!, expected[i], where);
    return;
  }
  if (typeof actual === "string" && actual.startsWith("\ufeff")) actual = actual.slice(1);
  // deepEqual for every one of a hundred thousand tokens would take long.
  if (!Object.is(actual, expected)) assert.fail(`${where}: ${String(actual)} is not ${String(expected)}`);
}

test("every tensor of a whole model is what the reference computes", needsShared(tinyLlama), () => {
  const file = openSync(sharedPath(tinyLlama));
  for (const tensor of file.tensors.values()) {
    const expected = reference.dequantizeSync(tensor.type as reference.GgmlType, tensor.bytes());
    assert.equal(firstDifference(tensor.dequantizeSync(), expected), -1, tensor.name);
  }
  file.close();
});
