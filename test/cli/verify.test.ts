/** `gguf-native verify`. */
import assert from "node:assert/strict";
import { truncateSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { at, blocks, EVIL, expectTidy, floats, json, output, run, writeModel } from "../support/cli";
import { arr, type GgufSpec, str, type TypedValue, u32 } from "../support/gguf-writer";
import { sampleModel } from "../support/sample-model";
import { needsShared, sharedPath, tinyLlama, vocabularies } from "../support/shared-data";
import { writeSparseGguf } from "../support/sparse-file";

writeFileSync(at("sample.gguf"), sampleModel());
writeModel("empty.gguf", {});
writeFileSync(at("cut.gguf"), sampleModel());
truncateSync(at("cut.gguf"), 1_000_000);

describe("good files", () => {
  test("are counted", async () => {
    const expected = "ok   sample.gguf  20 tensors, 7.08 M values\nok   empty.gguf  0 tensors, 0 values\n";
    assert.equal(await output("verify sample.gguf empty.gguf"), expected);
    const [file] = (await json("verify sample.gguf")).files;
    assert.deepEqual(file, {
      ...{
        path: "sample.gguf",
        ok: true,
        tensors: 20,
        values: 7_080_448,
        notScanned: [],
        findings: [],
        warnings: [],
      },
    });
  });
  for (const name of [tinyLlama, ...vocabularies]) {
    test(name, needsShared(name), async () => {
      assert.match(await output("verify", sharedPath(name)), /^ok {3}/);
    });
  }
});

describe("warnings, which change no verdict", () => {
  const warningsOf = async (spec: GgufSpec) => {
    writeModel("odd.gguf", spec);
    const { status, stdout, stderr } = await run("verify odd.gguf");
    assert.equal(status, 0);
    assert.match(stdout, /^ok {3}odd\.gguf/);
    const [file] = (await json("verify odd.gguf")).files;
    const lines = file.warnings.map((each: string) => `gguf-native: warning: ${each}\n`).join("");
    assert.equal(stderr, lines);
    return (file.warnings as string[]).map((each) => each.replace(/^odd\.gguf: /, ""));
  };
  const one = u32(1);
  test("keys", async () => {
    const good = ["a.b_c", "general.x2", "my-arch.block_count", "gpt_2.0.name"];
    const architecture = ["general.architecture", str("my-arch")] as [string, TypedValue];
    const metadata = good.map((key): [string, TypedValue] => [key, one]);
    assert.deepEqual(await warningsOf({ metadata: [architecture, ...metadata] }), []);
    for (const bad of ["General.name", "a.b c", "a..b", ".a", "a.", "other-arch.b", "a.\u00fc", "name"]) {
      const what = "not lower-case ASCII words with dots between them, such as a.b_c";
      assert.deepEqual(await warningsOf({ metadata: [architecture, [bad, one]] }), [`1 key is ${what}: '${bad}'`]);
    }
    const many = Array.from({ length: 5 }, (_, i): [string, TypedValue] => [`A${i}`, one]);
    const [line] = await warningsOf({ metadata: many });
    assert.match(line as string, /^5 keys are .*: 'A0', 'A1', 'A2', 2 others$/);
  });
  test("of what only other programs read", async () => {
    const foreign = { type: 133, shape: [128, 2], bytes: new Uint8Array(68) };
    const warnings = await warningsOf({
      metadata: [
        ["general.quantization_version", u32(2)],
        ["prism.hadamard.block_size", u32(1024)],
        ["prism.hadamard.weight_names", arr("string", ["a", "b"])],
      ],
      tensors: [
        { name: "a", ...foreign },
        { name: "b", ...foreign },
        { name: "c", type: 142, shape: [128], bytes: new Uint8Array(34) },
      ],
    });
    assert.match(
      warnings.join("\n"),
      /^2 tensors of type unknown\(133\): Q6_0 of ik_llama.*\n1 tensor of type PQ2_0, which.*\n2 weights are rotated/,
    );
    const report = (await output("inspect odd.gguf")).replace(/\s+/g, " ");
    for (const each of warnings) assert.ok(report.includes(each), each);
  });
  test("names of tensors", async () => {
    const names = [63, 64].map((length) => "n".repeat(length));
    const found = await warningsOf({ tensors: names.map((name) => floats(name, [1])) });
    assert.deepEqual(found, [`1 tensor name has more than 63 bytes: '${names[1]}'`]);
    const wide = "\u00fc".repeat(33);
    assert.equal((await warningsOf({ tensors: [floats(wide, [1])] })).length, 1);
  });
  test("the version of quantized tensors", async () => {
    const tensors = [blocks("q", "Q8_0", [32], 1)];
    const missing = ["tensors are quantized, and general.quantization_version is missing"];
    assert.deepEqual(await warningsOf({ tensors }), missing);
    assert.deepEqual(await warningsOf({ tensors, metadata: [["general.quantization_version", u32(2)]] }), []);
    assert.deepEqual(await warningsOf({ tensors: [blocks("f", "F16", [32], 1)] }), []);
  });
});

test("a path that is too long for the line is shown whole", async () => {
  const long = `${"folder-漢字/".repeat(9)}model.gguf`;
  const { status, stdout } = await run(["verify", long], { COLUMNS: "40" });
  assert.equal(status, 1);
  assert.match(stdout, /^bad {2}folder-/);
  assert.equal(stdout.replaceAll("\n     ", "").slice(5), `${long}cannot be read\n`);
});

describe("findings", () => {
  const tensors = [
    floats("t", [1, Number.NaN, Infinity, -Infinity]),
    floats(EVIL, [Number.NaN, 0]),
    { name: "u", type: 99, shape: [4], bytes: new Uint8Array(16) },
  ];
  writeModel("nan.gguf", { tensors });

  test("NaN, infinities, types that cannot be scanned", async () => {
    const { status, stdout, stderr } = await run("verify nan.gguf sample.gguf");
    assert.equal(status, 1);
    assert.match(stderr, /^gguf-native: nan\.gguf: tensor 't': 1 NaN value, 2 infinite values\n/);
    expectTidy(stderr, Infinity);
    const verdict = "3 tensors, 6 values, 4 of them not finite, 1 tensor not scanned";
    assert.ok(stdout.startsWith(`bad  nan.gguf  ${verdict}\nok `), stdout);
  });
  test("in JSON", async () => {
    const [file] = (await json("verify nan.gguf", 1)).files;
    assert.deepEqual([file.ok, file.values, file.notScanned, file.findings.length], [false, 6, ["u"], 2]);
    const [t, evil] = file.findings;
    assert.deepEqual([t.tensor, t.nan, t.infinite], ["t", 1, 2]);
    assert.equal(evil.tensor, EVIL);
  });
  test("a bad file among good ones", async () => {
    const args = ["verify", "cut.gguf", "none.gguf", "sample.gguf"];
    const { status, stdout, stderr } = await run(args);
    assert.equal(status, 1);
    const [cut, none, sample] = stdout.split("\n");
    assert.deepEqual([cut, none], ["bad  cut.gguf  cut off", "bad  none.gguf  cannot be read"]);
    assert.match(sample!, /^ok {3}sample\.gguf/);
    assert.match(stderr, /^gguf-native: cut\.gguf: .*\ngguf-native: none\.gguf: .*\n$/);
    const { files } = await json(args, 1);
    assert.deepEqual(
      files.map(({ ok, findings }: { ok: boolean; findings: { code: string }[] }) => [ok, findings[0]?.code]),
      [
        [false, "ERR_GGUF_TRUNCATED"],
        [false, "ERR_GGUF_OPEN"],
        [true, undefined],
      ],
    );
    assert.equal(typeof files[0].findings[0].offset, "number");
  });
  const size = 2 ** 25;
  const piece = (value: number) => new Uint8Array(Float32Array.of(value).buffer);
  const skip = writeSparseGguf(at("large.gguf"), [
    { name: "good", type: 0, shape: [size], byteLength: size * 4 },
    {
      ...{ name: "bad", type: 0, shape: [size], byteLength: size * 4 },
      pieces: [0, size / 2 - 1, size - 1].map((index) => ({ at: index * 4, bytes: piece(Number.NaN) })),
    },
  ]);
  test("in a file that is large enough for several threads", { skip }, async () => {
    const { stderr } = await run("verify large.gguf");
    assert.equal(stderr, "gguf-native: large.gguf: tensor 'bad': 3 NaN values\n");
  });
});
