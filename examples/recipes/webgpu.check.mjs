// Appended to the recipe: what is in the buffers.
import assert from "node:assert/strict";

const stored = weight.bytes();
assert.deepEqual(Buffer.from(await read(blocks)).subarray(0, stored.length), Buffer.from(stored));
const bits = weight.dequantizeSync({ dtype: "f16" });
assert.deepEqual(new Uint16Array(await read(halves)).subarray(0, bits.length), bits);
const expected = weight.matmulSync(x);
const actual = new Float32Array(await read(product));
for (let r = 0; r < rows; r++) assert.ok(Math.abs(actual[r] - expected[r]) < 1e-3, `row ${r}`);
console.log("checked");
process.exit(0); // Dawn keeps the process alive
