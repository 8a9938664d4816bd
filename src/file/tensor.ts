/** One tensor of a local file. */

import { native } from "../backend/native";
import { ASYNC_OPTIONS, checkAsync, checkOptions, checkThreads } from "../base/arguments";
import { invalidArgType } from "../base/errors";
import { nextTurn } from "../base/event-loop";
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
  ThreadOptions,
} from "../base/options";
import type { ElementRange } from "../base/ranges";
import { markMappedView } from "../decode/copy";
import { attempt, runJob } from "../decode/jobs";
import { dtypeNumber } from "../decode/kernels";
import { endProduct } from "../decode/product-request";
import { explainFailure } from "../decode/request";
import {
  type NotFinite,
  newFiniteTotals,
  notFinite,
  runStatsPasses,
  type StatsOptions,
  statsPasses,
  type TensorStats,
} from "../decode/statistics";
import { compareTensorsNow, type TensorComparison } from "./comparison";
import { handleOf, type OpenFile } from "./handle";
import { comparedPair, GgufModelTensor, placeOf } from "./model-tensor";
import { giveBackRows } from "./rows";
import type { TensorPlace } from "./tensor-map";
import {
  allocate,
  decodeRequest,
  knownType,
  namedColumns,
  productRequest,
  readRequest,
  rowRequest,
  statsRequest,
  subjectOf,
} from "./tensor-requests";

/** The number of bytes that are copied per turn of the event loop: that takes well below a millisecond. */
const READ_BYTES = 1 << 20;

/** How many values are not finite: all of `stats` that `verify` needs, at twice its speed. */
export let countNotFiniteSync: (tensor: GgufTensor) => NotFinite;

/** The same off the main thread. */
export let countNotFiniteLocal: (tensor: GgufTensor, options: AsyncOptions) => Promise<NotFinite>;

/** Fills `out` with the stored bytes from byte `first` of the tensor on; its type must be known. */
export function copyBytes(tensor: GgufTensor, first: number, out: Uint8Array): void {
  const { file, position } = placeOf(tensor);
  attempt(
    () => native.readBytes(handleOf(file), position, first, out),
    (error) => explainFailure(error, tensor.byteLength, subjectOf(tensor)),
  );
}

/** A tensor of a file on this machine: a {@link GgufModelTensor} with synchronous methods in addition. */
export class GgufTensor extends GgufModelTensor {
  readonly #file: OpenFile;
  readonly #position: number;

  static {
    countNotFiniteSync = (tensor) =>
      notFinite(tensor.#measureNow(statsRequest(tensor, tensor.#file, undefined), newFiniteTotals(), 1));
    countNotFiniteLocal = async (tensor, options) =>
      notFinite(await tensor.#measure(statsRequest(tensor, tensor.#file, undefined), newFiniteTotals(), options));
  }

  private constructor(place: TensorPlace) {
    super(place);
    this.#file = place.file;
    this.#position = place.position;
  }

  /** @internal */
  static at(this: void, place: TensorPlace): GgufTensor {
    return new GgufTensor(place);
  }

  /**
   * The stored bytes: a view without a copy, or a copy if the file was opened with access "read". Writing to
   * them never changes the file. Their length is 0 after the file is closed. With {@link parse}, they are the
   * caller's own bytes: in shared memory if these are, though the type is that of bytes that are not.
   *
   * A view cannot be transferred to another thread; {@link read} makes a copy that can.
   * @throws GgufError ERR_GGUF_CLOSED; ERR_GGUF_UNSUPPORTED_TYPE for an unknown type, since its size is
   *   unknown, too; ERR_GGUF_TRUNCATED if the file was opened with `partial` and lacks the bytes
   */
  bytes(): OwnBytes {
    const handle = handleOf(this.#file);
    knownType(this);
    const bytes = attempt(
      () => native.bytes(handle, this.#position),
      (error) => explainFailure(error, this.byteLength, subjectOf(this)),
    );
    return this.path !== undefined ? markMappedView(bytes) : bytes;
  }

  /**
   * The stored bytes, or those of the elements from `start` to `end`, as a copy. It is made in parts, so that
   * the event loop keeps running. If the file is closed before the copy is complete, the promise rejects with
   * ERR_GGUF_CLOSED. To get all bytes without a copy, use {@link bytes}.
   */
  async read(options?: ReadOptions): Promise<OwnBytes> {
    const { first, byteLength, signal } = readRequest(this, this.#file, options);
    signal?.throwIfAborted();
    const copy = (at: number, to: Uint8Array): void => copyBytes(this, first + at, to);
    // Read the last byte first, so that no memory is allocated for bytes that the file does not have.
    if (byteLength > 0) copy(byteLength - 1, new Uint8Array(1));
    const bytes = allocate(this, byteLength, (length) => new Uint8Array(length));
    for (let at = 0; at < byteLength; at += READ_BYTES) {
      if (at > 0) await nextTurn();
      signal?.throwIfAborted();
      copy(at, bytes.subarray(at, at + READ_BYTES));
    }
    return bytes;
  }

  /**
   * The tensor's values, or those from `start` to `end`, as numbers: a `Float32Array`, or for `f16` and
   * `bf16` a `Uint16Array` of bits. The bits equal ggml's results, except for the sign and payload of a NaN.
   * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
   * @throws GgufError ERR_GGUF_RANGE if `start` or `end` is not at the boundary of a block, the length of
   *   `out` is not `end - start`, or the result is too large for one typed array (use `start` and `end`);
   *   ERR_GGUF_UNSUPPORTED_TYPE; ERR_GGUF_TRUNCATED; ERR_GGUF_CLOSED
   */
  dequantizeSync<D extends DType = "f32", A extends OutArray<D> = Dequantized<D>>(
    options?: DequantizeOptions<D, A>,
  ): Returned<A> {
    const { dtype, start, end, given, out } = decodeRequest(this, this.#file, options, "sync");
    const handle = handleOf(this.#file);
    const result = attempt(
      () => native.dequantize(handle, this.#position, dtypeNumber(dtype), start, end, out),
      (error) => explainFailure(error, end - start, subjectOf(this)),
    );
    return (given ?? result) as Returned<A>;
  }

  /**
   * As {@link dequantizeSync}, off the main thread and on every core. Work that has started completes even if
   * the file is closed. `out` is written directly if its memory cannot be taken away (such as a
   * SharedArrayBuffer), and otherwise at the end.
   * @throws the reason of `options.signal` if it is aborted; otherwise as {@link dequantizeSync}
   */
  async dequantize<D extends DType = "f32", A extends OutArray<D> = Dequantized<D>>(
    options?: DequantizeOptions<D, A> & AsyncOptions,
  ): Promise<Returned<A>> {
    const { dtype, start, end, given, out, asyncOptions } = decodeRequest(this, this.#file, options);
    const position = this.#position;
    const handle = handleOf(this.#file);
    const result = await runJob(
      asyncOptions,
      (...how) => native.dequantizeAsync(handle, position, dtypeNumber(dtype), start, end, out, ...how),
      (error) => explainFailure(error, end - start, subjectOf(this)),
    );
    return (given ?? result) as Returned<A>;
  }

  /**
   * Rows of `shape[0]` elements by index, in the given order. An index may occur more than once. Use it for
   * embedding look-ups: the cost depends on the number of rows, not on the size of the tensor.
   * @param indexes row numbers, from 0 to `elementCount / shape[0] - 1`
   * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
   * @throws GgufError ERR_GGUF_RANGE for an index out of range or an `out` of the wrong length; otherwise as
   *   {@link dequantizeSync}
   */
  rowsSync<D extends DType = "f32", A extends OutArray<D> = Dequantized<D>>(
    indexes: ArrayLike<number>,
    options?: RowsOptions<D, A>,
  ): Returned<A> {
    const { rows, count, dtype, length, given, out } = rowRequest(this, this.#file, indexes, options, "sync");
    const handle = handleOf(this.#file);
    const result = attempt(
      () => native.rows(handle, this.#position, rows, count, dtypeNumber(dtype), out),
      (error) => explainFailure(error, length, subjectOf(this)),
    );
    giveBackRows(rows);
    return (given ?? result) as Returned<A>;
  }

  /**
   * As {@link rowsSync}, off the main thread and on every core. `indexes` may change after the call has
   * returned. `out` is written as by {@link dequantize}.
   * @throws the reason of `options.signal` if it is aborted; otherwise as {@link rowsSync}
   */
  async rows<D extends DType = "f32", A extends OutArray<D> = Dequantized<D>>(
    indexes: ArrayLike<number>,
    options?: RowsOptions<D, A> & AsyncOptions,
  ): Promise<Returned<A>> {
    const { rows, count, dtype, length, given, out, asyncOptions } = rowRequest(this, this.#file, indexes, options);
    const position = this.#position;
    const handle = handleOf(this.#file);
    const result = await runJob(
      asyncOptions,
      (...how) => {
        const started = native.rowsAsync(handle, position, rows, count, dtypeNumber(dtype), out, ...how);
        giveBackRows(rows);
        return started;
      },
      (error) => explainFailure(error, length, subjectOf(this)),
    );
    return (given ?? result) as Returned<A>;
  }

  /**
   * Multiplies the rows of this matrix with vectors: y[v][r] is the sum over all columns c of w[r][c] * x[v][c], where w
   * are the numbers that {@link dequantizeSync} gives. Nothing is dequantized to memory, and the blocks are read once,
   * whatever the number of vectors. Blocks the calling thread.
   *
   * The sums have binary32 numbers and the order that docs/sums.md defines under "Products". So the bits are the same
   * on every instruction set, for any number of vectors at a time, any split of the rows and any number of threads, but
   * for the sign and payload of a NaN; `gguf-native/reference` gives them too. With
   * `activations: "int8"`, which rounds the vectors and is faster, that is so too.
   * @param x n vectors of `shape[0]` numbers, or of `options.columns`, one after the other; it is copied first, so that
   *   `out` may overlap it
   * @returns n times `end - start` numbers: for each vector, the products of all these rows. Empty where `x` is empty
   * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
   * @throws GgufError ERR_GGUF_RANGE where the length of `x` is not a multiple of the columns, `columns`, `start`, `end`
   *   or `threads` are wrong, `out` has another length than the result, `bias` another than the rows, `accumulate` no `out`, or
   *   the result is too large for one typed array;
   *   ERR_GGUF_UNSUPPORTED_TYPE; ERR_GGUF_TRUNCATED; ERR_GGUF_CLOSED
   */
  matmulSync<A extends Float32Array = Dequantized<"f32">>(
    x: Float32Array,
    options?: ProductOptions<A> & ThreadOptions,
  ): Returned<A> {
    const request = productRequest(this, this.#file, x, options, "sync");
    const { columns, start, end, length, out, int8, threads } = request;
    const handle = handleOf(this.#file);
    const result = attempt(
      () => native.matmul(handle, this.#position, namedColumns(this, columns), x, start, end, out, int8, threads),
      (error) => explainFailure(error, length, subjectOf(this)),
    );
    return endProduct(native, request, result, subjectOf(this)) as Returned<A>;
  }

  /**
   * As {@link matmulSync}, off the main thread and on every core; progress is in numbers of the result. `x` may change
   * once this has returned. `out` is written as by {@link dequantize}.
   * @throws the reason of `options.signal` once that is aborted; otherwise as {@link matmulSync}
   */
  async matmul<A extends Float32Array = Dequantized<"f32">>(
    x: Float32Array,
    options?: ProductOptions<A> & AsyncOptions,
  ): Promise<Returned<A>> {
    const request = productRequest(this, this.#file, x, options);
    const { columns, start, end, length, out, int8, asyncOptions } = request;
    const handle = handleOf(this.#file);
    const result = await runJob(
      asyncOptions,
      (...how) =>
        native.matmulAsync(handle, this.#position, namedColumns(this, columns), x, start, end, out, int8, ...how),
      (error) => explainFailure(error, length, subjectOf(this)),
    );
    return endProduct(native, request, result, subjectOf(this)) as Returned<A>;
  }

  /**
   * Unpacks this matrix once, so that products of several vectors with `activations: "int8"` need not do it each time. With 3 to
   * 16 vectors, they are then about twice as fast; with one, or more than 100, as fast as before. The bits are the same. Until the
   * file is closed, this takes a byte of memory for each weight (two for types of more than 8 bits), and the scales. Products do
   * not see later changes of the file, nor of {@link bytes}. A second call does nothing; nor does a call in WebAssembly, or for
   * a type whose blocks are single numbers. Progress is in weights.
   * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
   * @throws the reason of `options.signal` once that is aborted
   * @throws GgufError ERR_GGUF_RANGE for wrong `threads`; ERR_GGUF_OUT_OF_MEMORY; ERR_GGUF_UNSUPPORTED_TYPE;
   *   ERR_GGUF_TRUNCATED; ERR_GGUF_CLOSED
   */
  async prepare(options?: AsyncOptions): Promise<void> {
    const asyncOptions = checkAsync(checkOptions(options, ASYNC_OPTIONS));
    const [handle, elements] = [handleOf(this.#file), this.elementCount];
    knownType(this);
    await runJob(
      asyncOptions,
      (...how) => native.prepareAsync(handle, this.#position, ...how),
      (error) => explainFailure(error, elements, subjectOf(this)),
    );
  }

  /**
   * Statistics of the values: how many there are of each kind; range, mean and standard deviation of the finite ones;
   * with `bins`, a histogram. Values are not written to memory. Blocks the calling thread, and uses `threads` of the
   * machine's cores.
   *
   * Sums have binary64 numbers and the order that docs/sums.md defines under "Statistics": the same bits on every
   * instruction set and for any number of threads.
   * @throws TypeError ERR_INVALID_ARG_TYPE for an argument of the wrong type
   * @throws GgufError ERR_GGUF_RANGE if `start` or `end` is not at the boundary of a block, or `bins`, `range` or
   *   `threads` are wrong; ERR_GGUF_UNSUPPORTED_TYPE; ERR_GGUF_TRUNCATED; ERR_GGUF_CLOSED
   */
  statsSync(options?: StatsOptions & ThreadOptions): TensorStats {
    const request = statsRequest(this, this.#file, options, "sync");
    const passes = statsPasses(request);
    for (let next = passes.next(); ; ) {
      if (next.done) return next.value;
      next = passes.next(this.#measureNow(request, next.value, request.threads));
    }
  }

  /**
   * As {@link statsSync}, off the main thread and on every core. Work that has started completes even if the file is
   * closed.
   * @throws the reason of `options.signal` if it is aborted; otherwise as {@link statsSync}
   */
  async stats(options?: StatsOptions & AsyncOptions): Promise<TensorStats> {
    const request = statsRequest(this, this.#file, options);
    const { onProgress, ...how } = checkAsync(request.asyncOptions, subjectOf(this));
    return runStatsPasses(request, onProgress, (totals, onProgress) =>
      this.#measure(request, totals, { ...how, onProgress }),
    );
  }

  /**
   * As {@link compare}, with another tensor of a local file. Blocks the calling thread, and uses `threads` of the machine's
   * cores.
   * @throws as {@link compare}
   */
  compareSync(other: GgufTensor, options?: ThreadOptions): TensorComparison {
    if (!(other instanceof GgufTensor)) throw invalidArgType("other", "a tensor of a local file", other);
    const { threads } = checkOptions(options, { threads: true });
    const [a, b] = comparedPair(this, other);
    return compareTensorsNow(a, b, this.elementCount, checkThreads(threads, a.subject));
  }

  #measureNow({ start, end }: ElementRange, totals: Float64Array, threads: number | undefined): Float64Array {
    const handle = handleOf(this.#file);
    return attempt(
      () => native.stats(handle, this.#position, start, end, totals, threads),
      (error) => explainFailure(error, end - start, subjectOf(this)),
    );
  }

  #measure(
    { start, end }: ElementRange,
    totals: Float64Array,
    options: AsyncOptions | undefined,
  ): Promise<Float64Array> {
    const handle = handleOf(this.#file);
    return runJob(
      options,
      (...how) => native.statsAsync(handle, this.#position, start, end, totals, ...how),
      (error) => explainFailure(error, end - start, subjectOf(this)),
    );
  }
}
