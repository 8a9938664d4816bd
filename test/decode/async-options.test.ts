/** Options that all asynchronous functions have: how many threads work, progress, and one signal for many calls. */
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { join } from "node:path";
import { before, test } from "node:test";
import { cpu } from "gguf-native";
import { type asyncCalls as AsyncCalls, asyncCalls } from "../support/async-calls";
import { lineOf } from "../support/child";
import { isWasm } from "../support/needs-addon";
import { projectRoot, temporaryFolder } from "../support/paths";

const folder = temporaryFolder();
let calls: Awaited<ReturnType<typeof AsyncCalls>>;
before(async () => {
  calls = await asyncCalls(folder);
});

test("threads that are no number of threads are refused", async () => {
  for (const [name, call] of Object.entries(calls)) {
    for (const threads of [0, -1, 1.5, Number.NaN]) {
      await assert.rejects(call({ threads }), { code: "ERR_GGUF_RANGE", message: /threads/ }, name);
    }
    await assert.rejects(call({ threads: "2" as never }), { code: "ERR_INVALID_ARG_TYPE" }, name);
    await call({ threads: 2 ** 40 });
  }
});

// The threads of the process: work of one thread starts no helper. Node.js may end threads of its own meanwhile.
const skip =
  (isWasm && "WebAssembly has one thread") ||
  (process.platform !== "linux" && "Linux lists the threads of a process") ||
  (cpu().threads === 1 && "this machine has one processor");
test("with threads: 1, one thread works", { skip }, async () => {
  const program = `
    const { readdirSync, promises: { stat } } = require("node:fs");
    const { asyncCalls } = require(${JSON.stringify(join(projectRoot, "build", "test", "support", "async-calls.js"))});
    const before = new Set();
    const started = () => readdirSync("/proc/self/task").filter((thread) => !before.has(thread)).length;
    (async () => {
      const calls = await asyncCalls(process.argv[1]);
      await stat("."); // starts Node's pool
      for (const thread of readdirSync("/proc/self/task")) before.add(thread);
      for (const [name, call] of Object.entries(calls)) {
        await call({ threads: 1 });
        if (started() > 0) return console.log(name, started());
      }
      // A thread that finds all work done, as on a busy machine, is not started.
      for (let i = 0; i < 100 && started() === 0; i++) await calls.quantize({ threads: 2 });
      console.log(started());
    })();`;
  assert.equal(await lineOf(["-e", program, folder]), "1\n");
});

const signals: Record<string, () => AbortSignal> = {
  "of a controller": () => new AbortController().signal,
  any: () => AbortSignal.any([new AbortController().signal, AbortSignal.timeout(2 ** 30)]),
  timeout: () => AbortSignal.timeout(2 ** 30),
};
for (const [kind, make] of Object.entries(signals)) {
  test(`a signal, ${kind}, of many calls has one listener, and none when they are done`, async () => {
    const warnings: Error[] = [];
    process.on("warning", (warning) => warnings.push(warning));
    const signal = make();
    for (const [name, call] of Object.entries(calls)) {
      // Commands that write follow each other: they have the same output.
      const pending = Array.from({ length: /Model/.test(name) ? 1 : 12 }, () => call({ signal }));
      assert.ok(getEventListeners(signal, "abort").length <= 1, name);
      await Promise.all(pending);
      assert.equal(getEventListeners(signal, "abort").length, 0, name);
    }
    await new Promise(setImmediate);
    assert.deepEqual(warnings, []);
  });
}

test("a signal of many calls aborts each of them that is not done", async () => {
  const controller = new AbortController();
  const { signal } = controller;
  const pending = Object.values(calls).flatMap((call) => [call({ signal }), call({ signal })]);
  controller.abort("enough");
  for (const end of await Promise.allSettled(pending)) {
    assert.deepEqual(end, { status: "rejected", reason: "enough" });
  }
  assert.equal(getEventListeners(signal, "abort").length, 0);
});

test("progress rises to the total, which is always the same", async () => {
  for (const [name, call] of Object.entries(calls)) {
    const reports: [number, number][] = [];
    const result = await call({ onProgress: (...report) => reports.push(report) });
    const [done, total] = reports.at(-1) ?? [];
    if (result instanceof Float32Array) assert.equal(total, result.length, name);
    assert.ok(done !== undefined && done > 0 && done === total, name);
    for (const [i, [now, all]] of reports.entries()) {
      assert.ok(now > (reports[i - 1]?.[0] ?? -1) && all === total, `${name}: ${reports}`);
    }
  }
});

test("an exception of onProgress, and an abort from there or before, is why a call rejects", async () => {
  const reason = new Error("enough");
  const isReason = (error: unknown): boolean => error === reason;
  for (const [name, call] of Object.entries(calls)) {
    let reports = 0;
    const fail = (): never => {
      reports++;
      throw reason;
    };
    await assert.rejects(call({ onProgress: fail }), isReason, name);
    // Tensors that are fetched at the same time each report before the first of them has failed.
    assert.ok(reports === 1 || name === "remote: loadAll", name);
    const controller = new AbortController();
    const { signal } = controller;
    await assert.rejects(call({ signal, onProgress: () => controller.abort(reason) }), isReason, name);
    await assert.rejects(call({ signal }), isReason, name);
  }
});

test("what is no signal, and no function, is refused by a promise", async () => {
  for (const [name, call] of Object.entries(calls)) {
    for (const wrong of [{ signal: null }, { signal: {} }, { signal: 5 }, { onProgress: 5 }]) {
      await assert.rejects(call(wrong as never), { code: "ERR_INVALID_ARG_TYPE" }, name);
    }
  }
});
