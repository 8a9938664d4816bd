/** Splitting and merging models. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { gguf } from "@huggingface/gguf";
import { mergeModel, openSync, splitModel } from "gguf-native";
import { folder, read, root, written } from "../support/edited-model";
import type { GgufSpec } from "../support/gguf-writer";
import { sampleModel } from "../support/sample-model";

describe("splitModel and mergeModel", () => {
  const SPLIT = ["split.no", "split.count", "split.tensors.count"];
  const model = join(root, "sample.gguf");
  writeFileSync(model, sampleModel());
  const whole = read(model);

  test("by number of tensors: shards that are one model, and its parts", async () => {
    const dir = folder();
    const seen: [number, number][] = [];
    const paths = await splitModel(model, join(dir, "m.gguf"), {
      maxTensors: 7,
      onProgress: (...args) => seen.push(args),
    });
    assert.deepEqual(
      paths.map((path) => basename(path)),
      [1, 2, 3].map((n) => `m-0000${n}-of-00003.gguf`),
    );
    assert.deepEqual(readdirSync(dir).sort(), paths.map((path) => basename(path)).sort());
    for (const path of paths) assert.deepEqual(read(path, SPLIT), whole);
    const parts = paths.map((path) => openSync(path, { splits: false }));
    const shown = parts.map(({ tensors }) => tensors.size);
    assert.deepEqual(shown, [7, 7, 6]);
    assert.deepEqual(
      parts.map(({ metadata }) => SPLIT.map((key) => [metadata.typeOf(key)!.type, metadata.get(key)])),
      [0, 1, 2].map((no) => [
        ["uint16", no],
        ["uint16", 3],
        ["int32", 20],
      ]),
    );
    assert.deepEqual([...parts[1]!.metadata.keys()], SPLIT);
    for (const part of parts) part.close();
    const total = paths.reduce((sum, path) => sum + statSync(path).size, 0);
    assert.deepEqual(seen.at(-1), [total, total]);

    const first = await gguf(paths[0]!, { allowLocalFile: true });
    assert.equal(first.tensorInfos.length, 7);

    const merged = join(dir, "merged.gguf");
    await mergeModel(paths[2]!, merged);
    assert.deepEqual(read(merged), whole);
    assert.deepEqual(readFileSync(merged).length, openSync(merged).byteLength);
  });

  test("by size: as many as fit, no file larger", async () => {
    const dir = folder();
    for (const maxBytes of [300_000, 1_000_000, 2_000_000, 1e12]) {
      const paths = await splitModel(model, join(dir, String(maxBytes)), { maxBytes });
      const parts = paths.map((path) => openSync(path, { splits: false }));
      for (const [i, path] of paths.entries()) {
        const { size } = statSync(path);
        const alone = parts[i]!.tensors.size <= 1;
        assert.ok(size <= maxBytes || alone, `${path}: ${size} bytes`);
        const next = parts[i + 1] && [...parts[i + 1]!.tensors.values()][0]!;
        if (next !== undefined) assert.ok(size + next.byteLength + 32 > maxBytes, `${path} has room`);
      }
      for (const part of parts) part.close();
      assert.deepEqual(read(paths.at(-1)!, SPLIT), whole);
      if (maxBytes === 1e12) assert.equal(paths.length, 1);
    }
  });

  test("a file of exactly the size that is allowed", async () => {
    const [first] = await splitModel(model, join(folder(), "m"), { maxTensors: 7 });
    const { size } = statSync(first!);
    for (const [maxBytes, tensorCount] of [
      [size, 7],
      [size - 1, 6],
    ] as const) {
      const [path] = await splitModel(model, join(folder(), "m"), { maxBytes });
      using part = openSync(path!, { splits: false });
      assert.equal(part.tensors.size, tensorCount);
      if (maxBytes === size) assert.equal(part.byteLength, maxBytes);
    }
  });

  test("both limits, and a limit that only the metadata fit", async () => {
    const paths = await splitModel(model, join(folder(), "m"), { maxBytes: 1, maxTensors: 5 });
    assert.equal(paths.length, 21);
    assert.equal(openSync(paths[0]!, { splits: false }).tensors.size, 0);
    assert.deepEqual(read(paths[7]!, SPLIT), whole);
  });

  for (const [name, spec] of [
    ["version 1", { version: 1 }],
    ["big-endian", { byteOrder: "big" }],
    ["alignment 128", { alignment: 128 }],
    ["no tensors", { tensors: [] }],
  ] as [string, GgufSpec][]) {
    test(name, async () => {
      const path = written(spec);
      const dir = folder();
      const paths = await splitModel(pathToFileURL(path), pathToFileURL(join(dir, "m")), { maxTensors: 1 });
      assert.equal(paths.length, spec.tensors ? 1 : 3);
      assert.deepEqual(read(paths[0]!, SPLIT), read(path));
      if (spec.alignment) for (const each of paths) assert.equal(openSync(each).alignment, 128);
      const merged = join(dir, "merged.gguf");
      await mergeModel(paths[0]!, merged);
      assert.deepEqual(read(merged), read(path));
    });
  }

  test("splitting again, over the files that are split", async () => {
    const dir = folder();
    await splitModel(model, join(dir, "m"), { maxTensors: 10 });
    const paths = await splitModel(join(dir, "m-00001-of-00002.gguf"), join(dir, "m"), { maxTensors: 12 });
    assert.equal(paths.length, 2);
    assert.equal(readdirSync(dir).length, 2);
    assert.deepEqual(read(paths[0]!, SPLIT), whole);
    const first = openSync(paths[0]!, { splits: false });
    assert.equal(first.tensors.size, 12);
  });

  test("what is refused leaves nothing behind", async () => {
    const dir = folder();
    const prefix = join(dir, "m");
    const refuses = (promise: Promise<unknown>, code: string) => assert.rejects(promise, { code });
    await refuses(splitModel(model, prefix, {}), "ERR_INVALID_ARG_VALUE");
    await refuses(splitModel(model, prefix, undefined as never), "ERR_INVALID_ARG_VALUE");
    await refuses(splitModel(model, prefix, { maxTensors: 0 }), "ERR_GGUF_RANGE");
    await refuses(splitModel(model, prefix, { maxBytes: Number.NaN }), "ERR_GGUF_RANGE");
    await refuses(splitModel(model, prefix, { maxBytes: "1" as never }), "ERR_INVALID_ARG_TYPE");
    await refuses(splitModel(5 as never, prefix, { maxTensors: 1 }), "ERR_INVALID_ARG_TYPE");
    await refuses(splitModel(model, 5 as never, { maxTensors: 1 }), "ERR_INVALID_ARG_TYPE");
    for (const output of [".gguf", "", `${dir}/`, `${dir}\\`, `${dir}/.gguf`, pathToFileURL(`${dir}/`)]) {
      await refuses(splitModel(model, output, { maxTensors: 1 }), "ERR_INVALID_ARG_VALUE");
    }
    await refuses(mergeModel(model, ""), "ERR_INVALID_ARG_VALUE");
    await refuses(splitModel(join(dir, "none.gguf"), prefix, { maxTensors: 1 }), "ERR_GGUF_OPEN");
    await refuses(mergeModel(join(dir, "none.gguf"), prefix), "ERR_GGUF_OPEN");
    await refuses(mergeModel(model, 5 as never), "ERR_INVALID_ARG_TYPE");
    await refuses(splitModel(model, join(dir, "missing", "m"), { maxTensors: 1 }), "ERR_GGUF_WRITE");
    const odd = written({ tensors: [{ name: "odd", type: 4, shape: [32], bytes: new Uint8Array(64) }] });
    await refuses(splitModel(odd, prefix, { maxTensors: 1 }), "ERR_GGUF_UNSUPPORTED_TYPE");

    const reason = new Error("enough");
    const stop = new AbortController();
    let calls = 0;
    const onProgress = () => {
      if (++calls === 30) stop.abort(reason);
    };
    await assert.rejects(splitModel(model, prefix, { maxTensors: 1, signal: stop.signal, onProgress }), reason);
    assert.deepEqual(readdirSync(dir), []);
  });
});
