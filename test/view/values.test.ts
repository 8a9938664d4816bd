/** What the page shows of values: averages, scales of blocks, and the answers of its worker. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ggmlTypes, parse } from "gguf-native";
import { Averages, colorScale } from "../../view/lib/averages";
import { blockScales, hasScales } from "../../view/lib/block-scales";
import type { ModelView } from "../../view/lib/protocol";
import { gaussianBlocks } from "../support/blocks";
import { swapBlocks } from "../support/byte-order";
import { arr, f32, str, u32, writeGguf } from "../support/gguf-writer";
import { ALL_TYPES } from "../support/golden";
import { Random } from "../support/random";
import { sampleModel } from "../support/sample-model";
import { decode, viewSession } from "../support/view-session";

describe("averages", () => {
  /** The same without cleverness. */
  function slow(values: Float32Array, columns: number, width: number, height: number): number[] {
    const rows = values.length / columns;
    const sums: number[] = Array(width * height).fill(0);
    const counts: number[] = Array(width * height).fill(0);
    for (const [i, value] of values.entries()) {
      const [row, column] = [Math.floor(i / columns), i % columns];
      const cell = Math.floor((row * height) / rows) * width + Math.floor((column * width) / columns);
      sums[cell]! += value;
      counts[cell]!++;
    }
    return sums.map((sum, i) => sum / counts[i]!);
  }

  test("are the means of the cells, whatever pieces the values come in", () => {
    const random = new Random(3);
    for (const [columns, rows, width, height] of [
      [10, 7, 4, 3],
      [1, 100, 8, 8],
      [100, 1, 7, 5],
      [64, 64, 64, 64],
      [3, 2, 512, 512],
      [1000, 13, 32, 13],
    ] as const) {
      const values = Float32Array.from({ length: columns * rows }, () => random.gaussian());
      for (const piece of [1, 3, 17, values.length]) {
        const averages = new Averages(columns, rows, width, height);
        for (let at = 0; at < values.length; at += piece) averages.add(values.subarray(at, at + piece));
        const picture = averages.picture();
        assert.equal(picture.width, Math.min(width, columns));
        assert.equal(picture.height, Math.min(height, rows));
        const expected = slow(values, columns, picture.width, picture.height);
        picture.means.forEach((mean, i) => {
          assert.ok(Math.abs(mean - expected[i]!) < 1e-6, `${columns} x ${rows}: cell ${i}`);
        });
      }
    }
  });

  test("leave out what is not finite, and count it", () => {
    const averages = new Averages(4, 1, 2, 1);
    averages.add(Float32Array.of(1, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY));
    const { means, magnitudes, notFinite } = averages.picture();
    assert.deepEqual([...means], [1, Number.NaN]);
    assert.deepEqual([...magnitudes], [1, Number.NaN]);
    assert.equal(notFinite, 3);
  });

  test("of large values do not overflow", () => {
    const averages = new Averages(2, 1, 1, 1);
    averages.add(Float32Array.of(3e38, 3e38));
    assert.equal(averages.picture().means[0], Math.fround(3e38));
  });

  test("colours end where all but a few cells are", () => {
    const cells = Float32Array.from({ length: 1000 }, (_, i) => (i === 7 ? 1e6 : -1));
    assert.deepEqual(colorScale(cells, 0), { middle: 0, limit: 1 });
    assert.deepEqual(colorScale(Float32Array.of(0, 0, 3), 0), { middle: 0, limit: 3 });
    assert.deepEqual(colorScale(Float32Array.of(2, Number.NaN, 2), 0), { middle: 0, limit: 2 });
    assert.deepEqual(colorScale(Float32Array.of(Number.NaN), 0), { middle: 0, limit: 0 });
    assert.deepEqual(colorScale(new Float32Array(0), 0), { middle: 0, limit: 0 });
  });
});

describe("scales of blocks", () => {
  const random = new Random(9);
  const scaled = ALL_TYPES.filter(hasScales);

  test("are there for every type but plain numbers", () => {
    const plain = ALL_TYPES.filter((type) => !hasScales(type));
    const expected = ALL_TYPES.filter((type) => ggmlTypes[type].blockSize === 1);
    assert.deepEqual(plain, expected);
    assert.equal(hasScales("toString"), false);
  });

  for (const type of scaled) {
    test(`of ${type}: where they are zero, so are the values`, () => {
      const { typeSize, blockSize } = ggmlTypes[type];
      const blocks = gaussianBlocks(type, 3, random);
      const found = blockScales(type, blocks, "little", decode);
      assert.equal(found.length, 3);
      const values = decode(type, blocks);
      for (const [i, { scales, minimum }] of found.entries()) {
        for (const [s, scale] of scales.entries()) {
          const group = blockSize / scales.length;
          const part = values.subarray(i * blockSize + s * group, i * blockSize + (s + 1) * group);
          const largest = part.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
          assert.equal(largest === 0, scale === 0 && (minimum ?? 0) === 0, `block ${i}`);
          // Codes with their inner scales are below 2^15.
          assert.ok(largest <= (Math.abs(scale) + Math.abs(minimum ?? 0)) * 2 ** 15, `block ${i}`);
        }
      }
      const alone = blockScales(type, blocks.subarray(typeSize, 2 * typeSize), "little", decode);
      assert.deepEqual(alone, [found[1]]);
    });

    test(`of ${type} in a big-endian file are the same`, () => {
      const blocks = gaussianBlocks(type, 2, random);
      const shown = blockScales(type, swapBlocks(type, blocks), "big", decode);
      assert.deepEqual(shown, blockScales(type, blocks, "little", decode));
    });
  }

  test("are the numbers in the block", () => {
    const block = new Uint8Array(18);
    block.set([0x00, 0x3c]); // 1
    assert.deepEqual(blockScales("Q4_0", block, "little", decode), [{ scales: [1] }]);
    const withMinimum = new Uint8Array(144);
    withMinimum.set([0x00, 0x3c, 0x00, 0xb8]); // 1, -0.5
    assert.deepEqual(blockScales("Q4_K", withMinimum, "little", decode), [{ scales: [1], minimum: -0.5 }]);
    const power = new Uint8Array(17);
    power[0] = 127;
    assert.deepEqual(blockScales("MXFP4", power, "little", decode), [{ scales: [1] }]);
    const four = new Uint8Array(36);
    four.set([0x38, 0x40, 0x30, 0]);
    assert.deepEqual(blockScales("NVFP4", four, "little", decode), [{ scales: [1, 2, 0.5, 0] }]);
  });
});

describe("the worker", () => {
  const hostile = "<img src=x onerror=alert(1)>\u202e\u200b\u{e0041}\u0000\n";
  const rows = 2000;
  const files = {
    "https://example.com/sample.gguf?signature=secret": sampleModel(),
    hostile: writeGguf({
      metadata: [
        ["general.architecture", str("llama")],
        ["general.name", str(hostile)],
        [hostile, str(hostile.repeat(1000))],
        [
          "numbers",
          arr(
            "uint32",
            Array.from({ length: 1000 }, (_, i) => i),
          ),
        ],
        ["strings", arr("string", [hostile, "two"])],
        ["llama.context_length", u32(64)],
        ["pi", f32(3.25)],
      ],
      tensors: [
        {
          name: hostile,
          type: ggmlTypes.F32.id,
          shape: [256, rows],
          bytes: new Uint8Array(Float32Array.from({ length: 256 * rows }, (_, i) => Math.floor(i / 256)).buffer),
        },
        { name: "odd", type: 4, shape: [32], bytes: new Uint8Array(20) },
      ],
    }),
    not: Uint8Array.of(1, 2, 3),
  };
  const { ask, begin } = viewSession(files);
  const url = Object.keys(files)[0]!;
  const opened = ask("open", { url });
  const tensorNumber = (model: ModelView, name: string) => model.tensors.names.indexOf(name);

  test("opens a model, and says what inspect says", async () => {
    const model = await opened;
    assert.equal(model.name, "sample.gguf");
    const facts = Object.fromEntries(model.facts);
    assert.equal(facts.architecture, "llama");
    assert.equal(facts.name, "Sample llama, random weights");
    assert.equal(facts["context length"], "2,048");
    assert.equal(model.tensors.names.length, 20);
    assert.equal(model.tokenCount, 2048);
    assert.equal(model.contextLength, 2048);
    assert.deepEqual(model.tensors.blocks, ["blk.0", "blk.1"]);
    assert.equal(model.warning, undefined);
  });

  test("gives the vocabulary and values of tensors", async () => {
    const model = await opened;
    const { tokens, scores, count } = await ask("vocabulary", model.id);
    assert.equal(count, 2048);
    assert.deepEqual(tokens.slice(0, 4), ["<unk>", "<s>", "</s>", "▁token3"]);
    assert.equal(scores[3], -3);
    const tensor = tensorNumber(model, "blk.0.attn_q.weight");
    const view = await ask("values", {
      ...{ model: model.id, tensor },
      ...{ row: 511, column: 509, rows: 8, columns: 8 },
    });
    const direct = parse(files[url as keyof typeof files])
      .tensor("blk.0.attn_q.weight")
      .dequantizeSync();
    assert.deepEqual(view.values, [direct.slice(511 * 512 + 509)]);
    const stats = await ask("stats", { model: model.id, tensor, bins: 64 });
    assert.equal(stats.count, 512 * 512);
    const use = await ask("memory", { model: model.id, context: 1024 });
    assert.equal(use.cache.context, 1024);
    const scales = await ask("scales", { model: model.id, tensor, first: 1022, count: 32 });
    assert.equal(scales?.scales.length, 2);
    const norm = tensorNumber(model, "output_norm.weight");
    assert.equal(await ask("scales", { model: model.id, tensor: norm, first: 0, count: 32 }), null);
  });

  test("compares, with a picture of the difference", async () => {
    const model = await opened;
    const address = (name: string) => ({ model: model.id, tensor: tensorNumber(model, name) });
    const [a, b] = [address("blk.0.ffn_gate.weight"), address("blk.1.ffn_gate.weight")];
    const same = await ask("compare", { a, b: a });
    assert.equal(same.different, 0);
    const other = await ask("compare", { a, b });
    const missing = await ask("measure", [{ a, b: { ...b, tensor: 99 } }]);
    assert.deepEqual(missing, [{ failure: "there is no tensor 99" }]);
    assert.deepEqual(await ask("measure", [{ a, b }, a]), [other, await ask("stats", { ...a, bins: 0 })]);
    const picture = await ask("difference", { a, b, width: 16, height: 16 });
    const mean = picture.magnitudes.reduce((sum, value) => sum + value, 0) / 256;
    assert.ok(Math.abs(mean - other.meanError) < 1e-6 * other.meanError + 1e-9);
    assert.deepEqual(await ask("differentKeys", { a: model.id, b: model.id }), []);
  });

  test("shows hostile text as text, and a tensor of an unknown type as an error", async () => {
    const model = await ask("open", { url: "hostile" });
    const all = JSON.stringify(model);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    assert.doesNotMatch(all, /[\x00-\x1f\x7f-\x9f\u202a-\u202e]|\p{Default_Ignorable_Code_Point}/u);
    assert.equal(model.tensors.names[0], "<img src=x onerror=alert(1)>\\u202e\\u200b\\u{e0041}\\x00\\n");
    const key = model.metadata.findIndex(({ key }) => key.startsWith("<img"));
    const value = await ask("value", { model: model.id, key, first: 0, count: 100 });
    assert.ok(
      value.kind === "text" && value.text.startsWith("<img src=x onerror=alert(1)>\\u202e\\u200b\\u{e0041}\\x00\n"),
    );
    await assert.rejects(ask("stats", { model: model.id, tensor: 1, bins: 8 }), /unknown\(4\)/);
    const different = await ask("differentKeys", { a: model.id, b: (await opened).id });
    assert.ok(different.some(({ key, b }) => key === "pi" && b === undefined));
  });

  test("pages arrays", async () => {
    const model = await ask("open", { url: "hostile" });
    const value = (key: string, first: number) => {
      const index = model.metadata.findIndex((row) => row.key === key);
      return ask("value", { model: model.id, key: index, first, count: 100 });
    };
    const last = await value("numbers", 950);
    assert.ok(last.kind === "array" && last.length === 1000);
    const expected = Array.from({ length: 50 }, (_, i) => String(950 + i));
    assert.deepEqual(last.elements, expected);
    const strings = await value("strings", 1);
    assert.deepEqual(strings.kind === "array" && strings.elements, ['"two"']);
    const pi = await value("pi", 0);
    assert.equal(pi.kind === "text" && pi.text, "3.25");
  });

  test("averages down, says how far it is, and stops when that is cancelled", async () => {
    const model = await ask("open", { url: "hostile" });
    const request = { model: model.id, tensor: 0, width: 1, height: 4 };
    const whole = begin("picture", request);
    const picture = await whole.result;
    assert.deepEqual([...picture.means], [249.5, 749.5, 1249.5, 1749.5]);
    assert.deepEqual(whole.progress.at(-1), [256 * rows, 256 * rows]);
    const stopped = begin("picture", request);
    stopped.cancel();
    await assert.rejects(stopped.result, /abort/i);
  });

  test("says what is wrong with a file, and a closed one answers no more", async () => {
    await assert.rejects(ask("open", { url: "not" }), /not a GGUF file|truncated|ends/i);
    const cut = { ...files, cut: files[url as keyof typeof files].subarray(0, 400_000) };
    const other = viewSession(cut);
    const model = await other.ask("open", { url: "cut" });
    assert.match(model.warning ?? "", /incomplete: has [\d,]+ bytes, needs [\d,]+;/);
    await other.ask("close", model.id);
    await assert.rejects(other.ask("vocabulary", model.id), /the model was closed/);
  });
});
