/** LoRA adapters: convertLora, what llama.cpp's converter makes; mergeLora, against sums in binary64. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { convertLora, mergeLora, openSync } from "gguf-native";
import { matrix, type Tensors, writeAdapter as writePeft } from "../support/adapters";
import { CHECKPOINTS, writeCheckpoint } from "../support/checkpoints";
import { expectFailure, folder, output } from "../support/cli";
import { arr, f32, type GgufSpec, str, writeGguf } from "../support/gguf-writer";
import { sha256 } from "../support/model-facts";
import { Random } from "../support/random";
import { MIXTURES, smallAdapter, smallModel, tensorsOf } from "../support/small-llama";

const LAYER = "base_model.model.model.layers.0.";
const pair = (name: string, rank: number, rows: number, columns: number): Tensors => ({
  ...matrix(`${LAYER}${name}.lora_A.weight`, rank, columns),
  ...matrix(`${LAYER}${name}.lora_B.weight`, rows, rank),
});

const writeAdapter = (tensors: Tensors, config: object | string = { lora_alpha: 12 }, name = "adapter"): string =>
  writePeft(join(folder, name), tensors, config);

const base = writeCheckpoint(folder, CHECKPOINTS.find(({ name }) => name === "mistral-v0.3") as never);
const out = join(folder, "out.gguf");
const query = pair("self_attn.q_proj", 32, 128, 64);

describe("convertLora", () => {
  const whole: Tensors = {
    ...matrix(`${LAYER}input_layernorm.weight`, 64),
    ...matrix("base_model.model.model.embed_tokens.lora_embedding_A", 32, 263),
    ...matrix("base_model.model.model.embed_tokens.lora_embedding_B", 64, 32),
    ...query,
    ...pair("self_attn.k_proj", 8, 64, 64),
    ...pair("mlp.down_proj", 4, 64, 96),
  };
  // Of the files that convert_lora_to_gguf.py writes.
  const hashes = {
    f32: "ec29911a85c24defe2689f8164d7b62b",
    bf16: "06b38c2929d827aef523ba834fceba27",
    q8_0: "c6a0ef0cbfa1c8a4f4e340b900209198",
  } as const;
  for (const [type, hash] of Object.entries(hashes)) {
    test(`as ${type}: every byte of llama.cpp's converter`, async () => {
      const path = writeAdapter(whole, { lora_alpha: 12, r: 32 }, "Tiny-Lora-7B-v2");
      await convertLora(path, out, { base, type: type as "f32", overwrite: true });
      assert.equal(sha256(readFileSync(out)).slice(0, 32), hash);
    });
  }
  test("use_rslora scales by the square root of the rank", async () => {
    const adapter = writeAdapter(query, { lora_alpha: 3, use_rslora: true });
    await convertLora(adapter, out, { base, overwrite: true });
    assert.equal(openSync(out).metadata.number("adapter.lora.alpha"), Math.fround(3 * Math.sqrt(32)));
  });
  const [a = "", b = ""] = Object.keys(query);
  const { [a]: lacksB, ...lacksA } = query;
  const half = { [a]: lacksB } as Tensors;
  const shaped = (one: number[], other: number[]): Tensors => ({ ...matrix(a, ...one), ...matrix(b, ...other) });
  const one = { lora_alpha: 1 };
  const bad: [what: string, tensors: Tensors, config: object | string, message: RegExp][] = [
    ["no alpha", query, {}, /adapter_config\.json: lora_alpha must be a finite number, found undefined/],
    ["alpha that is NaN", query, '{"lora_alpha":NaN}', /adapter_config\.json: it is no JSON/],
    ["alpha that is text", query, { lora_alpha: "NaN" }, /lora_alpha must be a finite number, found NaN/],
    ["alpha beyond binary32", query, { lora_alpha: 1e300 }, /must be a finite number, found 1e\+300/],
    ["another method", query, { ...one, peft_type: "LOHA" }, /peft_type is LOHA, not LORA/],
    ["DoRA", query, { ...one, use_dora: true }, /use_dora/],
    ["scales of matrices", query, { ...one, alpha_pattern: { q: 2 } }, /alpha_pattern/],
    ["rslora of two ranks", whole, { ...one, use_rslora: true }, /several ranks/],
    ["a pair without lora_B", half, one, /lora_A\.weight': there is no lora_B for it/],
    ["a pair without lora_A", lacksA, one, /lora_B\.weight': there is no lora_A for it/],
    ["a rank of 0", shaped([0, 64], [128, 0]), one, /with a rank of 1 to 16384/],
    ["two ranks in a pair", shaped([4, 64], [128, 8]), one, /lora_A is 64 x 4 and lora_B 8 x 128/],
    ["a vector", shaped([64], [128, 8]), one, /must be COLUMNS x RANK/],
    ["rows that are no heads", pair("self_attn.q_proj", 4, 126, 64), one, /126 rows are not 4 heads/],
    ["a whole matrix", matrix("base_model.model.lm_head.weight", 4, 4), one, /whole matrix.*new tokens/],
    ["a bias", matrix(`${LAYER}self_attn.q_proj.lora_B.bias`, 4), one, /no part of a pair/],
    ["a tensor that the model lacks", pair("mlp.other", 4, 4, 4), one, /has no such tensor/],
    ["tokens that are none", query, { ...one, alora_invocation_tokens: ["x"] }, /invocation_tokens/],
  ];
  for (const [what, tensors, config, message] of bad) {
    test(`${what} is refused`, async () => {
      const path = writeAdapter(tensors, config);
      await assert.rejects(convertLora(path, join(folder, "no.gguf"), { base }), message);
    });
  }
});

const write = (name: string, bytes: Uint8Array): string => {
  writeFileSync(join(folder, name), bytes);
  return join(folder, name);
};
const model = write("model.gguf", smallModel(MIXTURES["llama with experts"]));
const QUERY = ["blk.0.attn_q", 8, 8] as const;
const matrices = [QUERY, ["token_embd", 8, 5], ["blk.0.ffn_down_exps", 12, 8, 6]] as const;
const [first, second] = [smallAdapter("llama", 8, matrices), smallAdapter("llama", 3, [QUERY])].map((bytes, i) =>
  write(`${i}.gguf`, bytes),
) as [string, string];

/** The sums of a matrix in binary64, of adapters with what they are multiplied with. */
function expected(name: string, adapters: readonly (readonly [path: string, factor: number])[]): Float64Array {
  const target = openSync(model).tensor(name);
  const [columns = 0, rows = 0] = target.shape;
  const numbersOf = (path: string, end: string): Float32Array | undefined =>
    openSync(path).tensors.get(`${name}.lora_${end}`)?.dequantizeSync();
  return Float64Array.from(target.dequantizeSync(), (sum, i) => {
    const [row, column] = [Math.floor(i / columns), i % columns];
    for (const [path, factor] of adapters) {
      const [a, b] = [numbersOf(path, "a"), numbersOf(path, "b")];
      if (a === undefined || b === undefined) continue;
      for (const k of [0, 1]) {
        const inColumns = (Math.floor(row / rows) * 2 + k) * columns + column;
        const [x, y] = name.startsWith("token") ? [2 * row + k, 2 * column + k] : [inColumns, 2 * row + k];
        sum += factor * (a[x] as number) * (b[y] as number);
      }
    }
    return sum;
  });
}

describe("mergeLora", () => {
  for (const type of [undefined, "F16"]) {
    test(`two adapters, ${type ?? "in the types that are there"}`, async () => {
      const report = await mergeLora(model, [first, second], out, { type, scale: [0.5, -2], overwrite: true });
      assert.equal(report.tensors.filter(({ isMerged }) => isMerged).length, matrices.length);
      for (const [short] of matrices) {
        const [name, merged] = [`${short}.weight`, openSync(out).tensor(`${short}.weight`)];
        assert.equal(merged.type, type ?? "F32");
        const numbers = expected(name, [
          [first, (0.5 * 8) / 2],
          [second, (-2 * 3) / 2],
        ]);
        for (const [i, x] of merged.dequantizeSync().entries()) {
          const sum = numbers[i] as number;
          const off = type === "F16" ? 2 ** -11 * Math.abs(sum) + 1e-5 : 1e-6;
          assert.ok(Math.abs(x - sum) <= off, `${name} ${i}: ${x}, not ${sum}`);
        }
      }
    });
  }
  test("what an adapter does not change is copied", async () => {
    await mergeLora(model, [second], out, { overwrite: true });
    const [before, after] = [openSync(model), openSync(out)];
    assert.deepEqual(after.metadata.toJSON(), before.metadata.toJSON());
    for (const name of before.tensors.keys()) {
      const isSame = Buffer.from(after.tensor(name).bytes()).equals(before.tensor(name).bytes());
      assert.equal(isSame, name !== "blk.0.attn_q.weight", name);
    }
  });
  test("convert-lora and merge-lora, as commands", async () => {
    await output("convert", base, "base.gguf");
    await output("convert-lora", writeAdapter(query, { lora_alpha: 32 }), "a.gguf", "--base", base);
    const printed = await output("merge-lora base.gguf a.gguf merged.gguf --scale 0.5 --type Q8_0");
    assert.match(printed, /blk\.0\.attn_q\.weight +F16 +Q8_0/);
    await output("merge-lora merged.gguf a.gguf again.gguf");
    const again = openSync(join(folder, "again.gguf")).tensor("blk.0.attn_q.weight");
    assert.equal(again.type, "Q8_0");
    await expectFailure("convert-lora x y", 2, /missing --base/);
    await expectFailure("merge-lora base.gguf a.gguf", 2, /missing OUT/);
    await expectFailure("merge-lora base.gguf a.gguf x.gguf --scale x", 2, /--scale must be a number/);
    await expectFailure("merge-lora base.gguf a.gguf x.gguf --scale 1 --scale 2", 2, /each of 1/);
    await expectFailure("merge-lora base.gguf a.gguf a.gguf", 1, /a file that is read/);
  });
  const name = "blk.0.attn_q.weight";
  const tensor = tensorsOf(new Random(31));
  const [a, b] = [tensor(`${name}.lora_a`, 8, 2), tensor(`${name}.lora_b`, 2, 8)];
  const kind = ["adapter.type", str("lora")] as const;
  const [architecture, bert] = ["llama", "bert"].map((each) => ["general.architecture", str(each)] as const);
  const head = [architecture as NonNullable<typeof architecture>, kind];
  const metadata = [...head, ["adapter.lora.alpha", f32(1)] as const];
  const token = ["adapter.alora.invocation_tokens", arr("uint32", [1])] as const;
  const others = [a, b].map((each, i) => ({ ...each, name: `y.lora_${"ab"[i]}` }));
  const bad: [what: string, spec: GgufSpec, message: RegExp][] = [
    ["a model", { metadata: head.slice(0, 1), tensors: [a, b] }, /adapter\.type is not 'lora'/],
    ["nothing", { metadata: head }, /it has no tensors/],
    ["another architecture", { metadata: [bert as (typeof head)[0], kind] }, /architecture bert/],
    ["an aLoRA", { metadata: [...head, token] }, /aLoRA/],
    ["alpha of NaN", { metadata: [...head, ["adapter.lora.alpha", f32(Number.NaN)]] }, /alpha is NaN/],
    ["half a pair", { metadata, tensors: [a] }, /other part of its pair is missing/],
    ["a norm", { metadata, tensors: [{ ...a, name: "x" }] }, /'x': it is no part of a pair/],
    ["an unknown tensor", { metadata, tensors: others }, /tensor .*'y'/],
    ["another shape", { metadata, tensors: [a, { ...b, shape: [2, 4] }] }, /lora_b 2 x 4, which do not fit .* 8 x 8/],
  ];
  for (const [what, spec, message] of bad) {
    test(`${what} is refused`, async () => {
      const path = write("bad.gguf", writeGguf(spec));
      await assert.rejects(mergeLora(model, [path], join(folder, "no.gguf")), message);
    });
  }
  test("wrong arguments", async () => {
    await assert.rejects(mergeLora(model, [], out), /at least one adapter/);
    await assert.rejects(mergeLora(model, [first], out, { scale: [1, 2] }), /one number, or 1/);
    await assert.rejects(mergeLora(model, [first], out, { scale: Number.NaN }), /must be finite/);
    await assert.rejects(mergeLora(model, [first], out, { tensors: {} }), /must be left out/);
  });
});
