/** Run by itself, with an addon whose runtime forbids external buffers: everything works, without sharing memory. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { allocate, dequantize, dequantizeSync, openSync, parse, trim } from "gguf-native";
import * as reference from "gguf-native/reference";
import { randomBlocks } from "./blocks";
import { firstDifference } from "./compare";
import { goldenPath, readGolden } from "./golden";
import { Random } from "./random";

const ELEMENTS = 1 << 23; // large enough for huge pages
const { blocks } = readGolden().find(({ name }) => name === "Q4_0.gaussian")!;
const expected = reference.dequantizeSync("Q4_0", blocks);

function checkViews(file: ReturnType<typeof openSync>): void {
  const tensor = file.tensor("Q4_0.gaussian");
  const views = [tensor.bytes(), tensor.bytes()] as const;
  views[0].fill(0);
  assert.deepEqual(Buffer.from(views[1]), Buffer.from(blocks));
  assert.notEqual(views[0].buffer, views[1].buffer);
  assert.equal(views[1].buffer.byteLength, blocks.length, "a buffer of its own");
  assert.deepEqual(tensor.dequantizeSync(), expected);
  file.close();
  assert.deepEqual(Buffer.from(views[1]), Buffer.from(blocks), "a copy outlives the file");
}

async function checkLargeResults(): Promise<void> {
  const many = randomBlocks("Q4_0", ELEMENTS / 32, new Random(1));
  const numbers = reference.dequantizeSync("Q4_0", many);
  for (let i = 0; i < 3; i++) {
    assert.equal(firstDifference(dequantizeSync("Q4_0", many), numbers), -1);
    assert.equal(firstDifference(await dequantize("Q4_0", many), numbers), -1);
  }
  const out = allocate(ELEMENTS);
  assert.equal(await dequantize("Q4_0", many, { out }), out);
  assert.equal(firstDifference(out, numbers), -1);
  trim();
}

for (const access of ["mmap", "read"] as const) checkViews(openSync(goldenPath, { access }));
const file = parse(readFileSync(goldenPath));
assert.deepEqual(file.tensor("Q4_0.gaussian").dequantizeSync(), expected);
file.close();
checkLargeResults().then(() => console.log("all copies"));
