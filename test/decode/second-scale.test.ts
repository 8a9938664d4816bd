/** `tensor.scale`: the second scale of NVFP4 weights, a tensor beside them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { dequantizeSync, GgufWriter, open, openRemote, openSync, parse } from "gguf-native";
import { Llama } from "../../examples/llama/model";
import { at, blocks, floats, json, output, writeModel } from "../support/cli";
import { splitKeys, str, writeGguf } from "../support/gguf-writer";
import { rangesOf, serve } from "../support/range-server";
import { sampleModel } from "../support/sample-model";

const weights = blocks("blk.0.ffn_down.weight", "NVFP4", [64, 3], 1);
const experts = blocks("blk.0.ffn_up_exps.weight", "NVFP4", [64, 2, 3], 2);
const tensors = [
  weights,
  floats("blk.0.ffn_down.scale", [0.25]),
  floats("blk.0.ffn_down.input_scale", [7]),
  floats("blk.0.ffn_up_exps.scale", [1, 2, 3]),
  experts,
  blocks("blk.0.attn_q.weight", "NVFP4", [64, 1], 3),
  blocks("blk.0.attn_k.weight", "Q8_0", [64, 1], 4),
  floats("blk.0.attn_k.scale", [5]),
  blocks("blk.0.attn_v", "NVFP4", [64, 1], 5),
  floats("blk.0.attn_v.scale", [5]),
];
writeModel("scales.gguf", { tensors });

test("is the tensor of that name, beside NVFP4 weights only", async () => {
  const { url } = await serve(rangesOf(writeGguf({ tensors })));
  for (const file of [parse(writeGguf({ tensors })), openSync(at("scales.gguf")), await openRemote(url)]) {
    const weight = file.tensor("blk.0.ffn_down.weight");
    assert.equal(weight.scale, file.tensor("blk.0.ffn_down.scale"));
    assert.deepEqual(await weight.scale?.dequantize(), Float32Array.of(0.25));
    const found = await file.tensor("blk.0.ffn_up_exps.weight").scale?.dequantize();
    assert.deepEqual(found, Float32Array.of(1, 2, 3));
    for (const name of ["blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v", "blk.0.ffn_down.scale"]) {
      assert.equal(file.tensor(name).scale, undefined, name);
    }
    // Numbers stay those of the blocks.
    assert.deepEqual(await weight.dequantize(), dequantizeSync("NVFP4", weights.bytes));
    file.close();
    assert.equal(weight.scale?.name, "blk.0.ffn_down.scale");
  }
});

test("is the tensor NAME.weight.scale where there is no NAME.scale", () => {
  const names = ["blk.0.ffn_down.weight.scale", "blk.0.ffn_up_exps.weight.scale"];
  const file = parse(
    writeGguf({
      tensors: [
        ...[weights, experts].map((tensor) => ({ ...tensor })),
        floats("blk.0.ffn_up_exps.scale", [1, 2, 3]),
        ...names.map((name) => floats(name, [0.5])),
      ],
    }),
  );
  assert.equal(file.tensor("blk.0.ffn_down.weight").scale?.name, "blk.0.ffn_down.weight.scale");
  assert.equal(file.tensor("blk.0.ffn_up_exps.weight").scale?.name, "blk.0.ffn_up_exps.scale");
});

test("is found in the other files of a split model", async () => {
  const shards = [
    [weights],
    [floats("blk.0.ffn_down.scale", [0.5]), floats("blk.0.ffn_up_exps.scale", [2])],
    [experts],
  ];
  for (const [no, of] of shards.entries()) {
    writeModel(`split-0000${no + 1}-of-00003.gguf`, {
      metadata: [...(no === 0 ? [["general.architecture", str("test")] as const] : []), ...splitKeys(no, 3, 4)],
      tensors: of,
    });
  }
  const path = at("split-00001-of-00003.gguf");
  for (const file of [openSync(path), await open(path)]) {
    for (const name of ["blk.0.ffn_down", "blk.0.ffn_up_exps"]) {
      assert.equal(file.tensor(`${name}.weight`).scale, file.tensor(`${name}.scale`));
    }
    file.close();
  }
});

test("inspect names it", async () => {
  const text = await output("inspect", at("scales.gguf"));
  assert.match(text, /2 NVFP4 tensors with a second scale/);
  assert.match(text.replace(/\s+/g, " "), /blk\.0\.ffn_down\.scale for blk\.0\.ffn_down\.weight/);
  const { tensors } = await json(["inspect", at("scales.gguf"), "--tensors"]);
  const named = Object.fromEntries(tensors.map(({ name, scale }: Record<string, string>) => [name, scale]));
  assert.equal(named["blk.0.ffn_down.weight"], "blk.0.ffn_down.scale");
  assert.equal(named["blk.0.attn_q.weight"], undefined);
  assert.doesNotMatch(await output("inspect", at("split-00003-of-00003.gguf"), "--no-splits"), /second scale/);
});

test("the llama example multiplies products with it", async () => {
  const logits = async (scale: number | undefined): Promise<Float32Array> => {
    const writer = GgufWriter.from(parse(sampleModel()));
    const { bytes, shape } = blocks("", "NVFP4", [512, 2048], 6);
    writer.addTensor("output.weight", "NVFP4", shape, bytes);
    if (scale !== undefined) {
      writer.addTensor("output.scale", "F32", [1], Float32Array.of(scale));
      writer.addTensor("output.input_scale", "F32", [1], Float32Array.of(3));
    }
    const parts: Uint8Array[] = [];
    for await (const chunk of writer.chunks()) parts.push(chunk.slice());
    const llama = Llama.load(parse(Buffer.concat(parts)));
    return llama.forward([7, 8, 9], llama.createCache(3));
  };
  const without = await logits(undefined);
  assert.ok(without.some((logit) => logit !== 0));
  assert.deepEqual(
    await logits(0.25),
    without.map((logit) => logit * 0.25),
  );
});
