/** `gguf-native quantize`, and `verify --from`. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { GgufWriter, openSync } from "gguf-native";
import { start, untilWith } from "../support/child";
import { at, bin, expectFailure, expectTidy, folder, json, leftovers, output, run } from "../support/cli";
import { Random } from "../support/random";
import { rangesOf, serve } from "../support/range-server";
import { writeSparseGguf } from "../support/sparse-file";

const random = new Random(5);
const gaussian = (count: number): Float32Array => Float32Array.from({ length: count }, () => random.gaussian());

async function writeBase(name: string): Promise<void> {
  const writer = new GgufWriter().set("general.architecture", "llama").set("llama.block_count", 1);
  for (const tensor of ["blk.0.attn_q.weight", "blk.0.attn_v.weight", "blk.0.ffn_down.weight", "output.weight"]) {
    const scale = tensor.includes("attn_v") ? 1e-3 : 1;
    writer.addTensor(
      tensor,
      "F32",
      [64, 4],
      gaussian(256).map((x) => x ** (scale === 1 ? 1 : 3)),
    );
  }
  await writer
    .addTensor("blk.0.rows_of_40.weight", "F16", [40, 2], gaussian(80))
    .addTensor("output_norm.weight", "F32", [64], gaussian(64))
    .write(at(name));
}

const made = writeBase("base.gguf");
const Q4 = ["--type", "Q4_0", "--tensor", "output.weight=q8_0"];

describe("quantize", () => {
  test("a table of errors, the largest first, and the sizes", async () => {
    await made;
    const text = await output("quantize base.gguf q4.gguf", ...Q4);
    expectTidy(text);
    assert.match(text, /^ {2}tensor +from +to +size +SNR *\n {2}blk\.0\.attn_v\.weight +F32 +Q4_0 +144 B +\d+\.\d dB/);
    assert.match(text, /\n {2}output\.weight +F32 +Q8_0 +272 B +\d+\.\d dB/);
    assert.match(
      text,
      /\n2 tensors copied as they are\nq4\.gguf: \d\.\d\d KiB, \d\.\d\d bits per weight \(30\.90 before\)\n$/,
    );
    const errors = [...text.matchAll(/(\d+\.\d) dB/g)].map(([, snr]) => Number(snr));
    const expected = [...errors].sort((a, b) => a - b);
    assert.deepEqual(errors, expected);
    using file = openSync(at("q4.gguf"));
    assert.equal(file.tensor("blk.0.ffn_down.weight").type, "Q4_0");
    assert.equal(file.tensor("output.weight").type, "Q8_0");
  });

  test("JSON has everything", async () => {
    await made;
    const found = await json(["quantize", "base.gguf", "json.gguf", ...Q4]);
    const shown = [found.path, found.output, found.type, found.tensors.length];
    assert.deepEqual(shown, ["base.gguf", "json.gguf", "Q4_0", 6]);
    const [first] = found.tensors;
    assert.deepEqual(
      [first.name, first.from, first.to, first.elementCount, first.bytesBefore, first.bytes, first.hasImportance],
      ["blk.0.attn_q.weight", "F32", "Q4_0", 256, 1024, 144, false],
    );
    const { snr, rmsError, relativeError, maxError } = first.error;
    for (const each of [snr, rmsError, relativeError, maxError]) assert.ok(each > 0);
    assert.equal(found.byteLength, readFileSync(at("json.gguf")).length);
  });

  test("a dry run", async () => {
    await made;
    const text = await output("quantize base.gguf dry.gguf --type q2_k_s --dry-run");
    expectTidy(text);
    assert.match(text, /\n {2}blk\.0\.attn_q\.weight +F32 +Q4_0 +144 B +4\.50 +rows do not fit Q2_K/);
    assert.match(text, /\nnothing was written\n$/);
    const found = await json(["quantize", "base.gguf", "dry.gguf", ...Q4, "--dry-run"]);
    assert.equal(found.output, null);
    assert.ok(found.tensors.every((each: object) => !("error" in each)));
    assert.equal(existsSync(at("dry.gguf")), false);
  });

  test("types for a size, beside the mixes of about that size", async () => {
    await made;
    const text = await output("quantize base.gguf sized.gguf --target-size 3KB");
    expectTidy(text);
    assert.match(text, /\n {2}types +size +bits +SNR\n( {2}\w+ +[\d.]+ KiB +[\d.]+ +[\d.]+ dB\n){6}SNR here: /);
    const { choice, byteLength } = await json("quantize base.gguf sized.gguf --target-size 3kb --force");
    assert.ok(byteLength <= 3000 && choice.chosen.byteLength === byteLength && choice.mixes.length === 5);
    assert.match(await output("inspect sized.gguf"), /\(guessed\)/);
    const small = ["quantize", "base.gguf", "x.gguf", "--target-size"];
    await expectFailure([...small, "1K"], 1, /1024 bytes are too few: the smallest possible size is \d+ bytes/);
    await expectFailure([...small, "1X"], 2, /--target-size must be a number of bytes/);
    await expectFailure([...small, "1K", "--type", "Q8_0"], 2, /give one of --type, --target-size/);
    await expectFailure("quantize base.gguf x.gguf --target-bits 0", 2, /--target-bits must be/);
  });

  test("from a URL, with its headers", async () => {
    await made;
    const content = readFileSync(at("base.gguf"));
    const { url, requests } = await serve(rangesOf(content));
    await output("quantize", url, "remote.gguf", ...Q4, "-H", "X-Token: abc");
    await output("quantize base.gguf local.gguf", ...Q4);
    assert.deepEqual(readFileSync(at("remote.gguf")), readFileSync(at("local.gguf")));
    assert.ok(requests.every(({ headers }) => headers["x-token"] === "abc"));
  });

  test("wrong usage, and models that cannot be quantized", async () => {
    await made;
    await output("quantize base.gguf again.gguf", ...Q4);
    await expectFailure("quantize base.gguf x.gguf", 2, /missing --type: one of .*Q4_K_M/);
    await expectFailure("quantize base.gguf x.gguf Q8_0 --type Q6_K", 2, /give the type once/);
    await expectFailure("quantize base.gguf x.gguf Q9_0", 2, /--type: .*Q9_0/);
    await expectFailure("quantize base.gguf --type Q8_0", 2, /missing OUT/);
    await expectFailure("quantize base.gguf x.gguf --type Q4_K_N", 2, /--type: .*did you mean Q4_K_M\?/);
    await expectFailure(["quantize", "base.gguf", "x.gguf", ...Q4, "--tensor", "a"], 2, /--tensor must be NAME=TYPE/);
    await expectFailure(
      ["quantize", "base.gguf", "x.gguf", ...Q4, "--tensor", "a=Q4_L"],
      2,
      /did you mean Q4_K\?|did you mean Q4_0\?/,
    );
    await expectFailure(["quantize", "base.gguf", "x.gguf", ...Q4, "--threads", "0"], 2, /--threads must be/);
    await expectFailure("quantize base.gguf x.gguf --type Q8_0 --tensor a*=Q4_0", 1, /matches 'a\*'/);
    await expectFailure("quantize again.gguf x.gguf --type Q8_0", 1, /it is quantized already, as Q4_0/);
    await expectFailure(
      ["quantize", "base.gguf", "x.gguf", ...Q4, "--search", "bset"],
      2,
      /--search must be ggml or best, not 'bset'/,
    );
    await expectFailure("quantize none.gguf x.gguf --type Q8_0", 1, /none\.gguf/);
    await expectFailure("quantize base.gguf x.gguf --type Q8_0 --imatrix base.gguf", 1, /it is no importance matrix/);
    assert.deepEqual([existsSync(at("x.gguf")), leftovers()], [false, []]);
  });
});

describe("verify --from", () => {
  test("a model that was made so", async () => {
    await made;
    await output("quantize base.gguf from.gguf", ...Q4);
    const printed = await output("verify from.gguf --from base.gguf");
    assert.equal(printed, "ok   from.gguf  6 tensors made of base.gguf\n");
    const found = await json("verify from.gguf --from base.gguf");
    assert.deepEqual([found.ok, found.path, found.from], [true, "from.gguf", "base.gguf"]);
    assert.deepEqual(found.tensors[0], {
      ...{
        name: "blk.0.attn_q.weight",
        type: "Q4_0",
        from: "F32",
        same: true,
        blocks: 8,
        differentBlocks: 0,
      },
    });
    const { url } = await serve(rangesOf(readFileSync(at("from.gguf"))));
    assert.match(await output("verify", url, "--from", "base.gguf"), /^ok /);
  });

  test("one that was made by another search", async () => {
    await made;
    await output("quantize base.gguf searched.gguf", ...Q4, "--search", "best");
    const args = ["verify", "searched.gguf", "--from", "base.gguf"];
    assert.match(await output(...args, "--search", "best"), /^ok /);
    const { status, stderr } = await run(args);
    assert.equal(status, 1);
    assert.match(stderr, /'blk\.0\.attn_q\.weight': \d of 8 blocks of Q4_0 are not what F32 gives/);
    await expectFailure([...args, "--search", "bset"], 2, /--search must be/);
  });

  test("one of which a bit was changed, and one of another model", async () => {
    await made;
    await output("quantize base.gguf bit.gguf", ...Q4);
    const bytes = readFileSync(at("bit.gguf"));
    const file = openSync(at("bit.gguf"));
    const { offset } = file.tensor("blk.0.ffn_down.weight");
    file.close();
    bytes[offset + 40] = (bytes[offset + 40] as number) ^ 1;
    writeFileSync(at("bit.gguf"), bytes);
    const { status, stdout, stderr } = await run("verify bit.gguf --from base.gguf");
    assert.deepEqual([status, stdout], [1, "bad  bit.gguf  1 of 6 tensors not made of base.gguf\n"]);
    assert.equal(
      stderr,
      "gguf-native: bit.gguf: tensor 'blk.0.ffn_down.weight': 1 of 8 blocks of Q4_0 is not what F32 gives\n",
    );
    await new GgufWriter().addTensor("a.weight", "F32", [4], new Float32Array(4)).write(at("other.gguf"));
    const found = await json("verify other.gguf --from base.gguf", 1);
    assert.equal(found.tensors.length, 7);
    assert.match(found.tensors[0].problem, /there is nothing that it could be made of/);
    assert.equal(found.tensors[1].problem, "it is missing");
    await expectFailure("verify bit.gguf base.gguf --from base.gguf", 2, /unexpected argument/);
    await expectFailure("verify bit.gguf --imatrix base.gguf", 2, /--imatrix goes with --from/);
    await expectFailure("verify bit.gguf --search best", 2, /--search goes with --from/);
  });
});

const noSignals = process.platform === "win32" && "Windows has no such signals";
const path = at("large.gguf");
const shape = [4096, 16384];
const noSparse = writeSparseGguf(path, [{ name: "a.weight", type: 0, shape, byteLength: 4 * 4096 * 16384 }]);
test("Ctrl-C while it writes leaves nothing behind", { skip: noSignals || noSparse }, async () => {
  const args = [bin, "quantize", path, at("interrupted.gguf"), "--type", "Q4_K_M"];
  const child = start(process.execPath, args, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  const ended = once(child, "exit");
  await untilWith(child, () => leftovers().length > 0);
  child.kill("SIGINT");
  assert.deepEqual(await ended, [null, "SIGINT"]);
  assert.deepEqual([existsSync(at("interrupted.gguf")), leftovers()], [false, []]);
});
