// Appended to the recipe: what it computed.
import assert from "node:assert/strict";

const expected = weight.matmulSync(x);
const actual = await y.data();
assert.deepEqual([actual.length, y.shape], [rows, [rows]]);
for (let r = 0; r < rows; r++) assert.ok(Math.abs(actual[r] - expected[r]) < 1e-5, `row ${r}`);
assert.deepEqual(await w.data(), weight.dequantizeSync());
console.log("checked");
