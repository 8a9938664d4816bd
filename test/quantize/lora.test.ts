/** LoRA adapters: convertLora, what llama.cpp's converter makes; mergeLora, against sums in binary64. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { convertLora, mergeLora, openSync, quantizeSync } from "gguf-native";
import { CHECKPOINTS, writeCheckpoint } from "../support/checkpoints";
import { expectFailure, folder, output } from "../support/cli";
import { arr, f32, type GgufSpec, str, u32, writeGguf } from "../support/gguf-writer";
import { Random } from "../support/random";
import { safetensorsOf } from "../support/safetensors-files";

const random = new Random(31);
const gaussian = (count: number): Float32Array =>
  Float32Array.from({ length: count }, () => random.gaussian());

type Tensors = Record<string, { dtype: string; shape: readonly number[]; bytes: Uint8Array }>;

const LAYER = "base_model.model.model.layers.0.";
const part = (name: string, ...shape: number[]): Tensors => ({
  [name]: { dtype: "F32", shape, bytes: new Uint8Array(gaussian((shape[0] ?? 1) * (shape[1] ?? 1)).buffer) },
});
const pair = (name: string, rank: number, rows: number, columns: number): Tensors => ({
  ...part(`${LAYER}${name}.lora_A.weight`, rank, columns),
  ...part(`${LAYER}${name}.lora_B.weight`, rows, rank),
});

/** An adapter as PEFT saves it. */
function writeAdapter(
  tensors: Tensors,
  config: object | string = { lora_alpha: 12 },
  name = "adapter",
): string {
  const path = join(folder, name);
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, "adapter_model.safetensors"), safetensorsOf(tensors));
  const text = typeof config === "string" ? config : JSON.stringify(config);
  writeFileSync(join(path, "adapter_config.json"), text);
  return path;
}

const base = writeCheckpoint(folder, CHECKPOINTS.find(({ name }) => name === "mistral-v0.3") as never);
const out = join(folder, "out.gguf");
const query = pair("self_attn.q_proj", 32, 128, 64);

describe("convertLora", () => {
  const whole: Tensors = {
    ...part(`${LAYER}input_layernorm.weight`, 64),
    ...part("base_model.model.model.embed_tokens.lora_embedding_A", 32, 263),
    ...part("base_model.model.model.embed_tokens.lora_embedding_B", 64, 32),
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
      assert.equal(createHash("sha256").update(readFileSync(out)).digest("hex").slice(0, 32), hash);
    });
  }
  test("use_rslora scales by the square root of the rank", async () => {
    await convertLora(writeAdapter(query, { lora_alpha: 3, use_rslora: true }), out, {
      base,
      overwrite: true,
    });
    assert.equal(openSync(out).metadata.number("adapter.lora.alpha"), Math.fround(3 * Math.sqrt(32)));
  });
  const [a = "", b = ""] = Object.keys(query);
  const { [a]: lacksB, ...lacksA } = query;
  const half = { [a]: lacksB } as Tensors;
  const shaped = (one: number[], other: number[]): Tensors => ({ ...part(a, ...one), ...part(b, ...other) });
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
    ["a whole matrix", part("base_model.model.lm_head.weight", 4, 4), one, /whole matrix.*new tokens/],
    ["a bias", part(`${LAYER}self_attn.q_proj.lora_B.bias`, 4), one, /no part of a pair/],
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

const COLUMNS = 64;

type Type = "F32" | "F16" | "Q8_0";

const matrices = [
  ["token_embd.weight", "F32", [COLUMNS, 40]],
  ["blk.0.attn_q.weight", "F16", [COLUMNS, 32]],
  ["blk.0.ffn_down_exps.weight", "F32", [COLUMNS, 5, 3]],
  ["blk.0.attn_k.weight", "Q8_0", [COLUMNS, 8]],
] as const;

const tensor = (name: string, type: Type, shape: readonly number[]) => {
  const numbers = gaussian(shape.reduce((product, length) => product * length, 1));
  const bytes = type === "F32" ? new Uint8Array(numbers.buffer) : quantizeSync(type, numbers);
  return { name, type: { F32: 0, F16: 1, Q8_0: 8 }[type], shape, bytes };
};
const write = (name: string, spec: GgufSpec): string => {
  writeFileSync(join(folder, name), writeGguf(spec));
  return join(folder, name);
};
const architecture = ["general.architecture", str("llama")] as const;
const kind = ["adapter.type", str("lora")] as const;
const model = write("model.gguf", {
  metadata: [architecture, ["general.file_type", u32(1)]],
  tensors: matrices.map(([name, type, shape]) => tensor(name, type, shape)),
});

/** An adapter in GGUF for some of the matrices. */
function adapter(
  file: string,
  rank: number,
  alpha: number,
  names: string[] = matrices.map(([name]) => name),
): string {
  const tensors = matrices
    .filter(([name]) => names.includes(name))
    .flatMap(([name, , [columns, rows, ...more]]) => {
      const [a, b] = name.startsWith("token")
        ? [
            [rank, rows],
            [rank, columns],
          ]
        : [
            [columns, rank],
            [rank, rows],
          ];
      return [
        tensor(`${name}.lora_a`, "F32", [...a, ...more]),
        tensor(`${name}.lora_b`, rank % 32 === 0 ? "Q8_0" : "F16", [...b, ...more]),
      ];
    });
  return write(file, { metadata: [architecture, kind, ["adapter.lora.alpha", f32(alpha)]], tensors });
}

const [first, second] = [adapter("first.gguf", 32, 8), adapter("second.gguf", 3, 0, ["blk.0.attn_q.weight"])];

/** The sums of a matrix in binary64. */
function expected(
  name: string,
  adapters: readonly (readonly [path: string, factor: number])[],
): Float64Array {
  const target = openSync(model).tensor(name);
  const [columns = 0, rows = 0] = target.shape;
  const sums = Float64Array.from(target.dequantizeSync());
  for (const [path, factor] of adapters) {
    const file = openSync(path);
    if (!file.tensors.has(`${name}.lora_a`)) continue;
    const [a, b] = ["a", "b"].map((end) => file.tensor(`${name}.lora_${end}`));
    const [x, y, rank] = [
      a?.dequantizeSync() as Float32Array,
      b?.dequantizeSync() as Float32Array,
      b?.shape[0] ?? 0,
    ];
    const isEmbedding = name.startsWith("token");
    for (let i = 0; i < sums.length; i++) {
      const [row, column] = [Math.floor(i / columns), i % columns];
      let sum = 0;
      for (let k = 0; k < rank; k++) {
        sum += isEmbedding
          ? (x[row * rank + k] as number) * (y[column * rank + k] as number)
          : (y[row * rank + k] as number) *
            (x[(Math.floor(row / rows) * rank + k) * columns + column] as number);
      }
      sums[i] = (sums[i] as number) + factor * sum;
    }
  }
  return sums;
}

describe("mergeLora", () => {
  for (const type of [undefined, "F32", "Q8_0"]) {
    test(`two adapters, ${type ?? "in the types that are there"}`, async () => {
      const scale = [0.5, -2];
      const report = await mergeLora(model, [first, second], out, {
        type,
        scale,
        overwrite: true,
        allowRequantize: true,
      });
      assert.equal(report.tensors.filter(({ isMerged }) => isMerged).length, matrices.length);
      const merged = openSync(out);
      for (const [name, before] of matrices) {
        const found = merged.tensor(name);
        if (type === undefined) assert.equal(found.type, before);
        const numbers = expected(name, [
          [first, (0.5 * 8) / 32],
          [second, -2],
        ]);
        // To be rounded once more: to 11 bits, or to steps of a block of Q8_0.
        const error = { F32: 2e-6, F16: 2 ** -11, Q8_0: 1 / 127 }[found.type as "F32"];
        const most = numbers.reduce((max, x) => Math.max(max, Math.abs(x)), 0);
        for (const [i, x] of found.dequantizeSync().entries()) {
          const off = Math.abs(x - (numbers[i] as number));
          assert.ok(
            off <= error * (found.type === "F16" ? Math.abs(x) + 1e-3 : most),
            `${name} ${i}: ${x}, not ${numbers[i]}`,
          );
        }
      }
    });
  }
  test("what an adapter does not change is copied", async () => {
    await mergeLora(model, [second], out, { overwrite: true });
    const [before, after] = [openSync(model), openSync(out)];
    assert.deepEqual(after.metadata.toJSON(), before.metadata.toJSON());
    for (const [name] of matrices) {
      const isSame = Buffer.from(after.tensor(name).bytes()).equals(before.tensor(name).bytes());
      assert.equal(isSame, name !== "blk.0.attn_q.weight", name);
    }
  });
  test("convert-lora and merge-lora, as commands", async () => {
    const path = writeAdapter(query, { lora_alpha: 32 });
    await output("convert", base, "base.gguf");
    await output("convert-lora", path, "a.gguf", "--base", base);
    const printed = await output("merge-lora base.gguf a.gguf merged.gguf --scale 0.5");
    assert.match(printed, /blk\.0\.attn_q\.weight +F16 +F16[\s\S]*20 tensors copied as they are/);
    await expectFailure("convert-lora x y", 2, /missing --base/);
    await expectFailure("merge-lora base.gguf a.gguf", 2, /missing OUT/);
    await expectFailure("merge-lora base.gguf a.gguf x.gguf --scale x", 2, /--scale must be a number/);
    await expectFailure(
      "merge-lora base.gguf a.gguf a.gguf x.gguf --scale 1 --scale 2 --scale 3",
      2,
      /each of 2/,
    );
    await expectFailure("merge-lora base.gguf a.gguf a.gguf", 1, /a file that is read/);
  });
  const name = "blk.0.attn_k.weight";
  const [a, b] = [tensor(`${name}.lora_a`, "F32", [COLUMNS, 2]), tensor(`${name}.lora_b`, "F32", [2, 8])];
  const [head, alpha] = [[architecture, kind], ["adapter.lora.alpha", f32(1)] as const];
  const metadata = [...head, alpha];
  const token = ["adapter.alora.invocation_tokens", arr("uint32", [1])] as const;
  const others = [a, b].map((each, i) => ({ ...each, name: `y.lora_${"ab"[i]}` }));
  const short = tensor(`${name}.lora_b`, "F32", [2, 7]);
  const bad: [what: string, spec: GgufSpec, message: RegExp][] = [
    ["a model", { metadata: [architecture], tensors: [a, b] }, /adapter\.type is not 'lora'/],
    ["nothing", { metadata: head }, /it has no tensors/],
    [
      "another architecture",
      { metadata: [["general.architecture", str("bert")], kind] },
      /architecture bert/,
    ],
    ["an aLoRA", { metadata: [...head, token] }, /aLoRA/],
    ["alpha of NaN", { metadata: [...head, ["adapter.lora.alpha", f32(Number.NaN)]] }, /alpha is NaN/],
    ["half a pair", { metadata, tensors: [a] }, /other part of its pair is missing/],
    ["a norm", { metadata, tensors: [{ ...a, name: "x" }] }, /'x': it is no part of a pair/],
    ["an unknown tensor", { metadata, tensors: others }, /tensor .*'y'/],
    [
      "another shape",
      { metadata, tensors: [a, short] },
      /64 x 2 and lora_b 2 x 7, which do not fit .* 64 x 8/,
    ],
    [
      "NaN",
      { metadata, tensors: [a, { ...b, bytes: new Uint8Array(64).fill(255) }] },
      /NaN, which Q8_0 blocks/,
    ],
  ];
  for (const [what, spec, message] of bad) {
    test(`${what} is refused`, async () => {
      await assert.rejects(mergeLora(model, [write("bad.gguf", spec)], join(folder, "no.gguf")), message);
    });
  }
  test("wrong arguments", async () => {
    await assert.rejects(mergeLora(model, [], out), /at least one adapter/);
    await assert.rejects(mergeLora(model, [first], out, { scale: [1, 2] }), /one number, or 1/);
    await assert.rejects(mergeLora(model, [first], out, { scale: Number.NaN }), /must be finite/);
    await assert.rejects(mergeLora(model, [first], out, { tensors: {} }), /must be left out/);
  });
});
