/** In which order asynchronous jobs have their turns. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { ggmlTypes } from "gguf-native";
import { needsAddon } from "../support/needs-addon";
import { projectRoot } from "../support/paths";

// While a short job is under way, threads do a few chunks of a long one: those that they are at, and one each at the
// end of a task. Eight long ones take so long that a busy machine does not matter.
test("short jobs do not wait for long ones", needsAddon, () => {
  const program = `
    const { parse } = require(${JSON.stringify(projectRoot)});
    const { writeGguf } = require(${JSON.stringify(join(projectRoot, "build", "test", "support", "gguf-writer.js"))});
    const shape = [4096, 2 ** 16];
    const { id, blockSize, typeSize } = ${JSON.stringify(ggmlTypes.TQ1_0)};
    const bytes = new Uint8Array((shape[0] * shape[1] / blockSize) * typeSize);
    const file = writeGguf({ tensors: [{ name: "t", type: id, shape, bytes }] });
    const shared = new Uint8Array(new SharedArrayBuffer(file.length));
    shared.set(file);
    const tensor = parse(shared).tensor("t");
    const indexes = Array.from({ length: 64 }, (_, i) => i);
    let isDone = false;
    const long = Promise.all(Array.from({ length: 8 }, () => tensor.stats())).then(() => { isDone = true; });
    const run = async () => {
      let before = 0;
      for (let i = 0; i < 20; i++) {
        await tensor.rows(indexes);
        if (!isDone) before++;
      }
      await long;
      console.log(before);
    };
    run();
  `;
  const env = { ...process.env, UV_THREADPOOL_SIZE: "3" };
  assert.equal(execFileSync(process.execPath, ["-e", program], { env, encoding: "utf8" }).trim(), "20");
});
