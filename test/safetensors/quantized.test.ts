/** Checkpoints in 8 and 4 bits: the same files as of their numbers in binary32, and exact where a type of blocks holds them. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { convertModel, openSync } from "gguf-native";
import { CHECKPOINTS, writeCheckpoint } from "../support/checkpoints";
import { folder } from "../support/cli";
import {
  AWQ,
  compressed,
  FP8,
  GEMV,
  GPTQ,
  type Parts,
  part,
  SCHEMES,
  type Scheme,
  writeQuantized,
} from "../support/quantized-checkpoints";

const base = writeCheckpoint(folder, CHECKPOINTS.find(({ name }) => name === "mistral-v0.3") as never);
const write = (scheme: Scheme, change?: (parts: Parts) => void) => writeQuantized(base, folder, scheme, change);
const out = (name: string): string => join(folder, `${name}.gguf`);

for (const [name, scheme] of Object.entries(SCHEMES)) {
  test(name, async () => {
    const [quantized, plain] = await write(scheme);
    const options = { name: "x", overwrite: true };
    await convertModel(quantized, out("quantized"), { ...options, type: "f32" });
    await convertModel(plain, out("plain"), { ...options, type: "f32" });
    assert.ok(readFileSync(out("quantized")).equals(readFileSync(out("plain"))));
    await convertModel(quantized, out("auto"), options);
    const [auto, exact] = [openSync(out("auto")), openSync(out("plain"))];
    for (const [tensor, { type }] of auto.tensors) {
      if (!/attn_(q|k|v|output)\.weight|ffn_(up|gate|down)/.test(tensor)) continue;
      assert.equal(type, scheme[1]);
      if (type === "F16") continue;
      assert.deepEqual(auto.tensor(tensor).dequantizeSync(), exact.tensor(tensor).dequantizeSync(), tensor);
    }
  });
}

const SIZES: Record<string, number> = { I64: 8, I32: 4, F32: 4, F16: 2, I16: 2 };

/** Another tensor of the first matrix, all of whose bytes are the same; without a type, there is none. */
const other =
  (end: string, dtype?: string, shape: number[] = [], byte = 0) =>
  (parts: Parts): void => {
    const count = shape.reduce((product, length) => product * length, SIZES[dtype ?? ""] ?? 1);
    const name = `model.layers.0.self_attn.q_proj.${end}`;
    delete parts[name];
    if (dtype !== undefined) parts[name] = part(dtype, shape, new Uint8Array(count).fill(byte));
  };

/** What is wrong: in which scheme, what changes in the tensors or the configuration, and what the error says. */
const bad: [scheme: string, change: ((parts: Parts) => void) | object, message: RegExp][] = [
  ["FP8 with scales of blocks", other("weight_scale_inv"), /q_proj\.weight': its type is F8_E4M3, and there is no/],
  ["FP8 with scales of blocks", other("weight_scale_inv", "F32", [3, 3]), /3 x 3; .* 1, 128, GROUPS x 128 or 2 x 3/],
  ["FP8 with scales of blocks", { ...FP8, weight_block_size: [0, "x"] }, /weight_block_size .* two whole numbers/],
  ["FP8 with a scale", other("weight", "F8_E4M3", [128, 0]), /must have rows, of 1 to 1048576 columns; found 0 x 128/],
  ["MXFP4 as F4", other("weight_scale", "F8_E8M0", [128, 1]), /weight_scale': its shape is 1 x 128/],
  ["MXFP4 as F4", other("weight_scale", "F8_E8M0", [128, 2], 255), /scale 0 is NaN, which MXFP4/],
  ["MXFP4 as F4", other("weight_scale", "F16", [128, 2]), /must be F8_E8M0 or U8/],
  ["MXFP4 in bytes", other("weight_global_scale", "F32", [1]), /COLUMNS . 16 x 128, .* with scales of F8_E4M3/],
  ["NVFP4 of ModelOpt", other("weight_scale"), /q_proj\.weight': there is no weight_scale beside it/],
  ["NVFP4 of ModelOpt", other("weight_scale_2", "F32", [2]), /weight_scale_2': its shape is 2; .* that of a number/],
  ["NVFP4 of ModelOpt", other("weight", "U8", [128, 30]), /COLUMNS . 16 x 128, for 60 columns/],
  ["int8", other("weight_zero_point", "I8", [128, 1]), /zero points beside weights of 8 bits/],
  ["int4", other("weight_scale"), /weight_packed': there is no weight_scale beside it/],
  ["int4", other("weight_shape", "I64", [2]), /it says 0 x 0, and there are 128 x 64/],
  ["int4", other("weight_scale", "F16", [128, 3]), /equal parts of 64 columns/],
  ["int4", compressed(3), /integers of 3 bits are not converted, only of 2, 4, 8/],
  ["int4 with zero points", other("weight_zero_point", "I32", [128, 2]), /its shape is 2 x 128.*must be 2 x 16/],
  ["GPTQ of 3 bits", other("qweight", "I32", [8, 128]), /equal parts of 85\.3\d+ columns/],
  ["GPTQ", other("qzeros"), /qweight': there is no qzeros beside it/],
  ["GPTQ", other("qweight", "I16", [8, 128]), /must be I32, not I16/],
  ["GPTQ", other("qzeros", "I32", [2, 128]), /qzeros': its shape is 128 x 2/],
  [
    "GPTQ",
    other("qzeros", "I32", [2, 16], 255),
    /zero point is out of range: a weight would be -\d+ times.* not in Q4_0/,
  ],
  ["GPTQ", other("g_idx", "I32", [64], 1), /each of 64 columns must be in one of 2 groups, found group 16843009/],
  ["GPTQ", other("g_idx", "I32", [64]), /g_idx moves columns, and desc_act/],
  ["GPTQ", other("g_idx", "I32", [63]), /each of 64 columns must be in one of 2 groups, found 63 of them/],
  ["GPTQ", {}, /quant_method must be gptq, or awq in the version gemm or gemv, found undefined/],
  ["GPTQ", { ...GPTQ, bits: "x" }, /integers of NaN bits/],
  ["AWQ", { ...AWQ, version: "gemv_fast" }, /found awq, gemv_fast/],
  ["AWQ for vectors", { ...GEMV, group_size: -32 }, /equal parts of 96 columns .*group_size -32/],
];

for (const [i, [name, change, message]] of bad.entries()) {
  test(`${name}: ${message} (${i})`, async () => {
    const [quantization, ...scheme] = SCHEMES[name] as Scheme;
    const [path] = await (typeof change === "function"
      ? write([quantization, ...scheme], (parts) => change(parts))
      : write([change, ...scheme]));
    await assert.rejects(convertModel(path, out("bad")), message);
  });
}
