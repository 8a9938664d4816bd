/** In which order asynchronous jobs have their turns. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { ggmlTypes } from "gguf-native";
import { runNode } from "../support/child";
import { needsAddon } from "../support/needs-addon";
import { projectRoot } from "../support/paths";

/** Runs `body` with some threads, a tensor of this many rows, whose chunks are of 2^18 numbers, and a short job of one chunk. */
function withThreads(threads: number, rows: number, body: string): string {
  const program = `
    const { parse } = require(${JSON.stringify(projectRoot)});
    const { writeGguf } = require(${JSON.stringify(join(projectRoot, "build", "test", "support", "gguf-writer.js"))});
    const CHUNK = 2 ** 18;
    const shape = [4096, ${rows}];
    const { id, blockSize, typeSize } = ${JSON.stringify(ggmlTypes.TQ1_0)};
    const bytes = new Uint8Array((shape[0] * shape[1] / blockSize) * typeSize);
    const file = writeGguf({ tensors: [{ name: "t", type: id, shape, bytes }] });
    const shared = new Uint8Array(new SharedArrayBuffer(file.length));
    shared.set(file);
    const tensor = parse(shared).tensor("t");
    const indexes = Array.from({ length: 64 }, (_, i) => i);
    const short = () => tensor.rows(indexes);
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    (async () => { ${body} })();`;
  const env = { ...process.env, UV_THREADPOOL_SIZE: `${threads}` };
  const { status, stdout, stderr } = runNode(["-e", program], { env });
  assert.equal(status, 0, stderr);
  return stdout.trim();
}

/** With one thread, and 256 chunks. */
const onOneThread = (body: string) => withThreads(1, 2 ** 14, body);

// While a short job is under way, threads do a few chunks of a long one: those that they are at, and one each at the
// end of a task. Eight long ones take so long that a busy machine does not matter.
test("short jobs do not wait for long ones", needsAddon, () => {
  const before = withThreads(
    3,
    2 ** 16,
    `
    let isDone = false;
    const long = Promise.all(Array.from({ length: 8 }, () => tensor.stats())).then(() => { isDone = true; });
    let before = 0;
    for (let i = 0; i < 20; i++) {
      await short();
      if (!isDone) before++;
    }
    await long;
    console.log(before);`,
  );
  assert.equal(before, "20");
});

test("a thread does one chunk of a long job for each of the short ones that follow each other", needsAddon, () => {
  const chunks = onOneThread(`
    let chunks = 0;
    tensor.stats({ onProgress: (done) => { chunks = done / CHUNK; } });
    while (chunks === 0) await turn();
    await short();
    const before = chunks;
    for (let i = 0; i < 20; i++) await short();
    console.log(chunks - before);
    process.exit();`);
  assert.ok(Number(chunks) >= 20 && Number(chunks) <= 25, chunks);
});

test("a long job gives way after the chunk at which a short one finds it", needsAddon, () => {
  const counts = onOneThread(`
    const out = new Uint16Array(new SharedArrayBuffer(2 * shape[0] * shape[1])).fill(7);
    const done = () => { let n = 0; while (n < 256 && out[n * CHUNK] !== 7) n++; return n; };
    const counts = [];
    for (let round = 0; round < 15; round++) {
      for (let n = 0; n < 256; n++) out[n * CHUNK] = 7;
      const controller = new AbortController();
      const long = tensor.dequantize({ dtype: "bf16", out, signal: controller.signal }).catch(() => {});
      while (done() === 0) await turn();
      const before = done();
      await short();
      counts.push(done() - before);
      controller.abort();
      await long;
    }
    console.log(counts.sort((a, b) => a - b).join());
    process.exit();`);
  assert.ok(Number(counts.split(",")[7]) <= 5, counts);
});
