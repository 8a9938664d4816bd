/**
 * Matrices of checkpoints in 8 and 4 bits, which lie in several tensors: integers, or numbers of a few bits, and their scales.
 * They become one tensor, of a type that holds the products exactly where there is one: MXFP4 stays what it is; integers with
 * scales in binary16 for 32 columns or more become Q4_0 or Q8_0; all others are products in binary32.
 */

import { GgufError } from "../base/errors";
import { recently } from "../base/recent";
import { type GgmlType, ggmlTypes } from "../base/types";
import { dequantizeSync } from "../decode/dequantize";
import { quantizeSync } from "../quantize/quantize";
import { F4_UPPER } from "../safetensors/dtypes";
import { quotable } from "../safetensors/json-reader";
import type { SafetensorsTensor } from "../safetensors/model";
import type { Config } from "./architectures";

/** Elements, whole blocks of the type. */
interface Range {
  start: number;
  end: number;
  signal?: AbortSignal | undefined;
}

/** What is known of a tensor of a checkpoint to convert it. */
export interface Convertible {
  readonly name: string;
  readonly path: string | undefined;
  readonly type: string;
  readonly shape: readonly number[];
  readonly elementCount: number;
  read(range: Range): Promise<Uint8Array>;
  dequantize(range: Range): Promise<Float32Array>;
}

type Signal = AbortSignal | undefined;

/** A matrix whose rows can be read. */
interface Rows {
  readonly type: GgmlType;
  readonly columns: number;
  readonly rows: number;
  bytes(first: number, last: number, signal: Signal): Promise<Uint8Array>;
}

/** A number for each column, times that of its group. */
interface Scaled {
  readonly columns: number;
  readonly rows: number;
  /** Columns with the same scale. */
  readonly group: number;
  /** Integers of so many bits, and whether the one in the middle is 0 everywhere; undefined for other numbers. */
  readonly bits?: number | undefined;
  readonly isSymmetric?: boolean;
  /** The scales, whose type decides. */
  readonly scale: SafetensorsTensor;
  codes(first: number, last: number, signal: Signal): Promise<Float32Array>;
  /** As many for each row as there are groups. */
  scales(first: number, last: number, signal: Signal): Promise<Float32Array>;
  /** The group of each column, where they are not in order. */
  order?(): Promise<Int32Array | undefined>;
}

/** The longest rows that are read. */
const MAX_COLUMNS = 2 ** 20;

const invalid = ({ path, name }: SafetensorsTensor, detail: string): GgufError =>
  new GgufError("ERR_GGUF_INVALID", detail, { path, tensor: name });
const unsupported = ({ path, name }: SafetensorsTensor, detail: string): GgufError =>
  new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail, { path, tensor: name });

/** What is beside a quantized matrix and says nothing about its weights. */
const UNUSED = /(^|[._])(input|output|activation|[kqv]|prob)_(global_)?(scale|zero_point)$/;

interface Context {
  readonly quantization: Config;
  /** What belongs to a matrix, if it is there. */
  readonly take: (part: string) => SafetensorsTensor | undefined;
  readonly need: (part: string) => SafetensorsTensor;
  readonly whole: (tensor: SafetensorsTensor) => Promise<Int32Array>;
}

/** The tensors in their order, those that belong together in one. */
export function unpacked(
  tensors: readonly (readonly [string, SafetensorsTensor])[],
  config: Config,
): [string, Convertible][] {
  const all = new Map(tensors);
  const parts = new Set<string>();
  const recent = recently<SafetensorsTensor, Promise<Int32Array>>(8);
  const whole = (tensor: SafetensorsTensor): Promise<Int32Array> => recent(tensor, () => integersOf(tensor));
  const quantization: Config = Object(config.quantization_config);
  let isQuantized = false;
  const found = tensors.map(([name, tensor]): [string, Convertible] => {
    const [, stem = "", end] = /^(.*)\.(qweight|weight_packed|weight)$/s.exec(name) ?? [];
    const take = (part: string): SafetensorsTensor | undefined => {
      const found = all.get(`${stem}.${part}`);
      if (found !== undefined) parts.add(`${stem}.${part}`);
      return found;
    };
    const need = (part: string): SafetensorsTensor => {
      const found = take(part);
      if (found === undefined) throw invalid(tensor, `there is no ${part} beside it`);
      return found;
    };
    const rows = end === undefined ? undefined : matrixOf(end, tensor, { quantization, take, need, whole });
    if (rows === undefined) return [name, tensor];
    isQuantized = true;
    return [`${stem}.weight`, convertible(tensor, `${stem}.weight`, rows)];
  });
  return found.filter(([name]) => !parts.has(name) && !(isQuantized && UNUSED.test(name)));
}

/** Undefined for a tensor that is alone. */
function matrixOf(end: string, tensor: SafetensorsTensor, context: Context): Rows | undefined {
  const { quantization, take, need } = context;
  const { dtype, shape } = tensor;
  if (end === "qweight") return packedIntegers(tensor, false, context);
  if (end === "weight_packed") {
    const divisor = take("weight_global_scale");
    if (divisor !== undefined) return doublyScaled(tensor, need("weight_scale"), divisor, true);
    return dtype === "U8" ? microscaled(tensor, need("weight_scale"), 2) : packedIntegers(tensor, true, context);
  }
  const factor = dtype === "U8" ? take("weight_scale_2") : undefined;
  if (factor !== undefined) return doublyScaled(tensor, need("weight_scale"), factor, false);
  if (!/^F8_E[45]|^F4$|^I8$/.test(dtype) || shape.length === 0) return undefined;
  const scale = take("weight_scale_inv") ?? take("weight_scale");
  if (scale !== undefined) return dtype === "F4" ? microscaled(tensor, scale, 1) : plainScaled(tensor, scale, context);
  if (quantization.quant_method === undefined) return undefined;
  throw invalid(tensor, `its type is ${dtype}, and there is no weight_scale or weight_scale_inv beside it`);
}

function matrixShape(tensor: SafetensorsTensor): [columns: number, rows: number] {
  const [columns, rows, more] = tensor.shape;
  if (columns && rows && more === undefined && columns <= MAX_COLUMNS) return [columns, rows];
  const found = tensor.shape.join(" x ");
  throw invalid(tensor, `a matrix with scales must have rows, of 1 to ${MAX_COLUMNS} columns; found ${found}`);
}

function wrongShape(tensor: SafetensorsTensor, part: SafetensorsTensor, wanted: string): GgufError {
  const found = part.shape.join(" x ") || "that of a number";
  const detail = `its shape is ${found}; for the matrix '${quotable(tensor.name)}' it must be ${wanted}`;
  return invalid(part, detail);
}

/** Bytes or floats of their own, times scales: of the matrix, of rows, of groups in a row, or of blocks of rows and columns. */
function plainScaled(tensor: SafetensorsTensor, scale: SafetensorsTensor, { quantization, take }: Context): Rows {
  const [columns, rows] = matrixShape(tensor);
  const zero = take("weight_zero_point");
  if (zero !== undefined) throw unsupported(zero, "zero points beside weights of 8 bits are not converted");
  const block: unknown = quantization.weight_block_size ?? weightsOf(quantization).block_structure;
  const [blockRows, blockColumns, more] = Array.isArray(block) ? block : [128, 128];
  const isSize = (size: unknown): boolean => Number.isInteger(size) && (size as number) > 0;
  if (!isSize(blockRows) || !isSize(blockColumns) || more !== undefined) {
    throw invalid(tensor, "weight_block_size of quantization_config must be two whole numbers: rows, columns");
  }
  const [width = 1, height = 1] = scale.shape.length === 1 ? [1, scale.shape[0]] : scale.shape;
  const [across, down] = [Math.ceil(columns / blockColumns), Math.ceil(rows / blockRows)];
  /** Rows and columns with the same scale. */
  let size: [number, number] | undefined;
  if (scale.elementCount === 1) size = [rows, columns];
  else if (width === across && height === down) size = [blockRows, blockColumns];
  else if (height === rows && columns % width === 0) size = [1, columns / width];
  if (size === undefined || scale.shape.length > 2) {
    throw wrongShape(tensor, scale, `1, ${rows}, GROUPS x ${rows} or ${across} x ${down} (blocks)`);
  }
  const [tall, group] = size;
  const groups = Math.ceil(columns / group);
  return scaled({
    ...{ columns, rows, group, scale },
    ...(tensor.dtype === "I8" ? { bits: 8, isSymmetric: true } : {}),
    codes: (first, last, signal) => tensor.dequantize({ start: first * columns, end: last * columns, signal }),
    scales: async (first, last, signal) => {
      const [top, bottom] = [Math.floor(first / tall), Math.ceil(last / tall)];
      const stored = await scale.dequantize({ start: top * groups, end: bottom * groups, signal });
      return Float32Array.from({ length: (last - first) * groups }, (_, i) => {
        const row = Math.floor((first + Math.floor(i / groups)) / tall) - top;
        return stored[row * groups + (i % groups)] as number;
      });
    },
  });
}

/** The numbers of E2M1 without their sign. */
const E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6];

/** NVFP4: numbers of 4 bits, two in a byte, and a scale for 16 of them, of which each is times, or over, another one of all. */
function doublyScaled(
  tensor: SafetensorsTensor,
  scale: SafetensorsTensor,
  whole: SafetensorsTensor,
  isDivisor: boolean,
): Rows {
  const [width, rows] = matrixShape(tensor);
  const [columns, groups] = [2 * width, width / 8];
  if (String(scale.shape) !== String([groups, rows]) || scale.dtype !== "F8_E4M3" || tensor.dtype !== "U8") {
    throw wrongShape(tensor, scale, `COLUMNS / 16 x ${rows}, for ${columns} columns in U8, with scales of F8_E4M3`);
  }
  if (whole.elementCount !== 1) throw wrongShape(tensor, whole, "that of a number");
  return scaled({
    ...{ columns, rows, group: 16, scale },
    codes: async (first, last, signal) => {
      const bytes = await tensor.dequantize({ start: first * width, end: last * width, signal });
      return Float32Array.from({ length: 2 * bytes.length }, (_, i) => {
        const code = ((bytes[i >> 1] as number) >> (4 * (i & 1))) & 15;
        return (code & 8 ? -1 : 1) * (E2M1[code & 7] as number);
      });
    },
    scales: async (first, last, signal) => {
      const [factor = 1] = await whole.dequantize({ start: 0, end: 1, signal });
      const own = await scale.dequantize({ start: first * groups, end: last * groups, signal });
      return own.map((each) => (isDivisor ? each / factor : each * factor));
    },
  });
}

/** What compressed-tensors says of weights. */
function weightsOf({ config_groups: groups }: Config): Config {
  return Object(Object(Object.values(Object(groups))[0]).weights);
}

/** Where each of eight columns of AWQ is in a word. */
const AWQ_ORDER = [0, 4, 1, 5, 2, 6, 3, 7];

/**
 * Integers in words of 32 bits. compressed-tensors and AWQ for vectors (gemv) have them along the rows. GPTQ and AWQ have the
 * matrix, its zero points and its scales transposed, and words along what is a row of the matrix (GPTQ), or a column (AWQ). Words
 * of zero points are along columns, but for gemv along rows, which are completed there, as those of the scales.
 */
function packedIntegers(tensor: SafetensorsTensor, isCompressed: boolean, context: Context): Rows {
  const { quantization, take, need, whole } = context;
  const { quant_method: method, checkpoint_format: format = "gptq", version = "gemm" } = quantization;
  const layout = isCompressed ? "" : method === "awq" ? String(version).toLowerCase() : String(method);
  const [isAwq, isGemv] = [layout === "gemm", layout === "gemv"];
  const isUpright = isCompressed || isGemv;
  if (!isUpright && !isAwq && layout !== "gptq") {
    const found = quotable(method === "awq" ? `awq, ${version}` : layout);
    throw unsupported(tensor, `quant_method must be gptq, or awq in the version gemm or gemv, found ${found}`);
  }
  const given = isCompressed ? weightsOf(quantization).num_bits : (quantization.bits ?? quantization.w_bit);
  const [bits, known] = [Number(given ?? 4), isAwq || isGemv ? [4] : isCompressed ? [2, 4, 8] : [2, 3, 4, 8]];
  if (!known.includes(bits)) {
    throw unsupported(tensor, `integers of ${bits} bits are not converted, only of ${known.join(", ")}`);
  }
  const perWord = 32 / bits;
  const [width, height] = matrixShape(tensor);
  const [columns, rows] = isUpright
    ? [width * perWord, height]
    : isAwq
      ? [height, width * perWord]
      : [height * perWord, width];
  const scale = need(isCompressed ? "weight_scale" : "scales");
  const zero = isCompressed ? take("weight_zero_point") : need("qzeros");
  const groups = take(isCompressed ? "weight_g_idx" : "g_idx");
  const shape = take("weight_shape");
  const wide = scale.shape[isUpright ? 0 : 1] ?? 0;
  const size = Number(quantization.group_size ?? quantization.q_group_size ?? 128);
  const count = !isGemv ? wide : size === -1 ? 1 : columns / size;
  const group = columns / count;
  const zeroRows = Math.ceil((rows * bits) / 32);
  const check = (part: SafetensorsTensor, high: number, across: number): void => {
    const wanted = isUpright ? [across, high] : [high, across];
    const isEven = [group, columns, count].every(Number.isInteger) && count > 0 && count <= wide;
    if (String(part.shape) === String(wanted) && isEven && columns <= MAX_COLUMNS) return;
    const detail = `with groups that are equal parts of ${columns} columns (at most ${MAX_COLUMNS})`;
    throw wrongShape(tensor, part, `${wanted.join(" x ")}, ${detail}${isGemv ? `, of group_size ${size}` : ""}`);
  };
  check(scale, rows, wide);
  if (zero !== undefined) check(zero, isGemv ? rows : zeroRows, isGemv ? wide / 8 : count);
  const more = isUpright || isAwq || format === "gptq_v2" ? 0 : 1;
  const order = async (): Promise<Int32Array | undefined> =>
    groups && orderOf(groups, columns, count, await whole(groups));
  return scaled({
    ...{ columns, rows, group, scale, order },
    bits: quantization.desc_act === true || (isCompressed && groups) ? undefined : bits,
    isSymmetric: zero === undefined || (quantization.sym === true && !isAwq && !isUpright),
    codes: async (first, last, signal) => {
      const declared = shape && (await shape.dequantize({ start: 0, end: shape.elementCount, signal }));
      if (shape && String(declared) !== String([rows, columns])) {
        const found = declared?.join(" x ");
        throw invalid(shape, `it says ${found}, and there are ${rows} x ${columns}: padding is not read`);
      }
      const [words, zeros, groupOf] = [await whole(tensor), zero && (await whole(zero)), await order()];
      const mask = 2 ** bits - 1;
      /** A field, from this bit of a run of words on: those of 3 bits may be in two. */
      const field = (all: Int32Array, start: number, step: number, bit: number): number => {
        const at = start + (bit >>> 5) * step;
        const shift = bit & 31;
        const rest = shift + bits > 32 ? (all[at + step] as number) << (32 - shift) : 0;
        return (((all[at] as number) >>> shift) | rest) & mask;
      };
      const groupsOf = groupOf ?? Int32Array.from({ length: columns }, (_, column) => Math.floor(column / group));
      const middles = new Float32Array(count).fill(2 ** (bits - 1));
      const numbers = new Float32Array((last - first) * columns);
      // From one field of a row to the next: words along a row, or for AWQ a field in the words of a column.
      const [step, toWord, toBit] = [isAwq || isUpright ? 1 : width, isAwq ? width : 0, isAwq ? 0 : bits];
      for (let row = first, i = 0; row < last; row++) {
        const inColumn = bits * (isAwq ? row - (row % 8) + (AWQ_ORDER[row % 8] as number) : row);
        for (let at = 0; zeros !== undefined && at < count; at++)
          middles[at] = isGemv
            ? field(zeros, (row * wide) / 8, 1, at * bits)
            : field(zeros, isUpright ? at : at * zeroRows, isUpright ? count : 1, inColumn) + more;
        let [word, bit] = isAwq ? [0, inColumn] : [row * (isUpright ? width : 1), 0];
        for (let column = 0; column < columns; column++, i++, word += toWord, bit += toBit)
          numbers[i] = field(words, word, step, bit) - (middles[groupsOf[column] as number] as number);
      }
      return numbers;
    },
    scales: async (first, last, signal) => {
      if (isUpright) {
        const all = await scale.dequantize({ start: first * wide, end: last * wide, signal });
        return all.filter((_, i) => i % wide < count);
      }
      const high = last - first;
      const found = new Float32Array(high * count);
      for (let at = 0; at < count; at++) {
        const run = await scale.dequantize({ start: at * rows + first, end: at * rows + last, signal });
        for (const [row, x] of run.entries()) found[row * count + at] = x;
      }
      return found;
    },
  });
}

/** The groups of columns; undefined where they are in order. */
function orderOf(tensor: SafetensorsTensor, columns: number, count: number, order: Int32Array) {
  const wrong = order.find((group) => group < 0 || group >= count);
  if (order.length !== columns || wrong !== undefined) {
    const found = wrong === undefined ? `${order.length} of them` : `group ${wrong}`;
    throw invalid(tensor, `each of ${columns} columns must be in one of ${count} groups, found ${found}`);
  }
  return order.every((group, column) => group === Math.floor((column * count) / columns)) ? undefined : order;
}

/** Without a signal: whoever asks next may have another one. */
async function integersOf(tensor: SafetensorsTensor): Promise<Int32Array> {
  if (tensor.dtype !== "I32") throw invalid(tensor, `its type must be I32, not ${tensor.dtype}`);
  return new Int32Array((await tensor.read()).slice().buffer);
}

/** Products, in blocks where those hold them exactly. */
function scaled({
  columns,
  rows,
  group,
  bits = Number.POSITIVE_INFINITY,
  isSymmetric,
  scale,
  codes,
  scales,
  order,
}: Scaled): Rows {
  const isExact = scale.dtype === "F16" && group % 32 === 0 && (bits <= 4 || (bits === 8 && isSymmetric === true));
  const type: GgmlType = !isExact ? "F32" : bits === 4 && isSymmetric ? "Q4_0" : "Q8_0";
  const groups = Math.ceil(columns / group);
  return {
    ...{ type, columns, rows },
    bytes: async (first, last, signal) => {
      const [numbers, factors, groupOf] = [
        await codes(first, last, signal),
        await scales(first, last, signal),
        await order?.(),
      ];
      if (type === "F32") {
        for (let i = 0, row = 0; row < last - first; row++) {
          for (let column = 0; column < columns; column++, i++) {
            const at = groupOf === undefined ? Math.floor(column / group) : (groupOf[column] as number);
            numbers[i] = (numbers[i] as number) * (factors[row * groups + at] as number);
          }
        }
        return new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
      }
      if (groupOf !== undefined)
        throw invalid(scale, "g_idx moves columns, and desc_act of quantization_config is not true");
      return blocksOf(type, numbers, quantizeSync("F16", factors), group, scale);
    },
  };
}

/** Blocks of 32 columns: a scale, and integers of 8 bits, or of 4 with those of the second half above those of the first. */
function blocksOf(
  type: "Q4_0" | "Q8_0",
  codes: Float32Array,
  factors: Uint8Array,
  group: number,
  of: SafetensorsTensor,
): Uint8Array {
  const { typeSize } = ggmlTypes[type];
  const most = type === "Q4_0" ? 8 : 128;
  const blocks = new Uint8Array((codes.length / 32) * typeSize);
  for (let block = 0; block < codes.length / 32; block++) {
    const [at, scaleAt] = [block * typeSize, 2 * Math.floor((block * 32) / group)];
    blocks[at] = factors[scaleAt] as number;
    blocks[at + 1] = factors[scaleAt + 1] as number;
    for (let i = 0; i < 32; i++) {
      const code = codes[block * 32 + i] as number;
      if (code < -most || code >= most) {
        const detail = `a zero point is out of range: a weight would be ${code} times its scale, not in ${type}`;
        throw invalid(of, detail);
      }
      const place = at + 2 + (i % (typeSize - 2));
      blocks[place] = type === "Q8_0" ? code : (blocks[place] as number) | ((code + 8) << (i < 16 ? 0 : 4));
    }
  }
  return blocks;
}

/** Codes of F4 by the upper byte of their numbers in binary16. */
const F4_CODES = new Uint8Array(256);
for (const [code, upper] of F4_UPPER.entries()) {
  F4_CODES[upper] = code;
  F4_CODES[upper + 0x80] = code + 8;
}

/** MXFP4: numbers of 4 bits, two in a byte, and an exponent for 32 of them. */
function microscaled(tensor: SafetensorsTensor, scale: SafetensorsTensor, perNumber: number): Rows {
  const [width, rows] = matrixShape(tensor);
  const columns = width * perNumber;
  if (columns % 32 !== 0 || String(scale.shape) !== String([columns / 32, rows])) {
    throw wrongShape(tensor, scale, `COLUMNS / 32 x ${rows}, for ${columns} columns`);
  }
  const isByte = scale.dtype === "U8";
  if (!isByte && scale.dtype !== "F8_E8M0") {
    throw unsupported(scale, `its type is ${scale.dtype}; scales of numbers of 4 bits must be F8_E8M0 or U8`);
  }
  const words = (bytes: Uint8Array): Uint16Array => new Uint16Array(bytes.slice().buffer);
  return {
    ...{ type: "MXFP4", columns, rows },
    bytes: async (first, last, signal) => {
      const numbers = words(await tensor.read({ start: first * width, end: last * width, signal }));
      const start = (first * columns) / 32;
      const exponents = words(await scale.read({ start, end: (last * columns) / 32, signal }));
      const code = (i: number): number =>
        perNumber === 2
          ? ((numbers[i >> 1] as number) >> (4 * (i & 1))) & 15
          : (F4_CODES[(numbers[i] as number) >> 8] as number);
      const blocks = new Uint8Array(17 * exponents.length);
      for (const [block, stored] of exponents.entries()) {
        const exponent = isByte ? stored : stored >> 7;
        if (exponent === 255) throw invalid(scale, `scale ${start + block} is NaN, which MXFP4 of GGUF does not have`);
        blocks[17 * block] = exponent;
        for (let i = 0; i < 16; i++)
          blocks[17 * block + 1 + i] = code(32 * block + i) | (code(32 * block + 16 + i) << 4);
      }
      return blocks;
    },
  };
}

/** A matrix under its usual name. */
function convertible({ path }: SafetensorsTensor, name: string, { type, columns, rows, bytes }: Rows): Convertible {
  const { blockSize, typeSize } = ggmlTypes[type];
  const read = async ({ start, end, signal }: Range): Promise<Uint8Array> => {
    const first = Math.floor(start / columns);
    const whole = await bytes(first, Math.ceil(end / columns), signal);
    const at = (element: number): number => ((element - first * columns) / blockSize) * typeSize;
    return whole.subarray(at(start), at(end));
  };
  return {
    ...{ name, path, type, shape: [columns, rows], elementCount: columns * rows, read },
    dequantize: async (range) => dequantizeSync(type, await read(range)),
  };
}
