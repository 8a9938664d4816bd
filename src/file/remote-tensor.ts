/** One tensor of a remote file. */

import { type JobArguments, type NativeOut, native, type Started } from "../backend/native";
import { checkAsync } from "../base/arguments";
import { GgufError } from "../base/errors";
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
import type { ElementRange } from "../base/ranges";
import { PART_ELEMENTS } from "../base/ranges";
import { plain } from "../base/typed-arrays";
import { runJob } from "../decode/jobs";
import { dtypeNumber } from "../decode/kernels";
import { endProduct } from "../decode/product-request";
import { checkOutLength, explainFailure, newOut } from "../decode/request";
import {
  type NotFinite,
  newFiniteTotals,
  notFinite,
  runStatsPasses,
  type StatsOptions,
  type TensorStats,
} from "../decode/statistics";
import type { Arrived, Source } from "../source/source";
import type { OpenFile } from "./handle";
import { GgufModelTensor } from "./model-tensor";
import { forEachPart, PARTS_AT_A_TIME } from "./parts";
import { fetchRows } from "./remote-rows";
import { giveBackRows } from "./rows";
import type { TensorPlace } from "./tensor-map";
import {
  allocate,
  decodeRequest,
  extentOf,
  knownType,
  productRequest,
  readRequest,
  rowRequest,
  statsRequest,
  subjectOf,
} from "./tensor-requests";

/** A remote file whose header was read. @internal */
export interface RemoteOpenFile extends OpenFile {
  readonly source: Source;
}

/** How many values are not finite. */
export let countNotFiniteRemote: (tensor: RemoteGgufTensor, options: AsyncOptions) => Promise<NotFinite>;

/** A tensor of a remote file: its properties, and methods that fetch its data. */
export class RemoteGgufTensor extends GgufModelTensor {
  readonly #file: RemoteOpenFile;
  /** Where its data is in the source. */
  readonly #begin: number;

  static {
    countNotFiniteRemote = async (tensor, options) =>
      notFinite(await tensor.#measure(statsRequest(tensor, tensor.#file, undefined), newFiniteTotals(), options));
  }

  /** @internal */
  protected constructor(place: TensorPlace<RemoteOpenFile>) {
    super(place);
    this.#file = place.file;
    this.#begin = place.columns.offsets[place.index] as number;
  }

  /** @internal */
  static at(this: void, place: TensorPlace): RemoteGgufTensor {
    return new RemoteGgufTensor(place as TensorPlace<RemoteOpenFile>);
  }

  /**
   * Fetches the stored bytes, or those of the elements from `start` to `end`, with one HTTP range request.
   */
  async read(options?: ReadOptions): Promise<OwnBytes> {
    const { first, byteLength, signal } = readRequest(this, this.#file, options);
    signal?.throwIfAborted();
    this.#checkBytes(first, byteLength);
    const bytes = allocate(this, byteLength, (length) => new Uint8Array(length));
    await this.#fetch(first, bytes, signal);
    return bytes;
  }

  /**
   * Fetches the tensor, or the elements from `start` to `end`, and turns it into numbers: a part at a time, each with one
   * HTTP range request. `onProgress` counts the elements that have arrived.
   */
  async dequantize<D extends DType = "f32", A extends OutArray<D> = Dequantized<D>>(
    options?: DequantizeOptions<D, A> & AsyncOptions,
  ): Promise<Returned<A>> {
    const { dtype, start, end, given, out, asyncOptions } = decodeRequest(this, this.#file, options);
    const { signal, onProgress, threads } = checkAsync(asyncOptions, subjectOf(this));
    signal?.throwIfAborted();
    const { first, byteLength } = extentOf(this, start, end);
    this.#checkBytes(first, byteLength);
    const length = end - start;
    const result = plain(out ?? newOut(dtype, length, subjectOf(this)));
    const use = async (bytes: Uint8Array, part: ElementRange, signal: AbortSignal): Promise<void> => {
      checkOutLength(result, length, subjectOf(this));
      const to = result.subarray(part.start - start, part.end - start);
      await this.#decode(bytes, to.length, dtype, to, { signal, threads });
    };
    await this.#forEachPart({ start, end }, signal, use, onProgress);
    return (given ?? result) as Returned<A>;
  }

  /**
   * Fetches rows and turns them into numbers. Each row is fetched once, even if its index occurs more than
   * once. Rows that are close together are fetched with one request, including the bytes between them; up to
   * six requests are in flight. `onProgress` counts the elements that have arrived.
   */
  async rows<D extends DType = "f32", A extends OutArray<D> = Dequantized<D>>(
    indexes: ArrayLike<number>,
    options?: RowsOptions<D, A> & AsyncOptions,
  ): Promise<Returned<A>> {
    const { rows, count, dtype, length, given, out, asyncOptions } = rowRequest(this, this.#file, indexes, options);
    const asked = rows.slice(0, count);
    giveBackRows(rows);
    const { signal, onProgress, threads } = checkAsync(asyncOptions, subjectOf(this));
    signal?.throwIfAborted();
    const rowLength = this.shape[0] ?? 1;
    const rowBytes = extentOf(this, 0, rowLength).byteLength;
    const bytes = allocate(this, count * rowBytes, sharedBytes);
    const read = (first: number, target: Uint8Array, signal: AbortSignal): Promise<void> =>
      this.#fetch(first, target, signal);
    const arrived = onProgress && ((rows: number) => onProgress(rows * rowLength, length));
    await fetchRows(asked, rowBytes, bytes, signal, read, arrived);
    const result = await this.#decode(bytes, length, dtype, out, { signal, threads });
    return (given ?? result) as Returned<A>;
  }

  /**
   * Fetches the rows from `start` to `end` a part at a time, and multiplies them off the main thread. `onProgress` counts
   * the numbers of the result. `out` is written a part at a time.
   */
  async matmul<A extends Float32Array = Dequantized<"f32">>(
    x: Float32Array,
    options?: ProductOptions<A> & AsyncOptions,
  ): Promise<Returned<A>> {
    const request = productRequest(this, this.#file, x, options);
    const { columns, start, end, length, out, int8, asyncOptions } = request;
    const { signal, onProgress, threads } = checkAsync(asyncOptions, subjectOf(this));
    signal?.throwIfAborted();
    const { first, byteLength } = extentOf(this, start * columns, end * columns);
    this.#checkBytes(first, byteLength);
    const result = plain(out ?? (newOut("f32", length, subjectOf(this)) as Float32Array));
    if (length === 0) return endProduct(native, request, result) as Returned<A>;
    const { id } = knownType(this);
    const vectors = plain(x).slice(); // `x` may change, and overlap `out`
    const count = end - start;
    const vectorCount = length / count;
    // The products of a part are copied to their places on this thread: not too many at once.
    const rowsOfPart = Math.max(1, Math.floor(PART_ELEMENTS / Math.max(columns, 4 * vectorCount)));
    const use = async (bytes: Uint8Array, part: ElementRange, signal: AbortSignal): Promise<void> => {
      const row = part.start / columns - start;
      const report = onProgress && ((done: number) => onProgress(row * vectorCount + done, length));
      const products = await this.#run({ signal, onProgress: report, threads }, length, (...how) =>
        native.matmulBlocksAsync(id, bytes, columns, vectors, undefined, int8, ...how),
      );
      checkOutLength(result, length, subjectOf(this));
      const rowCount = products.length / vectorCount;
      for (let v = 0; v < vectorCount; v++) {
        result.set(products.subarray(v * rowCount, (v + 1) * rowCount), v * count + row);
      }
    };
    const range = { start: start * columns, end: end * columns, size: rowsOfPart * columns };
    await this.#forEachPart(range, signal, use);
    return endProduct(native, request, result, subjectOf(this)) as Returned<A>;
  }

  /**
   * Fetches the tensor, or the elements from `start` to `end`, a part at a time, and looks at the values. A histogram
   * without a given `range` fetches them twice. `onProgress` counts the elements that were looked at.
   */
  async stats(options?: StatsOptions & AsyncOptions): Promise<TensorStats> {
    const request = statsRequest(this, this.#file, options);
    const { signal, onProgress, threads } = checkAsync(request.asyncOptions, subjectOf(this));
    return runStatsPasses(request, onProgress, (totals, onProgress) =>
      this.#measure(request, totals, { signal, onProgress, threads }),
    );
  }

  /** Joins the statistics of some elements to `totals`. */
  async #measure(
    { start, end }: ElementRange,
    totals: Float64Array,
    { signal, onProgress, threads }: AsyncOptions,
  ): Promise<Float64Array> {
    const { id } = knownType(this);
    const length = end - start;
    let joined = totals;
    await this.#forEachPart({ start, end }, signal, async (bytes, part, signal) => {
      const report = onProgress && ((done: number) => onProgress(part.start - start + done, length));
      joined = await this.#run({ signal, onProgress: report, threads }, length, (onProgress, threads, bigEndian) =>
        native.statsBlocksAsync(id, bytes, bigEndian, joined, onProgress, threads),
      );
    });
    return joined;
  }

  /**
   * All work on a range of elements: fetches their bytes a part at a time, the next ones while one is used. Memory is that
   * of a few parts, whatever the size of the tensor.
   * @param onArrived called with the elements that have arrived, and all
   */
  async #forEachPart(
    range: ElementRange & { size?: number },
    signal: AbortSignal | undefined,
    use: (bytes: Uint8Array, part: ElementRange, signal: AbortSignal) => Promise<void>,
    onArrived?: AsyncOptions["onProgress"],
  ): Promise<void> {
    const { blockSize, typeSize } = knownType(this);
    const { start, end, size = PART_ELEMENTS } = range;
    const all = extentOf(this, start, end);
    this.#checkBytes(all.first, all.byteLength);
    let arrivedBytes = 0;
    let stopped: { error: unknown } | undefined;
    const report = (bytes: number): void => {
      arrivedBytes += bytes;
      // Requests of other parts end a little later than the one in which the callback threw.
      if (stopped !== undefined) throw stopped.error;
      try {
        onArrived?.(Math.floor(arrivedBytes / typeSize) * blockSize, end - start);
      } catch (error) {
        stopped = { error };
        throw error;
      }
    };
    // Parts are used in their order, so that the first of those that are there is used before one more is fetched.
    const memory: Uint8Array[] = [];
    const fetch = async (part: ElementRange, signal: AbortSignal): Promise<Uint8Array> => {
      const { first, byteLength } = extentOf(this, part.start, part.end);
      const place = ((part.start - start) / size) % PARTS_AT_A_TIME;
      memory[place] ??= allocate(this, byteLength, sharedBytes);
      const bytes = memory[place].subarray(0, byteLength);
      let before = 0;
      await this.#fetch(first, bytes, signal, (arrived) => {
        report(arrived - before);
        before = arrived;
      });
      return bytes;
    };
    await forEachPart({ start, end, size }, signal, fetch, use);
  }

  /** Throws unless the file has these bytes of the tensor; it may lack them if it was opened with `partial`. */
  #checkBytes(first: number, byteLength: number): void {
    const begin = this.#begin + first;
    const fileEnd = this.#file.source.byteLength;
    if (byteLength === 0 || begin + byteLength <= fileEnd) return;
    const detail = `bytes ${begin} to ${begin + byteLength} are needed, but the file ends at ${fileEnd}`;
    throw new GgufError("ERR_GGUF_TRUNCATED", detail, { ...subjectOf(this), offset: begin });
  }

  /** Fills `bytes` with the bytes of the tensor from `first` on. */
  async #fetch(first: number, bytes: Uint8Array, signal: AbortSignal | undefined, arrived?: Arrived): Promise<void> {
    this.#checkBytes(first, bytes.length);
    await this.#file.source.read(this.#begin + first, bytes, signal, arrived);
  }

  /** Decodes `bytes`, the blocks of `length` elements. */
  #decode(
    bytes: Uint8Array,
    length: number,
    dtype: DType,
    out: NativeOut | undefined,
    options: AsyncOptions,
  ): Promise<NativeOut> {
    const { id } = knownType(this);
    return this.#run(options, length, (...how) =>
      native.dequantizeBlocksAsync(id, bytes, dtypeNumber(dtype), 0, length, out, ...how),
    );
  }

  /** Runs a job of the addon on bytes that were fetched; `length` numbers are asked for. */
  #run<Result>(
    options: AsyncOptions,
    length: number,
    begin: (...how: [...JobArguments, bigEndian: boolean]) => Started<Result>,
  ): Promise<Result> {
    const { bigEndian } = this.#file.info;
    return runJob(
      options,
      (...how) => begin(...how, bigEndian),
      (error) => explainFailure(error, length, subjectOf(this)),
    );
  }
}

/** Shared memory cannot be taken away, so the decoding threads need no copy of it. Not every page of a browser has it. */
function sharedBytes(length: number): Uint8Array {
  return typeof SharedArrayBuffer === "undefined"
    ? new Uint8Array(length)
    : new Uint8Array(new SharedArrayBuffer(length));
}
