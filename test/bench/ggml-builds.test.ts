/** Which of ggml's builds the benchmarks compare with. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isWithin } from "../support/ggml-builds";

test("a build of ggml uses no more than the instruction set in use", () => {
  const builds = ["x64", "sse42", "haswell", "alderlake", "skylakex", "zen4", "sapphirerapids"];
  const within = (isa: string) => builds.filter((name) => isWithin(isa, `libggml-cpu-${name}.so`));
  assert.deepEqual(within("scalar"), builds.slice(0, 1));
  assert.deepEqual(within("avx2"), builds.slice(0, 3));
  assert.deepEqual(within("avx2_vnni"), builds.slice(0, 4));
  assert.deepEqual(within("avx512"), builds.slice(0, 6));
  assert.deepEqual(within("avx512_amx"), builds);
});

test("builds that are not known are for this machine", () => {
  assert.ok(isWithin("scalar", "libggml-cpu.so"));
  assert.ok(isWithin("neon", "libggml-cpu-armv8.2_1.so"));
});
