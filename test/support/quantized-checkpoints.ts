/** Checkpoints in 8 and 4 bits, and the same with their numbers. */
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { dequantizeSync, openSafetensors, quantizeSync } from "gguf-native";
import { Random } from "./random";
import { float4, float8, safetensorsOf } from "./safetensors-files";

const random = new Random(5);
const made = (count: number, number: () => number): number[] => Array.from({ length: count }, number);
export const part = (dtype: string, shape: number[], bytes: ArrayBufferView) => {
  return { dtype, shape, bytes: new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength) };
};
type Part = ReturnType<typeof part>;
export type Parts = Record<string, Part>;

/** Numbers that binary16, or bfloat16, has. */
function scales(type: "F16" | "BF16", count: number): { bytes: Uint8Array; values: Float32Array } {
  const bytes = quantizeSync(type, Float32Array.from(made(count, () => 0.01 + random.unit() / 8)));
  return { bytes, values: dequantizeSync(type, bytes) };
}

/** Fields of `bits` in words of 32; `at` gives that of a word and a place. */
const words = (count: number, bits: number, at: (word: number, place: number) => number): Int32Array =>
  Int32Array.from({ length: count }, (_, word) => {
    let value = 0;
    for (let place = 0; place < 32 / bits; place++) value |= at(word, place) << (bits * place);
    return value;
  });

interface Packed {
  parts: Parts;
  value: (row: number, column: number) => number;
}

const e4m3 = (byte: number): number => float8(byte, 4, true);

/** FP8 with a scale for so many rows and columns; 0 is all of them. */
function fp8(suffix: string, tall: number, wide: number, shape: (rows: number, columns: number) => number[]) {
  return (rows: number, columns: number): Packed => {
    const codes = made(rows * columns, () => random.below(127) + 128 * random.below(2));
    const width = wide === 0 ? 1 : Math.ceil(columns / wide);
    const { bytes, values } = scales("BF16", width * (tall === 0 ? 1 : Math.ceil(rows / tall)));
    const at = (row: number, column: number) =>
      (tall === 0 ? 0 : Math.floor(row / tall)) * width + (wide === 0 ? 0 : Math.floor(column / wide));
    return {
      parts: {
        weight: part("F8_E4M3", [rows, columns], Uint8Array.from(codes)),
        [suffix]: part("BF16", shape(rows, columns), bytes),
      },
      value: (row, column) => e4m3(codes[row * columns + column] as number) * (values[at(row, column)] as number),
    };
  };
}

function mxfp4(isPacked: boolean) {
  return (rows: number, columns: number): Packed => {
    const codes = made(rows * columns, () => random.below(16));
    const exponents = made((rows * columns) / 32, () => 110 + random.below(20));
    const bytes = Uint8Array.from({ length: codes.length / 2 }, (_, i) => {
      return (codes[2 * i] as number) | ((codes[2 * i + 1] as number) << 4);
    });
    const scale = part(isPacked ? "U8" : "F8_E8M0", [rows, columns / 32], Uint8Array.from(exponents));
    return {
      parts: isPacked
        ? { weight_packed: part("U8", [rows, columns / 2], bytes), weight_scale: scale }
        : { weight: part("F4", [rows, columns], bytes), weight_scale: scale },
      value: (row, column) => {
        const at = row * columns + column;
        // Zero has no sign in ggml.
        return (float4(codes[at] as number) || 0) * 2 ** ((exponents[at >> 5] as number) - 127);
      },
    };
  };
}

/** With a factor for all, or a divisor. */
function nvfp4(isDivisor: boolean) {
  return (rows: number, columns: number): Packed => {
    const [codes, bytes] = [
      made(rows * columns, () => random.below(16)),
      made((rows * columns) / 16, () => random.below(127)),
    ];
    const whole = Math.fround(isDivisor ? 100 + random.unit() : random.unit() / 100);
    const pairs = Uint8Array.from({ length: codes.length / 2 }, (_, i) => codes[2 * i]! | (codes[2 * i + 1]! << 4));
    const [weight, other] = isDivisor ? ["weight_packed", "weight_global_scale"] : ["weight", "weight_scale_2"];
    return {
      parts: {
        [weight!]: part("U8", [rows, columns / 2], pairs),
        weight_scale: part("F8_E4M3", [rows, columns / 16], Uint8Array.from(bytes)),
        [other!]: part("F32", isDivisor ? [1] : [], Float32Array.of(whole)),
        [isDivisor ? "input_global_scale" : "input_scale"]: part("F32", [1], Float32Array.of(3)),
      },
      value: (row, column) => {
        const at = row * columns + column;
        const [own, code] = [e4m3(bytes[at >> 4]!), codes[at]!];
        return float4(code) * Math.fround(isDivisor ? own / whole : own * whole);
      },
    };
  };
}

const GROUP = 32;

/** Integers with scales of groups; `layout` packs them. */
function integers(
  bits: number,
  isSymmetric: boolean,
  scaleType: "F16" | "BF16",
  layout: (q: number[], z: number[], scale: Uint8Array, rows: number, columns: number, order: number[]) => Parts,
  isMoved = false,
) {
  return (rows: number, columns: number): Packed => {
    const groups = columns / GROUP;
    const q = made(rows * columns, () => random.below(2 ** bits));
    const z = made(rows * groups, () => (isSymmetric ? 2 ** (bits - 1) : 1 + random.below(2 ** bits - 1)));
    const order = Array.from({ length: columns }, (_, column) =>
      isMoved ? column % groups : Math.floor(column / GROUP),
    );
    const { bytes, values } = scales(scaleType, rows * groups);
    return {
      parts: layout(q, z, bytes, rows, columns, order),
      value: (row, column) => {
        const at = row * groups + (order[column] as number);
        return ((q[row * columns + column] as number) - (z[at] as number)) * (values[at] as number);
      },
    };
  };
}

const transposed = (bytes: Uint8Array, rows: number, columns: number): Uint16Array => {
  const given = new Uint16Array(bytes.slice().buffer);
  return given.map((_, i) => given[(i % rows) * columns + Math.floor(i / rows)] as number);
};

/** compressed-tensors. */
const packed =
  (bits: number, scaleType: string, hasZeros: boolean) =>
  (q: number[], z: number[], scale: Uint8Array, rows: number, columns: number): Parts => {
    const [perWord, groups] = [32 / bits, columns / GROUP];
    const zeros = words((rows / perWord) * groups, bits, (word, place) => {
      const row = Math.floor(word / groups) * perWord + place;
      return z[row * groups + (word % groups)] as number;
    });
    return {
      weight_packed: part(
        "I32",
        [rows, columns / perWord],
        words(q.length / perWord, bits, (word, place) => q[word * perWord + place] as number),
      ),
      weight_scale: part(scaleType, [rows, groups], scale),
      weight_shape: part("I64", [2], BigInt64Array.of(BigInt(rows), BigInt(columns))),
      ...(hasZeros ? { weight_zero_point: part("I32", [rows / perWord, groups], zeros) } : {}),
    };
  };

const gptq =
  (bits: number, more: number) =>
  (q: number[], z: number[], scale: Uint8Array, rows: number, columns: number, order: number[]): Parts => {
    const [groups, high, wide] = [columns / GROUP, (columns * bits) / 32, (rows * bits) / 32];
    /** A word of fields that follow each other bit by bit: those of 3 bits may be in two. */
    const word = (at: number, field: (i: number) => number): number =>
      Array.from({ length: 32 }, (_, i) => {
        const bit = 32 * at + i;
        return ((field(Math.floor(bit / bits)) >>> (bit % bits)) & 1) << i;
      }).reduce((all, each) => all | each);
    const weights = Int32Array.from({ length: high * rows }, (_, i) =>
      word(Math.floor(i / rows), (column) => q[(i % rows) * columns + column] as number),
    );
    const zeros = Int32Array.from({ length: groups * wide }, (_, i) =>
      word(i % wide, (row) => (z[row * groups + Math.floor(i / wide)] as number) - more),
    );
    return {
      qweight: part("I32", [high, rows], weights),
      qzeros: part("I32", [groups, wide], zeros),
      scales: part("F16", [groups, rows], transposed(scale, rows, groups)),
      g_idx: part("I32", [columns], Int32Array.from(order)),
    };
  };

const awq = (q: number[], z: number[], scale: Uint8Array, rows: number, columns: number): Parts => {
  const [order, groups] = [[0, 2, 4, 6, 1, 3, 5, 7], columns / GROUP];
  const along = (from: number[], width: number) =>
    words((rows / 8) * width, 4, (word, place) => {
      const row = (word % (rows / 8)) * 8 + (order[place] as number);
      return from[row * width + Math.floor(word / (rows / 8))] as number;
    });
  return {
    qweight: part("I32", [columns, rows / 8], along(q, columns)),
    qzeros: part("I32", [groups, rows / 8], along(z, groups)),
    scales: part("F16", [groups, rows], transposed(scale, rows, groups)),
  };
};

/** AWQ for vectors: with rows of four words of zero points, of which not all are used. */
const gemv = (q: number[], z: number[], scale: Uint8Array, rows: number, columns: number): Parts => {
  const groups = columns / GROUP;
  const scales = new Uint16Array(32 * rows);
  const given = new Uint16Array(scale.slice().buffer);
  for (let row = 0; row < rows; row++) scales.set(given.subarray(row * groups, (row + 1) * groups), 32 * row);
  const zeroAt = (row: number, at: number): number => (at < groups ? (z[row * groups + at] as number) : 0);
  const zeros = words(rows * 4, 4, (word, i) => zeroAt(word >> 2, 8 * (word & 3) + i));
  return {
    qweight: packed(4, "F16", false)(q, z, scale, rows, columns).weight_packed as Part,
    qzeros: part("I32", [rows, 4], zeros),
    scales: part("F16", [rows, 32], scales),
  };
};

const int8 =
  (type: "F16" | "BF16") =>
  (rows: number, columns: number): Packed => {
    const q = Int8Array.from(made(rows * columns, () => random.below(256) - 128));
    const { bytes, values } = scales(type, rows);
    return {
      parts: { weight: part("I8", [rows, columns], q), weight_scale: part(type, [rows, 1], bytes) },
      value: (row, column) => (q[row * columns + column] as number) * (values[row] as number),
    };
  };

export const compressed = (num_bits: number) => ({
  quant_method: "compressed-tensors",
  config_groups: { group_0: { weights: { num_bits } } },
});
export const GPTQ = { quant_method: "gptq", bits: 4, sym: true, desc_act: false };
export const AWQ = { quant_method: "awq", bits: 4, version: "gemm" };
export const GEMV = { ...AWQ, version: "gemv", group_size: GROUP };
export const FP8 = { quant_method: "fp8", weight_block_size: [48, 40] };

/** What `quantization_config` says, the type of `type: "auto"`, and what makes the tensors of a matrix. */
export type Scheme = readonly [quantization: object, type: string, pack: (rows: number, columns: number) => Packed];

const blockShape = (rows: number, columns: number): number[] => [Math.ceil(rows / 48), Math.ceil(columns / 40)];
const [int4, int8s] = [compressed(4), compressed(8)];
const uneven = { ...GPTQ, sym: false };
const v2 = { ...GPTQ, checkpoint_format: "gptq_v2" };
const moved = { ...GPTQ, desc_act: true };

export const SCHEMES: Record<string, Scheme> = {
  "FP8 with scales of blocks": [FP8, "F16", fp8("weight_scale_inv", 48, 40, blockShape)],
  "FP8 with a scale": [FP8, "F16", fp8("weight_scale", 0, 0, () => [])],
  "FP8 with scales of rows": [FP8, "F16", fp8("weight_scale", 1, 0, (rows) => [rows, 1])],
  "MXFP4 as F4": [int4, "MXFP4", mxfp4(false)],
  "MXFP4 in bytes": [int4, "MXFP4", mxfp4(true)],
  "NVFP4 of compressed-tensors": [int4, "F16", nvfp4(true)],
  "NVFP4 of ModelOpt": [{ quant_method: "modelopt", quant_algo: "NVFP4" }, "F16", nvfp4(false)],
  int8: [int8s, "Q8_0", int8("F16")],
  "int8 with scales in bfloat16": [int8s, "F16", int8("BF16")],
  int4: [int4, "Q4_0", integers(4, true, "F16", packed(4, "F16", false))],
  "int4 with zero points": [int4, "Q8_0", integers(4, false, "F16", packed(4, "F16", true))],
  "int4 with scales in bfloat16": [int4, "F16", integers(4, true, "BF16", packed(4, "BF16", false))],
  "packed int8": [int8s, "Q8_0", integers(8, true, "F16", packed(8, "F16", false))],
  GPTQ: [GPTQ, "Q4_0", integers(4, true, "F16", gptq(4, 1))],
  "GPTQ with zero points": [uneven, "Q8_0", integers(4, false, "F16", gptq(4, 1))],
  "GPTQ of 8 bits": [{ ...GPTQ, bits: 8 }, "Q8_0", integers(8, true, "F16", gptq(8, 1))],
  "GPTQ of 2 bits": [{ ...uneven, bits: 2 }, "Q8_0", integers(2, false, "F16", gptq(2, 1))],
  "GPTQ of 3 bits": [{ ...uneven, bits: 3 }, "Q8_0", integers(3, false, "F16", gptq(3, 1))],
  "GPTQ v2": [v2, "Q4_0", integers(4, true, "F16", gptq(4, 0))],
  "GPTQ with columns in another order": [moved, "F16", integers(4, true, "F16", gptq(4, 1), true)],
  AWQ: [AWQ, "Q8_0", integers(4, false, "F16", awq)],
  "AWQ for vectors": [GEMV, "Q8_0", integers(4, false, "F16", gemv)],
};

/** Two copies of a checkpoint: with quantized matrices, and with their numbers. */
export async function writeQuantized(
  base: string,
  folder: string,
  [quantization, , pack]: Scheme,
  change?: (parts: Parts) => void,
): Promise<[string, string]> {
  const [quantized, plain]: [Parts, Parts] = [{}, {}];
  const model = await openSafetensors(base);
  for (const [name, tensor] of model.tensors) {
    const shape = [...tensor.shape].reverse();
    const [rows = 0, columns = 0] = shape;
    if (!name.endsWith("_proj.weight")) {
      const same = part(tensor.dtype, shape, await tensor.read());
      [quantized[name], plain[name]] = [same, same];
      continue;
    }
    const { parts, value } = pack(rows, columns);
    const numbers = Float32Array.from({ length: rows * columns }, (_, i) =>
      value(Math.floor(i / columns), i % columns),
    );
    plain[name] = part("F32", shape, numbers);
    for (const [end, each] of Object.entries(parts)) quantized[name.replace(/weight$/, end)] = each;
  }
  model.close();
  change?.(quantized);
  const write = (name: string, tensors: Parts, more: object): string => {
    const path = join(folder, name);
    rmSync(path, { recursive: true, force: true });
    cpSync(base, path, { recursive: true });
    writeFileSync(join(path, "model.safetensors"), safetensorsOf(tensors));
    const config = JSON.parse(readFileSync(join(path, "config.json"), "utf8"));
    writeFileSync(join(path, "config.json"), JSON.stringify({ ...config, ...more }));
    return path;
  };
  return [write("quantized", quantized, { quantization_config: quantization }), write("plain", plain, {})];
}
