/** Random files: what was written is read back; broken files are refused, and nothing else happens. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { GgufError, type GgufFile, openSync, parse } from "gguf-native";
import * as reference from "gguf-native/reference";
import { decoded, ggufSpec, nameOfType } from "../support/arbitrary";
import { swapBlocks } from "../support/byte-order";
import { firstDifference } from "../support/compare";
import { type GgufSpec, writeGguf } from "../support/gguf-writer";
import { temporaryFolder } from "../support/paths";

const folder = temporaryFolder();
let files = 0;

function expectSpec(file: GgufFile, spec: GgufSpec): void {
  assert.equal(file.version, spec.version);
  assert.equal(file.byteOrder, spec.byteOrder);
  assert.equal(file.alignment, spec.alignment ?? 32);
  assert.deepStrictEqual(
    [...file.metadata].filter(([key]) => key !== "general.alignment"),
    spec.metadata!.map(([key, value]) => [key, decoded(value)]),
  );
  for (const [key, value] of spec.metadata!) {
    const { type } = value;
    const declared = type === "array" ? { type, elementType: value.elementType, length: value.value.length } : { type };
    assert.deepEqual(file.metadata.typeOf(key as string), declared);
  }
  JSON.stringify(file.metadata);
  assert.deepEqual(
    [...file.tensors.keys()],
    spec.tensors!.map(({ name }) => name),
  );
  for (const { name, type, shape, bytes } of spec.tensors!) {
    const tensor = file.tensor(name as string);
    const typeName = nameOfType(type);
    assert.deepEqual([tensor.type, tensor.shape, tensor.byteLength], [typeName, shape, bytes.length]);
    assert.deepEqual(Buffer.from(tensor.bytes()), Buffer.from(bytes));
    const blocks = spec.byteOrder === "big" ? swapBlocks(typeName, bytes) : bytes;
    const expected = reference.dequantizeSync(typeName, blocks);
    assert.equal(firstDifference(tensor.dequantizeSync(), expected), -1);
    const rowCount = shape.slice(1).reduce((product: number, dim) => product * Number(dim), 1);
    const rows = tensor.rowsSync(Array.from({ length: rowCount }, (_, i) => i));
    assert.equal(firstDifference(rows, expected), -1);
  }
}

test("what was written is read back", () => {
  fc.assert(
    fc.property(ggufSpec, (spec) => {
      const file = parse(writeGguf(spec as GgufSpec));
      expectSpec(file, spec as GgufSpec);
      file.close();
    }),
    { numRuns: 300 },
  );
});

test("what was written is read back from files, mapped or read", () => {
  fc.assert(
    fc.property(ggufSpec, fc.constantFrom("mmap" as const, "read" as const), (spec, access) => {
      // Another each time: Windows lets nobody write to a file that is still mapped.
      const path = join(folder, `${files++}.gguf`);
      writeFileSync(path, writeGguf(spec as GgufSpec));
      const file = openSync(path, { access });
      expectSpec(file, spec as GgufSpec);
      file.close();
    }),
    { numRuns: 100 },
  );
});

/** Looks at everything that a file says; only GgufErrors may come out. */
function readAll(bytes: Uint8Array, partial: boolean): void {
  const guarded = (run: () => void) => {
    try {
      run();
    } catch (error) {
      if (!(error instanceof GgufError)) throw error;
    }
  };
  guarded(() => {
    const file = parse(bytes, { partial });
    for (const key of file.metadata.keys()) guarded(() => file.metadata.get(key));
    guarded(() => JSON.stringify(file.metadata));
    for (const tensor of file.tensors.values()) {
      guarded(() => tensor.bytes());
      guarded(() => tensor.dequantizeSync());
      guarded(() => tensor.rowsSync([0]));
    }
    file.close();
  });
}

test("truncated and changed files do nothing worse than throw a GgufError", () => {
  const change = fc.record({ at: fc.nat(), byte: fc.integer({ min: 0, max: 255 }) });
  fc.assert(
    fc.property(
      ggufSpec,
      fc.array(change, { maxLength: 8 }),
      fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
      fc.boolean(),
      (spec, changes, cut, partial) => {
        const bytes = writeGguf(spec as GgufSpec);
        // Half of the changes hit the header, which is where they tell.
        changes.forEach(({ at, byte }, i) => {
          bytes[at % (i % 2 === 0 ? Math.min(bytes.length, 200) : bytes.length)] = byte;
        });
        readAll(cut === null ? bytes : bytes.subarray(0, Math.floor(bytes.length * cut)), partial);
      },
    ),
    { numRuns: 2000 },
  );
});
