/** The kernels compiled for WebAssembly: the same bits as the addon's. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type DType, dequantizeSync, type GgmlType, ggmlTypes, matmulSync } from "gguf-native";
import { gaussianBlocks } from "./support/blocks";
import { ALL_TYPES, readGolden } from "./support/golden";
import { projectRoot } from "./support/paths";
import { Random } from "./support/random";

const file = join(projectRoot, "dist", "wasm", "kernels.wasm");
const skip = !existsSync(file) && "dist/wasm/kernels.wasm is not there: npm run build:wasm makes it";

/** What is used of the global object, whose types come with those of browsers. */
const { WebAssembly } = globalThis as unknown as {
  WebAssembly: {
    Module: { new (bytes: Uint8Array): object; imports(module: object): unknown[] };
    Instance: new (module: object) => { exports: unknown };
  };
};

interface Exports {
  memory: { buffer: ArrayBuffer };
  __wasm_call_ctors(): void;
  allocate(byteLength: number): number;
  free(at: number): void;
  dequantize(type: number, out: number, big: number, blocks: number, count: number, numbers: number): number;
  multiply(
    ...args: [
      ...[type: number, big: number, rows: number, rowCount: number, columns: number],
      ...[x: number, n: number, y: number, stride: number],
    ]
  ): number;
}

describe("the WebAssembly module", { skip }, () => {
  const module = skip ? undefined : new WebAssembly.Module(readFileSync(file));
  const wasm = module && (new WebAssembly.Instance(module).exports as Exports);
  wasm?.__wasm_call_ctors();

  /** Copies bytes to the module's memory. */
  function put(bytes: Uint8Array): number {
    const at = wasm!.allocate(bytes.length);
    assert.notEqual(at, 0);
    new Uint8Array(wasm!.memory.buffer, at, bytes.length).set(bytes);
    return at;
  }

  /** Takes them from there again. */
  function take(at: number, byteLength: number): Uint8Array {
    const bytes = new Uint8Array(wasm!.memory.buffer, at, byteLength).slice();
    wasm!.free(at);
    return bytes;
  }

  const DTYPES: readonly DType[] = ["f32", "f16", "bf16"];

  function dequantize(type: GgmlType, blocks: Uint8Array, dtype: DType): Uint8Array {
    const { id, blockSize, typeSize } = ggmlTypes[type];
    const count = blocks.length / typeSize;
    const from = put(blocks);
    const byteLength = count * blockSize * (dtype === "f32" ? 4 : 2);
    const to = wasm!.allocate(byteLength);
    assert.ok(wasm!.dequantize(id, DTYPES.indexOf(dtype), 0, from, count, to));
    wasm!.free(from);
    return take(to, byteLength);
  }

  const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
    new Uint8Array(buffer, byteOffset, byteLength);

  /** The bits are the same, where numbers are NaN the payload aside. */
  function assertSame(actual: Uint8Array, expected: Float32Array | Uint16Array): void {
    if (Buffer.compare(actual, bytesOf(expected)) === 0) return;
    assert.ok(expected instanceof Float32Array, "the bits differ");
    const numbers = new Float32Array(actual.buffer, actual.byteOffset, expected.length);
    for (const [i, value] of expected.entries()) assert.ok(Object.is(numbers[i], value), `number ${i}`);
  }

  test("imports nothing", () => assert.deepEqual(WebAssembly.Module.imports(module!), []));

  for (const { name, type, blocks, expected } of skip ? [] : readGolden()) {
    test(`${name}: ggml's numbers`, () => {
      if (expected) assertSame(dequantize(type, blocks, "f32"), expected);
    });
  }

  for (const type of ALL_TYPES) {
    const { id, blockSize, typeSize } = ggmlTypes[type];
    test(`${type}: the addon's numbers and products`, () => {
      const random = new Random(id);
      // Part of a group at the end, too.
      const count = 3 * Math.ceil(512 / blockSize) + 1;
      const blocks = gaussianBlocks(type, count, random);
      for (const dtype of DTYPES) {
        assertSame(dequantize(type, blocks, dtype), dequantizeSync(type, blocks, { dtype }) as Float32Array);
      }
      const columns = blockSize * (count - 1);
      for (const n of [1, 3]) {
        const x = Float32Array.from({ length: n * columns }, () => random.gaussian());
        const rows = put(blocks.subarray(0, typeSize * (count - 1)));
        const vectors = put(bytesOf(x));
        const y = wasm!.allocate(4 * n);
        assert.ok(wasm!.multiply(id, 0, rows, 1, columns, vectors, n, y, 1));
        for (const at of [rows, vectors]) wasm!.free(at);
        const expected = matmulSync(type, blocks.subarray(0, typeSize * (count - 1)), columns, x);
        assertSame(take(y, 4 * n), expected);
      }
    });
  }

  test("knows no other formats, and has no memory for 4 GiB", () => {
    assert.equal(wasm!.dequantize(999, 0, 0, 0, 0, 0), 0);
    assert.equal(wasm!.multiply(999, 0, 0, 0, 0, 0, 0, 0, 0), 0);
    assert.equal(wasm!.allocate(2 ** 32 - 1), 0);
    assert.equal(wasm!.allocate(2 ** 32 - 65), 0);
  });
});
