/** quantizeModel: what it writes, from models of every kind, and what it refuses. */
import assert from "node:assert/strict";
import { appendFileSync, existsSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import promises from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import {
  type GgmlType,
  GgufWriter,
  ggmlTypes,
  openRemote,
  openSync,
  parse,
  type QuantizableType,
  type QuantizeModelOptions,
  type QuantizeReport,
  quantizeModel,
  quantizeSync,
  splitModel,
} from "gguf-native";
import { swapBlocks } from "../support/byte-order";
import { lineOf } from "../support/child";
import { emulated } from "../support/emulated";
import { type GgufSpec, str, u32, writeGguf } from "../support/gguf-writer";
import { projectRoot, temporaryFolder } from "../support/paths";
import { Random } from "../support/random";
import { rangesOf, serve } from "../support/range-server";

const folder = temporaryFolder();
let counter = 0;
const newPath = (name = "gguf"): string => join(folder, `${counter++}.${name}`);

const random = new Random(11);
const gaussian = (count: number): Float32Array => Float32Array.from({ length: count }, () => random.gaussian());
const bytesOf = (numbers: Float32Array): Uint8Array => new Uint8Array(numbers.buffer);
const notUtf8 = Uint8Array.of(0x66, 0x80, ...Buffer.from(".weight"));
const f32 = (name: string | Uint8Array, shape: number[]) => {
  const count = shape.reduce((product, dim) => product * dim, 1);
  return { name, type: ggmlTypes.F32.id, shape, bytes: bytesOf(gaussian(count)) };
};
const spec: GgufSpec = {
  metadata: [
    ["general.architecture", str("llama")],
    ["general.file_type", u32(0)],
    ["llama.block_count", u32(2)],
  ],
  tensors: [
    f32("token_embd.weight", [256, 5]),
    f32("output_norm.weight", [256]),
    f32("blk.0.attn_v.weight", [256, 6]),
    f32("blk.0.ffn_down_exps.weight", [512, 3, 4]),
    f32("blk.0.rows_of_40.weight", [40, 3]),
    f32("blk.1.attn_v.weight", [256, 6]),
    f32(notUtf8, [64, 2]),
    f32("empty.weight", [0, 4]),
    { name: "ids.weight", type: ggmlTypes.I32.id, shape: [4, 2], bytes: new Uint8Array(32).fill(7) },
    f32("output.weight", [256, 5]),
  ],
};
const original = writeGguf(spec);
const originalFile = parse(original);

function written(bytes: Uint8Array = original): string {
  const path = newPath();
  writeFileSync(path, bytes);
  return path;
}

/** Types of the new tensors, by name. */
const Q4_0_TYPES: Record<string, GgmlType> = {
  "token_embd.weight": "Q4_0",
  "output_norm.weight": "F32",
  "blk.0.attn_v.weight": "Q4_0",
  "blk.0.ffn_down_exps.weight": "Q4_0",
  "blk.0.rows_of_40.weight": "F16",
  "blk.1.attn_v.weight": "Q4_0",
  "f\ufffd.weight": "Q4_0",
  "empty.weight": "Q4_0",
  "ids.weight": "I32",
  "output.weight": "Q8_0",
};
/** Q6_K for the output is another test's. */
const options: QuantizeModelOptions = { type: "Q4_0", tensors: { "output.weight": "Q8_0" } };

/** The new file has these types, and the blocks of `quantizeSync`. */
function expectQuantized(
  path: string,
  types: Readonly<Record<string, GgmlType>> = Q4_0_TYPES,
  search?: "ggml" | "best",
): void {
  const file = openSync(path);
  try {
    assert.deepEqual([...file.tensors.keys()], Object.keys(types));
    for (const [name, type] of Object.entries(types)) {
      const before = originalFile.tensor(name);
      const after = file.tensor(name);
      assert.deepEqual([after.type, after.shape], [type, before.shape], name);
      const expected =
        type === before.type
          ? before.bytes()
          : quantizeSync(type as QuantizableType, before.dequantizeSync(), { search });
      assert.deepEqual(after.bytes(), expected, name);
    }
    assert.deepEqual(Buffer.from(file.tensor("f\ufffd.weight").nameBytes()), Buffer.from(notUtf8));
  } finally {
    file.close();
  }
}

describe("quantizeModel", () => {
  test("types, blocks, metadata and the report", async () => {
    const output = newPath();
    const report = await quantizeModel(written(), output, options);
    expectQuantized(output);
    using file = openSync(output);
    const found = [file.metadata.get("general.file_type"), file.metadata.get("general.quantization_version")];
    assert.deepEqual(found, [2, 2]);
    assert.equal(file.metadata.architecture, "llama");
    const total = (of: typeof file, key: "elementCount" | "byteLength"): number =>
      [...of.tensors.values()].reduce((sum, each) => sum + each[key], 0);
    assert.deepEqual(
      [report.type, report.elementCount, report.bytes, report.byteLength],
      ["Q4_0", total(file, "elementCount"), total(file, "byteLength"), statSync(output).size],
    );
    assert.equal(report.bytesBefore, total(originalFile, "byteLength"));
    assert.equal(report.bitsPerWeight, (8 * report.bytes) / report.elementCount);
    assert.deepEqual(Object.fromEntries(report.tensors.map(({ name, to }) => [name, to])), Q4_0_TYPES);
    for (const { name, from, to, wanted, bytes, error, lacksImportance } of report.tensors) {
      const after = file.tensor(name);
      const shown = [bytes, from, lacksImportance];
      assert.deepEqual(shown, [after.byteLength, originalFile.tensor(name).type, false]);
      assert.equal(wanted, name === "blk.0.rows_of_40.weight" ? "Q4_0" : undefined);
      if (from === to) {
        assert.equal(error, undefined, name);
        continue;
      }
      const { snr, rmsError, relativeError, maxError } = await originalFile.tensor(name).compare(after);
      assert.ok(error !== undefined);
      assert.equal(error.maxError, maxError);
      const near = (a: number, b: number) => assert.ok(a === b || Math.abs(a - b) <= 1e-9 * Math.abs(b), `${a}, ${b}`);
      near(error.snr, snr);
      near(error.rmsError, rmsError);
      near(error.relativeError, relativeError);
    }
  });

  test("of an open model, one in several files, one on a server, and a big-endian one", async () => {
    const whole = written();
    const output = newPath();
    using open = openSync(whole);
    await quantizeModel(open, output, options);
    assert.equal(open.closed, false);
    expectQuantized(output);
    const expected = readFileSync(output);
    const [first] = (await splitModel(whole, join(folder, "split"), { maxTensors: 3 })) as [string];
    const { url } = await serve(rangesOf(original));
    using remote = await openRemote(url);
    const tensors = (spec.tensors ?? []).map((each) => {
      const type = each.type === ggmlTypes.I32.id ? "I32" : "F32";
      return { ...each, bytes: swapBlocks(type, each.bytes) };
    });
    for (const input of [first, url, remote, written(writeGguf({ ...spec, tensors, byteOrder: "big" }))]) {
      await quantizeModel(input, output, options);
      assert.deepEqual(readFileSync(output), expected);
    }
  });

  test("a wider search, of the types that have one", async () => {
    const path = written();
    const outputs: [output: string, report: QuantizeReport][] = [];
    for (const search of ["ggml", "best"] as const) {
      const output = newPath();
      outputs.push([output, await quantizeModel(path, output, { ...options, search })]);
      expectQuantized(output, Q4_0_TYPES, search);
    }
    const [[ggml, before], [best, after]] = outputs as [(typeof outputs)[0], (typeof outputs)[0]];
    assert.notDeepEqual(readFileSync(best), readFileSync(ggml));
    for (const [i, { name, to, error }] of after.tensors.entries()) {
      const theirs = before.tensors[i]?.error;
      if (to !== "Q4_0" || error === undefined || theirs === undefined) assert.deepEqual(error, theirs, name);
      else if (name !== "empty.weight") assert.ok(error.snr > theirs.snr, name);
    }
  });

  test("in place of its input, which may be open", async () => {
    const path = written();
    await quantizeModel(path, path, options);
    expectQuantized(path);
  });

  test("rows in many pieces, and those longer than a piece", async () => {
    const path = newPath();
    const numbers = gaussian(2 ** 16);
    const piece = bytesOf(numbers);
    const many = { columns: 2 ** 12, rows: 700 };
    const long = { columns: 2 ** 20 + 2 ** 15, rows: 2 };
    async function* data(count: number): AsyncGenerator<Uint8Array> {
      for (let left = 4 * count; left > 0; left -= piece.length) yield piece.subarray(0, left);
    }
    const writer = new GgufWriter();
    for (const [name, { columns, rows }] of Object.entries({ many, long })) {
      writer.addTensor(`${name}.weight`, "F32", [columns, rows], () => data(columns * rows));
    }
    await writer.write(path);
    const output = newPath();
    const { tensors } = await quantizeModel(path, output, { type: "Q8_0" });
    using before = openSync(path);
    using after = openSync(output);
    for (const { name, error } of tensors) {
      const expected = quantizeSync("Q8_0", before.tensor(name).dequantizeSync());
      assert.ok(Buffer.compare(after.tensor(name).bytes(), expected) === 0, name);
      const { maxError, rmsError } = await before.tensor(name).compare(after.tensor(name));
      assert.equal(error?.maxError, maxError);
      assert.ok(Math.abs((error?.rmsError ?? 0) / rmsError - 1) < 1e-9);
    }
  });

  test("names and globs", async () => {
    const output = newPath();
    const tensors: Record<string, GgmlType> = {
      "blk.*.attn_v.weight": "Q5_1",
      "blk.1.*": "Q4_1",
      "blk.1.attn_v.weight": "BF16",
      "output.weight": "F32",
    };
    await quantizeModel(written(), output, { type: "q8_0", tensors });
    expectQuantized(output, {
      ...Q4_0_TYPES,
      ...{ "token_embd.weight": "Q8_0", "blk.0.attn_v.weight": "Q5_1", "blk.0.ffn_down_exps.weight": "Q8_0" },
      ...{ "blk.1.attn_v.weight": "BF16", "f\ufffd.weight": "Q8_0", "empty.weight": "Q8_0", "output.weight": "F32" },
    });
    const path = written();
    const refuses = (tensors: object, code: string, message: RegExp) =>
      assert.rejects(quantizeModel(path, newPath(), { ...options, tensors: tensors as never }), { code, message });
    await refuses({ "output.weigth": "Q8_0" }, "ERR_GGUF_TENSOR_NOT_FOUND", /Did you mean 'output.weight'\?/);
    await refuses({ "output_norm.weight": "Q8_0" }, "ERR_GGUF_TENSOR_NOT_FOUND", /keeps its type/);
    const none = /no tensor that is quantized has a name that matches 'v\.\*'/;
    await refuses({ "v.*": "Q8_0" }, "ERR_GGUF_TENSOR_NOT_FOUND", none);
    await refuses({ "*": "Q9_0" }, "ERR_GGUF_UNSUPPORTED_TYPE", /'\*' cannot get the type Q9_0/);
    await refuses({ "*": "I8" }, "ERR_GGUF_UNSUPPORTED_TYPE", /'\*' cannot get the type I8: blocks/);
    await refuses({ "*": 8 }, "ERR_INVALID_ARG_TYPE", /options\.tensors\['\*'\]/);
    await refuses("Q8_0" as never, "ERR_INVALID_ARG_TYPE", /options\.tensors/);
  });

  test("a dry run writes nothing", async () => {
    const output = newPath();
    const path = written();
    const dry = await quantizeModel(path, output, { ...options, dryRun: true });
    assert.equal(existsSync(output), false);
    const { tensors, ...rest } = await quantizeModel(path, output, options);
    const without = tensors.map(({ error, ...each }) => each);
    assert.deepEqual(dry, { ...rest, tensors: without });
    const names = (await quantizeModel(path, output, { type: "IQ2_XXS", dryRun: true })).tensors;
    const matching = names.filter(({ lacksImportance }) => lacksImportance).map(({ name, to }) => [name, to]);
    assert.deepEqual(matching, [["blk.0.ffn_down_exps.weight", "IQ2_XXS"]]);
    const worthless = { code: "ERR_GGUF_INVALID", message: /IQ2_XXS needs an importance matrix/ };
    await assert.rejects(quantizeModel(path, newPath(), { type: "IQ2_XXS" }), worthless);
  });

  test("what is quantized already", async () => {
    const path = newPath();
    await quantizeModel(written(), path, { type: "Q8_0", tensors: { "output.weight": "Q8_0" } });
    await assert.rejects(quantizeModel(path, newPath(), options), {
      code: "ERR_GGUF_UNSUPPORTED_TYPE",
      message: /tensor 'token_embd.weight': it is quantized already, as Q8_0, and loses more/,
    });
    // Nothing is lost by more bits for each weight, nor where the type stays.
    await quantizeModel(path, newPath(), { type: "BF16" });
    await quantizeModel(path, newPath(), { type: "Q8_0" });
    const again = newPath();
    await quantizeModel(path, again, { ...options, allowRequantize: true });
    using before = openSync(path);
    using after = openSync(again);
    const expected = quantizeSync("Q4_0", before.tensor("blk.0.attn_v.weight").dequantizeSync());
    assert.deepEqual(after.tensor("blk.0.attn_v.weight").bytes(), expected);
  });

  test("NVFP4 with a second scale, for which other types have no place", async () => {
    const path = newPath();
    await new GgufWriter()
      .addTensor("a.weight", "NVFP4", [64, 2], new Uint8Array(72))
      .addTensor("a.scale", "F32", [1], new Float32Array(1))
      .write(path);
    const expected = /it has a second scale, the tensor 'a.scale'/;
    await assert.rejects(quantizeModel(path, newPath(), { type: "F16" }), expected);
  });

  test("a number that no block can hold is named by its place in the tensor", async () => {
    const path = newPath();
    const [columns, rows] = [2 ** 12, 300];
    const numbers = new Float32Array(columns * rows);
    numbers[290 * columns + 7] = Number.NaN;
    numbers[295 * columns] = Number.NEGATIVE_INFINITY;
    await new GgufWriter().addTensor("a.weight", "F32", [columns, rows], numbers).write(path);
    const output = newPath();
    await assert.rejects(quantizeModel(path, output, { type: "Q8_0" }), {
      code: "ERR_GGUF_RANGE",
      message: `${path}: tensor 'a.weight': number 1187847 (row 290, column 7) is NaN, which Q8_0 blocks cannot hold`,
    });
    assert.equal(existsSync(output), false);
    await quantizeModel(path, output, { type: "F16" });
  });

  test("wrong arguments", async () => {
    const path = written();
    const wrong = (input: unknown, output: unknown, options: unknown, code: string) =>
      assert.rejects(quantizeModel(input as never, output as never, options as never), { code });
    await wrong(5, newPath(), { type: "Q8_0" }, "ERR_INVALID_ARG_TYPE");
    await wrong(path, 5, { type: "Q8_0" }, "ERR_INVALID_ARG_TYPE");
    await wrong(path, "", { type: "Q8_0" }, "ERR_INVALID_ARG_VALUE");
    await wrong(path, newPath(), undefined, "ERR_INVALID_ARG_TYPE");
    await wrong(path, newPath(), { type: 8 }, "ERR_INVALID_ARG_TYPE");
    await wrong(path, newPath(), { type: "Q8_0", dryrun: true }, "ERR_INVALID_ARG_VALUE");
    await wrong(path, newPath(), { type: "Q8_0", dryRun: 1 }, "ERR_INVALID_ARG_TYPE");
    await wrong(path, newPath(), { type: "Q8_0", search: 1 }, "ERR_INVALID_ARG_TYPE");
    await wrong(path, newPath(), { type: "Q8_0", search: "wide" }, "ERR_INVALID_ARG_VALUE");
    await wrong(path, newPath(), { type: "Q8_0", importance: 1 }, "ERR_INVALID_ARG_TYPE");
    await wrong(newPath(), newPath(), { type: "Q8_0" }, "ERR_GGUF_OPEN");
    await assert.rejects(quantizeModel(path, newPath(), { type: "Q4_K_N" }), /did you mean Q4_K_M\?/);
    const known = /cannot be quantized to small; there are F32, /;
    await assert.rejects(quantizeModel(path, newPath(), { type: "small" }), known);
  });
});

describe("an output is whole or not there", () => {
  const leftovers = (): string[] => readdirSync(folder).filter((name) => /\.(tmp|journal|old)$/.test(name));

  test("a model that is cut off, or changes", async () => {
    const output = newPath();
    const cut = written(original.subarray(0, original.length - 5000));
    await assert.rejects(quantizeModel(cut, output, options), { code: "ERR_GGUF_TRUNCATED" });
    using partial = openSync(cut, { partial: true });
    await assert.rejects(quantizeModel(partial, output, options), { code: "ERR_GGUF_TRUNCATED" });
    const path = written();
    let isChanged = false;
    const onProgress = (): void => {
      if (!isChanged) appendFileSync(path, "x");
      isChanged = true;
    };
    await assert.rejects(quantizeModel(path, output, { ...options, onProgress }), {
      code: "ERR_GGUF_CHANGED",
    });
    assert.deepEqual([existsSync(output), leftovers()], [false, []]);
  });

  for (const when of ["before", "after", "long after"] as const) {
    for (const what of ["model", "importance"] as const) {
      test(`another ${what} takes its place ${when} it is opened`, async (context) => {
        const tensors = (value: number) => [
          { ...f32("output.weight.in_sum2", [256, 1]), bytes: bytesOf(gaussian(256).map(Math.abs)) },
          { ...f32("output.weight.counts", [1, 1]), bytes: bytesOf(Float32Array.of(value)) },
        ];
        const matrix = (value: number): Uint8Array => writeGguf({ tensors: tensors(value) });
        const [model, importance] = [written(), written(matrix(1))];
        const another = writeGguf({ ...spec, tensors: [f32("output.weight", [256, 5])] });
        const other = written(what === "model" ? another : matrix(2));
        const place = what === "model" ? model : importance;
        const output = newPath();
        /** It is refused, and nothing is left. */
        const refused = async (work: Promise<unknown>, message = /./): Promise<void> => {
          await assert.rejects(work, { code: "ERR_GGUF_CHANGED", path: place, message });
          assert.deepEqual([existsSync(output), leftovers()], [false, []]);
        };
        if (when === "long after") {
          using file = openSync(place);
          renameSync(other, place);
          const given = what === "model" ? options : { ...options, importance: file };
          const work = quantizeModel(what === "model" ? file : model, output, given);
          return await refused(work, /another file has taken its place/);
        }
        const { open } = promises;
        let isOpened = false;
        context.mock.method(promises, "open", async (...args: Parameters<typeof open>) => {
          if (args[0] !== place || isOpened) return open(...args);
          isOpened = true;
          if (when === "before") renameSync(other, place);
          const handle = await open(...args);
          if (when === "after") renameSync(other, place);
          return handle;
        });
        const all = { ...options, importance };
        if (when === "after") return await refused(quantizeModel(model, output, all));
        await quantizeModel(model, output, all);
        context.mock.restoreAll();
        const expected = newPath();
        await quantizeModel(model, expected, all);
        assert.ok(readFileSync(output).equals(readFileSync(expected)));
      });
    }
  }

  const skip = emulated && "an emulated processor takes too long for this";
  test("a gigabyte of weights takes little memory", { skip }, async () => {
    const program = `
      const { GgufWriter, openSync, quantizeModel } = require(${JSON.stringify(projectRoot)});
      const path = ${JSON.stringify(newPath())};
      const piece = new Float32Array(1 << 18).map((_, i) => Math.sin(i));
      async function* data() { for (let i = 0; i < 512; i++) yield piece; }
      (async () => {
        const writer = new GgufWriter();
        for (const name of ["a", "b"]) writer.addTensor(name + ".weight", "F32", [4096, 32768], data);
        await writer.write(path);
        let peak = 0;
        const timer = setInterval(() => { peak = Math.max(peak, process.memoryUsage.rss()); }, 5);
        await quantizeModel(path, path + ".out", { type: "Q8_0" });
        clearInterval(timer);
        console.log(peak);
      })();`;
    const peak = Number(await lineOf(["-e", program]));
    assert.ok(peak > 0 && peak < 400e6, `${peak} bytes`);
  });
});

describe("types for a size", () => {
  const rough = (name: string, shape: number[]) => {
    const numbers = gaussian(shape.reduce((product, dim) => product * dim, 1)).map((x) => x ** 5);
    return { ...f32(name, shape), bytes: bytesOf(numbers) };
  };
  const made = parse(
    writeGguf({
      ...spec,
      tensors: [
        ...[f32("token_embd.weight", [256, 64]), f32("output_norm.weight", [256])],
        ...[f32("blk.0.attn_v.weight", [256, 32]), rough("blk.0.ffn_down_exps.weight", [512, 16, 3])],
        ...[f32("blk.1.rows_of_40.weight", [40, 5]), f32("blk.1.rows_of_96.weight", [96, 11])],
      ],
    }),
  );
  const weights = [...made.tensors.values()].reduce((all, { elementCount }) => all + elementCount, 0);
  const quantized = (how: QuantizeModelOptions): Promise<QuantizeReport> => quantizeModel(made, newPath(), how);
  const typesOf = ({ tensors }: QuantizeReport) => Object.fromEntries(tensors.map(({ name, to }) => [name, to]));

  test("bytes of the file, and bits of a weight, are never more, and more of them lose less", async () => {
    let before = 0;
    for (const bits of [3.5, 4.5, 5.25, 7, 10, 17, 40]) {
      const byBits = await quantized({ targetBits: bits });
      assert.ok(byBits.bitsPerWeight <= bits && byBits.type === `${bits} bits`);
      const report = await quantized({ targetBytes: (bits * weights) / 8 + 600 });
      assert.ok(report.byteLength <= (bits * weights) / 8 + 600);
      assert.ok(bits > 32 || report.byteLength > 0.9 * ((bits * weights) / 8));
      const { chosen, mixes } = report.choice as NonNullable<QuantizeReport["choice"]>;
      assert.deepEqual([chosen.byteLength, mixes.length], [report.byteLength, 5]);
      assert.ok(chosen.snr > before || chosen.error === 0, `${bits}: ${chosen.snr}, ${before}`);
      before = chosen.snr;
      for (const mix of mixes) {
        assert.equal(mix.byteLength, (await quantized({ type: mix.type, dryRun: true })).byteLength, mix.type);
        assert.ok(mix.byteLength > chosen.byteLength || mix.error >= chosen.error, mix.type);
      }
    }
  });

  test("what it measures is the error that there is, with importance that of its columns", async () => {
    const importance = newPath();
    const sums = Float32Array.from({ length: 256 }, (_, i) => (i < 32 ? 1000 : 1));
    await new GgufWriter()
      .addTensor("token_embd.weight.in_sum2", "F32", [256, 1], sums)
      .addTensor("token_embd.weight.counts", "F32", [1, 1], Float32Array.of(1))
      .write(importance);
    const all = [...made.tensors.values()].filter(({ name }) => !name.includes("norm"));
    const shares = all.reduce((sum, { elementCount }) => sum + Math.sqrt(elementCount), 0);
    const before = made.tensor("token_embd.weight").dequantizeSync();
    for (const given of [{}, { importance }, { importance, named: "IQ2_XXS" as const }]) {
      const output = newPath();
      const { named, ...rest } = { named: undefined, ...given };
      const tensors = { "blk.*": "F32", ...(named && { "token_embd.weight": named }) } as const;
      const how = { targetBits: 22.6, tensors, ...rest };
      const { choice } = await quantizeModel(made, output, how);
      using file = openSync(output);
      const after = file.tensor("token_embd.weight").dequantizeSync();
      const squares = (of: (i: number) => number): number =>
        before.reduce((sum, _, i) => sum + ("importance" in given ? (sums[i % 256] as number) : 1) * of(i) ** 2, 0);
      const noise = squares((i) => (before[i] as number) - (after[i] as number));
      const expected = ((Math.sqrt(before.length) / shares) * noise) / squares((i) => before[i] as number);
      const error = choice?.chosen.error ?? 0;
      assert.ok(Math.abs(error - expected) < 1e-9 * expected, `${error}, ${expected}`);
    }
  });

  test("the same types again; those that are named stay; a matrix that is hard to round gets more", async () => {
    const report = await quantized({ targetBits: 5 });
    assert.deepEqual(typesOf(await quantized({ targetBits: 5, threads: 1 })), typesOf(report));
    const named = typesOf(await quantized({ targetBits: 5, tensors: { "*attn_v*": "Q2_K" } }));
    assert.deepEqual([named["blk.0.attn_v.weight"], named["output_norm.weight"]], ["Q2_K", "F32"]);
    const bits = (name: string): number => {
      const { bytes = 0, elementCount = 1 } = report.tensors.find((each) => each.name === name) ?? {};
      return bytes / elementCount;
    };
    assert.ok(bits("blk.0.ffn_down_exps.weight") > bits("token_embd.weight"));
  });

  test("sizes that are too small, and options that do not go together", async () => {
    const least = await quantized({ targetBits: 2.5 }).then(
      () => assert.fail("it is too small"),
      (error: Error) => Number(/the smallest possible are ([\d.]+); an importance matrix/.exec(error.message)?.[1]),
    );
    assert.ok((await quantized({ targetBits: least })).bitsPerWeight <= least);
    const refused = { code: "ERR_GGUF_RANGE", message: /^100 bytes are too few: .* size is \d+ bytes/ };
    await assert.rejects(quantized({ targetBytes: 100 }), refused);
    const notBoth = { code: "ERR_INVALID_ARG_VALUE", message: /options\.targetBits/ };
    await assert.rejects(quantized({ type: "Q8_0", targetBits: 5 }), notBoth);
    await assert.rejects(quantized({ targetBits: -5 }), notBoth);
    await assert.rejects(quantized({ targetBits: Number.NaN }), notBoth);
    await assert.rejects(quantized({ targetBytes: "4G" as never }), { code: "ERR_INVALID_ARG_TYPE" });
  });
});
