/** One tensor of an open file. */
import { attempt, dtypeNumber, runJob } from "../decode/dequantize";
import {
  type AsyncOptions,
  checkDType,
  checkOptions,
  checkOut,
  type Dequantized,
  type DequantizeOptions,
  type DType,
  explainFailure,
  type OutArray,
  type Output,
} from "../decode/options";
import { GgufError, invalidArgType } from "../errors";
import { native } from "../native";
import { handleOf, type OpenFile, PRIVATE } from "./handle";
import { GgufTensorInfo, listTensors, type TensorPlace } from "./tensor-info";

/** Options of {@link GgufTensor.rowsSync} and {@link GgufTensor.rows}. */
export interface RowsOptions<D extends DType = DType, A extends OutArray<D> = OutArray<D>> {
  /** Default `"f32"`. */
  dtype?: D | undefined;
  /** Filled and returned; exactly `indexes.length * shape[0]` long. May be backed by a SharedArrayBuffer. */
  out?: A | undefined;
}

/** Checked arguments of {@link GgufTensor.rowsSync} and {@link GgufTensor.rows}. */
interface Rows extends Output {
  dtype: DType;
  /** The first `count` elements are the row numbers. */
  rows: Float64Array;
  count: number;
  /** Elements of the result. */
  length: number;
}

/** The most rows of one call: their indexes alone take 2 GiB. */
const MAX_ROWS = 2 ** 28;

/**
 * Row numbers travel in an array that calls use one after the other: making one costs as much as decoding a row. A
 * call takes it while it reads the caller's `indexes`, whose getters may call again, and puts it back when the addon
 * has read it.
 */
const SPARE_ROWS = 1024;
let spareRows: Float64Array | undefined;

function takeRows(count: number): Float64Array {
  if (count > SPARE_ROWS) return new Float64Array(count);
  const rows = spareRows ?? new Float64Array(SPARE_ROWS);
  spareRows = undefined;
  return rows;
}

function giveBackRows(rows: Float64Array): void {
  if (rows.length === SPARE_ROWS) spareRows = rows;
}

let createTensor: (place: TensorPlace) => GgufTensor;

/**
 * A tensor: what it is (readable for ever), its stored bytes, and its values as numbers (both `ERR_GGUF_CLOSED`
 * once the file is closed).
 *
 * Elements are counted in the order in which they are stored: `shape[0]` is the row length, so a row-major matrix
 * of R rows and C columns has the shape `[C, R]` and its row r is elements r * C to (r + 1) * C.
 */
export class GgufTensor extends GgufTensorInfo {
  readonly #file: OpenFile;
  readonly #position: number;
  #rowCount: number | undefined;

  static {
    createTensor = (place) => new GgufTensor(PRIVATE, place);
  }

  private constructor(key: typeof PRIVATE, place: TensorPlace) {
    super(key, place);
    this.#file = place.file;
    this.#position = place.position;
  }

  /**
   * The stored bytes. Zero-copy, except for a file opened with access "read": then a copy. Writing to them never
   * reaches the file (with {@link parse} they are the caller's own bytes). Their length is 0 once the file is closed.
   * @throws GgufError ERR_GGUF_CLOSED; ERR_GGUF_UNSUPPORTED_TYPE for an unknown type, whose size is not known;
   *   ERR_GGUF_TRUNCATED where a file opened with `partial` does not have them
   */
  bytes(): Uint8Array {
    const handle = handleOf(this.#file);
    this.known();
    return attempt(
      () => native.bytes(handle, this.#position),
      (error) => explainFailure(error, this.byteLength, this.subject()),
    );
  }

  /**
   * The tensor's values, or those from `start` to `end`, as numbers: a `Float32Array`, or for `f16` and `bf16` a
   * `Uint16Array` of bits. Bit for bit what ggml computes, but for the sign and payload of a NaN.
   * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
   * @throws GgufError ERR_GGUF_RANGE where `start` or `end` are not whole blocks of the tensor, `out` has another
   *   length than `end - start`, or the result is too large for one typed array (use `start` and `end`);
   *   ERR_GGUF_UNSUPPORTED_TYPE; ERR_GGUF_TRUNCATED; ERR_GGUF_CLOSED
   */
  dequantizeSync<D extends DType = "f32", A extends OutArray<D> = Dequantized<D>>(
    options?: DequantizeOptions<D, A>,
  ): A;
  dequantizeSync(options?: DequantizeOptions): OutArray {
    const { dtype, start, end, given, out } = this.range(options);
    const handle = handleOf(this.#file);
    const result = attempt(
      () => native.dequantize(handle, this.#position, dtypeNumber(dtype), start, end, out),
      (error) => explainFailure(error, end - start, this.subject()),
    );
    return given ?? result;
  }

  /**
   * As {@link dequantizeSync}, off the main thread and on every core. Closing the file does not disturb work that
   * has begun. `out` is written directly where its memory cannot go away (a SharedArrayBuffer) and at the end
   * otherwise.
   * @throws the reason of `options.signal` once that is aborted; otherwise as {@link dequantizeSync}
   */
  dequantize<D extends DType = "f32", A extends OutArray<D> = Dequantized<D>>(
    options?: DequantizeOptions<D, A> & AsyncOptions,
  ): Promise<A>;
  async dequantize(options?: DequantizeOptions & AsyncOptions): Promise<OutArray> {
    const { dtype, start, end, given, out } = this.range(options);
    const position = this.#position;
    const handle = handleOf(this.#file);
    const result = await runJob(
      options,
      (onProgress) =>
        native.dequantizeAsync(handle, position, dtypeNumber(dtype), start, end, out, onProgress),
      (error) => explainFailure(error, end - start, this.subject()),
    );
    return given ?? result;
  }

  /**
   * Rows of `shape[0]` elements by index, in the order given, repeats allowed: what an embedding look-up needs. The
   * cost is that of the rows asked for, whatever the size of the tensor.
   * @param indexes row numbers, from 0 to `elementCount / shape[0] - 1`
   * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
   * @throws GgufError ERR_GGUF_RANGE for a row that is not there or an `out` of another length; otherwise as
   *   {@link dequantizeSync}
   */
  rowsSync<D extends DType = "f32", A extends OutArray<D> = Dequantized<D>>(
    indexes: ArrayLike<number>,
    options?: RowsOptions<D, A>,
  ): A;
  rowsSync(indexes: ArrayLike<number>, options?: RowsOptions): OutArray {
    const { rows, count, dtype, length, given, out } = this.#rows(indexes, options);
    const handle = handleOf(this.#file);
    const result = attempt(
      () => native.rows(handle, this.#position, rows, count, dtypeNumber(dtype), out),
      (error) => explainFailure(error, length, this.subject()),
    );
    giveBackRows(rows);
    return given ?? result;
  }

  /**
   * As {@link rowsSync}, off the main thread and on every core. `indexes` may change once this has returned. `out` is
   * written as by {@link dequantize}.
   * @throws the reason of `options.signal` once that is aborted; otherwise as {@link rowsSync}
   */
  rows<D extends DType = "f32", A extends OutArray<D> = Dequantized<D>>(
    indexes: ArrayLike<number>,
    options?: RowsOptions<D, A> & AsyncOptions,
  ): Promise<A>;
  async rows(indexes: ArrayLike<number>, options?: RowsOptions & AsyncOptions): Promise<OutArray> {
    const { rows, count, dtype, length, given, out } = this.#rows(indexes, options);
    const position = this.#position;
    const handle = handleOf(this.#file);
    const result = await runJob(
      options,
      (onProgress) => {
        const started = native.rowsAsync(handle, position, rows, count, dtypeNumber(dtype), out, onProgress);
        giveBackRows(rows);
        return started;
      },
      (error) => explainFailure(error, length, this.subject()),
    );
    return given ?? result;
  }

  #rows(indexes: unknown, options: RowsOptions | undefined): Rows {
    const { rows, count } = this.#checkRows(indexes);
    const given = checkOptions(options);
    const dtype = checkDType(given.dtype);
    const length = count * (this.shape[0] ?? 1);
    const output = checkOut(given.out, dtype, length, this.subject());
    handleOf(this.#file);
    this.known();
    return { rows, count, dtype, length, given: output.given, out: output.out };
  }

  #checkRows(indexes: unknown): Pick<Rows, "rows" | "count"> {
    if (typeof indexes !== "object" || indexes === null || !("length" in indexes)) {
      throw invalidArgType("indexes", "an array or a typed array", indexes);
    }
    const { length } = indexes;
    if (typeof length !== "number") throw invalidArgType("indexes.length", "of type number", length);
    if (!Number.isInteger(length) || length < 0 || length > MAX_ROWS) {
      throw this.#rangeError(`indexes.length must be a whole number up to ${MAX_ROWS}, found ${length}`);
    }
    this.#rowCount ??= this.shape.slice(1).reduce((product, dim) => product * dim, 1);
    const rowCount = this.#rowCount;
    const rows = takeRows(length);
    for (let i = 0; i < length; i++) {
      const row = (indexes as ArrayLike<unknown>)[i];
      if (typeof row !== "number") throw invalidArgType(`indexes[${i}]`, "of type number", row);
      if (!Number.isInteger(row) || row < 0 || row >= rowCount) {
        const rule =
          rowCount === 0 ? "the tensor has no rows" : `rows are whole numbers from 0 to ${rowCount - 1}`;
        throw this.#rangeError(`indexes[${i}] is ${row}, ${rule}`);
      }
      rows[i] = row;
    }
    return { rows, count: length };
  }

  #rangeError(detail: string): GgufError {
    return new GgufError("ERR_GGUF_RANGE", detail, this.subject());
  }
}

/** The tensors of an open file, in file order. @internal */
export function createTensors(file: OpenFile): Map<string, GgufTensor> {
  return listTensors(file, createTensor);
}
