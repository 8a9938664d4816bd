/** One tensor of a remote file. */

import { checkProgress, checkSignal } from "../arguments";
import { runJob } from "../decode/jobs";
import { dtypeNumber } from "../decode/kernels";
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
} from "../decode/options";
import { type ElementRange, explainFailure, newOut } from "../decode/request";
import {
  type NotFinite,
  newFiniteTotals,
  notFinite,
  runStatsPasses,
  type StatsOptions,
  type TensorStats,
} from "../decode/statistics";
import { GgufError } from "../errors";
import { nextTurn } from "../event-loop";
import { type NativeOut, native } from "../native";
import type { Arrived, Source } from "../source/source";
import type { OpenFile, TakenNames } from "./handle";
import { GgufModelTensor, listTensors, type TensorPlace } from "./model-tensor";
import { fetchedAhead, PART_ELEMENTS, partsOf } from "./parts";
import { fetchRows } from "./remote-rows";
import { giveBackRows } from "./rows";

/** How much is multiplied between two turns of the event loop; but no fewer rows, which share the work on the vectors. */
const MULTIPLICATIONS = 2 ** 22;
const MIN_ROWS = 48;

/** A remote file whose header was read. @internal */
export interface RemoteOpenFile extends OpenFile {
  readonly source: Source;
}

/** A tensor of a remote file: its properties, and methods that fetch its data. */
export class RemoteGgufTensor extends GgufModelTensor {
  readonly #file: RemoteOpenFile;

  private constructor(place: TensorPlace<RemoteOpenFile>) {
    super(place);
    this.#file = place.file;
  }

  /** The tensors of an open file by name, in file order. @internal */
  static list(this: void, file: RemoteOpenFile, taken?: TakenNames): Map<string, RemoteGgufTensor> {
    return listTensors(file, (place) => new RemoteGgufTensor(place), taken);
  }

  /**
   * Fetches the stored bytes, or those of the elements from `start` to `end`, with one HTTP range request.
   */
  async read(options?: ReadOptions): Promise<OwnBytes> {
    const { first, byteLength, signal } = this.extent(options);
    signal?.throwIfAborted();
    const bytes = this.allocate(byteLength, (length) => new Uint8Array(length));
    await this.#fetch(first, bytes, signal);
    return bytes;
  }

  /**
   * Fetches the tensor, or the elements from `start` to `end`, with one HTTP range request, and turns them
   * into numbers. `onProgress` counts the elements that have arrived.
   */
  dequantize<D extends DType = "f32", A extends OutArray<D> = Dequantized<D>>(
    options?: DequantizeOptions<D, A> & AsyncOptions,
  ): Promise<Returned<A>>;
  async dequantize(options?: DequantizeOptions & AsyncOptions): Promise<OutArray> {
    const { dtype, start, end, given, out } = this.range(options);
    const signal = checkSignal(options?.signal);
    const onProgress = checkProgress(options?.onProgress);
    signal?.throwIfAborted();
    const { blockSize, typeSize } = this.known();
    const { first, byteLength } = this.extentOf(start, end);
    const total = end - start;
    const arrived: Arrived | undefined =
      onProgress && ((bytes) => onProgress(Math.floor(bytes / typeSize) * blockSize, total));
    const bytes = this.allocate(byteLength, sharedBytes);
    await this.#fetch(first, bytes, signal, arrived);
    const result = await this.#decode(bytes, total, dtype, out, signal);
    return given ?? result;
  }

  /**
   * Fetches rows and turns them into numbers. Each row is fetched once, even if its index occurs more than
   * once. Rows that are close together are fetched with one request, including the bytes between them; up to
   * six requests are in flight. `onProgress` counts the elements that have arrived.
   */
  rows<D extends DType = "f32", A extends OutArray<D> = Dequantized<D>>(
    indexes: ArrayLike<number>,
    options?: RowsOptions<D, A> & AsyncOptions,
  ): Promise<Returned<A>>;
  async rows(indexes: ArrayLike<number>, options?: RowsOptions & AsyncOptions): Promise<OutArray> {
    const { rows, count, dtype, length, given, out } = this.rowRequest(indexes, options);
    const asked = rows.slice(0, count);
    giveBackRows(rows);
    const signal = checkSignal(options?.signal);
    const onProgress = checkProgress(options?.onProgress);
    signal?.throwIfAborted();
    const rowLength = this.shape[0] ?? 1;
    const rowBytes = this.extentOf(0, rowLength).byteLength;
    const bytes = this.allocate(count * rowBytes, sharedBytes);
    const read = (first: number, target: Uint8Array, signal: AbortSignal): Promise<void> =>
      this.#fetch(first, target, signal);
    const arrived = onProgress && ((rows: number) => onProgress(rows * rowLength, length));
    await fetchRows(asked, rowBytes, bytes, signal, read, arrived);
    const result = await this.#decode(bytes, length, dtype, out, signal);
    return given ?? result;
  }

  /**
   * Fetches the rows from `start` to `end` a part at a time, and multiplies them. The numbers of a part are multiplied on
   * the calling thread, some rows at a time. `onProgress` counts the numbers of the result.
   */
  matmul<A extends Float32Array = Dequantized<"f32">>(
    x: Float32Array,
    options?: ProductOptions<A> & AsyncOptions,
  ): Promise<Returned<A>>;
  async matmul(x: Float32Array, options?: ProductOptions & AsyncOptions): Promise<Float32Array> {
    const { start, end, length, out, exact } = this.productRequest(x, options);
    const signal = checkSignal(options?.signal);
    const onProgress = checkProgress(options?.onProgress);
    signal?.throwIfAborted();
    const columns = this.shape[0] ?? 1;
    const vectors = x.slice();
    const result = newOut("f32", length, this.subject()) as Float32Array;
    const rowsOfPart = Math.max(1, Math.floor(PART_ELEMENTS / columns));
    const fetchRows = async (part: ElementRange): Promise<Uint8Array> => {
      const { first, byteLength } = this.extentOf(part.start * columns, part.end * columns);
      const bytes = this.allocate(byteLength, (length) => new Uint8Array(length));
      await this.#fetch(first, bytes, signal);
      return bytes;
    };
    if (length > 0) {
      for await (const { bytes, part } of fetchedAhead(start, end, fetchRows, rowsOfPart)) {
        await this.#multiply(bytes, vectors, result, part.start - start, end - start, exact, signal);
        onProgress?.((part.end - start) * (length / (end - start)), length);
        signal?.throwIfAborted();
      }
    }
    if (out === undefined) return result;
    if (out.length !== length) {
      const detail = "out was detached, moved or resized while the work was going on";
      throw new GgufError("ERR_GGUF_RANGE", detail, this.subject());
    }
    out.set(result);
    return out;
  }

  /** Multiplies rows, of which the first is row `first` of `count` in the result. */
  async #multiply(
    rows: Uint8Array,
    x: Float32Array,
    result: Float32Array,
    first: number,
    count: number,
    exact: boolean,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { id } = this.known();
    const columns = this.shape[0] ?? 1;
    const rowBytes = this.extentOf(0, columns).byteLength;
    const littleEndian = this.#file.info.bigEndian ? native.swapBytes(id, rows) : rows;
    const size = Math.max(MIN_ROWS, Math.floor(MULTIPLICATIONS / x.length));
    for (const part of partsOf(0, rows.length / rowBytes, size)) {
      const blocks = littleEndian.subarray(part.start * rowBytes, part.end * rowBytes);
      const y = native.matmulBlocks(id, blocks, columns, x, undefined, undefined, exact);
      const rowCount = part.end - part.start;
      for (let v = 0; v < x.length / columns; v++) {
        result.set(y.subarray(v * rowCount, (v + 1) * rowCount), v * count + first + part.start);
      }
      await nextTurn();
      signal?.throwIfAborted();
    }
  }

  /**
   * Fetches the tensor, or the elements from `start` to `end`, a part at a time, and looks at the values. A histogram
   * without a given `range` fetches them twice. `onProgress` counts the elements that were looked at.
   */
  async stats(options?: StatsOptions & AsyncOptions): Promise<TensorStats> {
    const request = this.statsRequest(options);
    const signal = checkSignal(options?.signal);
    const onProgress = checkProgress(options?.onProgress);
    return runStatsPasses(request, onProgress, (totals, onProgress) =>
      this.#measure(request, totals, signal, onProgress),
    );
  }

  /** @internal */
  async countNotFinite(options?: AsyncOptions): Promise<NotFinite> {
    const request = this.statsRequest(undefined);
    return notFinite(await this.#measure(request, newFiniteTotals(), options?.signal, options?.onProgress));
  }

  /** Joins the statistics of some elements to `totals`. The next part is fetched while one is looked at. */
  async #measure(
    { start, end }: ElementRange,
    totals: Float64Array,
    signal: AbortSignal | undefined,
    onProgress: AsyncOptions["onProgress"],
  ): Promise<Float64Array> {
    signal?.throwIfAborted();
    const { id } = this.known();
    const { bigEndian } = this.#file.info;
    const fetchPart = async (part: ElementRange): Promise<Uint8Array> => {
      const { first, byteLength } = this.extentOf(part.start, part.end);
      const bytes = this.allocate(byteLength, sharedBytes);
      await this.#fetch(first, bytes, signal);
      return bytes;
    };
    let joined = totals;
    for await (const { bytes, part } of fetchedAhead(start, end, fetchPart)) {
      joined = await runJob(
        { signal },
        () => native.statsBlocksAsync(id, bytes, bigEndian, joined, undefined),
        (error) => explainFailure(error, end - start, this.subject()),
      );
      onProgress?.(part.end - start, end - start);
    }
    return joined;
  }

  /** @internal */
  protected isInFile(): boolean {
    return this.#file.source === undefined;
  }

  /** Fills `bytes` with the bytes of the tensor from `first` on. */
  async #fetch(
    first: number,
    bytes: Uint8Array,
    signal: AbortSignal | undefined,
    arrived?: Arrived,
  ): Promise<void> {
    const begin = this.offset + first;
    const length = await this.#file.source.read(begin, bytes, signal, arrived);
    if (length === bytes.length) return;
    // The file was opened with `partial`.
    const detail = `bytes ${begin} to ${begin + bytes.length} are needed, but the file ends at ${begin + length}`;
    throw new GgufError("ERR_GGUF_TRUNCATED", detail, { ...this.subject(), offset: begin });
  }

  /** Decodes `bytes`, the blocks of `length` elements. */
  #decode(
    bytes: Uint8Array,
    length: number,
    dtype: DType,
    out: NativeOut | undefined,
    signal: AbortSignal | undefined,
  ): Promise<NativeOut> {
    const { id } = this.known();
    const { bigEndian } = this.#file.info;
    return runJob(
      { signal },
      () => native.dequantizeBlocksAsync(id, bytes, dtypeNumber(dtype), 0, length, out, undefined, bigEndian),
      (error) => explainFailure(error, length, this.subject()),
    );
  }
}

/** Shared memory cannot be taken away, so the decoding threads need no copy of it. Not every page of a browser has it. */
function sharedBytes(length: number): Uint8Array {
  return typeof SharedArrayBuffer === "undefined"
    ? new Uint8Array(length)
    : new Uint8Array(new SharedArrayBuffer(length));
}
