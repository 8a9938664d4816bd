/** Whole models quantized by llama.cpp and by quantizeModel: the same types and the same bytes, in every mix. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { GgufWriter, openSync, quantizeModel } from "gguf-native";
import { isQuantizable } from "#dist/quantize/quantize";
import { MIXES } from "#dist/quantize-model/mixes";
import { llamaQuantize, noLlamaCpp } from "../support/libllama";
import { temporaryFolder } from "../support/paths";
import { Random } from "../support/random";

const folder = temporaryFolder();
const random = new Random(3);
const gaussian = (count: number, scale = 1): Float32Array =>
  Float32Array.from({ length: count }, () => scale * random.gaussian());

/** Weights of importance by tensor, which both get. */
const importance: Record<string, Float32Array> = {};

/** A llama of a few small layers, with experts or without. */
async function writeModel(path: string, experts: number | undefined): Promise<void> {
  const writer = new GgufWriter().set("general.architecture", "llama").set("general.name", "small");
  const numbers = { context_length: 64, embedding_length: 256, block_count: 3, feed_forward_length: 512 };
  const heads = { "attention.head_count": 4, "attention.head_count_kv": 2 };
  const mixture = experts === undefined ? {} : { expert_count: experts, expert_used_count: 2 };
  for (const [key, value] of Object.entries({ ...numbers, ...heads, ...mixture })) {
    writer.set(`llama.${key}`, value, "uint32");
  }
  writer.set("llama.attention.layer_norm_rms_epsilon", 1e-5, "float32");
  const add = (name: string, shape: number[], type: "F16" | "F32" | "BF16" = "F16"): void => {
    const count = shape.reduce((product, dim) => product * dim, 1);
    writer.addTensor(name, type, shape, gaussian(count, 0.02));
    const weights = (shape[0] as number) * (shape[2] ?? 1);
    importance[name] = Float32Array.from({ length: weights }, () => Math.fround(random.unit() ** 4 + 1e-6));
  };
  add("token_embd.weight", [256, 7]);
  for (let i = 0; i < 3; i++) {
    add(`blk.${i}.attn_norm.weight`, [256], "F32");
    for (const part of ["q", "k", "v", "output"]) add(`blk.${i}.attn_${part}.weight`, [256, 3], "BF16");
    for (const part of ["gate", "up"]) {
      if (experts === undefined) add(`blk.${i}.ffn_${part}.weight`, [256, 5]);
      else add(`blk.${i}.ffn_${part}_exps.weight`, [256, 5, experts], "F32");
    }
    if (experts === undefined) add(`blk.${i}.ffn_down.weight`, [512, 3], "F32");
    else add(`blk.${i}.ffn_down_exps.weight`, [512, 3, experts]);
  }
  add("output_norm.weight", [256], "F32");
  add("output.weight", [256, 7]);
  await writer.write(path);
}

describe("the same model as llama.cpp makes", { skip: noLlamaCpp }, () => {
  for (const experts of [undefined, 2]) {
    describe(experts === undefined ? "without experts" : `${experts} experts`, () => {
      const input = join(folder, `${experts}.gguf`);
      const imatrix = join(folder, `${experts}.imatrix.gguf`);
      before(async () => {
        await writeModel(input, experts);
        const writer = new GgufWriter().set("imatrix.datasets", ["random"]).set("imatrix.chunk_count", 1);
        using file = openSync(input);
        for (const { name, shape } of file.tensors.values()) {
          const sums = importance[name] as Float32Array;
          const matrices = shape[2] ?? 1;
          writer.addTensor(`${name}.in_sum2`, "F32", [shape[0] as number, matrices], sums);
          writer.addTensor(`${name}.counts`, "F32", [1, matrices], new Float32Array(matrices).fill(1));
        }
        await writer.set("imatrix.chunk_size", 1).write(imatrix);
      });

      for (const [name, { fileType }] of Object.entries(MIXES)) {
        for (const hasImportance of [false, true]) {
          test(`${name}${hasImportance ? " with importance" : ""}`, async (t) => {
            const output = join(folder, "ours.gguf");
            const options = { type: name, ...(hasImportance ? { importance: imatrix } : {}) };
            const plan = await quantizeModel(input, output, { ...options, dryRun: true });
            const unknown = plan.tensors.find(({ from, to }) => from !== to && !isQuantizable(to));
            if (unknown !== undefined) return t.skip(`no blocks of ${unknown.to} can be made`);
            const theirs = join(folder, "theirs.gguf");
            const { isDone, log } = await llamaQuantize(input, theirs, {
              fileType,
              ...(hasImportance ? { importance } : {}),
            });
            if (plan.tensors.some(({ lacksImportance }) => lacksImportance)) {
              assert.ok(!isDone, "llama.cpp refuses it, too");
              await assert.rejects(quantizeModel(input, output, options), /needs an importance matrix/);
              return;
            }
            assert.ok(isDone, log);
            await quantizeModel(input, output, options);
            using a = openSync(output);
            using b = openSync(theirs);
            for (const key of ["general.file_type", "general.quantization_version"]) {
              assert.equal(a.metadata.get(key), b.metadata.get(key));
            }
            assert.equal(a.tensors.size, b.tensors.size);
            for (const [tensor, { type, shape }] of b.tensors) {
              const own = a.tensor(tensor);
              assert.deepEqual([own.type, own.shape], [type, shape], tensor);
              assert.ok(
                Buffer.compare(own.bytes(), b.tensor(tensor).bytes()) === 0,
                `${tensor}: bytes of ${type}`,
              );
            }
          });
        }
      }
    });
  }
});
