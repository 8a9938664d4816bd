/** Rows of tensors on servers: which bytes are asked for, how many requests at a time, and what comes of it. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ggmlTypes, openRemote, parse, type RemoteGgufTensor } from "gguf-native";
import { randomBlocks } from "../support/blocks";
import { writeGguf } from "../support/gguf-writer";
import { Random } from "../support/random";
import { answerRange, type Handler, type RangeServer, rangeOf, rangesOf, serve } from "../support/range-server";

/** F32 rows of 4 KiB: 16 of them make the largest gap, 1,024 the largest extent. */
const COLUMNS = 1024;
const ROW_BYTES = COLUMNS * 4;
const ROWS = 3000;
const GAP_ROWS = 16;
const EXTENT_ROWS = 1024;
const random = new Random(11);
const content = writeGguf({
  tensors: [
    { name: "m", type: 0, shape: [COLUMNS, ROWS], bytes: randomBlocks("I8", ROWS * ROW_BYTES, random) },
    { name: "empty", type: 0, shape: [0, 5], bytes: new Uint8Array() },
    { name: "wide", type: 0, shape: [2 ** 21, 2], bytes: randomBlocks("I8", 2 ** 24, random) },
    { name: "odd", type: 4, shape: [32], bytes: new Uint8Array(32) },
    { name: "cube", type: ggmlTypes.Q8_0.id, shape: [64, 4, 5], bytes: randomBlocks("Q8_0", 40, random) },
  ],
});
const local = parse(content);

/** A tensor of a server, and the requests for its rows: the header's is not counted. */
async function at(
  handler: Handler = rangesOf(content),
  name = "m",
): Promise<{ tensor: RemoteGgufTensor; extents: () => [first: number, rows: number][] }> {
  const server: RangeServer = await serve(handler);
  const tensor = (await openRemote(server.url)).tensor(name);
  const header = server.requests.length;
  const rowBytes = tensor.byteLength / (tensor.elementCount / (tensor.shape[0] ?? 1));
  const extents = (): [number, number][] =>
    server.requests.slice(header).map((request) => {
      const [first, last] = rangeOf(request);
      return [(first - tensor.offset) / rowBytes, (last + 1 - first) / rowBytes];
    });
  return { tensor, extents };
}

const bits = (array: ArrayBufferView): Buffer => Buffer.from(array.buffer, array.byteOffset, array.byteLength);

async function expectRows(tensor: RemoteGgufTensor, rows: number[]): Promise<void> {
  for (const dtype of ["f32", "bf16"] as const) {
    const found = await tensor.rows(rows, { dtype });
    assert.ok(bits(found).equals(bits(local.tensor(tensor.name).rowsSync(rows, { dtype }))), `${dtype} ${rows}`);
  }
}

describe("what is fetched", () => {
  const cases: Record<string, { rows: number[]; extents: [first: number, rows: number][] }> = {
    "one row": { rows: [7], extents: [[7, 1]] },
    "the same row many times": { rows: [5, 5, 5], extents: [[5, 1]] },
    "neighbours in any order": { rows: [3, 1, 2, 3], extents: [[1, 3]] },
    "rows as far apart as are fetched together": {
      rows: [100 + GAP_ROWS + 1, 100],
      extents: [[100, GAP_ROWS + 2]],
    },
    "rows one further apart": {
      rows: [100 + GAP_ROWS + 2, 100],
      extents: [
        [100, 1],
        [100 + GAP_ROWS + 2, 1],
      ],
    },
    "more neighbours than one request brings": {
      rows: Array.from({ length: 1100 }, (_, i) => 1099 - i),
      extents: [
        [0, EXTENT_ROWS],
        [EXTENT_ROWS, 1100 - EXTENT_ROWS],
      ],
    },
    none: { rows: [], extents: [] },
  };
  for (const [name, { rows, extents }] of Object.entries(cases)) {
    test(name, async () => {
      const { tensor, extents: asked } = await at();
      const found = await tensor.rows(rows);
      const shown = asked().sort(([a], [b]) => a - b);
      assert.deepEqual(shown, extents);
      assert.ok(bits(found).equals(bits(local.tensor("m").rowsSync(rows))));
      await expectRows(tensor, rows);
    });
  }

  test("rows larger than an extent, and of three dimensions, and without elements", async () => {
    const { tensor, extents } = await at(undefined, "wide");
    await expectRows(tensor, [1, 0, 1]);
    assert.deepEqual(extents().slice(0, 2).sort(), [
      [0, 1],
      [1, 1],
    ]);
    await expectRows((await at(undefined, "cube")).tensor, [19, 0, 7, 19]);
    const empty = await at(undefined, "empty");
    assert.equal((await empty.tensor.rows([0, 4, 4])).length, 0);
    assert.deepEqual(empty.extents(), []);
  });

  test("random rows", async () => {
    const { tensor } = await at();
    await expectRows(
      tensor,
      Array.from({ length: 300 }, () => random.below(ROWS)),
    );
  });
});

/** Rows that nothing brings together. */
const scattered = Array.from({ length: 20 }, (_, i) => ((i * 7) % 20) * 100);

test("six requests are in flight, and no more", async () => {
  let most = 0;
  const waiting: (() => void)[] = [];
  let isHeader = true;
  const { tensor, extents } = await at((request, response) => {
    const answer = (): void => answerRange(request, response, content);
    if (isHeader) {
      isHeader = false;
      return answer();
    }
    waiting.push(answer);
    most = Math.max(most, waiting.length);
    // Answered the last one first, once no more come.
    setTimeout(() => waiting.pop()?.(), 50);
  });
  await tensor.rows(scattered).then((found) => {
    assert.ok(bits(found).equals(bits(local.tensor("m").rowsSync(scattered))));
  });
  assert.equal(most, 6);
  assert.equal(extents().length, 20);
});

test("a given out is filled, progress rises to the total", async () => {
  const { tensor } = await at();
  const rows = [...scattered, 0, 0];
  for (const memory of [ArrayBuffer, SharedArrayBuffer]) {
    const out = new Float32Array(new memory(rows.length * ROW_BYTES));
    const reports: number[] = [];
    const onProgress = (done: number, total: number): void => {
      assert.equal(total, out.length);
      reports.push(done);
    };
    assert.equal(await tensor.rows(rows, { out, onProgress }), out);
    assert.ok(bits(out).equals(bits(local.tensor("m").rowsSync(rows))));
    assert.equal(reports.length, 20);
    assert.equal(reports.at(-1), out.length);
    assert.ok(reports.every((done, i) => i === 0 || done > reports[i - 1]!));
  }
});

test("indexes may change after the call", async () => {
  const { tensor } = await at();
  const indexes = Int32Array.from(scattered);
  const running = tensor.rows(indexes);
  indexes.fill(-1);
  assert.ok(bits(await running).equals(bits(local.tensor("m").rowsSync(scattered))));
});

describe("what goes wrong", () => {
  const stopping = new Error("enough");

  test("an abort stops all requests, and progress with them", async () => {
    const open = new Set<unknown>();
    let isHeader = true;
    const { tensor, extents } = await at((request, response) => {
      const [first, last] = rangeOf(request);
      if (isHeader || first === local.tensor("m").offset) {
        isHeader = false;
        return answerRange(request, response, content);
      }
      open.add(request);
      response.on("close", () => open.delete(request));
      response.writeHead(206, { "content-range": `bytes ${first}-${last}/${content.length}` });
      response.write(content.subarray(first, first + 10));
    });
    const controller = new AbortController();
    const reports: number[] = [];
    const onProgress = (done: number): void => {
      reports.push(done);
      setTimeout(() => controller.abort(stopping), 50);
    };
    const warnings: Error[] = [];
    const warned = (warning: Error) => warnings.push(warning);
    process.on("warning", warned);
    await assert.rejects(tensor.rows(scattered, { signal: controller.signal, onProgress }), stopping);
    // The server notices a little later that its clients are gone.
    for (let i = 0; i < 100 && (i === 0 || open.size > 0); i++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    process.off("warning", warned);
    assert.deepEqual(warnings, []);
    assert.equal(open.size, 0);
    assert.equal(extents().length, 7); // one answered, six stopped
    assert.equal(reports.length, 1);
    await assert.rejects(tensor.rows([1], { signal: controller.signal }), stopping);
    assert.equal(extents().length, 7);
  });

  test("an error of one request is that of all", async () => {
    let requests = 0;
    const { tensor } = await at((request, response) => {
      if (++requests < 4) answerRange(request, response, content);
      else response.writeHead(403).end();
    });
    await assert.rejects(tensor.rows(scattered), { code: "ERR_GGUF_OPEN", message: /403/ });
    assert.ok(requests < 13);
  });

  test("a file that is truncated, closed, or of an unknown type", async () => {
    const cut = content.subarray(0, local.tensor("m").offset + 10 * ROW_BYTES - 1);
    const { url } = await serve(rangesOf(cut));
    const model = await openRemote(url, { partial: true });
    const tensor = model.tensor("m");
    assert.ok(bits(await tensor.rows([8])).equals(bits(local.tensor("m").rowsSync([8]))));
    await assert.rejects(tensor.rows([9]), { code: "ERR_GGUF_TRUNCATED", message: /tensor 'm'/ });
    await assert.rejects(model.tensor("odd").rows([0]), { code: "ERR_GGUF_UNSUPPORTED_TYPE" });
    model.close();
    await assert.rejects(tensor.rows([8]), { code: "ERR_GGUF_CLOSED", path: url });
  });

  test("wrong arguments reject", async () => {
    const { tensor, extents } = await at();
    const rejects = (indexes: unknown, options: unknown, code: string) =>
      assert.rejects(tensor.rows(indexes as never, options as never), { code });
    for (const bad of [undefined, 5, "12", ["0"], {}]) await rejects(bad, undefined, "ERR_INVALID_ARG_TYPE");
    for (const bad of [-1, ROWS, 0.5, Number.NaN]) await rejects([bad], undefined, "ERR_GGUF_RANGE");
    await rejects([0], 5, "ERR_INVALID_ARG_TYPE");
    await rejects([0], { dtype: "f8" }, "ERR_INVALID_ARG_VALUE");
    await rejects([0], { signal: 5 }, "ERR_INVALID_ARG_TYPE");
    await rejects([0], { onProgress: 5 }, "ERR_INVALID_ARG_TYPE");
    await rejects([0], { out: new Float32Array(1) }, "ERR_GGUF_RANGE");
    assert.deepEqual(extents(), []);
  });
});
