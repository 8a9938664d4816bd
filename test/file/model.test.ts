/** What local and remote models have in common: one function reads both. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import {
  type GgufFile,
  type GgufModel,
  type GgufTensor,
  ggmlTypes,
  openRemote,
  openSync,
  parse,
  type RemoteGgufFile,
} from "gguf-native";
import { randomBlocks } from "../support/blocks";
import { writeGguf } from "../support/gguf-writer";
import { ALL_TYPES } from "../support/golden";
import { temporaryFolder } from "../support/paths";
import { Random } from "../support/random";
import { rangesOf, serve } from "../support/range-server";

const ROW = 512;
const ROWS = 40;
const random = new Random(7);

function content(byteOrder: "little" | "big"): Uint8Array {
  const tensors = ALL_TYPES.map((type) => {
    const { id, blockSize } = ggmlTypes[type];
    return {
      name: type,
      type: id,
      shape: [ROW, ROWS],
      bytes: randomBlocks(type, (ROW * ROWS) / blockSize, random),
    };
  });
  return writeGguf({ tensors, byteOrder });
}

/** Written against the union; the next against what both are. They compile, or the project does not. */
async function viaUnion(model: GgufFile | RemoteGgufFile, name: string) {
  const tensor = model.tensor(name);
  const halves: Uint16Array = await tensor.dequantize({ dtype: "f16" });
  const values: Float32Array = await tensor.dequantize({ start: ROW, end: 3 * ROW });
  const rows: Float32Array = await tensor.rows([5, 3, 3, 39]);
  const bytes: Uint8Array = await tensor.read({ start: ROW, end: 2 * ROW });
  return { halves, values, rows, bytes, all: await tensor.read() };
}
async function viaModel(model: GgufModel, name: string): ReturnType<typeof viaUnion> {
  const tensor = model.tensors.get(name)!;
  return {
    halves: await tensor.dequantize({ dtype: "f16" }),
    values: await tensor.dequantize({ start: ROW, end: 3 * ROW }),
    rows: await tensor.rows([5, 3, 3, 39]),
    bytes: await tensor.read({ start: ROW, end: 2 * ROW }),
    all: await tensor.read(),
  };
}

function expected(tensor: GgufTensor): Awaited<ReturnType<typeof viaUnion>> {
  const rowBytes = tensor.byteLength / ROWS;
  return {
    halves: tensor.dequantizeSync({ dtype: "f16" }),
    values: tensor.dequantizeSync({ start: ROW, end: 3 * ROW }),
    rows: tensor.rowsSync([5, 3, 3, 39]),
    bytes: tensor.bytes().slice(rowBytes, 2 * rowBytes),
    all: tensor.bytes().slice(),
  };
}

const bits = (array: ArrayBufferView): Buffer => Buffer.from(array.buffer, array.byteOffset, array.byteLength);

for (const byteOrder of ["little", "big"] as const) {
  describe(`one function reads models wherever they are (${byteOrder}-endian)`, async () => {
    const bytes = content(byteOrder);
    const local = parse(bytes);
    const path = join(temporaryFolder(), "model.gguf");
    writeFileSync(path, bytes);
    const models: Record<string, () => Promise<GgufFile | RemoteGgufFile> | GgufFile> = {
      mmap: () => openSync(path),
      read: () => openSync(path, { access: "read" }),
      parse: () => parse(bytes),
      remote: async () => openRemote((await serve(rangesOf(bytes))).url),
    };
    for (const [how, open] of Object.entries(models)) {
      test(how, async () => {
        using model = await open();
        for (const type of ALL_TYPES) {
          const want = expected(local.tensor(type));
          for (const run of [viaUnion, viaModel]) {
            const found = await run(model, type);
            for (const key of ["halves", "values", "rows", "bytes", "all"] as const) {
              assert.ok(bits(found[key]).equals(bits(want[key])), `${type} ${key}`);
            }
          }
        }
      });
    }
  });
}

describe("read", () => {
  const bytes = new Uint8Array(5_000_000).map((_, i) => i * 7);
  const file = writeGguf({ tensors: [{ name: "t", type: ggmlTypes.I8.id, shape: [bytes.length], bytes }] });
  const path = join(temporaryFolder(), "read.gguf");
  writeFileSync(path, file);

  for (const access of ["mmap", "read"] as const) {
    test(`gives a copy, and the event loop goes on (${access})`, async () => {
      const tensor = openSync(path, { access }).tensor("t");
      let turns = 0;
      const count = setInterval(() => turns++, 0);
      const found = await tensor.read();
      clearInterval(count);
      assert.ok(turns > 0);
      assert.ok(Buffer.from(found).equals(bytes));
      assert.equal(found.buffer.byteLength, bytes.length);
      found.fill(0);
      assert.ok(Buffer.from(tensor.bytes()).equals(bytes));
      assert.equal((await tensor.read({ start: 7, end: 7 })).length, 0);
      const shown = await tensor.read({ start: 1_048_575, end: 1_048_578 });
      assert.deepEqual(shown, bytes.slice(1_048_575, 1_048_578));
    });
  }
  test("errors", async () => {
    const model = openSync(path);
    const tensor = model.tensor("t");
    const rejects = (options: unknown, code: string) => assert.rejects(tensor.read(options as never), { code });
    await rejects(5, "ERR_INVALID_ARG_TYPE");
    await rejects({ start: "1" }, "ERR_INVALID_ARG_TYPE");
    await rejects({ signal: {} }, "ERR_INVALID_ARG_TYPE");
    await rejects({ start: 6_000_000 }, "ERR_GGUF_RANGE");
    await rejects({ start: 2, end: 1 }, "ERR_GGUF_RANGE");
    const reason = new Error("enough");
    await assert.rejects(tensor.read({ signal: AbortSignal.abort(reason) }), reason);
    const controller = new AbortController();
    const running = tensor.read({ signal: controller.signal });
    controller.abort(reason);
    await assert.rejects(running, reason);

    const unfinished = tensor.read();
    model.close();
    await assert.rejects(unfinished, { code: "ERR_GGUF_CLOSED", path });
    await assert.rejects(tensor.read(), { code: "ERR_GGUF_CLOSED", path });

    const cut = parse(file.subarray(0, file.length - 1000), { partial: true }).tensor("t");
    await assert.rejects(cut.read(), { code: "ERR_GGUF_TRUNCATED", message: /tensor 't': / });
    assert.equal((await cut.read({ end: 4_000_000 })).length, 4_000_000);
    const odd = writeGguf({ tensors: [{ name: "o", type: 4, shape: [32], bytes: new Uint8Array(32) }] });
    await assert.rejects(parse(odd).tensor("o").read(), { code: "ERR_GGUF_UNSUPPORTED_TYPE" });
    const blocks = writeGguf({
      tensors: [{ name: "b", type: ggmlTypes.Q8_0.id, shape: [64], bytes: new Uint8Array(68) }],
    });
    await assert.rejects(parse(blocks).tensor("b").read({ start: 1 }), { code: "ERR_GGUF_RANGE" });
  });
});
