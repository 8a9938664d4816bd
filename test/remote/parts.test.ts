/** Large tensors on servers: fetched a part at a time, worked on off the main thread, with the results of local ones. */
import assert from "node:assert/strict";
import { createHook } from "node:async_hooks";
import { describe, test } from "node:test";
import { type AsyncOptions, allocate, ggmlTypes, openRemote, parse, type RemoteGgufTensor } from "gguf-native";
import { gaussianBlocks } from "../support/blocks";
import { swapBlocks } from "../support/byte-order";
import { firstDifference } from "../support/compare";
import { writeGguf } from "../support/gguf-writer";
import { needsAddon } from "../support/needs-addon";
import { Random } from "../support/random";
import { answerRange, type Handler, rangeOf, rangesOf, serve } from "../support/range-server";

const random = new Random(31);
const COLUMNS = 4096;
const ROWS = 3200; // parts of 1,024 rows: three whole ones and a shorter one
const PART = 2 ** 22;
const blocks = gaussianBlocks("Q4_K", (ROWS * COLUMNS) / 256, random);
const x = Float32Array.from({ length: 3 * COLUMNS }, () => random.gaussian());
const shape = [COLUMNS, ROWS];
const type = ggmlTypes.Q4_K.id;
const little = writeGguf({ tensors: [{ name: "m", type, shape, bytes: blocks }] });
const big = writeGguf({
  byteOrder: "big",
  tensors: [{ name: "m", type, shape, bytes: swapBlocks("Q4_K", blocks) }],
});
const local = parse(little).tensor("m");

async function at(handler: Handler): Promise<RemoteGgufTensor> {
  return (await openRemote((await serve(handler)).url)).tensor("m");
}

function assertSame(actual: Float32Array, expected: Float32Array, what?: string): void {
  assert.equal(actual.length, expected.length, what);
  assert.equal(firstDifference(actual, expected), -1, what);
}

for (const [order, bytes] of Object.entries({ little, big })) {
  describe(`${order}-endian: the results of a local tensor`, () => {
    test("dequantize", async () => {
      const tensor = await at(rangesOf(bytes));
      assertSame(await tensor.dequantize(), local.dequantizeSync());
      const range = { start: 256, end: PART + 512 };
      const found = await tensor.dequantize({ ...range, dtype: "bf16" });
      assert.deepEqual(found, local.dequantizeSync({ ...range, dtype: "bf16" }));
      for (const make of [allocate, (n: number) => new Float32Array(new SharedArrayBuffer(4 * n))]) {
        const out = make(range.end - range.start) as Float32Array;
        assert.equal(await tensor.dequantize({ ...range, out }), out);
        assertSame(out, local.dequantizeSync(range));
      }
    });
    test("matmul", async () => {
      const tensor = await at(rangesOf(bytes));
      const expected = local.matmulSync(x);
      assert.ok(expected.some((value) => value !== 0));
      assertSame(await tensor.matmul(x), expected);
      const range = { start: 7, end: 2100 };
      const out = new Float32Array(3 * (range.end - range.start));
      assert.equal(await tensor.matmul(x, { ...range, out }), out);
      assertSame(out, local.matmulSync(x, range));
      assertSame(await tensor.matmul(x.subarray(COLUMNS, 2 * COLUMNS)), expected.subarray(ROWS, 2 * ROWS));
      assertSame(
        await tensor.matmul(x, { activations: "int8", end: 5 }),
        local.matmulSync(x, { activations: "int8", end: 5 }),
      );
      assert.equal((await tensor.matmul(x, { start: 4, end: 4 })).length, 0);
      assert.equal((await tensor.matmul(new Float32Array())).length, 0);
    });
    test("stats and compare", async () => {
      const tensor = await at(rangesOf(bytes));
      assert.deepEqual(await tensor.stats({ bins: 7 }), local.statsSync({ bins: 7 }));
      const { different, sameBytes, count } = await tensor.compare(local);
      const shown = { different, sameBytes, count };
      assert.deepEqual(shown, { different: 0, sameBytes: order === "little", count: local.elementCount });
    });
  });
}

test("x may change, and be part of out, once matmul has been called", async () => {
  const tensor = await at(rangesOf(little));
  const expected = local.matmulSync(x);
  const given = x.slice();
  const running = tensor.matmul(given);
  given.fill(NaN);
  assertSame(await running, expected);
  const memory = new Float32Array(3 * COLUMNS);
  memory.set(x);
  const out = memory.subarray(100, 100 + 3 * ROWS);
  await tensor.matmul(memory, { out });
  assertSame(out, expected);
});

/** What all work on a remote tensor takes. */
const works: Record<string, (tensor: RemoteGgufTensor, options: AsyncOptions) => Promise<unknown>> = {
  dequantize: (tensor, options) => tensor.dequantize(options),
  matmul: (tensor, options) => tensor.matmul(x, options),
  stats: (tensor, options) => tensor.stats({ bins: 3, ...options }),
  compare: (tensor, options) => tensor.compare(local, options),
};
const totals: Record<string, number> = { matmul: 3 * ROWS };

for (const [name, work] of Object.entries(works)) {
  describe(name, () => {
    test("asks for each byte once, in parts, and for few at a time", async () => {
      const waiting: (() => void)[] = [];
      const asked: [number, number][] = [];
      const underWay: number[] = [];
      let answered = 0;
      let isHeader = true;
      const tensor = await at((request, response) => {
        const answer = (): void => {
          answered++;
          answerRange(request, response, little);
        };
        if (isHeader) {
          isHeader = false;
          return answerRange(request, response, little);
        }
        asked.push(rangeOf(request));
        underWay.push(asked.length - answered);
        // The first three are answered when all are there, the last one first.
        waiting.push(answer);
        if (asked.length >= 3) for (const next of waiting.splice(0).reverse()) next();
      });
      await (name === "stats" ? tensor.stats() : work(tensor, {}));
      const partBytes = (PART / 256) * 144;
      const starts = [0, 1, 2, 3].map((part) => part * partBytes).map((first) => tensor.offset + first);
      const ends = [...starts.slice(1), tensor.offset + tensor.byteLength].map((end) => end - 1);
      assert.deepEqual(
        asked.sort(([a], [b]) => a - b),
        starts.map((start, i) => [start, ends[i]]),
      );
      assert.equal(Math.max(...underWay), 3);
    });

    test("progress rises to the total", async () => {
      const tensor = await at(rangesOf(little));
      const total = totals[name] ?? tensor.elementCount;
      const reports: number[] = [];
      await work(tensor, {
        onProgress: (done, all) => {
          assert.equal(all, total);
          reports.push(done);
        },
      });
      assert.equal(reports.at(-1), total);
      assert.ok(reports.length > 2);
      assert.ok(
        reports.every((done, i) => done >= (reports[i - 1] ?? 0)),
        String(reports),
      );
    });

    test("an abort, and an exception of onProgress, stop it and all its requests", async () => {
      const reason = new Error("enough");
      const open = new Set<unknown>();
      const tensor = await at((request, response) => {
        const [first, last] = rangeOf(request);
        if (first === 0 || first === local.offset) return answerRange(request, response, little);
        open.add(request);
        response.on("close", () => open.delete(request));
        response.writeHead(206, { "content-range": `bytes ${first}-${last}/${little.length}` });
        response.write(little.subarray(first, first + 10)); // and no more
      });
      await assert.rejects(work(tensor, { signal: AbortSignal.abort(reason) }), reason);
      for (const stop of ["abort", "throw"]) {
        const controller = new AbortController();
        let calls = 0;
        const onProgress = (): void => {
          calls++;
          if (stop === "throw") throw reason;
          controller.abort(reason);
        };
        await assert.rejects(work(tensor, { signal: controller.signal, onProgress }), reason);
        assert.equal(calls, 1);
        // The server notices a little later that its clients are gone.
        for (let i = 0; i < 100 && open.size > 0; i++) await new Promise((resolve) => setTimeout(resolve, 50));
        assert.equal(open.size, 0);
      }
    });

    test("the error of a part is that of the work", async () => {
      const tensor = await at((request, response) => {
        const [first] = rangeOf(request);
        if (first <= local.offset) answerRange(request, response, little);
        else response.writeHead(403).end();
      });
      await assert.rejects(work(tensor, {}), { code: "ERR_GGUF_OPEN", message: /403/ });
    });

    test("bytes that the file lacks are not asked for", async () => {
      const server = await serve(rangesOf(little.subarray(0, local.offset + PART)));
      const tensor = (await openRemote(server.url, { partial: true })).tensor("m");
      const before = server.requests.length;
      await assert.rejects(work(tensor, {}), {
        ...{ code: "ERR_GGUF_TRUNCATED", ...(name !== "compare" && { offset: local.offset }) },
        message: new RegExp(`the file ends at ${local.offset + PART}`),
      });
      if (name !== "compare") assert.equal(server.requests.length, before);
    });
  });
}

test("an out that is detached between two parts", async () => {
  const tensor = await at(rangesOf(little));
  for (const length of [tensor.elementCount, 3 * ROWS]) {
    const out = new Float32Array(length);
    const onProgress = (): void => {
      if (out.length > 0) structuredClone(out.buffer, { transfer: [out.buffer as ArrayBuffer] });
    };
    const work = length === 3 * ROWS ? tensor.matmul(x, { out, onProgress }) : tensor.dequantize({ out, onProgress });
    await assert.rejects(work, { code: "ERR_GGUF_RANGE", message: /detached/ });
  }
});

test("the threads of the addon work, not the main thread", needsAddon, async () => {
  const tensor = await at(rangesOf(little));
  for (const [name, work] of Object.entries(works)) {
    let tasks = 0;
    const hook = createHook({
      init: (_id, type) => {
        if (type.startsWith("gguf-native")) tasks++;
      },
    });
    hook.enable();
    await work(tensor, {});
    hook.disable();
    assert.ok(tasks >= 3, `${name}: ${tasks} tasks`);
  }
});

/** A tensor of zeros, which are made as they are read. */
function zeros(elements: number): typeof fetch {
  const header = writeGguf({
    tensors: [{ name: "m", type: 0, shape: [COLUMNS, elements / COLUMNS], bytes: new Uint8Array() }],
  });
  const size = header.length + 4 * elements;
  const chunk = new Uint8Array(2 ** 16);
  return async (_url, init) => {
    const [first, last] = /(\d+)-(\d+)/.exec(new Headers(init?.headers).get("range")!)!.slice(1).map(Number) as [
      number,
      number,
    ];
    const end = Math.min(last + 1, size);
    let next = first;
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        const bytes = next < header.length ? header.subarray(next, end) : chunk.subarray(0, end - next);
        next += bytes.length;
        controller.enqueue(bytes);
        if (next === end) controller.close();
      },
    });
    const headers = { "content-range": `bytes ${first}-${end - 1}/${size}`, etag: '"1"' };
    return new Response(body, { status: 206, headers });
  };
}

test("memory is that of a few parts", async () => {
  const elements = 2 ** 26;
  const file = await openRemote("http://localhost/zeros.gguf", { fetch: zeros(elements) });
  const tensor = file.tensor("m");
  for (const [name, work] of Object.entries({
    matmul: async (options: AsyncOptions) => {
      const y = await tensor.matmul(new Float32Array(COLUMNS).fill(1), options);
      assert.ok(y.length === elements / COLUMNS && y.every((product) => product === 0));
    },
    stats: async (options: AsyncOptions) => assert.equal((await tensor.stats(options)).zeros, elements),
  })) {
    const used = (): number => process.memoryUsage().arrayBuffers;
    const before = used();
    let most = 0;
    await work({
      onProgress: () => {
        most = Math.max(most, used() - before);
      },
    });
    // The tensor has 256 MiB; a part of it 16.
    assert.ok(most < 100 * 2 ** 20, `${name}: ${most / 2 ** 20} MiB`);
  }
});
