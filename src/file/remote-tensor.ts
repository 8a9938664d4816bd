/** One tensor of a remote file. */
import { dtypeNumber, runJob } from "../decode/dequantize";
import {
  type AsyncOptions,
  checkOptions,
  checkProgress,
  checkSignal,
  checkSpan,
  type Dequantized,
  type DequantizeOptions,
  type DType,
  explainFailure,
  type OutArray,
  type Span,
} from "../decode/options";
import { GgufError } from "../errors";
import { native } from "../native";
import type { Arrived, Source } from "../source/source";
import { handleOf, type OpenFile, PRIVATE } from "./handle";
import { GgufTensorInfo, listTensors, type TensorPlace } from "./tensor-info";

/** A remote file whose header was read. @internal */
export interface RemoteOpenFile extends OpenFile {
  readonly source: Source;
}

/** What part of a tensor to fetch. */
export interface FetchOptions {
  /** First element, a multiple of the type's block size; default 0. */
  start?: number | undefined;
  /** One past the last element, a multiple of the type's block size; default the end of the tensor. */
  end?: number | undefined;
  /** Aborting makes the promise reject with the signal's reason. */
  signal?: AbortSignal | undefined;
}

let createTensor: (place: TensorPlace<RemoteOpenFile>) => RemoteGgufTensor;

/** A tensor of a remote file: what it is, and ways to fetch it. */
export class RemoteGgufTensor extends GgufTensorInfo {
  readonly #file: RemoteOpenFile;

  static {
    createTensor = (place) => new RemoteGgufTensor(PRIVATE, place);
  }

  private constructor(key: typeof PRIVATE, place: TensorPlace<RemoteOpenFile>) {
    super(key, place);
    this.#file = place.file;
  }

  /**
   * Fetches the stored bytes, or those of the elements from `start` to `end`, by one HTTP range.
   * @throws GgufError ERR_GGUF_OPEN where the server does not deliver, ERR_GGUF_CHANGED where the file is no longer the
   *   one that was opened; ERR_GGUF_RANGE, ERR_GGUF_UNSUPPORTED_TYPE, ERR_GGUF_CLOSED; the reason of the signal
   */
  async fetchBytes(options?: FetchOptions): Promise<Uint8Array> {
    const { signal, ...given } = checkOptions(options);
    handleOf(this.#file);
    const span = checkSpan(given, this.elementCount, this.known().blockSize, this.subject());
    return this.#fetch(span, checkSignal(signal), (length) => new Uint8Array(length));
  }

  /**
   * Fetches the tensor, or the elements from `start` to `end`, and turns them into numbers: see
   * {@link GgufTensor.dequantize}. `onProgress` is told of the elements that have arrived.
   * @throws as {@link fetchBytes}
   */
  dequantize<D extends DType = "f32", A extends OutArray<D> = Dequantized<D>>(
    options?: DequantizeOptions<D, A> & AsyncOptions,
  ): Promise<A>;
  async dequantize(options?: DequantizeOptions & AsyncOptions): Promise<OutArray> {
    const { dtype, start, end, given, out } = this.range(options);
    const signal = checkSignal(options?.signal);
    const onProgress = checkProgress(options?.onProgress);
    const info = this.known();
    const total = end - start;
    const arrived: Arrived | undefined =
      onProgress && ((bytes) => onProgress(Math.floor(bytes / info.typeSize) * info.blockSize, total));
    // Shared memory cannot go away: the threads that decode need no copy of it.
    const shared = (length: number): Uint8Array => new Uint8Array(new SharedArrayBuffer(length));
    const bytes = await this.#fetch({ start, end }, signal, shared, arrived);
    const { bigEndian } = this.#file.info;
    const dtypeId = dtypeNumber(dtype);
    const result = await runJob(
      { signal },
      () => native.dequantizeBlocksAsync(info.id, bytes, dtypeId, 0, total, out, undefined, bigEndian),
      (error) => explainFailure(error, total, this.subject()),
    );
    return given ?? result;
  }

  async #fetch(
    { start, end }: Span,
    signal: AbortSignal | undefined,
    allocate: (length: number) => Uint8Array,
    arrived?: Arrived,
  ): Promise<Uint8Array> {
    const { blockSize, typeSize } = this.known();
    const begin = this.offset + (start / blockSize) * typeSize;
    const byteLength = ((end - start) / blockSize) * typeSize;
    signal?.throwIfAborted();
    let bytes: Uint8Array;
    try {
      bytes = allocate(byteLength);
    } catch (error) {
      throw explainFailure(error, byteLength, this.subject());
    }
    const length = await this.#file.source.read(begin, bytes, signal, arrived);
    if (length === byteLength) return bytes;
    // Of a file that was opened with `partial`.
    const detail = `bytes ${begin} to ${begin + byteLength} are needed, but the file ends at ${begin + length}`;
    throw new GgufError("ERR_GGUF_TRUNCATED", detail, { ...this.subject(), offset: begin });
  }
}

/** The tensors of a remote file. @internal */
export function createRemoteTensors(file: RemoteOpenFile): Map<string, RemoteGgufTensor> {
  return listTensors(file, createTensor);
}
