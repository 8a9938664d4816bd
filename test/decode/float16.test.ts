/**
 * Float16Array as `out`. Runtimes that lack it get a stand-in: a class of that name with what is looked at, which is
 * no typed array, so that only code that knows about Float16Array accepts it.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type DequantizeOptions, dequantize, dequantizeSync, ggmlTypes, parse } from "gguf-native";
import * as reference from "gguf-native/reference";
import { gaussianBlocks } from "../support/blocks";
import { writeGguf } from "../support/gguf-writer";
import { Random } from "../support/random";

interface Halves {
  readonly buffer: ArrayBufferLike;
  readonly byteOffset: number;
  readonly length: number;
}
type HalvesConstructor = new (buffer: ArrayBufferLike, byteOffset: number, length: number) => Halves;

class StandIn implements Halves {
  constructor(
    readonly buffer: ArrayBufferLike,
    readonly byteOffset: number,
    readonly length: number,
  ) {}
}

const runtime = globalThis as { Float16Array?: HalvesConstructor };
const isReal = runtime.Float16Array !== undefined;
before(() => {
  runtime.Float16Array ??= StandIn;
});
after(() => {
  if (!isReal) delete runtime.Float16Array;
});

const ROW = 512;
const type = "Q4_K";
const blocks = gaussianBlocks(type, 8, new Random(16));
const whole = reference.dequantizeSync(type, blocks, { dtype: "f16" });
const bytes = writeGguf({
  tensors: [{ name: "t", type: ggmlTypes[type].id, shape: [ROW, 4], bytes: blocks }],
});
const tensor = parse(bytes).tensor("t");

type Options = DequantizeOptions<"f16">;
const ways: Record<string, (options: Options) => unknown> = {
  dequantizeSync: (options) => dequantizeSync(type, blocks, options),
  dequantize: (options) => dequantize(type, blocks, options),
  "reference.dequantizeSync": (options) => reference.dequantizeSync(type, blocks, options),
  "tensor.dequantizeSync": (options) => tensor.dequantizeSync(options),
  "tensor.dequantize": (options) => tensor.dequantize(options),
  "tensor.rowsSync": ({ dtype, out }) => tensor.rowsSync([0, 1, 2, 3], { dtype, out }),
  "tensor.rows": ({ dtype, out }) => tensor.rows([0, 1, 2, 3], { dtype, out }),
};
const halves = (buffer: ArrayBufferLike, byteOffset: number, length: number) =>
  new runtime.Float16Array!(buffer, byteOffset, length) as never;

describe(`Float16Array as out (${isReal ? "the runtime's" : "a stand-in: this runtime has none"})`, () => {
  for (const [name, run] of Object.entries(ways)) {
    test(`${name}: is filled with the bits and returned`, async () => {
      for (const memory of [new ArrayBuffer(5000), new SharedArrayBuffer(5000)]) {
        const out = halves(memory, 6, whole.length);
        assert.equal(await run({ dtype: "f16", out }), out);
        assert.deepEqual(new Uint16Array(memory, 6, whole.length), whole);
        assert.deepEqual([...new Uint8Array(memory, 0, 6)], [0, 0, 0, 0, 0, 0]);
      }
    });
    test(`${name}: must have the right length, and is for f16 only`, async () => {
      const attempt = async (options: object) => run(options);
      const short = halves(new ArrayBuffer(4096), 0, 2047);
      await assert.rejects(attempt({ dtype: "f16", out: short }), { code: "ERR_GGUF_RANGE" });
      for (const dtype of ["bf16", "f32", undefined]) {
        const out = halves(new ArrayBuffer(4096), 0, 2048);
        await assert.rejects(attempt({ dtype, out }), { name: "TypeError", code: "ERR_INVALID_ARG_TYPE" });
      }
    });
  }
  test("an empty one", () => {
    const out = halves(new ArrayBuffer(0), 0, 0);
    assert.equal(dequantizeSync(type, blocks, { dtype: "f16", end: 0, out }), out);
  });
  test("one that is detached", { skip: isReal ? false : "needs the real one" }, async () => {
    const memory = new ArrayBuffer(4096);
    const out = halves(memory, 0, 2048);
    structuredClone(memory, { transfer: [memory] });
    assert.throws(() => dequantizeSync(type, blocks, { dtype: "f16", out }), { code: "ERR_GGUF_RANGE" });
    assert.equal(dequantizeSync(type, blocks, { dtype: "f16", end: 0, out }), out);
  });
  test("values read as numbers", { skip: isReal ? false : "needs the real one" }, () => {
    const out = dequantizeSync(type, blocks, { dtype: "f16", out: halves(new ArrayBuffer(4096), 0, 2048) });
    const values = reference.dequantizeSync(type, blocks);
    values.forEach((value, i) => {
      assert.ok(Math.abs(out[i]! - value) <= Math.abs(value) * 2 ** -11 + 2 ** -25);
    });
  });
});

test("without it the error does not offer it", { skip: isReal ? "this runtime has it" : false }, () => {
  const own = runtime.Float16Array;
  delete runtime.Float16Array;
  try {
    const refused = (error: Error) => error.message.includes("Uint16Array") && !error.message.includes("Float16Array");
    assert.throws(() => dequantizeSync(type, blocks, { dtype: "f16", out: [] as never }), refused);
  } finally {
    if (own !== undefined) runtime.Float16Array = own;
  }
});
