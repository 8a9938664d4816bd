/**
 * Arrays of callers whose lengths and methods are not what they seem: everywhere only their memory counts. And what the
 * addon and `gguf-native/wasm` must say alike of the rest that callers bring.
 */
import assert from "node:assert/strict";
import { buffer } from "node:stream/consumers";
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
function lying(Given: object): new (buffer: ArrayBuffer, byteOffset: number, length: number) => Hidden {
  const Base = Given as new (...args: unknown[]) => Hidden;
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
      return new Base(0) as never;
    }
    override slice(): never {
      return new Base(0) as never;
    }
    override set(): void {}
  }
  return Lying;
}

type Hidden = Uint8Array;

/** The same numbers, not at the start of their buffer, in an array that says otherwise. */
function hide<A extends ArrayBufferView>(array: A): A {
  const { length, BYTES_PER_ELEMENT } = array as unknown as Uint8Array;
  const buffer = new ArrayBuffer((length + 4) * BYTES_PER_ELEMENT);
  const Class = array.constructor as typeof Uint8Array;
  new Class(buffer, 4 * BYTES_PER_ELEMENT, length).set(array as unknown as Uint8Array);
  return new (lying(Class))(buffer, 4 * BYTES_PER_ELEMENT, length) as unknown as A;
}

/** What is in an array, whatever it says. */
function contentOf(array: ArrayBufferView): number[] {
  const prototype = Object.getPrototypeOf(Uint8Array.prototype) as object;
  const values = Object.getOwnPropertyDescriptor(prototype, "values")?.value as (this: unknown) => Iterable<number>;
  return [...values.call(array)];
}

const numbers = Float32Array.from({ length: 64 }, (_, i) => Math.sin(i));
const blocks = randomBlocks("Q8_0", 4, new Random(1));

const whole = contentOf(reference.dequantizeSync("Q8_0", blocks));
const products = contentOf(reference.matmulSync("Q8_0", blocks, 64, numbers));

/** Each fills an array that hides its memory, and returns it. */
async function expectFilled(fills: readonly [fill: (out: Float32Array) => unknown, expected: number[]][]) {
  for (const [fill, expected] of fills) {
    const out = hide(new Float32Array(expected.length));
    assert.equal(await fill(out), out);
    assert.deepEqual(contentOf(out), expected);
  }
}

type Free = Pick<typeof reference, "quantizeSync" | "dequantizeSync" | "matmulSync">;
type FreeAsync = Pick<typeof addon, "dequantize" | "matmul">;

const checkFreeAsync = ({ dequantize, matmul }: FreeAsync): Promise<void> =>
  expectFilled([
    [(out) => dequantize("Q8_0", hide(blocks), { out }), whole],
    [(out) => matmul("Q8_0", hide(blocks), 64, hide(numbers), { out }), products],
  ]);

async function checkFree({ quantizeSync, dequantizeSync, matmulSync }: Free): Promise<void> {
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
    await expectFilled([[(out) => dequantizeSync(type, hide(bytes), { out }), expected]]);
    assert.deepEqual(contentOf(dequantizeSync(type, hide(bytes), { start: 32 })), expected.slice(32), type);
  }
  await expectFilled([[(out) => matmulSync("Q8_0", hide(blocks), 64, hide(numbers), { out }), products]]);
  // One that says the right length and has another.
  const short = Object.defineProperty(new Float32Array(1), "length", { value: 2 });
  const wrong = { code: "ERR_GGUF_RANGE" };
  assert.throws(() => matmulSync("Q8_0", blocks, 64, numbers, { out: short }), wrong);
  assert.throws(() => dequantizeSync("F32", new Uint8Array(8), { out: short }), wrong);
  assert.throws(() => quantizeSync("Q8_0", Object.defineProperty(new Float32Array(1), "length", { value: 32 })), wrong);
}

type Open = Pick<typeof Wasm, "parse">;

const tensorFile = writeGguf({ tensors: [{ name: "a", type: 8, shape: [64, 2], bytes: blocks }] });

async function checkTensors({ parse }: Open): Promise<void> {
  const tensor = parse(hide(tensorFile)).tensors.get("a")!;
  assert.deepEqual(contentOf(tensor.bytes()), contentOf(blocks));
  await expectFilled([
    [(out) => tensor.dequantizeSync({ out }), whole],
    [(out) => tensor.dequantize({ out }), whole],
    [(out) => tensor.rowsSync([0, 1], { out }), whole],
    [(out) => tensor.rows([0, 1], { out }), whole],
    [(out) => tensor.rowsSync(hide(Uint8Array.of(0, 1)), { out }), whole],
    [(out) => tensor.matmulSync(hide(numbers), { out }), products],
    [(out) => tensor.matmul(hide(numbers), { out }), products],
  ]);
}

/** A copy in memory that can be taken away and shortened. */
function movable<A extends Uint8Array | Float32Array>(array: A): A {
  const Buffer = ArrayBuffer as unknown as new (length: number, options: object) => ArrayBuffer;
  const { byteLength: maxByteLength, length } = array;
  const Class = array.constructor as new (buffer: ArrayBuffer, byteOffset: number, length: number) => A;
  const copy = new Class(new Buffer(maxByteLength, { maxByteLength }), 0, length);
  copy.set(array);
  return copy;
}

const takes: Record<string, (buffer: ArrayBuffer) => unknown> = {
  detached: (buffer) => structuredClone(buffer, { transfer: [buffer] }),
  shortened: (buffer) => (buffer as ArrayBuffer & { resize(length: number): void }).resize(4),
};

/** Functions by their names, with and without `Sync`. */
type Named = Record<string, (...args: unknown[]) => unknown>;
type Taken = Record<"blocks" | "x" | "file", Uint8Array | Float32Array>;

/** Functions that take arrays and options: which of both, and how they are called. */
interface Taker {
  names: string[];
  arrays: (keyof Taken)[];
  options(): Record<string, unknown>;
  call(run: Named, name: string, arrays: Taken, options: object): unknown;
}

const later = { signal: undefined, onProgress: undefined, threads: undefined };
const ofProducts = () => ({ activations: undefined, out: movable(new Float32Array(2)), ...later });

const freeTakers: Taker[] = [
  {
    names: ["dequantizeSync", "dequantize"],
    arrays: ["blocks"],
    options: () => ({ dtype: undefined, start: 0, end: 128, out: movable(new Float32Array(128)), ...later }),
    call: (run, name, { blocks }, options) => run[name]!("Q8_0", blocks, options),
  },
  {
    names: ["matmulSync", "matmul"],
    arrays: ["blocks", "x"],
    options: ofProducts,
    call: (run, name, { blocks, x }, options) => run[name]!("Q8_0", blocks, 64, x, options),
  },
  {
    names: ["quantizeSync", "quantize"],
    arrays: ["x"],
    options: () => ({
      ...{ columns: 64, importance: movable(numbers.map(Math.abs)), search: undefined, ...later },
      out: movable(new Uint8Array(68)),
    }),
    call: (run, name, { x }, options) => run[name]!("Q8_0", x, options),
  },
];

const tensorTakers: Taker[] = [
  { ...freeTakers[0]!, arrays: ["file"], call: (run, name, _, options) => run[name]!(options) },
  {
    names: ["rowsSync", "rows"],
    arrays: ["file"],
    options: () => ({ dtype: undefined, out: movable(new Float32Array(128)), ...later }),
    call: (run, name, _, options) => run[name]!([0, 1], options),
  },
  {
    names: ["matmulSync", "matmul"],
    arrays: ["file", "x"],
    options: () => ({ columns: 64, start: 0, end: 2, ...ofProducts() }),
    call: (run, name, { x }, options) => run[name]!(x, options),
  },
  {
    names: ["statsSync", "stats"],
    arrays: ["file"],
    options: () => ({ start: 0, end: 128, bins: undefined, range: undefined, ...later }),
    call: (run, name, _, options) => run[name]!(options),
  },
  {
    names: ["compare"],
    arrays: ["file"],
    options: () => later,
    call: (run, name, _, options) => run[name]!(run, options),
  },
];

/** Each array is taken away in the getter of each option in turn: it is the same error everywhere. */
async function checkTaken(takers: readonly Taker[], find: (arrays: Taken) => Named, known = (_: string) => true) {
  for (const { names, arrays, options, call } of takers) {
    const optionNames = Object.keys(options()).filter(known);
    const outputs = optionNames.filter((name) => ArrayBuffer.isView(options()[name]));
    for (const name of names) {
      for (const [how, take] of Object.entries(takes)) {
        for (const taken of [...arrays, ...outputs]) {
          for (const option of optionNames) {
            if (name === "dequantizeSync" && option in later) continue; // which has no such options
            const all = {
              blocks: movable(blocks),
              x: movable(numbers),
              file: movable(new Uint8Array(tensorFile)),
            };
            const run = find(all);
            if (run[name] === undefined) continue;
            const given = Object.fromEntries(optionNames.map((name) => [name, options()[name]]));
            const { buffer } = { ...all, ...given }[taken] as Uint8Array;
            const value = given[option];
            Object.defineProperty(given, option, {
              enumerable: true,
              get() {
                take(buffer as ArrayBuffer);
                return value;
              },
            });
            const found = (await said(() => call(run, name, all, given))) as { name?: string; code?: string };
            const code = taken === "file" ? "ERR_GGUF_CLOSED" : "ERR_GGUF_RANGE";
            const where = `${name}: ${taken} ${how} by options.${option}`;
            assert.deepEqual([found.name, found.code], ["GgufError", code], `${where}: ${JSON.stringify(found)}`);
          }
        }
      }
    }
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
  for (const rows of [5n, 2n ** 53n + 2n]) {
    const file = parse(header([{ name: "a", type: F32, shape: [0n, rows], offset: 0n }]), { partial: true });
    const tensor = file.tensors.get("a")!;
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

/** As named functions: those of a module, or methods of a tensor. */
const named = (functions: object): Named => functions as Named;

/** Those of a module, and of a tensor in memory that it parsed. */
async function checkAllTaken(api: Open): Promise<void> {
  await checkTaken(freeTakers, () => named(api));
  await checkTaken(tensorTakers, ({ file }) => named(api.parse(file as Uint8Array).tensors.get("a")!));
}

test("arrays that getters of options take away: the reference", () =>
  checkTaken(freeTakers.slice(0, 2), () => named(reference)));

test("arrays that getters of options take away: the reference's quantizeSync", () =>
  checkTaken(
    freeTakers.slice(2),
    () => named(reference),
    (option) => option === "out",
  ));

test("arrays that getters of options take away: the addon", () => checkAllTaken(addon));

test("arrays that getters of options take away: gguf-native/wasm", needsModule, async () =>
  checkAllTaken(await import("gguf-native/wasm")),
);

test("only the memory of arrays counts for what is written", async () => {
  const f32 = numbers.slice(0, 32);
  const q8 = reference.quantizeSync("Q8_0", f32);
  const bits = reference.quantizeSync("F16", f32);
  const integers = Int32Array.from([1, -2, 3]);
  const names = [Uint8Array.of(0xff, 0x61), Uint8Array.of(0x62)];
  const bigs = BigInt64Array.of(-5n, 2n ** 40n);
  const write = (give: <A extends ArrayBufferView>(array: A) => A): Promise<Buffer> => {
    const halves = new Uint16Array(bits.buffer, bits.byteOffset, 32);
    const written = new addon.GgufWriter()
      .set("a.integers", give(integers))
      .set("a.bigs", give(bigs))
      .set("a.bytes", give(names[0] as Uint8Array), "string")
      .set("a.names", names.map(give), "string[]")
      .set("a.nested", [give(integers), give(integers)])
      .addTensor("bytes", "Q8_0", [32], give(q8))
      .addTensor("numbers", "Q8_0", [32], give(f32))
      .addTensor("same", "F32", [32], give(f32))
      .addTensor("halves", "F16", [32], give(halves))
      .addTensor("called", "F16", [32], () => give(halves))
      .addTensor("pieces", "Q8_0", [64], [give(q8), give(f32)])
      .addTensor("iterated", "Q8_0", [64], () => new Set([give(q8), give(f32)]));
    return buffer(written.chunks());
  };
  const [expected, found] = await Promise.all([write((array) => array), write(hide)]);
  assert.ok(found.equals(expected));
  const { metadata } = addon.parse(found);
  assert.deepEqual(metadata.get("a.integers"), integers);
  assert.deepEqual(metadata.get("a.nested"), [integers, integers]);
});

test("only the memory of arrays counts for remote tensors, and for what a caller's fetch gives", async () => {
  const serve = async (_: unknown, init?: RequestInit): Promise<Response> => {
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(new Headers(init?.headers).get("range") as string)!;
    const part = tensorFile.subarray(Number(first), Number(last) + 1);
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(hide(new Uint8Array(part)));
        controller.close();
      },
    });
    const range = `bytes ${first}-${Number(first) + part.length - 1}/${tensorFile.length}`;
    return new Response(body, { status: 206, headers: { "content-range": range } });
  };
  const tensor = (await addon.openRemote("http://localhost/a.gguf", { fetch: serve })).tensor("a");
  await expectFilled([
    [(out) => tensor.dequantize({ out }), whole],
    [(out) => tensor.rows(hide(Int32Array.of(0, 1)), { out }), whole],
    [(out) => tensor.matmul(hide(numbers), { out }), products],
  ]);
});

test("only the memory of arrays counts for the reference", () => checkFree(reference));

test("only the memory of arrays counts for the addon", async () => {
  await checkFree(addon);
  await checkFreeAsync(addon);
  await checkTensors(addon);
});

describe("gguf-native/wasm", needsModule, () => {
  test("only the memory of arrays counts", async () => {
    const wasm = await import("gguf-native/wasm");
    await checkFree(wasm);
    await checkFreeAsync(wasm);
    await checkTensors(wasm);
  });

  test("says what the addon says of empty tensors, of Buffers and of offsets beyond 2^53", async () => {
    const wasm = await import("gguf-native/wasm");
    const expected = await answers(addon);
    assert.deepEqual(await answers(wasm), expected);
    assert.match(JSON.stringify(expected), /bytes 1152921504606847\d+[1-9]\d* to 1152921504606847/);
  });
});
