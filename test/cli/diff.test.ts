/** `gguf-native diff`. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { blocks, EVIL, expectFailure, expectTidy, floats, json, output, run, writeModel } from "../support/cli";
import { arr, type GgufSpec, str, type TypedValue, u32, u64 } from "../support/gguf-writer";

const metadata: (readonly [string, TypedValue])[] = [
  ["general.architecture", str("llama")],
  ["context", u32(2048)],
  ["big", u64(2n ** 63n)],
];
const tensors = [floats("f", [1, 2, 3, 4]), blocks("q", "Q4_K", [256, 2], 1)];
writeModel("a.gguf", { metadata, tensors });

/** The difference between a.gguf and another model, in JSON; checks the exit code. */
async function differences(spec: GgufSpec) {
  writeModel("b.gguf", spec);
  const { same, metadata, tensors, notCompared } = await json("diff a.gguf b.gguf", 1);
  assert.equal(same, false);
  return { metadata, tensors, notCompared };
}

describe("no difference", () => {
  test("from itself", async () => {
    assert.equal(await output("diff a.gguf a.gguf"), "no differences\n");
    const whole = { bytes: [304, 304], tensors: 2, different: 0, snr: null };
    const none = { metadata: [], tensors: [], notCompared: [] };
    const expected = { a: "a.gguf", b: "a.gguf", same: true, whole, ...none };
    assert.deepEqual(await json("diff a.gguf a.gguf"), expected);
  });
  test("from the same in another version, order and alignment", async () => {
    const tensorsReversed = [...tensors].reverse();
    writeModel("b.gguf", {
      version: 2,
      alignment: 64,
      metadata: [...metadata].reverse(),
      tensors: tensorsReversed,
    });
    assert.equal(await output("diff a.gguf b.gguf"), "no differences\n");
  });
});

describe("metadata", () => {
  test("keys in one file only, values and types that differ", async () => {
    const found = await differences({
      metadata: [
        ["context", u64(2048)],
        ["big", u64(2n ** 63n + 1n)],
        ["__proto__", str(EVIL)],
      ],
      tensors,
    });
    assert.deepEqual(found.tensors, []);
    assert.deepEqual(found.metadata, [
      { key: "general.architecture", a: { type: "string", value: "llama" } },
      { key: "context", a: { type: "uint32", value: 2048 }, b: { type: "uint64", value: "2048" } },
      {
        ...{ key: "big", a: { type: "uint64", value: "9223372036854775808" } },
        ...{ b: { type: "uint64", value: "9223372036854775809" } },
      },
      { key: "__proto__", b: { type: "string", value: EVIL } },
    ]);
  });
});

describe("tensors", () => {
  test("in one file only, and of another shape", async () => {
    const found = await differences({
      metadata,
      tensors: [floats("f", [1, 2, 3, 4], [2, 2]), floats("new", [1])],
    });
    assert.deepEqual(found.metadata, []);
    assert.deepEqual(found.tensors, [
      { name: "f", types: ["F32", "F32"], shapes: [[4], [2, 2]] },
      { name: "q", only: "a", type: "Q4_K", shape: [256, 2] },
      { name: "new", only: "b", type: "F32", shape: [1] },
    ]);
  });
  test("with other values: errors by hand", async () => {
    const changed = [floats("f", [1, 2.5, 3, 2]), tensors[1]!];
    const [difference] = (await differences({ metadata, tensors: changed })).tensors;
    assert.deepEqual(difference, {
      ...{ name: "f", types: ["F32", "F32"], shapes: [[4], [4]], values: 4, different: 2, incomparable: 0 },
      ...{ maxError: 2, meanError: 2.5 / 4, rmsError: Math.sqrt(4.25 / 4) },
      ...{ relativeError: Math.sqrt(4.25 / 30), snr: 10 * Math.log10(30 / 4.25) },
    });
  });
  test("the whole model, and orders of tensors", async () => {
    const inA = [floats("x", [3, 4]), floats("w", [0, 2, 2]), floats("same", [1]), floats("gone", [1, 1])];
    writeModel("whole-a.gguf", { tensors: inA });
    writeModel("whole-b.gguf", {
      tensors: [floats("x", [3, 5]), floats("w", [1, 2, 4]), floats("same", [1])],
    });
    const { whole, tensors } = await json("diff whole-a.gguf whole-b.gguf", 1);
    const snr = 10 * Math.log10((25 + 8) / (1 + 5));
    assert.deepEqual([whole.bytes, whole.tensors, whole.different], [[32, 24], 4, 3]);
    assert.ok(Math.abs(whole.snr - snr) < 1e-9);
    const order = async (...sort: string[]) =>
      (await json(["diff", "whole-a.gguf", "whole-b.gguf", ...sort], 1)).tensors.map(
        ({ name }: { name: string }) => name,
      );
    assert.deepEqual(tensors.length, 3);
    assert.deepEqual(await order(), ["x", "w", "gone"]);
    assert.deepEqual(await order("--sort", "error"), ["gone", "w", "x"]);
    assert.deepEqual(await order("--sort", "size"), ["w", "x", "gone"]);
    assert.deepEqual(await order("--sort", "name"), ["gone", "w", "x"]);
    const { stdout } = await run("diff whole-a.gguf whole-b.gguf");
    const text =
      "\n\n3 of 4 tensors differ, 32 B -> 24 B; SNR 7.4 dB in all that have errors\n- in whole-a.gguf, + in whole-b.gguf\n";
    assert.ok(stdout.endsWith(text), stdout);
    await expectFailure("diff a.gguf a.gguf --sort bytes", 2, /--sort must be error, size or name/);
  });
  test("stored differently with the same values", async () => {
    writeModel("zero.gguf", { tensors: [floats("x", [0])] });
    writeModel("minus.gguf", { tensors: [floats("x", [-0])] });
    const { status, stdout } = await run("diff zero.gguf minus.gguf");
    assert.equal(status, 1);
    assert.match(stdout, /\n +x +stored differently +0 +0 +0 +inf +0\.0 %\n/);
  });
  test("with the same bytes in another byte order: other values", async () => {
    const same = { tensors: [floats("x", [1, 2, 3])] };
    writeModel("little.gguf", same);
    writeModel("big.gguf", { ...same, byteOrder: "big" });
    const [x] = (await json("diff little.gguf big.gguf", 1)).tensors;
    assert.deepEqual([x.values, x.different], [3, 3]);
    // And the same values in another byte order.
    const swapped = { ...floats("x", [1, 2, 3]) };
    swapped.bytes = Buffer.from(swapped.bytes).swap32();
    writeModel("swapped.gguf", { tensors: [swapped], byteOrder: "big" });
    const { status, stdout } = await run("diff little.gguf swapped.gguf");
    assert.equal(status, 1);
    assert.match(stdout, /\n +x +stored differently +0 +0 +0 +inf +0\.0 %\n/);
  });
  test("of unknown types are not compared, and a message says so", async () => {
    const unknown = { name: "u", type: 99, shape: [4], bytes: new Uint8Array(16) };
    writeModel("u.gguf", { tensors: [unknown] });
    const { status, stdout, stderr } = await run("diff u.gguf u.gguf");
    assert.deepEqual([status, stdout], [0, "no differences\n"]);
    assert.equal(stderr, "gguf-native: the data of 1 tensor of unknown types was not compared\n");
    assert.deepEqual((await json("diff u.gguf u.gguf")).notCompared, ["u"]);
    writeModel("v.gguf", { tensors: [{ ...unknown, type: 98 }] });
    const [u] = (await json("diff u.gguf v.gguf", 1)).tensors;
    assert.deepEqual(u.types, ["unknown(99)", "unknown(98)"]);
  });
});

describe("at 80 columns", () => {
  const rows = async (a: TypedValue, b: TypedValue): Promise<string[]> => {
    const key = "a.key.that.takes.a.good.part.of.the.line";
    writeModel("x.gguf", { metadata: [[key, a]] });
    writeModel("y.gguf", { metadata: [[key, b]], version: 2, byteOrder: "big" });
    const { stdout } = await run("diff x.gguf y.gguf");
    expectTidy(stdout);
    return Array.from(stdout.matchAll(/^ {2}[-+] {2}\S+ +\S+ +(.*)$/gm), ([, value]) => value as string);
  };
  const long = "the same for a long time, ".repeat(100);
  const tokens = Array.from({ length: 5000 }, (_, i) => `token ${i}`);
  test("values are shown from where they differ", async () => {
    for (const [a, b, expected] of [
      [str(`${long}one`), str(`${long}two`), ["…g time, one", "…g time, two"]],
      [str(`${long}漢字`), str(`${long}漢語`), ["…ime, 漢字", "…ime, 漢語"]],
      [str(long), str(`${long}!`), ["…g time,", "…g time, !"]],
      [
        arr("string", tokens),
        arr("string", tokens.with(4000, "other")),
        ['[4000] "token 4000", "token 4001", ...', '[4000] "other", "token 4001", ...'],
      ],
      [arr("int32", Array(600).fill(7)), arr("int32", [...Array(599).fill(7), 8]), ["[599] 7", "[599] 8"]],
      [arr("uint8", Array(600).fill(7)), arr("uint8", Array(601).fill(7)), ["[600] none", "[600] 7"]],
      [
        arr("array", [arr("int32", [1, 2, 3, 4, 5, 6]), arr("string", ["a", "b"])]),
        arr("array", [arr("int32", [1, 2, 3, 4, 5, 6]), arr("string", ["a", "c"])]),
        ['[1][1] "b"', '[1][1] "c"'],
      ],
      [str("short"), str("shore"), ["short", "shore"]],
      [str(`${"x".repeat(3 << 20)}a`), str(`${"x".repeat(3 << 20)}b`), ["…xxxxxxxxa", "…xxxxxxxxb"]],
    ] as const)
      for (const [i, shown] of (await rows(a, b)).entries()) {
        const whole = expected[i] as string;
        assert.ok(whole.startsWith(shown.replace(/…$/, "")), `${shown} is not the start of ${whole}`);
        assert.ok(shown.length >= Math.min(whole.length, 12), shown);
      }
  });
});
