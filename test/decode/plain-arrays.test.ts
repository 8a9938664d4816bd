/**
 * Arrays of callers whose lengths and methods are not what they seem: everywhere only their memory counts. And what the
 * addon and `gguf-native/wasm` must say alike of the rest that callers bring.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as addon from "gguf-native";
import * as reference from "gguf-native/reference";
import type * as Wasm from "gguf-native/wasm";
import { randomBlocks } from "../support/blocks";
import { ByteWriter } from "../support/byte-writer";
import { writeGguf, writeTensorInfo } from "../support/gguf-writer";
import { Random } from "../support/random";
import { needsModule } from "../support/wasm";

/** An array class whose instances say that they are empty, and hand out empty parts and other memory. */
function lying<T extends typeof Uint8Array | typeof Float32Array>(Class: T): T {
  const Base = Class as unknown as new (...args: unknown[]) => Uint8Array;
  class Lying extends Base {
    override get length(): number {
      return 0;
    }
    override get byteLength(): number {
      return 0;
    }
    override get byteOffset(): number {
      return 0;
    }
    override subarray(): never {
      return new Class(0) as never;
    }
    override slice(): never {
      return new Class(0) as never;
    }
    override set(): void {}
  }
  return Lying as unknown as T;
}

const LyingBytes = lying(Uint8Array);
const LyingFloats = lying(Float32Array);

/** The same numbers, not at the start of their buffer, in an array that says otherwise. */
function hide<A extends Uint8Array | Float32Array>(array: A): A {
  const { length, BYTES_PER_ELEMENT } = array;
  const buffer = new ArrayBuffer((length + 4) * BYTES_PER_ELEMENT);
  const Class = array instanceof Float32Array ? Float32Array : Uint8Array;
  new Class(buffer, 4 * BYTES_PER_ELEMENT, length).set(array);
  const Lying = array instanceof Float32Array ? LyingFloats : LyingBytes;
  return new Lying(buffer, 4 * BYTES_PER_ELEMENT, length) as A;
}

/** What is in an array, whatever it says. */
function contentOf(array: ArrayBufferView): number[] {
  const prototype = Object.getPrototypeOf(Uint8Array.prototype) as object;
  const values = Object.getOwnPropertyDescriptor(prototype, "values")?.value as (
    this: unknown,
  ) => Iterable<number>;
  return [...values.call(array)];
}

const numbers = Float32Array.from({ length: 64 }, (_, i) => Math.sin(i));
const blocks = randomBlocks("Q8_0", 4, new Random(1));

type Free = Pick<typeof reference, "quantizeSync" | "dequantizeSync" | "matmulSync">;

function checkFree({ quantizeSync, dequantizeSync, matmulSync }: Free): void {
  const out = hide(new Uint8Array(68));
  assert.equal(quantizeSync("Q8_0", hide(numbers), { out }), out);
  assert.deepEqual(contentOf(out), contentOf(reference.quantizeSync("Q8_0", numbers)));
  for (const type of ["F32", "F16", "BF16", "Q4_0"] as const) {
    const made = quantizeSync(type, hide(numbers));
    assert.deepEqual(contentOf(made), contentOf(reference.quantizeSync(type, numbers)), type);
  }
  for (const [type, bytes] of [
    ["Q8_0", blocks],
    ["F32", new Uint8Array(numbers.buffer)],
  ] as const) {
    const expected = contentOf(reference.dequantizeSync(type, bytes));
    const filled = hide(new Float32Array(expected.length));
    assert.equal(dequantizeSync(type, hide(bytes), { out: filled }), filled);
    assert.deepEqual(contentOf(filled), expected, type);
    assert.deepEqual(contentOf(dequantizeSync(type, hide(bytes), { start: 32 })), expected.slice(32), type);
  }
  const products = hide(new Float32Array(2));
  assert.equal(matmulSync("Q8_0", hide(blocks), 64, hide(numbers), { out: products }), products);
  assert.deepEqual(contentOf(products), contentOf(reference.matmulSync("Q8_0", blocks, 64, numbers)));
  // One that says the right length and has another.
  const short = Object.defineProperty(new Float32Array(1), "length", { value: 2 });
  const wrong = { code: "ERR_GGUF_RANGE" };
  assert.throws(() => matmulSync("Q8_0", blocks, 64, numbers, { out: short }), wrong);
  assert.throws(() => dequantizeSync("F32", new Uint8Array(8), { out: short }), wrong);
  assert.throws(
    () => quantizeSync("Q8_0", Object.defineProperty(new Float32Array(1), "length", { value: 32 })),
    wrong,
  );
}

type Open = Pick<typeof Wasm, "parse">;

async function checkTensors({ parse }: Open): Promise<void> {
  const file = writeGguf({ tensors: [{ name: "a", type: 8, shape: [64, 2], bytes: blocks }] });
  const expected = contentOf(reference.dequantizeSync("Q8_0", blocks));
  const tensor = parse(hide(file)).tensors.get("a")!;
  assert.deepEqual(contentOf(tensor.bytes()), contentOf(blocks));
  for (const fill of [
    (out: Float32Array) => tensor.dequantizeSync({ out }),
    (out: Float32Array) => tensor.dequantize({ out }),
    (out: Float32Array) => tensor.rowsSync([0, 1], { out }),
    (out: Float32Array) => tensor.rows([0, 1], { out }),
  ]) {
    const out = hide(new Float32Array(128));
    assert.equal(await fill(out), out);
    assert.deepEqual(contentOf(out), expected);
  }
  const products = contentOf(reference.matmulSync("Q8_0", blocks, 64, numbers));
  for (const fill of [
    (out: Float32Array) => tensor.matmulSync(hide(numbers), { out }),
    (out: Float32Array) => tensor.matmul(hide(numbers), { out }),
  ]) {
    const out = hide(new Float32Array(2));
    assert.equal(await fill(out), out);
    assert.deepEqual(contentOf(out), products);
  }
}

/** A header alone, with tensors where it says. */
function header(tensors: readonly { name: string; type: number; shape: bigint[]; offset: bigint }[]): Buffer {
  const writer = new ByteWriter();
  writer.bytes(Buffer.from("GGUF")).u32(3).count(tensors.length).count(0);
  for (const tensor of tensors) writeTensorInfo(writer, tensor, tensor.offset);
  return Buffer.from(writer.done());
}

const F32 = 0;
const I8 = 24;

/** What a call says: its result or its error. */
async function said(call: () => unknown): Promise<unknown> {
  try {
    const result = await call();
    return ArrayBuffer.isView(result) ? [result.constructor.name, contentOf(result)] : result;
  } catch (error) {
    const { name, code, message } = error as Error & { code?: string };
    return { name, code, message };
  }
}

/** What is asked of a file, in turn. */
async function answers({ parse }: Open): Promise<unknown[]> {
  const none = new Float32Array(0);
  const found: unknown[] = [];
  const ask = async (call: () => unknown): Promise<void> => void found.push(await said(call));

  // Not padded: empty tensors lie past the end.
  const empty = parse(header([{ name: "a", type: F32, shape: [0n, 5n], offset: 0n }]), { partial: true });
  const rows = parse(header([{ name: "a", type: F32, shape: [0n, 2n ** 53n + 2n], offset: 0n }]), {
    partial: true,
  });
  for (const tensor of [empty.tensors.get("a")!, rows.tensors.get("a")!]) {
    await ask(() => tensor.rowsSync([0, 1]));
    await ask(() => tensor.rows([0, 1]));
    await ask(() => tensor.matmulSync(none));
    await ask(() => tensor.matmul(none));
    await ask(() => tensor.bytes());
  }

  const whole = writeGguf({ tensors: [{ name: "a", type: F32, shape: [2], bytes: new Uint8Array(8) }] });
  await ask(() => parse(Buffer.from(whole)).tensors.get("a")!.bytes());

  const size = 2n ** 60n;
  const far = parse(
    header([
      { name: "a", type: I8, shape: [size], offset: 0n },
      { name: "b", type: I8, shape: [64n], offset: size },
    ]),
    { partial: true },
  );
  for (const tensor of far.tensors.values()) {
    await ask(() => tensor.bytes());
    await ask(() => tensor.dequantizeSync({ end: 7 }));
    await ask(() => tensor.dequantize({ end: 7 }));
    // Longer arrays than Node.js has are refused there before it is asked for their bytes.
    if (tensor.elementCount < 1000) await ask(() => tensor.rowsSync([0]));
    await ask(() => tensor.read({ end: 7 }));
    await ask(() => tensor.matmulSync(none));
  }
  return found;
}

test("only the memory of arrays counts for the reference", () => checkFree(reference));

test("only the memory of arrays counts for the addon", async () => {
  checkFree(addon);
  await checkTensors(addon);
});

describe("gguf-native/wasm", needsModule, () => {
  test("only the memory of arrays counts", async () => {
    const wasm = await import("gguf-native/wasm");
    checkFree(wasm);
    await checkTensors(wasm);
  });

  test("says what the addon says of empty tensors, of Buffers and of offsets beyond 2^53", async () => {
    const wasm = await import("gguf-native/wasm");
    const expected = await answers(addon);
    assert.deepEqual(await answers(wasm), expected);
    assert.match(JSON.stringify(expected), /bytes 1152921504606847\d+[1-9]\d* to 1152921504606847/);
  });
});
