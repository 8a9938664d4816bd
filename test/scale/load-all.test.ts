/** Results of more than 4 GiB in shared memory: tensors of zeros in a sparse file, each with one number that tells it. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { loadAll, open } from "gguf-native";
import { temporaryFolder } from "../support/paths";
import { sanitized } from "../support/sanitized";
import { writeSparseGguf } from "../support/sparse-file";

const GiB = 2 ** 30;

test("loadAll: shared results that can be posted to a worker", async (t) => {
  const path = join(temporaryFolder(), "large.gguf");
  const tensors = Array.from({ length: 9 }, (_, i) => {
    const bytes = new Uint8Array(Uint16Array.of(i + 1).buffer); // of type F16: a subnormal number
    return { name: `t${i}`, type: 1, shape: [GiB / 8], byteLength: GiB / 4, pieces: [{ at: 200, bytes }] };
  });
  const skip = writeSparseGguf(path, tensors) || (sanitized && "sanitizers take memory of their own");
  if (skip) return t.skip(skip);
  const file = await open(path);
  const weights = await loadAll(file.tensors.values(), { shared: true });
  const seen = `for (const [name, a] of weights) text += name + a.length + " " + a[100] * 2 ** 24 + " "`;
  const worker = new Worker(
    `const { parentPort, workerData: weights } = require("node:worker_threads"); let text = ""; ${seen}; parentPort.postMessage(text)`,
    { eval: true, workerData: weights },
  );
  const [text] = await once(worker, "message");
  assert.equal(text, tensors.map(({ name, shape }, i) => `${name}${shape} ${i + 1} `).join(""));
  file.close();
});
