/** A tensor of a model, wherever its file is: what tensors of local and of remote files have in common. */
import { inspect } from "node:util";
import { checkOptions, checkSignal } from "../arguments";
import { checkSupported } from "../decode/kernels";
import type {
  AsyncOptions,
  Dequantized,
  DequantizeOptions,
  DType,
  OutArray,
  OwnBytes,
  ReadOptions,
  RowsOptions,
} from "../decode/options";
import { checkElements, checkRequest, type DecodeRequest, explainFailure } from "../decode/request";
import type { GgufErrorSubject } from "../errors";
import { type NativeTensors, native } from "../native";
import { type GgmlType, type GgmlTypeInfo, typeName } from "../types";
import { checkOpenFile, handleOf, indexNames, type OpenFile } from "./handle";
import { checkRows, type RowRequest } from "./rows";

/** Which tensor of which open file. @internal */
export interface TensorPlace<F extends OpenFile = OpenFile> {
  readonly file: F;
  readonly columns: NativeTensors;
  readonly position: number;
  readonly name: string;
}

/** Bytes of a tensor, counted from its first one. */
export interface TensorExtent {
  first: number;
  byteLength: number;
}

/**
 * A tensor of a {@link GgufModel}, in a file on this machine or on a server: what it is, and ways to get its data. What
 * it is can be read at any time, also once the file is closed; asking for data then is `ERR_GGUF_CLOSED`.
 *
 * Elements are counted in the order in which they are stored: `shape[0]` is the row length, so a row-major matrix
 * of R rows and C columns has the shape `[C, R]` and its row r is elements r * C to (r + 1) * C.
 */
export abstract class GgufModelTensor {
  readonly #place: TensorPlace;
  #shape: readonly number[] | undefined;
  #rowCount: number | undefined;

  /** @internal */
  protected constructor(place: TensorPlace) {
    checkOpenFile(place?.file, "tensors come with an open file");
    this.#place = place;
  }

  /** The name in the file, made unique where two look alike. */
  get name(): string {
    return this.#place.name;
  }

  /** The type's name; `unknown(NUMBER)` for a number that is not in {@link ggmlTypes}. */
  get type(): GgmlType | `unknown(${number})` {
    const { columns, position } = this.#place;
    return typeName(columns.types[position] as number);
  }

  /** As stored, one to four dimensions: `shape[0]` is the contiguous one (ggml's `ne`). */
  get shape(): readonly number[] {
    if (this.#shape === undefined) {
      const { columns, position } = this.#place;
      const first = position * 4;
      const shape = Array.from(
        columns.shapes.subarray(first, first + (columns.dimCounts[position] as number)),
      );
      this.#shape = Object.freeze(shape);
    }
    return this.#shape;
  }

  /** The product of `shape`. */
  get elementCount(): number {
    const { columns, position } = this.#place;
    return columns.elementCounts[position] as number;
  }

  /** Bytes in the file; NaN for an unknown type. */
  get byteLength(): number {
    const { columns, position } = this.#place;
    return columns.byteLengths[position] as number;
  }

  /** The tensor's first byte, counted from the start of its file. */
  get offset(): number {
    const { columns, position } = this.#place;
    return columns.offsets[position] as number;
  }

  /** The file that the tensor is in, which of a split model is one of several; undefined for bytes in memory. */
  get path(): string | undefined {
    return this.#place.file.path;
  }

  /**
   * The stored bytes, or those of the elements from `start` to `end`, in memory of their own. Multi-byte numbers in
   * them are in the byte order of the file.
   * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
   * @throws GgufError ERR_GGUF_RANGE where `start` or `end` are not whole blocks of the tensor;
   *   ERR_GGUF_UNSUPPORTED_TYPE; ERR_GGUF_TRUNCATED where a file that was opened with `partial` does not have them;
   *   ERR_GGUF_CLOSED; for a remote file also ERR_GGUF_OPEN where the server does not deliver, and ERR_GGUF_CHANGED
   * @throws the reason of `options.signal` once that is aborted
   */
  abstract read(options?: ReadOptions): Promise<OwnBytes>;

  /**
   * The tensor's values, or those from `start` to `end`, as numbers: a `Float32Array`, or for `f16` and `bf16` a
   * `Uint16Array` of bits. Bit for bit what ggml computes, but for the sign and payload of a NaN. Decodes off the main
   * thread and on every core. `out` is written directly where its memory cannot go away (a SharedArrayBuffer), at the
   * end otherwise.
   * @throws GgufError ERR_GGUF_RANGE also where `out` has another length than `end - start`, or the result is too large
   *   for one typed array (use `start` and `end`); otherwise as {@link read}
   */
  abstract dequantize<D extends DType = "f32", A extends OutArray<D> = Dequantized<D>>(
    options?: DequantizeOptions<D, A> & AsyncOptions,
  ): Promise<A>;

  /**
   * Rows of `shape[0]` elements by index, in the order given, repeats allowed: what an embedding look-up needs. The
   * cost is that of the rows asked for, whatever the size of the tensor. `indexes` may change once this has returned.
   * @param indexes row numbers, from 0 to `elementCount / shape[0] - 1`
   * @throws GgufError ERR_GGUF_RANGE for a row that is not there or an `out` of another length; otherwise as
   *   {@link dequantize}
   */
  abstract rows<D extends DType = "f32", A extends OutArray<D> = Dequantized<D>>(
    indexes: ArrayLike<number>,
    options?: RowsOptions<D, A> & AsyncOptions,
  ): Promise<A>;

  /** What this is, for `JSON.stringify`: no data. */
  toJSON(): Record<string, unknown> {
    const { name, type, shape, elementCount, byteLength, offset } = this;
    return { name, type, shape, elementCount, byteLength, offset };
  }

  /** @internal */
  [inspect.custom](depth: number, options: object, inspectValue: typeof inspect): string {
    const { name } = this.constructor;
    return depth < 0 ? `[${name}]` : `${name} ${inspectValue(this.toJSON(), options)}`;
  }

  /** What errors about this tensor are about. @internal */
  protected subject(): GgufErrorSubject {
    return { path: this.path, tensor: this.name };
  }

  /** The type's row of {@link ggmlTypes}; throws ERR_GGUF_UNSUPPORTED_TYPE where there is no kernel for it. @internal */
  protected known(): GgmlTypeInfo {
    return checkSupported(this.type, this.subject());
  }

  /** Checks what is asked for; throws ERR_GGUF_CLOSED too. @internal */
  protected range(options: DequantizeOptions | undefined): DecodeRequest {
    checkOptions(options);
    handleOf(this.#place.file);
    return checkRequest(options, this.elementCount, this.known().blockSize, this.subject());
  }

  /** Checks which bytes are asked for; throws ERR_GGUF_CLOSED too. @internal */
  protected extent(options: ReadOptions | undefined): TensorExtent & Pick<ReadOptions, "signal"> {
    const { signal, ...given } = checkOptions(options);
    handleOf(this.#place.file);
    const { start, end } = checkElements(given, this.elementCount, this.known().blockSize, this.subject());
    return { ...this.extentOf(start, end), signal: checkSignal(signal) };
  }

  /** The bytes of elements `start` to `end`, which are whole blocks. @internal */
  protected extentOf(start: number, end: number): TensorExtent {
    const { blockSize, typeSize } = this.known();
    const first = (start / blockSize) * typeSize;
    return { first, byteLength: (end / blockSize) * typeSize - first };
  }

  /** The product of all dimensions but `shape[0]`. @internal */
  protected rowCount(): number {
    this.#rowCount ??= this.shape.slice(1).reduce((product, dim) => product * dim, 1);
    return this.#rowCount;
  }

  /** Checks which rows are asked for; throws ERR_GGUF_CLOSED too. @internal */
  protected rowRequest(indexes: unknown, options: RowsOptions | undefined): RowRequest {
    const request = checkRows(indexes, options, this.rowCount(), this.shape[0] ?? 1, this.subject());
    handleOf(this.#place.file);
    this.known();
    return request;
  }

  /** What `make` gives for `byteLength` bytes; throws ERR_GGUF_RANGE where there is no array of that length. @internal */
  protected allocate<B extends Uint8Array>(byteLength: number, make: (byteLength: number) => B): B {
    try {
      return make(byteLength);
    } catch (error) {
      throw explainFailure(error, byteLength, this.subject());
    }
  }
}

/** The tensors of an open file by name, in file order, each made by `create`. @internal */
export function listTensors<F extends OpenFile, T>(
  file: F,
  create: (place: TensorPlace<F>) => T,
): Map<string, T> {
  const columns = native.tensors(handleOf(file));
  const tensors = new Map<string, T>();
  for (const [name, position] of indexNames(columns.names)) {
    tensors.set(name, create({ file, columns, position, name }));
  }
  return tensors;
}
