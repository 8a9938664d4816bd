// Appended to the recipe: what it computed.
import assert from "node:assert/strict";

const expected = weight.matmulSync(x);
assert.deepEqual(y.dims, [1, rows]);
for (let r = 0; r < rows; r++) assert.ok(Math.abs(y.data[r] - expected[r]) < 1e-5, `row ${r}`);
assert.deepEqual(Array.from(w.data), Array.from(weight.dequantizeSync()));
assert.equal(half.type, "float16");
assert.deepEqual(
  Buffer.from(half.data.buffer, half.data.byteOffset, half.data.byteLength),
  Buffer.from(weight.dequantizeSync({ dtype: "f16" }).buffer),
);
console.log("checked");
