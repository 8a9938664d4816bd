/** Tiles by relaxed SIMD: the bits of all other instructions, and never in engines that compute them wrongly. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type GgmlType, ggmlTypes, matmulSync } from "gguf-native";
import { multiply } from "#dist/backend/wasm/kernels";
import { inModule, setModule } from "#dist/backend/wasm/module";
import { relaxedTiles, tilesAreRight } from "#dist/backend/wasm/relaxed";
import { gaussianBlocks, randomBlocks } from "../support/blocks";
import { ALL_TYPES } from "../support/golden";
import { projectRoot } from "../support/paths";
import { Random } from "../support/random";
import { compiledModule, needsModule } from "../support/wasm";

const read = () => readFileSync(join(projectRoot, "dist", "wasm", "relaxed.wasm"));
/** Node.js 20 has the instructions behind a flag, and its first compiler makes wrong code of them. */
const isNew = Number(process.versions.node.split(".")[0]) >= 22;
const hasTiles = () => inModule((instance) => instance.hasTiles, true);

function product(type: GgmlType, blocks: Uint8Array, columns: number, x: Float32Array): Float32Array {
  const { id, blockSize, typeSize } = ggmlTypes[type];
  const rows = ((blocks.length / typeSize) * blockSize) / columns;
  const y = new Float32Array((x.length / columns) * rows);
  multiply(id, blocks, false, columns, x, y, true);
  return y;
}

describe("tiles by relaxed SIMD", needsModule, () => {
  before(() => setModule(() => compiledModule!, relaxedTiles(read)));
  after(() => setModule(() => compiledModule!));

  test("are used in Node.js 22 and newer", () => assert.equal(hasTiles(), isNew));

  for (const type of ALL_TYPES) {
    test(`${type}: the addon's products`, () => {
      const { id, blockSize } = ggmlTypes[type];
      const random = new Random(id);
      const rows = 13;
      for (const blocksOfRow of [1, Math.ceil(192 / blockSize), Math.ceil(4352 / blockSize)]) {
        const columns = blocksOfRow * blockSize;
        for (const make of [gaussianBlocks, randomBlocks]) {
          const blocks = make(type, rows * blocksOfRow, random);
          for (const n of [3, 4, 9]) {
            const x = Float32Array.from({ length: n * columns }, () => random.gaussian());
            const expected = matmulSync(type, blocks, columns, x, { activations: "int8" });
            // As arrays: every NaN equals every other.
            const what = `${columns} columns, ${n} vectors`;
            assert.deepEqual([...product(type, blocks, columns, x)], [...expected], what);
          }
        }
      }
      assert.equal(hasTiles(), isNew);
    });
  }

  test("are not used once products differ", { skip: !isNew && "there are none" }, () => {
    const swapped = relaxedTiles(read);
    let found: boolean[] = [];
    setModule(
      () => compiledModule!,
      (instance) => {
        const right = swapped(instance);
        const last = instance.exports.__indirect_function_table.length - 1;
        instance.exports.use_tiles(last, last - 1);
        found = [right, tilesAreRight(instance)];
        return found[1]!;
      },
    );
    assert.equal(hasTiles(), false);
    assert.deepEqual(found, [true, false]);
    const blocks = gaussianBlocks("Q4_0", 64, new Random(1));
    const x = new Float32Array(4 * 256).fill(0.5);
    assert.deepEqual(
      product("Q4_0", blocks, 256, x),
      matmulSync("Q4_0", blocks, 256, x, { activations: "int8" }),
    );
  });

  test("are not used where the module is no module", () => {
    setModule(
      () => compiledModule!,
      relaxedTiles(() => new Uint8Array(8)),
    );
    assert.equal(hasTiles(), false);
  });
});
