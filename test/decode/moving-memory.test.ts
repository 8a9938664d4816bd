/**
 * Memory that JavaScript takes away, moves or shrinks while it is in use: views of a file, outputs, memory that was
 * parsed. Work goes on in memory that cannot go away; what comes out is the right result, an empty array or an error.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import {
  type AsyncOptions,
  allocate,
  type DequantizeOptions,
  dequantize,
  type GgufTensor,
  openSync,
  parse,
} from "gguf-native";
import * as reference from "gguf-native/reference";
import { manyBlocks } from "../support/blocks";
import { firstDifference } from "../support/compare";
import { writeGguf } from "../support/gguf-writer";
import { isWasm } from "../support/needs-addon";
import { temporaryFolder } from "../support/paths";

type Transfer = (this: ArrayBuffer, length?: number) => ArrayBuffer;

/** `ArrayBuffer.prototype.transfer`, which Node 20 has only behind a flag, for contexts made after that is set. */
function findTransfer(): Transfer | undefined {
  setFlagsFromString("--harmony-rab-gsab-transfer");
  return runInNewContext("ArrayBuffer.prototype.transfer") as Transfer | undefined;
}
const transfer =
  (ArrayBuffer.prototype as { transfer?: Transfer }).transfer ??
  (Number(process.versions.node.split(".")[0]) < 22 ? findTransfer() : undefined);

/** Ways to take the memory of an ArrayBuffer away; what has it then, if anything has. */
const takes: Record<string, ((buffer: ArrayBuffer) => ArrayBuffer | undefined) | undefined> = {
  "structuredClone with transfer": (buffer) => structuredClone(buffer, { transfer: [buffer] }),
  "a MessageChannel": (buffer) => {
    const { port1, port2 } = new MessageChannel();
    port1.postMessage(buffer, [buffer]);
    port1.close();
    port2.close();
    return undefined;
  },
  "ArrayBuffer.prototype.transfer": transfer && ((buffer) => transfer.call(buffer)),
  "ArrayBuffer.prototype.transfer, larger": transfer && ((buffer) => transfer.call(buffer, buffer.byteLength + 99)),
  "ArrayBuffer.prototype.transfer, to nothing": transfer && ((buffer) => transfer.call(buffer, 0)),
};

const ELEMENTS = 2 ** 22;
const path = join(temporaryFolder(), "model.gguf");
let blocks: Uint8Array;
let content: Uint8Array;
let expected: Float32Array;

before(() => {
  blocks = manyBlocks("Q8_0", ELEMENTS / 32);
  expected = reference.dequantizeSync("Q8_0", blocks);
  content = writeGguf({
    tensors: [{ name: "t", type: 8, shape: [1024, ELEMENTS / 1024], bytes: blocks }],
  });
  writeFileSync(path, content);
});

/** Runs `take`; false where the runtime refuses, as newer ones do with memory that belongs to an addon. */
function taken(take: (buffer: ArrayBuffer) => ArrayBuffer | undefined, buffer: ArrayBuffer) {
  try {
    return { now: take(buffer) };
  } catch (error) {
    assert.ok(error instanceof TypeError || (error as Error).name === "DataCloneError", String(error));
    return undefined;
  }
}

/** The length of a result, or the code of an error. */
const outcomeOf = (running: Promise<ArrayLike<number>>): Promise<number | string> =>
  running.then(
    ({ length }) => length,
    ({ code }) => code,
  );

for (const [how, take] of Object.entries(takes)) {
  describe(`taken away by ${how}`, { skip: take === undefined && "this runtime does not have it" }, () => {
    if (take === undefined) return;

    test("a view of a mapped file, which is closed then", () => {
      const file = openSync(path);
      const view = file.tensor("t").bytes();
      const result = taken(take, view.buffer as ArrayBuffer);
      const begin = blocks.slice(0, 1000);
      file.close();
      const { now } = result ?? {};
      // Node 20 copies when it clones memory of an addon, and leaves the view to be emptied by close().
      assert.equal(view.length, 0);
      if (now !== undefined && now.byteLength > 0) {
        assert.deepEqual(new Uint8Array(now, 0, 1000), begin);
        new Uint8Array(now).fill(1);
      }
      globalThis.gc?.();
      if (now !== undefined && now.byteLength > 0) assert.equal(new Uint8Array(now)[ELEMENTS], 1);
    });

    const outputs: Record<string, () => Float32Array> = {
      "ordinary memory": () => new Float32Array(ELEMENTS),
      "a part of ordinary memory": () => new Float32Array(ELEMENTS + 8).subarray(4, ELEMENTS + 4),
      "memory of allocate()": () => allocate(ELEMENTS),
    };
    for (const [kind, make] of Object.entries(outputs)) {
      test(`an output during work: ${kind}`, async () => {
        using file = openSync(path);
        for (const run of [
          (options: DequantizeOptions & AsyncOptions) => file.tensor("t").dequantize(options),
          (options: DequantizeOptions & AsyncOptions) => dequantize("Q8_0", blocks, options),
        ]) {
          const out = make();
          const running = run({ out });
          const result = taken(take, out.buffer as ArrayBuffer);
          const outcome = await outcomeOf(running);
          if (out.length === ELEMENTS) {
            assert.equal(outcome, ELEMENTS);
            assert.equal(firstDifference(out, expected), -1);
          } else {
            assert.ok(outcome === 0 || outcome === "ERR_GGUF_RANGE", String(outcome));
          }
          new Uint8Array(result?.now ?? new ArrayBuffer(0)).fill(1);
        }
      });
    }

    test("memory that was parsed, before and during work", async () => {
      for (const during of [false, true]) {
        const bytes = content.slice();
        const tensor = parse(bytes).tensor("t");
        const running = during ? tensor.dequantize() : undefined;
        take(bytes.buffer);
        // WebAssembly does not copy memory before it works on it.
        if (running !== undefined && isWasm) await assert.rejects(running, { code: "ERR_GGUF_RANGE" });
        else if (running !== undefined) assert.equal(firstDifference(await running, expected), -1);
        assert.throws(() => tensor.dequantizeSync(), { code: "ERR_GGUF_CLOSED" });
        assert.throws(() => tensor.bytes(), { code: "ERR_GGUF_CLOSED" });
        await assert.rejects(tensor.rows([1]), { code: "ERR_GGUF_CLOSED" });
      }
    });
  });
}

describe("resizable memory", () => {
  const resizable = (n: number, most = n) =>
    new (ArrayBuffer as unknown as new (n: number, options: object) => ArrayBuffer & { resize(n: number): void })(n, {
      maxByteLength: most,
    });

  test("an output that shrinks and grows during work", async () => {
    using file = openSync(path);
    for (const sizes of [[0], [4096], [100, ELEMENTS * 4], [0, ELEMENTS * 8], [ELEMENTS * 4 - 1]]) {
      const buffer = resizable(ELEMENTS * 4, ELEMENTS * 8);
      for (const out of [new Float32Array(buffer), new Float32Array(buffer, 0, ELEMENTS)]) {
        buffer.resize(ELEMENTS * 4);
        const running = file.tensor("t").dequantize({ out });
        for (const size of sizes) buffer.resize(size);
        const outcome = await outcomeOf(running);
        if (outcome === ELEMENTS) assert.equal(firstDifference(out, expected), -1);
        else assert.ok(outcome === out.length || outcome === "ERR_GGUF_RANGE", `${outcome} after ${sizes}`);
      }
    }
  });

  test("memory that was parsed, and is shorter then", async () => {
    const buffer = resizable(content.length, content.length * 2);
    const bytes = new Uint8Array(buffer);
    bytes.set(content);
    const tensor: GgufTensor = parse(bytes).tensor("t");
    const running = tensor.dequantize();
    buffer.resize(2000);
    if (isWasm) await assert.rejects(running, { code: "ERR_GGUF_RANGE" });
    else assert.equal(firstDifference(await running, expected), -1);
    assert.throws(() => tensor.dequantizeSync(), { code: "ERR_GGUF_TRUNCATED" });
    assert.throws(() => tensor.bytes(), { code: "ERR_GGUF_TRUNCATED" });
    await assert.rejects(tensor.dequantize(), { code: "ERR_GGUF_TRUNCATED" });
    buffer.resize(content.length);
    bytes.set(content);
    assert.equal(firstDifference(tensor.dequantizeSync(), expected), -1);
  });

  test("a getter that shrinks the output between the checks and the work", () => {
    using file = openSync(path);
    const buffer = resizable(ELEMENTS * 4);
    const out = new Float32Array(buffer);
    const options = {
      out,
      get end() {
        buffer.resize(64);
        return undefined;
      },
    };
    assert.throws(() => file.tensor("t").dequantizeSync(options), { code: "ERR_GGUF_RANGE" });
  });
});
