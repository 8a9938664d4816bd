/** `tensor.stats`, `statsSync` and `compare`: their fields, every source and number of threads. */
import assert from "node:assert/strict";
import { createHook } from "node:async_hooks";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { ggmlTypes, openRemote, openSync, parse } from "gguf-native";
import { at, blocks, floats, writeModel } from "../support/cli";
import { sameElsewhere } from "../support/emulated";
import { writeGguf } from "../support/gguf-writer";
import { needsAddon } from "../support/needs-addon";
import { projectRoot } from "../support/paths";
import { rangesOf, serve } from "../support/range-server";

const many = 3 * 2 ** 18 + 4096 + 256;

writeModel("large.gguf", { tensors: [blocks("t", "Q4_K", [many], 1), blocks("u", "Q8_0", [many], 2)] });
const special = [0, -0, 1, 2.5, -3, NaN, Infinity, -Infinity, 1e38, -1e-45, 7];
writeModel("numbers.gguf", {
  tensors: [
    floats("special", special),
    floats("none", [NaN, -Infinity]),
    floats("empty", [], [0]),
    floats("constant", Array(5000).fill(0.1)),
    floats(
      "far",
      Array.from({ length: 9000 }, (_, i) => 1e6 + (i % 2) / 16),
    ),
  ],
});

function assertClose(actual: number, expected: number): void {
  assert.ok(Math.abs(actual - expected) <= 1e-12 * Math.abs(expected), `${actual}, expected ${expected}`);
}

describe("statistics", () => {
  // Of every type and of any bits: test/native/work/chunked_statistics_test.cc.
  test("of special numbers", () => {
    using file = openSync(at("numbers.gguf"));
    const { mean, std, ...exact } = file.tensor("special").statsSync();
    assert.deepEqual(exact, {
      ...{ count: 11, finite: 8, nan: 1, infinite: 2, positiveInfinity: 1, negativeInfinity: 1 },
      ...{ zeros: 2, min: -3, max: Math.fround(1e38) },
    });
    assertClose(mean, Math.fround(1e38) / 8);
    assertClose(std, (Math.fround(1e38) / 8) * Math.sqrt(7));
    assert.equal(file.tensor("constant").statsSync().std, 0);
    assertClose(file.tensor("far").statsSync().std, 1 / 32);
    const none = file.tensor("none").statsSync({ bins: 3 });
    assert.deepEqual([none.mean, none.std, none.min, none.max], [NaN, NaN, NaN, NaN]);
    assert.equal(none.histogram, undefined);
    assert.equal(file.tensor("empty").statsSync({ bins: 3, range: [0, 1] }).histogram!.counts.length, 3);
  });
  test("of a part", () => {
    using file = openSync(at("large.gguf"));
    const tensor = file.tensor("t");
    const { count, min } = tensor.statsSync({ start: 512, end: 1024 });
    assert.equal(count, 512);
    assert.equal(min, Math.min(...tensor.dequantizeSync({ start: 512, end: 1024 })));
    assert.equal(tensor.statsSync({ start: 512, end: 512 }).count, 0);
  });
  test("histograms: a given range, and the one from minimum to maximum", () => {
    using file = openSync(at("numbers.gguf"));
    const tensor = file.tensor("special");
    assert.deepEqual(tensor.statsSync({ bins: 4, range: [-1, 3] }).histogram, {
      range: [-1, 3],
      counts: Float64Array.of(0, 3, 1, 1),
      below: 1,
      above: 2,
    });
    const found = tensor.statsSync({ bins: 2 }).histogram!;
    assert.deepEqual(found, {
      range: [-3, Math.fround(1e38)],
      counts: Float64Array.of(7, 1),
      below: 0,
      above: 0,
    });
    assert.deepEqual(tensor.statsSync({ bins: 1, range: [7, 7] }).histogram!.counts, Float64Array.of(1));
    assert.equal(tensor.statsSync({ range: [0, 1] }).histogram, undefined);
    const narrow = tensor.statsSync({ bins: 8, range: [-5e-324, 5e-324] }).histogram!;
    const sum = narrow.counts.reduce((a, b) => a + b);
    assert.equal(sum, 2);
  });
});

describe("the same bits", () => {
  test("now and later, by any number of threads", async () => {
    using file = openSync(at("large.gguf"));
    for (const tensor of file.tensors.values()) {
      const expected = tensor.statsSync({ threads: 1, bins: 10 });
      assert.deepEqual(tensor.statsSync({ threads: 7, bins: 10 }), expected);
      assert.deepEqual(tensor.statsSync({ bins: 10 }), expected);
      assert.deepEqual(await tensor.stats({ bins: 10 }), expected);
    }
  });
  test("from a mapping, by reads, from memory, and from a server", async () => {
    using mapped = openSync(at("large.gguf"));
    using read = openSync(at("large.gguf"), { access: "read" });
    const bytes = new Uint8Array(readFileSync(at("large.gguf")));
    using memory = parse(bytes);
    const { url } = await serve(rangesOf(bytes));
    using remote = await openRemote(url);
    const expected = mapped.tensor("t").statsSync({ bins: 5 });
    const errors = await mapped.tensor("t").compare(mapped.tensor("u"));
    for (const file of [mapped, read, memory, remote]) {
      assert.deepEqual(await file.tensor("t").stats({ bins: 5 }), expected);
      assert.deepEqual(await file.tensor("t").compare(file.tensor("u")), errors);
      assert.deepEqual(await file.tensor("t").compare(mapped.tensor("u")), errors);
      if (file !== remote)
        assert.deepEqual((file as typeof mapped).tensor("t").compareSync(mapped.tensor("u")), errors);
      const same = await file.tensor("t").compare(mapped.tensor("t"));
      assert.deepEqual([same.sameBytes, same.different, same.snr], [true, 0, Infinity]);
    }
  });
  test("small tensors of files without a task in the pool for each", needsAddon, async () => {
    const [one, two] = [0, 1].map((change) => {
      const bytes = Buffer.alloc(2 ** 15, 1);
      bytes[2 ** 15 - 1] = change;
      return { type: ggmlTypes.I8.id, shape: [2 ** 15], bytes };
    }) as [object, object];
    const tensors = [
      { name: "a", ...one },
      { name: "b", ...two },
      { name: "c", ...one },
    ] as never;
    writeFileSync(at("small.gguf"), writeGguf({ tensors }));
    using file = openSync(at("small.gguf"));
    const started: string[] = [];
    const hook = createHook({
      init(_id, type) {
        if (type.startsWith("gguf-native")) started.push(type);
      },
    }).enable();
    let most = 0;
    const onProgress = (done: number, total: number): void => {
      most = done / total;
    };
    const found = await file.tensor("a").compare(file.tensor("b"), { onProgress });
    const same = await file.tensor("a").compare(file.tensor("c"));
    hook.disable();
    assert.deepEqual([started, most], [[], 1]);
    assert.deepEqual([found.different, found.maxError, found.sameBytes], [1, 1, false]);
    assert.deepEqual([same.different, same.sameBytes], [0, true]);
    assert.deepEqual(file.tensor("a").compareSync(file.tensor("b"), { threads: 1 }), found);
    assert.deepEqual(file.tensor("a").compareSync(file.tensor("c")), same);
  });
});

describe("comparisons", () => {
  test("have errors of the numbers that can be compared", async () => {
    const others = [0, -0, 1.5, 2.5, -3, NaN, Infinity, Infinity, 1, -1e-45, 3];
    const ordinary = [0, -0, 1, 2.5, -3, NaN, Infinity, -Infinity, NaN, -1e-45, 7];
    writeModel("pair.gguf", { tensors: [floats("a", ordinary), floats("b", others)] });
    using file = openSync(at("pair.gguf"));
    const found = await file.tensor("a").compare(file.tensor("b"));
    const { meanError, rmsError, relativeError, snr, ...exact } = found;
    assert.deepEqual(exact, { count: 11, sameBytes: false, different: 4, incomparable: 2, maxError: 4 });
    assertClose(meanError, 4.5 / 9);
    assertClose(rmsError, Math.sqrt(16.25 / 9));
    assertClose(relativeError, Math.sqrt(16.25 / 65.25));
    assertClose(snr, 10 * Math.log10(65.25 / 16.25));
  });
  test("of tensors that differ in one value, wherever it is", async () => {
    for (const count of [1000, 2 ** 16, 2 ** 16 + 1, 2 ** 20 + 7]) {
      const base = new Float32Array(count).fill(0.5);
      const places = [0, 1, 1023, 1024, 2 ** 18, count - 1].filter((place) => place < count);
      const others = places.map((place) => floats(`${place}`, base.with(place, 1.5), [count]));
      writeModel("one.gguf", { tensors: [floats("base", base, [count]), ...others] });
      using file = openSync(at("one.gguf"));
      for (const place of places) {
        const { sameBytes, different, maxError, meanError } = await file
          .tensor("base")
          .compare(file.tensor(`${place}`));
        assert.deepEqual([sameBytes, different, maxError, meanError], [false, 1, 1, 1 / count], `${place}`);
      }
    }
  });
  test("of other shapes, and with what is no tensor, are errors", async () => {
    using file = openSync(at("numbers.gguf"));
    await assert.rejects(file.tensor("special").compare(file.tensor("none")), { code: "ERR_GGUF_RANGE" });
    assert.throws(() => file.tensor("special").compareSync(file.tensor("none")), { code: "ERR_GGUF_RANGE" });
    for (const threads of [0, 1.5, "2"] as never[]) {
      assert.throws(() => file.tensor("none").compareSync(file.tensor("none"), { threads }), /threads/);
    }
    for (const other of [undefined, null, {}, file, 1]) {
      await assert.rejects(file.tensor("none").compare(other as never), { code: "ERR_INVALID_ARG_TYPE" });
      assert.throws(() => file.tensor("none").compareSync(other as never), { code: "ERR_INVALID_ARG_TYPE" });
    }
  });
});

describe("arguments", () => {
  const wrong: [options: unknown, code: string][] = [
    [{ bins: 0 }, "ERR_GGUF_RANGE"],
    [{ bins: 65537 }, "ERR_GGUF_RANGE"],
    [{ bins: 1.5 }, "ERR_GGUF_RANGE"],
    [{ bins: NaN }, "ERR_GGUF_RANGE"],
    [{ bins: "3" }, "ERR_INVALID_ARG_TYPE"],
    [{ bins: 3, range: [1, 0] }, "ERR_GGUF_RANGE"],
    [{ bins: 3, range: [NaN, 0] }, "ERR_GGUF_RANGE"],
    [{ bins: 3, range: [-Infinity, 0] }, "ERR_GGUF_RANGE"],
    [{ bins: 3, range: [-1e308, 1e308] }, "ERR_GGUF_RANGE"],
    [{ bins: 3, range: [0] }, "ERR_INVALID_ARG_TYPE"],
    [{ bins: 3, range: 7 }, "ERR_INVALID_ARG_TYPE"],
    [{ start: 1 }, "ERR_GGUF_RANGE"],
    [{ end: many + 256 }, "ERR_GGUF_RANGE"],
    [{ start: 512, end: 256 }, "ERR_GGUF_RANGE"],
    [7, "ERR_INVALID_ARG_TYPE"],
    [null, "ERR_INVALID_ARG_TYPE"],
  ];
  test("that are wrong", async () => {
    using file = openSync(at("large.gguf"));
    const tensor = file.tensor("t");
    for (const [options, code] of wrong) {
      assert.throws(() => tensor.statsSync(options as never), { code }, JSON.stringify(options));
      await assert.rejects(tensor.stats(options as never), { code }, JSON.stringify(options));
    }
    assert.throws(() => tensor.statsSync({ threads: 0 }), { code: "ERR_GGUF_RANGE" });
    await assert.rejects(tensor.stats({ signal: 1 as never }), { code: "ERR_INVALID_ARG_TYPE" });
    await assert.rejects(tensor.stats({ onProgress: 1 as never }), { code: "ERR_INVALID_ARG_TYPE" });
  });
  test("the addon checks totals itself", needsAddon, () => {
    const { native } = require(join(projectRoot, "dist", "backend", "native.js"));
    const bytes = new Uint8Array(1024);
    const run = (totals: unknown) => native.statsBlocksAsync(0, bytes, false, totals, undefined);
    assert.throws(() => run([1, 2, 3, 4]), TypeError);
    for (const length of [0, 3, 5, 8, 10, 11, 13, 70_000]) {
      assert.throws(() => run(new Float64Array(length)), { code: "ERR_GGUF_RANGE" }, String(length));
    }
    for (const fields of [[-1], [0.5], [NaN], [Infinity], [1, 2]]) {
      const totals = new Float64Array(9);
      totals.set(fields);
      assert.throws(() => run(totals), { code: "ERR_GGUF_RANGE" }, String(fields));
    }
    const range = new Float64Array(14);
    range.set([1, 0], 9);
    assert.throws(() => run(range), { code: "ERR_GGUF_RANGE" });
    assert.throws(() => native.compareBlocksAsync(0, bytes, 0, bytes.subarray(4), 0, new Float64Array(7)), {
      code: "ERR_GGUF_RANGE",
    });
  });
});

describe("later", sameElsewhere, () => {
  // The bytes of both are compared first, up to the difference at the end, and then the values.
  test("progress of a comparison does not go back where the values have to be compared, too", async () => {
    const elements = 2 ** 21;
    const bytes = new Uint8Array(4 * elements);
    const other = bytes.slice();
    other[4 * elements - 2] = 1;
    const tensors = [bytes, other].map((bytes, i) => ({ name: `t${i}`, type: 0, shape: [elements], bytes }));
    writeFileSync(at("differ-at-the-end.gguf"), writeGguf({ tensors }));
    using file = openSync(at("differ-at-the-end.gguf"));
    const seen: number[] = [];
    const onProgress = (done: number): number => seen.push(done);
    const { different } = await file.tensor("t0").compare(file.tensor("t1"), { onProgress });
    assert.equal(different, 1);
    assert.equal(seen.at(-1), elements);
    assert.ok(
      seen.every((done, i) => done > (seen[i - 1] ?? 0)),
      String(seen),
    );
  });
  test("a closed file: an error, but work that has started completes", async () => {
    const file = openSync(at("large.gguf"));
    const [t, u] = [file.tensor("t"), file.tensor("u")];
    const work = [t.stats(), t.compare(u)] as const;
    file.close();
    assert.equal((await work[0]).count, many);
    assert.equal((await work[1]).count, many);
    await assert.rejects(t.stats(), { code: "ERR_GGUF_CLOSED" });
    await assert.rejects(t.compare(u), { code: "ERR_GGUF_CLOSED" });
    assert.throws(() => t.statsSync(), { code: "ERR_GGUF_CLOSED" });
  });
  test("memory that is detached meanwhile", async () => {
    // More than is copied at once.
    const zeros = { name: "t", type: 0, shape: [2 ** 22], bytes: new Uint8Array(2 ** 24) };
    const bytes = writeGguf({ tensors: [zeros] });
    const file = parse(bytes);
    const work = file.tensor("t").stats();
    structuredClone(bytes.buffer, { transfer: [bytes.buffer as ArrayBuffer] });
    await assert.rejects(work, { code: "ERR_GGUF_RANGE" });
    assert.throws(() => file.tensor("t").statsSync());
  });
  test("memory that is copied while it is compared, or detached meanwhile", needsAddon, async () => {
    const { native, resultOf } = require(join(projectRoot, "dist", "backend", "native.js"));
    const elements = 2 ** 22;
    // More than is copied at once: with a second side that has as many bytes, and with one that has fewer.
    const floats = (): Uint8Array => new Uint8Array(Float32Array.from({ length: elements }, (_, i) => i % 1000).buffer);
    const copies: [Uint8Array, Uint8Array] = [floats(), new Uint8Array((elements / 32) * 34)];
    const shared = copies.map((bytes) => {
      const memory = new Uint8Array(new SharedArrayBuffer(bytes.length));
      memory.set(bytes);
      return memory;
    });
    const [F32, Q8_0] = [ggmlTypes.F32.id, ggmlTypes.Q8_0.id];
    const run = (typeA: number, a: unknown, typeB: number, b: unknown): Promise<Float64Array> =>
      resultOf(native.compareBlocksAsync(typeA, a, typeB, b, 0, new Float64Array(7)).promise);
    for (const { a, b } of [
      { a: [F32, 0], b: [Q8_0, 1] },
      { a: [Q8_0, 1], b: [F32, 0] },
      { a: [F32, 0], b: [F32, 0] },
    ] as const) {
      const expected = await run(a[0], shared[a[1]], b[0], shared[b[1]]);
      assert.equal(expected[0], elements);
      assert.deepEqual(await run(a[0], copies[a[1]], b[0], copies[b[1]]), expected);
      assert.deepEqual(await run(a[0], shared[a[1]], b[0], copies[b[1]]), expected);
    }
    const detached = floats();
    const work = [run(F32, detached, Q8_0, copies[1]), run(Q8_0, copies[1], F32, detached)].map((promise) =>
      assert.rejects(promise, { code: "ERR_GGUF_RANGE" }),
    );
    structuredClone(detached.buffer, { transfer: [detached.buffer as ArrayBuffer] });
    await Promise.all(work);
  });
});
