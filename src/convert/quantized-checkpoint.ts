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

/** Tensors of the checkpoint by their names. */
type Tensors = ReadonlyMap<string, SafetensorsTensor>;

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
  readonly bits?: number;
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
const UNUSED = /(^|[._])(input|output|activation|[kqv]|prob)_(scale|zero_point)$/;

/** The tensors in their order, those that belong together in one. */
export function unpacked(
  tensors: readonly (readonly [string, SafetensorsTensor])[],
  config: Config,
): [string, Convertible][] {
  const all = new Map(tensors);
  const parts = new Set<string>();
  const recent = recently<SafetensorsTensor, Promise<Int32Array>>(8);
  // Whoever asks next may have another signal.
  const whole = (tensor: SafetensorsTensor): Promise<Int32Array> =>
    recent(tensor, () => integers(tensor, 0, tensor.elementCount, undefined));
  const context = { all, parts, whole, quantization: Object(config.quantization_config) };
  const matrices = tensors.map(([name, tensor]): [string, Convertible, boolean] => {
    const found = matrixOf(name, tensor, context);
    if (found === undefined) return [name, tensor, false];
    const stem = name.replace(/\.(qweight|weight_packed|weight)$/, ".weight");
    return [stem, convertible(tensor, stem, found), true];
  });
  const isQuantized = matrices.some(([, , isPacked]) => isPacked);
  return matrices
    .filter(([name]) => !parts.has(name) && !(isQuantized && UNUSED.test(name)))
    .map(([name, tensor]) => [name, tensor]);
}

interface Context {
  readonly all: Tensors;
  /** Gets the names of what belongs to matrices. */
  readonly parts: Set<string>;
  readonly whole: (tensor: SafetensorsTensor) => Promise<Int32Array>;
  readonly quantization: Config;
}

/** Undefined for a tensor that is alone. */
function matrixOf(name: string, tensor: SafetensorsTensor, context: Context): Rows | undefined {
  const { all, parts, quantization } = context;
  const [, stem = "", end] = /^(.*)\.(qweight|weight_packed|weight)$/s.exec(name) ?? [];
  const take = (part: string): SafetensorsTensor | undefined => {
    const found = all.get(`${stem}.${part}`);
    if (found !== undefined) parts.add(`${stem}.${part}`);
    return found;
  };
  const need = (...names: string[]): SafetensorsTensor => {
    const found = names.map(take).find((each) => each !== undefined);
    if (found === undefined) throw invalid(tensor, `there is no ${names.join(" or ")} beside it`);
    return found;
  };
  if (end === undefined) return undefined;
  if (end === "qweight") return transposedIntegers(tensor, take, need, context);
  if (end === "weight_packed") {
    if (all.has(`${stem}.weight_global_scale`)) {
      throw unsupported(tensor, "it is NVFP4 with a scale for the whole matrix, which is not converted");
    }
    if (tensor.dtype === "U8") return microscaled(tensor, need("weight_scale"), 2);
    return packedIntegers(tensor, take, need, context);
  }
  const isQuantized = /^F8_E[45]|^F4$|^I8$/.test(tensor.dtype) && tensor.shape.length > 0;
  if (!isQuantized) return undefined;
  const scale = take("weight_scale_inv") ?? take("weight_scale");
  if (scale === undefined) {
    if (quantization.quant_method === undefined) return undefined;
    throw invalid(
      tensor,
      `its type is ${tensor.dtype}, and there is no weight_scale or weight_scale_inv beside it`,
    );
  }
  if (tensor.dtype === "F4") return microscaled(tensor, scale, 1);
  return plainScaled(tensor, scale, take("weight_zero_point"), quantization);
}

function matrixShape(
  { shape }: SafetensorsTensor,
  tensor: SafetensorsTensor,
): [columns: number, rows: number] {
  const [columns, rows] = shape;
  if (shape.length !== 2 || !columns || !rows) {
    throw invalid(tensor, `a matrix with scales must have rows and columns, found ${shape.join(" x ")}`);
  }
  if (columns > MAX_COLUMNS)
    throw invalid(tensor, `its rows have ${columns} numbers; at most ${MAX_COLUMNS} are read`);
  return [columns, rows];
}

const wrongShape = (tensor: SafetensorsTensor, part: SafetensorsTensor, wanted: string): GgufError =>
  invalid(
    part,
    `its shape is ${part.shape.join(" x ") || "that of a number"}; for the matrix '${quotable(tensor.name)}' it must be ${wanted}`,
  );

/** Bytes or floats of their own, times scales: of the matrix, of rows, of groups in a row, or of blocks of rows and columns. */
function plainScaled(
  tensor: SafetensorsTensor,
  scale: SafetensorsTensor,
  zero: SafetensorsTensor | undefined,
  quantization: Config,
): Rows {
  const [columns, rows] = matrixShape(tensor, tensor);
  if (zero !== undefined) throw unsupported(zero, "zero points beside weights of 8 bits are not converted");
  const { shape, elementCount: count } = scale;
  const block: unknown = quantization.weight_block_size ??
    weightsOf(quantization).block_structure ?? [128, 128];
  if (
    !Array.isArray(block) ||
    block.length !== 2 ||
    block.some((size) => !(Number.isInteger(size) && size > 0))
  ) {
    throw invalid(
      tensor,
      "weight_block_size of quantization_config must be two whole numbers: rows and columns",
    );
  }
  const [blockRows, blockColumns] = block as [number, number];
  const width = shape.length === 2 ? (shape[0] as number) : 1;
  const isBlocks =
    shape.length === 2 &&
    shape[1] === Math.ceil(rows / blockRows) &&
    width === Math.ceil(columns / blockColumns);
  const isRows = count === rows * width && columns % width === 0 && (shape.length === 1 || shape[1] === rows);
  const [tall, group] =
    count === 1
      ? [rows, columns]
      : isBlocks
        ? [blockRows, blockColumns]
        : isRows
          ? [1, columns / width]
          : [0, 0];
  if (!(tall > 0 && group > 0)) {
    const blocks = `${Math.ceil(columns / blockColumns)} x ${Math.ceil(rows / blockRows)} (blocks)`;
    throw wrongShape(tensor, scale, `1, ${rows}, GROUPS x ${rows} or ${blocks}`);
  }
  const groups = Math.ceil(columns / group);
  return scaled({
    ...{ columns, rows, group, scale },
    ...(tensor.dtype === "I8" ? { bits: 8, isSymmetric: true } : {}),
    codes: (first, last, signal) =>
      tensor.dequantize({ start: first * columns, end: last * columns, signal }),
    scales: async (first, last, signal) => {
      const [top, bottom] = [Math.floor(first / tall), Math.ceil(last / tall)];
      const stored = await scale.dequantize({ start: top * groups, end: bottom * groups, signal });
      return Float32Array.from(
        { length: (last - first) * groups },
        (_, i) =>
          stored[
            (Math.floor((first + Math.floor(i / groups)) / tall) - top) * groups + (i % groups)
          ] as number,
      );
    },
  });
}

/** What compressed-tensors says of weights. */
function weightsOf({ config_groups: groups }: Config): Config {
  return Object(Object(Object.values(Object(groups))[0]).weights);
}

/** Integers in words of 32 bits along the row, as compressed-tensors packs them. */
function packedIntegers(
  tensor: SafetensorsTensor,
  take: (part: string) => SafetensorsTensor | undefined,
  need: (...names: string[]) => SafetensorsTensor,
  { quantization, whole }: Context,
): Rows {
  const bits = Number(weightsOf(quantization).num_bits ?? 4);
  const perWord = checkBits(tensor, bits, [4, 8]);
  const [words, rows] = matrixShape(tensor, tensor);
  const [scale, shape, zero, groups] = [
    need("weight_scale"),
    take("weight_shape"),
    take("weight_zero_point"),
    take("weight_g_idx"),
  ];
  const columns = words * perWord;
  const [count = 0] = scale.shape;
  if (scale.shape.length !== 2 || scale.shape[1] !== rows || !count || columns % count !== 0) {
    throw wrongShape(tensor, scale, `GROUPS x ${rows}, whose groups are equal parts of ${columns} columns`);
  }
  const zeroRows = Math.ceil(rows / perWord);
  if (zero !== undefined && String(zero.shape) !== String([count, zeroRows])) {
    throw wrongShape(tensor, zero, `${count} x ${zeroRows}`);
  }
  const group = columns / count;
  return scaled({
    ...{ columns, rows, group, scale, bits, isSymmetric: zero === undefined },
    codes: async (first, last, signal) => {
      const stored = await integers(tensor, first * words, last * words, signal);
      const declared = shape && (await shape.dequantize({ start: 0, end: shape.elementCount, signal }));
      if (shape && String(declared) !== String([rows, columns])) {
        throw invalid(
          shape,
          `it says ${declared?.join(" x ")}, and there are ${rows} x ${columns}: padding is not read`,
        );
      }
      const zeros = zero && (await whole(zero));
      const middle = 2 ** (bits - 1);
      return Float32Array.from({ length: (last - first) * columns }, (_, i) => {
        const [row, column] = [first + Math.floor(i / columns), i % columns];
        const at = Math.floor(row / perWord) * count + Math.floor(column / group);
        const offset = zeros ? field(zeros[at], row % perWord, bits) : middle;
        return field(stored[Math.floor(i / perWord)], i % perWord, bits) - offset;
      });
    },
    scales: (first, last, signal) => scale.dequantize({ start: first * count, end: last * count, signal }),
    order: async () => (groups ? groupsOf(groups, columns, count, await whole(groups)) : undefined),
  });
}

/** Where each of eight columns of AWQ is in a word. */
const AWQ_ORDER = [0, 4, 1, 5, 2, 6, 3, 7];

/** Integers of a transposed matrix, as GPTQ and AWQ have them: there, words are along the row and along the column. */
function transposedIntegers(
  tensor: SafetensorsTensor,
  take: (part: string) => SafetensorsTensor | undefined,
  need: (...names: string[]) => SafetensorsTensor,
  { quantization, whole }: Context,
): Rows {
  const { quant_method: method, checkpoint_format: format = "gptq", version = "gemm" } = quantization;
  const isAwq = method === "awq";
  if (method !== "gptq" && (!isAwq || String(version).toLowerCase() !== "gemm")) {
    const found = `${quotable(String(method))}${isAwq ? ` in the version ${quotable(String(version))}` : ""}`;
    throw unsupported(
      tensor,
      `quant_method of quantization_config must be gptq, or awq in the version gemm, found ${found}`,
    );
  }
  const bits = Number(quantization.bits ?? quantization.w_bit ?? 4);
  const perWord = checkBits(tensor, bits, isAwq ? [4] : [2, 4, 8]);
  const [scale, zero, groups] = [need("scales"), need("qzeros"), take("g_idx")];
  const [width, height] = matrixShape(tensor, tensor);
  const [columns, rows] = isAwq ? [height, width * perWord] : [height * perWord, width];
  if (columns > MAX_COLUMNS)
    throw invalid(tensor, `its rows have ${columns} numbers; at most ${MAX_COLUMNS} are read`);
  const count = scale.shape[1] ?? 0;
  if (scale.shape.length !== 2 || scale.shape[0] !== rows || !count || columns % count !== 0) {
    throw wrongShape(tensor, scale, `${rows} x GROUPS, whose groups are equal parts of ${columns} columns`);
  }
  if (String(zero.shape) !== String([Math.ceil(rows / perWord), count])) {
    throw wrongShape(tensor, zero, `${Math.ceil(rows / perWord)} x ${count}`);
  }
  const [group, zeroWidth] = [columns / count, zero.shape[0] as number];
  const more = isAwq || format === "gptq_v2" ? 0 : 1;
  const isMoved = quantization.desc_act === true;
  const placeOf = (row: number): number => (isAwq ? (AWQ_ORDER[row % 8] as number) : row % perWord);
  const orderOf = async (): Promise<Int32Array | undefined> =>
    groups && groupsOf(groups, columns, count, await whole(groups));
  return scaled({
    ...{
      columns,
      rows,
      group,
      scale,
      ...(isMoved ? {} : { bits }),
      isSymmetric: quantization.sym === true && !isAwq,
    },
    codes: async (first, last) => {
      const [stored, zeros, order] = [await whole(tensor), await whole(zero), await orderOf()];
      return Float32Array.from({ length: (last - first) * columns }, (_, i) => {
        const [row, column] = [first + Math.floor(i / columns), i % columns];
        const at = order?.[column] ?? Math.floor(column / group);
        const offset = field(zeros[at * zeroWidth + Math.floor(row / perWord)], placeOf(row), bits) + more;
        const value = isAwq
          ? field(stored[column * width + Math.floor(row / perWord)], placeOf(row), bits)
          : field(stored[Math.floor(column / perWord) * width + row], column % perWord, bits);
        return value - offset;
      });
    },
    scales: async (first, last, signal) => {
      const high = last - first;
      const found = new Float32Array(high * count);
      for (let at = 0; at < count; at++) {
        const run = await scale.dequantize({ start: at * rows + first, end: at * rows + last, signal });
        for (let row = 0; row < high; row++) found[row * count + at] = run[row] as number;
      }
      return found;
    },
    order: orderOf,
  });
}

function checkBits(tensor: SafetensorsTensor, bits: number, known: readonly number[]): number {
  if (!known.includes(bits))
    throw unsupported(tensor, `integers of ${bits} bits are not converted, only of ${known.join(", ")}`);
  if (tensor.dtype !== "I32")
    throw invalid(tensor, `words with integers must be of the type I32, not ${tensor.dtype}`);
  return 32 / bits;
}

const field = (word: number | undefined, place: number, bits: number): number =>
  ((word as number) >>> (place * bits)) & (2 ** bits - 1);

/** The groups of columns; undefined where they are in order. */
function groupsOf(
  tensor: SafetensorsTensor,
  columns: number,
  count: number,
  order: Int32Array,
): Int32Array | undefined {
  if (order.length !== columns)
    throw invalid(tensor, `it has ${order.length} numbers, not one for each of ${columns} columns`);
  const wrong = order.find((group) => group < 0 || group >= count);
  if (wrong !== undefined)
    throw invalid(tensor, `a column is in group ${wrong}, and there are ${count} groups`);
  return order.every((group, column) => group === Math.floor((column * count) / columns)) ? undefined : order;
}

async function integers(
  tensor: SafetensorsTensor,
  start: number,
  end: number,
  signal: Signal,
): Promise<Int32Array> {
  if (tensor.type !== "I32") throw invalid(tensor, `its type must be I32, not ${tensor.dtype}`);
  return new Int32Array((await tensor.read({ start, end, signal })).slice().buffer);
}

/** Products, in blocks where those hold them exactly. */
function scaled({ columns, rows, group, bits = 99, isSymmetric, scale, codes, scales, order }: Scaled): Rows {
  const isExact =
    scale.dtype === "F16" && group % 32 === 0 && (bits <= 4 || (bits === 8 && isSymmetric === true));
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
        for (const [i, code] of numbers.entries()) {
          const at = groupOf?.[i % columns] ?? Math.floor((i % columns) / group);
          numbers[i] = code * (factors[Math.floor(i / columns) * groups + at] as number);
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
  const wrong = codes.find((code) => code < -most || code >= most);
  if (wrong !== undefined)
    throw invalid(
      of,
      `a zero point is out of range: a weight would be ${wrong} times its scale, which ${type} cannot hold`,
    );
  const blocks = new Uint8Array((codes.length / 32) * typeSize);
  for (let block = 0; block < codes.length / 32; block++) {
    const [at, scaleAt] = [block * typeSize, 2 * Math.floor((block * 32) / group)];
    blocks.set(factors.subarray(scaleAt, scaleAt + 2), at);
    for (let i = 0; i < typeSize - 2; i++) {
      const code = codes[block * 32 + i] as number;
      blocks[at + 2 + i] =
        type === "Q8_0" ? code : code + 8 + 16 * ((codes[block * 32 + 16 + i] as number) + 8);
    }
  }
  return blocks;
}

/** MXFP4: numbers of 4 bits, two in a byte, and an exponent for 32 of them. */
function microscaled(tensor: SafetensorsTensor, scale: SafetensorsTensor, perNumber: number): Rows {
  const [width, rows] = matrixShape(tensor, tensor);
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
      const code = (i: number): number => {
        if (perNumber === 2) return ((numbers[i >> 1] as number) >> (4 * (i & 1))) & 15;
        const upper = (numbers[i] as number) >> 8;
        return F4_UPPER.indexOf(upper & 0x7f) + ((upper >> 4) & 8);
      };
      const blocks = new Uint8Array(17 * exponents.length);
      for (const [block, stored] of exponents.entries()) {
        const exponent = isByte ? stored : stored >> 7;
        if (exponent === 255)
          throw invalid(scale, `scale ${start + block} is NaN, which MXFP4 of GGUF does not have`);
        blocks[17 * block] = exponent;
        for (let i = 0; i < 16; i++)
          blocks[17 * block + 1 + i] = code(32 * block + i) | (code(32 * block + 16 + i) << 4);
      }
      return blocks;
    },
  };
}

/** A matrix under its usual name. */
function convertible(
  { path }: SafetensorsTensor,
  name: string,
  { type, columns, rows, bytes }: Rows,
): Convertible {
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
