/** A tensor of a model: the base class of tensors in local and in remote files. */

import { native } from "../backend/native";
import { ASYNC_OPTIONS, checkOptions } from "../base/arguments";
import { GgufError, invalidArgType } from "../base/errors";
import { type Inspect, inspectCustom } from "../base/inspect";
import type {
  AsyncOptions,
  Dequantized,
  DequantizeOptions,
  DType,
  OutArray,
  OwnBytes,
  ProductOptions,
  ReadOptions,
  Returned,
  RowsOptions,
} from "../base/options";
import { type GgmlType, typeName } from "../base/types";
import type { StatsOptions, TensorStats } from "../decode/statistics";
import { type ComparedTensor, compareTensors, type TensorComparison } from "./comparison";
import { checkOpenFile, handleOf } from "./handle";
import type { TensorPlace } from "./tensor-map";
import { knownType, subjectOf } from "./tensor-requests";

/** Where a tensor is, which only the package may know. @internal */
export let placeOf: (tensor: GgufModelTensor) => TensorPlace;

/**
 * A tensor of a {@link GgufModel}, in a file on this machine or on a server: its properties, and methods that
 * get its data. The properties can be read at any time, also after the file was closed; the methods then fail
 * with `ERR_GGUF_CLOSED`.
 *
 * Elements are counted in the order in which they are stored: `shape[0]` is the row length, so a row-major
 * matrix of R rows and C columns has the shape `[C, R]`, and its row r consists of elements r * C to (r + 1)
 * * C.
 */
export abstract class GgufModelTensor {
  readonly #place: TensorPlace;
  readonly #scale: unknown;
  #shape: readonly number[] | undefined;

  static {
    placeOf = (tensor) => tensor.#place;
  }

  /** @internal */
  protected constructor(place: TensorPlace) {
    checkOpenFile(place?.file, "tensors come with an open file");
    this.#place = place;
    // Now: a tensor is made while its file is open, and its properties can be read afterwards, too.
    const [, base] = this.type === "NVFP4" ? (/^(.+)\.weight$/s.exec(place.name) ?? []) : [];
    if (base !== undefined) this.#scale = place.all.get(`${base}.scale`) ?? place.all.get(`${place.name}.scale`);
  }

  /** The name in the file, made unique if two are equal after decoding. */
  get name(): string {
    return this.#place.name;
  }

  /**
   * The bytes of the name in the file. They are `name` in UTF-8, unless they are not UTF-8 (`name` has U+FFFD for these),
   * or `name` was changed to be unique.
   * @throws GgufError ERR_GGUF_CLOSED
   */
  nameBytes(): OwnBytes {
    const { file, position } = this.#place;
    return native.tensorNameBytes(handleOf(file), position);
  }

  /** The type's name; `unknown(NUMBER)` for a number that is not in {@link ggmlTypes}. */
  get type(): GgmlType | `unknown(${number})` {
    const { columns, index } = this.#place;
    return typeName(columns.types[index] as number);
  }

  /** As stored, one to four dimensions: `shape[0]` is the contiguous one (ggml's `ne`). */
  get shape(): readonly number[] {
    if (this.#shape === undefined) {
      const { columns, index } = this.#place;
      const first = index * 4;
      const shape: number[] = [];
      for (let i = 0; i < (columns.dimCounts[index] as number); i++) shape.push(columns.shapes[first + i] as number);
      this.#shape = Object.freeze(shape);
    }
    return this.#shape;
  }

  /** The numbers of a row: `shape[0]`, the columns of a matrix. 1 for a tensor without dimensions. */
  get columns(): number {
    return this.shape[0] ?? 1;
  }

  /** The rows of all dimensions: the product of `shape` but for its first; 0 where rows are empty. */
  get rowCount(): number {
    return this.columns === 0 ? 0 : this.elementCount / this.columns;
  }

  /** The product of `shape`. */
  get elementCount(): number {
    const { columns, index } = this.#place;
    return columns.elementCounts[index] as number;
  }

  /** Bytes in the file; NaN for an unknown type. */
  get byteLength(): number {
    const { columns, index } = this.#place;
    return columns.byteLengths[index] as number;
  }

  /** The tensor's first byte, counted from the start of its file. */
  get offset(): number {
    const { columns, index } = this.#place;
    return columns.offsets[index] as number;
  }

  /**
   * The second scale of weights of type NVFP4: the tensor NAME.scale beside NAME.weight, in any file of the model; or,
   * as some converters call it, NAME.weight.scale. It has one number for the whole tensor or, where that has three
   * dimensions, one for each matrix of it, such as an expert. As in ggml, numbers, rows, products and statistics do not
   * include that factor. Undefined for other types, and if there is no such tensor: then the factor is 1.
   */
  get scale(): this | undefined {
    return this.#scale as this | undefined;
  }

  /**
   * The path or URL of the file that contains the tensor (one file of a split model); undefined for bytes in
   * memory.
   */
  get path(): string | undefined {
    return this.#place.file.path;
  }

  /**
   * The stored bytes, or those of the elements from `start` to `end`, as a copy. Multi-byte numbers in them
   * are in the byte order of the file.
   * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
   * @throws GgufError ERR_GGUF_RANGE if `start` or `end` is not at the boundary of a block;
   *   ERR_GGUF_UNSUPPORTED_TYPE; ERR_GGUF_TRUNCATED if the file was opened with `partial` and lacks the
   *   bytes; ERR_GGUF_CLOSED; for a remote file also ERR_GGUF_OPEN if the request fails, and ERR_GGUF_CHANGED
   * @throws the reason of `options.signal` if it is aborted
   */
  abstract read(options?: ReadOptions): Promise<OwnBytes>;

  /**
   * The tensor's values, or those from `start` to `end`, as numbers: a `Float32Array`, or for `f16` and
   * `bf16` a `Uint16Array` of bits. The bits equal ggml's results, except for the sign and payload of a NaN.
   * Decodes off the main thread and on every core. `out` is written directly if its memory cannot be taken
   * away (such as a SharedArrayBuffer), and otherwise at the end.
   * @throws GgufError ERR_GGUF_RANGE also if the length of `out` is not `end - start`, or the result is too
   *   large for one typed array (use `start` and `end`); otherwise as {@link read}
   */
  abstract dequantize<D extends DType = "f32", A extends OutArray<D> = Dequantized<D>>(
    options?: DequantizeOptions<D, A> & AsyncOptions,
  ): Promise<Returned<A>>;

  /**
   * Rows of `shape[0]` elements by index, in the given order. An index may occur more than once. Use it for
   * embedding look-ups: the cost depends on the number of rows, not on the size of the tensor. `indexes` may
   * change after the call has returned.
   * @param indexes row numbers, from 0 to `elementCount / shape[0] - 1`
   * @throws GgufError ERR_GGUF_RANGE for an index out of range or an `out` of the wrong length; otherwise as
   *   {@link dequantize}
   */
  abstract rows<D extends DType = "f32", A extends OutArray<D> = Dequantized<D>>(
    indexes: ArrayLike<number>,
    options?: RowsOptions<D, A> & AsyncOptions,
  ): Promise<Returned<A>>;

  /**
   * Multiplies the rows of this matrix with vectors: y[v][r] is the sum over all columns c of w[r][c] * x[v][c], where w
   * are the numbers that {@link dequantize} gives; the bits are those of `matmulSync`. `x` may change once this has
   * returned.
   * @param x n vectors of `shape[0]` numbers, or of `options.columns`, one after the other
   * @returns n times `end - start` numbers: for each vector, the products of all these rows. Empty where `x` is empty
   * @throws GgufError ERR_GGUF_RANGE where the length of `x` is not a multiple of the columns, `columns`, `start` or `end`
   *   are wrong, `out` has another length than the result, `bias` another than the rows, or `accumulate` no `out`; otherwise
   *   as {@link read}
   */
  abstract matmul<A extends Float32Array = Dequantized<"f32">>(
    x: Float32Array,
    options?: ProductOptions<A> & AsyncOptions,
  ): Promise<Returned<A>>;

  /**
   * Statistics of the values, or of those from `start` to `end`: how many there are of each kind; range, mean and
   * standard deviation of the finite ones; with `bins`, a histogram.
   * @throws GgufError ERR_GGUF_RANGE also if `bins` or `range` are wrong; otherwise as {@link read}
   */
  abstract stats(options?: StatsOptions & AsyncOptions): Promise<TensorStats>;

  /**
   * How far the values of another tensor of the same shape are from the values of this one, for example to measure a
   * quantization. The types may differ, and each may be local or remote. `onProgress` counts the elements of one of
   * them. Like {@link stats}, it has the same bits on every instruction set and for any number of threads.
   * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
   * @throws GgufError ERR_GGUF_RANGE if the shapes are different; otherwise as {@link read}, for either tensor
   */
  async compare(other: GgufModelTensor, options?: AsyncOptions): Promise<TensorComparison> {
    if (!(other instanceof GgufModelTensor)) throw invalidArgType("other", "a tensor of a model", other);
    const [a, b] = comparedPair(this, other);
    return compareTensors(a, b, this.elementCount, checkOptions(options, ASYNC_OPTIONS));
  }

  /** The properties, for `JSON.stringify`; without data. */
  toJSON(): Record<string, unknown> {
    const { name, type, shape, elementCount, byteLength, offset } = this;
    return { name, type, shape, elementCount, byteLength, offset };
  }

  /** @internal */
  [inspectCustom](depth: number, options: object, inspect: Inspect): string {
    const { name } = this.constructor;
    return depth < 0 ? `[${name}]` : `${name} ${inspect(this.toJSON(), options)}`;
  }
}

/** Two tensors to be compared, if they have the same shape. @internal */
export function comparedPair(...tensors: [GgufModelTensor, GgufModelTensor]): [ComparedTensor, ComparedTensor] {
  const pair = tensors.map((tensor) => {
    const { file, position } = placeOf(tensor);
    handleOf(file);
    const read: ComparedTensor["read"] = (options) => tensor.read(options);
    return { info: knownType(tensor), file, position, subject: subjectOf(tensor), read };
  });
  const [{ shape }, other] = tensors;
  if (String(shape) !== String(other.shape)) {
    const detail = `tensor '${other.name}' has another shape, ${other.shape.join(" x ")}, than ${shape.join(" x ")}`;
    throw new GgufError("ERR_GGUF_RANGE", detail, subjectOf(tensors[0]));
  }
  return pair as [ComparedTensor, ComparedTensor];
}
