/** Files that somebody cuts off, overwrites, replaces or unlinks while they are in use: an error, never a crash. */
import assert from "node:assert/strict";
import { copyFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { Worker } from "node:worker_threads";
import {
  dequantize,
  dequantizeSync,
  GgufError,
  type GgufFile,
  matmul,
  matmulSync,
  type OpenOptions,
  open,
  openSync,
  quantize,
  quantizeSync,
} from "gguf-native";
import * as reference from "gguf-native/reference";
import { manyBlocks } from "../support/blocks";
import { runNode } from "../support/child";
import { firstDifference } from "../support/compare";
import { arr, f32, str, writeGguf } from "../support/gguf-writer";
import { needsAddon } from "../support/needs-addon";
import { type Deed, OtherThread } from "../support/other-thread";
import { temporaryFolder } from "../support/paths";

const folder = temporaryFolder();
const original = join(folder, "original.gguf");
const ROW = 4096;
const ROWS = 1024;
const TOKENS = 50_000;
/** Bytes of the tensor `first`, which all of the cuts but those in the header leave as it is. */
const FIRST = ROW * 4;
let expected: { first: Float32Array; big: Float32Array };
/** Where the middle of `big` is in the file; not on a page. */
let middle: number;
/** In the middle of the array of tokens. */
const inTokens = 300_001;
let size: number;

before(() => {
  const first = manyBlocks("F32", ROW);
  const big = manyBlocks("Q8_0", (ROW * ROWS) / 32);
  const tokens = Array.from({ length: TOKENS }, (_, i) => `token ${i}`);
  const content = writeGguf({
    metadata: [
      ["general.name", str("changing")],
      ["number", f32(0.5)],
      ["tokens", arr("string", tokens)],
      ["scores", arr("float32", new Float32Array(TOKENS).fill(1))],
    ],
    tensors: [
      { name: "first", type: 0, shape: [ROW], bytes: first },
      { name: "big", type: 8, shape: [ROW, ROWS], bytes: big },
    ],
  });
  writeFileSync(original, content);
  expected = { first: reference.dequantizeSync("F32", first), big: reference.dequantizeSync("Q8_0", big) };
  size = content.length;
  middle = size - Math.floor(big.length / 2) - 1001;
});

let count = 0;
function copy(): string {
  const path = join(folder, `${count++}.gguf`);
  copyFileSync(original, path);
  return path;
}

/** Repeats `step` for half a minute, or until it throws. */
function repeat(step: () => void): void {
  const deadline = Date.now() + 30_000;
  while (Date.now() < deadline) step();
}

/** The same, for promises; a few at a time. */
async function repeatAsync(step: () => Promise<unknown>): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (Date.now() < deadline) await Promise.all([step(), step(), step()]);
}

const lost = (path: string, offset?: number) => ({
  ...{ name: "GgufError", code: "ERR_GGUF_TRUNCATED", path },
  ...(offset !== undefined && { offset }),
});

const keptAsTheyAre = process.platform === "win32" && "Windows refuses to change files that are mapped";
const accesses = ["mmap", "read"] as const satisfies OpenOptions["access"][];

for (const access of accesses) {
  /** Opens a copy, starts a thread that does `deed` to it when told, and runs `body`. */
  const scene = async (
    deed: Deed,
    body: (file: GgufFile, path: string, other: OtherThread) => unknown,
  ): Promise<void> => {
    const path = copy();
    const other = await OtherThread.start(deed, path);
    const file = openSync(path, { access });
    const bystander = openSync(original, { access });
    try {
      await body(file, path, other);
      assert.equal(firstDifference(bystander.tensor("big").dequantizeSync(), expected.big), -1);
    } finally {
      file.close();
      bystander.close();
      other.go();
      await other.end();
    }
  };
  const cutInTheMiddle = () => `fs.truncateSync(path, ${middle})`;

  const skip = access === "mmap" && keptAsTheyAre;
  describe(`truncated while in use: ${access}`, { skip }, () => {
    test("during dequantizeSync", () =>
      scene(cutInTheMiddle(), (file, path, other) => {
        const [first, big] = [file.tensor("first"), file.tensor("big")];
        const out = new Float32Array(ROW * ROWS);
        other.go();
        assert.throws(() => repeat(() => big.dequantizeSync({ out })), lost(path, middle));
        assert.throws(() => big.dequantizeSync(), lost(path, middle));
        assert.throws(() => big.dequantizeSync({ start: ROW * (ROWS - 1) }), lost(path, middle));
        assert.throws(() => big.bytes(), lost(path, middle));
        // What is still there is still there.
        assert.equal(firstDifference(first.dequantizeSync(), expected.first), -1);
        const half = big.dequantizeSync({ end: ROW * 500 });
        assert.equal(firstDifference(half, expected.big.subarray(0, ROW * 500)), -1);
        assert.equal(file.metadata.get("number"), 0.5);
        assert.equal((file.metadata.get("tokens") as string[]).length, TOKENS);
      }));

    test("during rowsSync", () =>
      scene(cutInTheMiddle(), (file, path, other) => {
        const big = file.tensor("big");
        const rows = Array.from({ length: 64 }, (_, i) => (i * 31) % ROWS);
        other.go();
        assert.throws(() => repeat(() => big.rowsSync(rows)), lost(path, middle));
        assert.throws(() => big.rowsSync([ROWS - 1]), lost(path, middle));
        assert.equal(firstDifference(big.rowsSync([3]), expected.big.subarray(3 * ROW, 4 * ROW)), -1);
      }));

    test("during dequantize and rows", () =>
      scene(cutInTheMiddle(), async (file, path, other) => {
        const big = file.tensor("big");
        other.go();
        await assert.rejects(
          repeatAsync(() => big.dequantize()),
          lost(path, middle),
        );
        await assert.rejects(big.dequantize(), lost(path, middle));
        await assert.rejects(big.dequantize({ dtype: "bf16", start: ROW * (ROWS - 1) }), lost(path, middle));
        await assert.rejects(big.rows([1, ROWS - 1]), lost(path, middle));
        const out = new Float32Array(ROW * 10);
        await big.dequantize({ end: ROW * 10, out });
        assert.equal(firstDifference(out, expected.big.subarray(0, ROW * 10)), -1);
      }));

    test("while metadata is decoded", () =>
      scene(`fs.truncateSync(path, ${inTokens})`, (file, path, other) => {
        const { metadata } = file;
        other.go();
        assert.throws(() => repeat(() => metadata.get("tokens")), lost(path, inTokens));
        for (const key of ["tokens", "scores"]) {
          assert.throws(() => metadata.get(key), lost(path, inTokens), key);
        }
        assert.throws(() => metadata.bytes("tokens"), lost(path, inTokens));
        assert.throws(() => file.tensor("first").dequantizeSync(), lost(path, inTokens));
        assert.equal(metadata.get("general.name"), "changing");
        assert.deepEqual(metadata.typeOf("scores"), {
          type: "array",
          elementType: "float32",
          length: TOKENS,
        });
      }));

    test("and grown again, over and over", () =>
      scene(
        `const content = fs.readFileSync(path);
         for (let i = 0; i < 100; i++) {
           fs.truncateSync(path, 1 + (i * 7919 * 4096) % content.length);
           sleep(2);
           fs.writeFileSync(path, content);
           sleep(1);
         }`,
        async (file, path, other) => {
          other.go(0);
          let n = 0;
          const attempt = async (step: () => unknown) => {
            try {
              await step();
            } catch (error) {
              n++;
              assert.ok(error instanceof GgufError, String(error));
              assert.match(error.code, /^ERR_GGUF_(TRUNCATED|INVALID|MAGIC)$/);
              assert.equal(error.path, path);
            }
          };
          const deadline = Date.now() + 30_000;
          while (!other.done && Date.now() < deadline) {
            await attempt(() => file.tensor("big").dequantizeSync());
            await attempt(() => file.tensor("big").dequantize());
            await attempt(() => file.metadata.get("tokens"));
            await attempt(() => openSync(path, { access }).tensor("big").dequantizeSync());
            await attempt(async () => (await open(path, { access })).metadata.get("scores"));
          }
          assert.ok(other.done);
          assert.ok(n > 0);
        },
      ));

    test("in a worker thread", () =>
      scene(cutInTheMiddle(), async (_, path, other) => {
        const worker = new Worker(
          `const { workerData: { path, access }, parentPort } = require("node:worker_threads");
           const { openSync } = require("gguf-native");
           const big = openSync(path, { access }).tensor("big");
           parentPort.postMessage("begun");
           try { for (;;) big.dequantizeSync(); } catch (error) { parentPort.postMessage(error.code); }`,
          { eval: true, workerData: { path, access } },
        );
        const message = () => new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
        assert.equal(await message(), "begun");
        other.go();
        assert.equal(await message(), "ERR_GGUF_TRUNCATED");
      }));
  });

  describe(`no longer under its name: ${access}`, { skip }, () => {
    for (const [what, deed] of Object.entries({
      unlinked: "fs.unlinkSync(path)",
      replaced: `fs.writeFileSync(path + ".new", "GGUF"); fs.renameSync(path + ".new", path)`,
    })) {
      const kept = what === "replaced" && process.platform === "win32";
      test(what, { skip: kept && "Windows refuses to replace files that are open" }, () =>
        scene(deed, async (file, _, other) => {
          other.go();
          const deadline = Date.now() + 30_000;
          while (!other.done && Date.now() < deadline) file.tensor("big").rowsSync([7]);
          assert.ok(other.done);
          assert.equal(firstDifference(file.tensor("big").dequantizeSync(), expected.big), -1);
          assert.equal(firstDifference(await file.tensor("big").dequantize(), expected.big), -1);
          assert.equal(firstDifference(file.tensor("first").dequantizeSync(), expected.first), -1);
          assert.equal((file.metadata.get("tokens") as string[])[TOKENS - 1], `token ${TOKENS - 1}`);
        }),
      );
    }

    const overwrite = `const fd = fs.openSync(path, "r+");
      fs.writeSync(fd, "GGUF, but another one");
      fs.ftruncateSync(fd, 21);`;
    test("overwritten in place by a shorter file", () =>
      scene(overwrite, (file, path, other) => {
        other.go();
        assert.throws(() => repeat(() => file.tensor("big").dequantizeSync()), lost(path));
        assert.throws(() => file.tensor("first").dequantizeSync(), lost(path, 21));
        assert.throws(() => file.metadata.get("tokens"), lost(path, 21));
      }));
  });
}

describe("views of a mapped file that was truncated", { skip: keptAsTheyAre || needsAddon.skip }, () => {
  /** The number of zeros in a view, some of which come and go while it is read. */
  const countZeros = (view: Uint8Array) => {
    let zeros = 0;
    for (let i = 0; i < view.length; i++) if (view[i] === 0) zeros++;
    return zeros;
  };

  test("read as zeros, while they are read and afterwards", async () => {
    const path = copy();
    const other = await OtherThread.start(`fs.truncateSync(path, ${middle})`, path);
    const file = openSync(path);
    const big = file.tensor("big");
    const view = big.bytes();
    const before = countZeros(view);
    other.go();
    const deadline = Date.now() + 30_000;
    while (countZeros(view) === before && Date.now() < deadline);
    await other.end();
    const kept = middle - big.offset;
    assert.ok(countZeros(view) > view.length - kept);
    assert.deepEqual(view.subarray(kept), new Uint8Array(view.length - kept));
    const blocks = Math.floor(kept / 34);
    const values = reference.dequantizeSync("Q8_0", view.subarray(0, blocks * 34));
    assert.equal(firstDifference(values, expected.big.subarray(0, blocks * 32)), -1);
    // They can be written to, copied, searched, and handed to the system.
    view.fill(7, kept);
    assert.equal(view[view.length - 1], 7);
    assert.equal(view.slice(kept).indexOf(0), -1);
    writeFileSync(join(folder, "copy"), view);
    assert.throws(() => big.bytes(), lost(path, middle));
    file.close();
    assert.equal(view.length, 0);
  });

  test("are refused as blocks and as numbers, as their tensors are", async () => {
    const path = copy();
    const file = openSync(path);
    const big = file.tensor("big").bytes();
    const row = big.subarray(big.length - (ROW / 32) * 34);
    const first = file.tensor("first").bytes();
    const floats = new Float32Array(first.slice().buffer);
    const numbers = new Float32Array(first.buffer, 0, ROW);
    const x = new Float32Array(ROW).fill(1);
    const ways: Record<string, () => unknown> = {
      matmulSync: () => matmulSync("Q8_0", row, ROW, x),
      matmul: () => matmul("Q8_0", big, ROW, x),
      dequantizeSync: () => dequantizeSync("Q8_0", big),
      "dequantizeSync of F32": () => dequantizeSync("F32", first, { out: floats }),
      dequantize: () => dequantize("Q8_0", row),
      quantizeSync: () => quantizeSync("Q4_0", numbers),
      quantize: () => quantize("Q4_0", numbers),
    };
    for (const way of Object.values(ways)) await way();
    truncateSync(path, 4096);
    for (const [name, way] of Object.entries(ways)) {
      await assert.rejects(async () => way(), lost(path, 4096), name);
    }
    // A copy is the caller's own.
    dequantizeSync("Q8_0", row.slice());
  });

  test("can be passed to other system calls", () => {
    const path = copy();
    const view = openSync(path).tensor("big").bytes();
    truncateSync(path, FIRST);
    // The system itself reads the memory: that gives an error, unless somebody has read there before.
    assert.throws(() => writeFileSync(join(folder, "copy"), view), { code: "EFAULT" });
    assert.equal(Buffer.compare(view, new Uint8Array(view.length)), 0);
    writeFileSync(join(folder, "copy"), view);
  });
});

describe("SIGBUS that does not come from our files", {
  skip: process.platform === "win32" ? "Windows has no signals" : needsAddon.skip,
}, () => {
  test("also when only a worker had loaded the addon, and is gone", () => {
    const program = `
      const { Worker } = require("node:worker_threads");
      const worker = new Worker('const { openSync } = require("gguf-native"); openSync(process.argv[2])',
        { eval: true, argv: [process.argv[1]] });
      worker.on("exit", (code) => { console.log(code); process.kill(process.pid, "SIGBUS"); setTimeout(() => {}, 9000); });`;
    const { signal, stdout } = runNode(["-e", program, copy()]);
    assert.deepEqual([signal, stdout], ["SIGBUS", "0\n"]);
  });
});
