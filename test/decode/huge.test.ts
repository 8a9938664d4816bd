/** Tensors of 2^38 elements, in a sparse file: the requested rows are read and nothing else. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type GgmlType, type GgufTensor, ggmlTypes, openSync, parse } from "gguf-native";
import * as reference from "gguf-native/reference";
import { randomBlocks } from "../support/blocks";
import { firstDifference } from "../support/compare";
import { writeGguf } from "../support/gguf-writer";
import { needsAddon } from "../support/needs-addon";
import { temporaryFolder } from "../support/paths";
import { Random } from "../support/random";
import { writeSparseGguf } from "../support/sparse-file";
import { tooLongCode } from "../support/too-long";

const ROW = 1024;
const ROWS = 2 ** 28;
const TYPES: readonly GgmlType[] = ["F32", "Q8_0", "Q6_K", "IQ2_XS"];
/** The rows that are not zero: the first, the last, those around element 2^31, and others. */
const FILLED = [0, 1, 2 ** 21 - 1, 2 ** 21, 2 ** 22 + 77, 2 ** 27 + 12345, ROWS - 2, ROWS - 1];

const rowBytes = (type: GgmlType) => (ROW / ggmlTypes[type].blockSize) * ggmlTypes[type].typeSize;
const random = new Random(38);
const contents = new Map(
  TYPES.map((type) => [
    type,
    new Map(FILLED.map((row) => [row, randomBlocks(type, ROW / ggmlTypes[type].blockSize, random)])),
  ]),
);
const path = join(temporaryFolder(), "huge.gguf");
const skip = writeSparseGguf(
  path,
  TYPES.map((type) => ({
    name: type,
    type: ggmlTypes[type].id,
    shape: [ROW, ROWS],
    byteLength: rowBytes(type) * ROWS,
    pieces: Array.from(contents.get(type)!, ([row, bytes]) => ({ at: row * rowBytes(type), bytes })),
  })),
);

/** The values of rows of `type`. */
function expected(type: GgmlType, rows: readonly number[]): Float32Array {
  const empty = new Uint8Array(rowBytes(type));
  const bytes = rows.map((row) => contents.get(type)!.get(row) ?? empty);
  return reference.dequantizeSync(type, Buffer.concat(bytes));
}

for (const access of ["mmap", "read"] as const) {
  describe(`a file of many terabytes, ${access}`, { skip }, () => {
    for (const type of TYPES) {
      const withTensor = async (run: (tensor: GgufTensor) => void | Promise<void>) => {
        using file = openSync(path, { access });
        await run(file.tensor(type));
      };
      test(`${type}: ranges`, () =>
        withTensor(async (tensor) => {
          assert.equal(tensor.elementCount, ROW * ROWS);
          assert.equal(tensor.byteLength, rowBytes(type) * ROWS);
          for (const row of [0, 2 ** 21 - 1, ROWS - 2]) {
            const range = { start: row * ROW, end: (row + 2) * ROW };
            const both = expected(type, [row, row + 1]);
            assert.equal(firstDifference(tensor.dequantizeSync(range), both), -1, `row ${row}`);
            assert.equal(firstDifference(await tensor.dequantize(range), both), -1, `row ${row}, async`);
          }
        }));
      test(`${type}: rows`, () =>
        withTensor(async (tensor) => {
          const rows = [...FILLED].reverse().concat(FILLED, 5, ROWS - 3);
          const all = expected(type, rows);
          assert.equal(firstDifference(tensor.rowsSync(rows), all), -1);
          assert.equal(firstDifference(await tensor.rows(rows), all), -1);
          assert.throws(() => tensor.rowsSync([ROWS]), { code: "ERR_GGUF_RANGE" });
        }));
      test(`${type}: the whole does not fit, and the error says what to do`, () =>
        withTensor(async (tensor) => {
          const refused = {
            name: "GgufError",
            code: tooLongCode(274_877_906_944),
            message: /tensor '\w+': .*274877906944 elements.* start and end/,
          };
          for (const dtype of ["f32", "f16", "bf16"] as const) {
            assert.throws(() => tensor.dequantizeSync({ dtype }), refused);
            await assert.rejects(tensor.dequantize({ dtype }), refused);
          }
        }));
    }
  });
}

const SOME = 512;
const embedding = "Q6_K";
const scattered = Array.from({ length: SOME }, (_, i) => i * 521_137);
/** Bytes of these rows. Memory and files come in pages, so somewhat more is touched. */
const needed = SOME * rowBytes(embedding);

describe(`${SOME} rows of ${ROWS}`, () => {
  /** A number of /proc/self/io: bytes that this process has read by system calls. */
  const bytesRead = () => Number(/^rchar: (\d+)/m.exec(readFileSync("/proc/self/io", "utf8"))![1]);
  const io = existsSync("/proc/self/io") ? skip : "no /proc/self/io";
  const maps = existsSync("/proc/self/smaps") ? skip : "no /proc/self/smaps";

  test("a file that is read: these rows are read and nothing else", { skip: io }, async () => {
    using file = openSync(path, { access: "read" });
    const tensor = file.tensor(embedding);
    for (const gather of [() => tensor.rowsSync(scattered), () => tensor.rows(scattered)]) {
      const before = bytesRead();
      await gather();
      const read = bytesRead() - before;
      assert.ok(read >= needed && read < needed + 16384, `${read} bytes for ${needed}`);
    }
  });

  test("a mapped file: the pages of these rows are touched, and few others", {
    skip: maps || needsAddon.skip,
  }, async () => {
    for (const asynchronous of [false, true]) {
      using file = openSync(path);
      const tensor = file.tensor(embedding);
      const before = residentBytes(path);
      const rows = asynchronous ? await tensor.rows(scattered) : tensor.rowsSync(scattered);
      assert.equal(rows.length, SOME * ROW);
      const touched = residentBytes(path) - before;
      // The kernel maps neighbouring pages that it has at hand: up to 64 KiB on either side.
      assert.ok(touched >= needed && touched < SOME * 2 ** 18, `${touched} bytes resident for ${needed}`);
    }
  });

  test("memory: asynchronous work copies these rows and nothing else", async () => {
    const rows = 2 ** 16;
    const blocks = randomBlocks(embedding, (rows * ROW) / 256, random);
    const { id } = ggmlTypes[embedding];
    const tensor = parse(writeGguf({ tensors: [{ name: "t", type: id, shape: [ROW, rows], bytes: blocks }] })).tensor(
      "t",
    );
    const before = process.memoryUsage.rss();
    const running = tensor.rows([rows - 1, 0, 7, 7]);
    const grown = process.memoryUsage.rss() - before;
    const result = await running;
    const row = (index: number) => blocks.subarray(index * rowBytes(embedding), (index + 1) * rowBytes(embedding));
    const wanted = Buffer.concat([row(rows - 1), row(0), row(7), row(7)]);
    assert.equal(firstDifference(result, reference.dequantizeSync(embedding, wanted)), -1);
    assert.ok(grown < blocks.length / 4, `${grown} bytes more for ${wanted.length}`);
  });
});

/** How much of the mapping of `path` is in this process's page table. */
function residentBytes(path: string): number {
  let resident = 0;
  let ours = false;
  for (const line of readFileSync("/proc/self/smaps", "utf8").split("\n")) {
    if (/^[0-9a-f]+-[0-9a-f]+ /.test(line)) ours = line.endsWith(path);
    else if (ours && line.startsWith("Rss:")) resident += Number(/\d+/.exec(line)![0]) * 1024;
  }
  return resident;
}
