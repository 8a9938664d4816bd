/**
 * The types of the complete native surface: what `native/binding` exports, and what the WebAssembly module takes the place
 * of. The facade has checked arguments before it calls these functions, as far as JavaScript can check them; behind
 * the surface, everything that memory safety depends on is checked again.
 */

import type { GgufErrorCode } from "../base/errors";
import type { GgufValue } from "../base/metadata-values";
import type { OwnBytes } from "../base/options";

/** An open file inside the addon. Opaque and tagged: any other object is a TypeError. */
export interface NativeFile {
  readonly __nativeFile: never;
}

/** A running asynchronous piece of work inside the addon; opaque and tagged as well. */
export interface NativeJob {
  readonly __nativeJob: never;
}

/** What an asynchronous function returns: the job, to cancel it, and its result. */
export interface Started<Result> {
  job: NativeJob;
  promise: Promise<Result>;
}

/** A cache of keys and values inside the addon; opaque and tagged as well. */
export interface NativeCache {
  readonly __nativeCache: never;
}

/** 0: float32, 1: float16 bits, 2: bfloat16 bits. */
export type NativeDType = 0 | 1 | 2;

export type NativeOut = Float32Array | Uint16Array;

export interface NativeFileInfo {
  version: number;
  bigEndian: boolean;
  byteLength: number;
  alignment: number;
  /** Where tensor data starts; may be past the end of the file if there are no tensors and no padding. */
  dataOffset: number;
  /** Whether the metadata has the key `split.count`. */
  isSplit: boolean;
  keyCount: number;
  tensorCount: number;
}

/** Some metadata keys in file order, one entry of each array per key. */
export interface NativeKeys {
  names: string[];
  /** Value type numbers of the format: 0 uint8 ... 9 array ... 12 float64. */
  types: Uint8Array;
  /** Element type of an array; otherwise the value's own type. */
  elementTypes: Uint8Array;
  /** The number of elements of an array; otherwise 1. */
  lengths: Float64Array;
  /**
   * Where the value starts in the file (of an array: its first element; of a string: its length), and where
   * it ends.
   */
  begins: Float64Array;
  ends: Float64Array;
}

/** Some tensors in file order, one entry of each array per tensor; four of `shapes`. */
export interface NativeTensors {
  names: string[];
  types: Uint32Array;
  dimCounts: Uint8Array;
  shapes: Float64Array;
  elementCounts: Float64Array;
  /** NaN for an unknown type. */
  byteLengths: Float64Array;
  /** Absolute, in the file. */
  offsets: Float64Array;
}

export interface NativeFormat {
  name: string;
  id: number;
  blockSize: number;
  typeSize: number;
  /** Whether numbers can be made blocks of it, and whether only with the importance of columns. */
  encodes: boolean;
  needsImportance: boolean;
}

/** What is thrown behind the surface, and what its promises reject with. */
export interface Failure {
  /** {@link NativeAddon.failureMark}: nothing that others throw has it. */
  mark: object;
  code: GgufErrorCode | "ERR_INVALID_ARG_TYPE";
  detail: string;
  path?: string;
  offset?: number;
  systemCode?: string;
}

/** Called on the main thread with the progress, in elements. */
export type ProgressCallback = (done: number, total: number) => void;

/** Arguments that several functions take. `threads`: how many work on the job at a time, by default all. */
export type JobArguments = [onProgress: ProgressCallback | undefined, threads: number | undefined];
type OfTensor = [file: NativeFile, index: number];
/** `type` is the number of the format. */
type Blocks = [type: number, blocks: Uint8Array];
type Decoding = [dtype: NativeDType, start: number, end: number, out: NativeOut | undefined];
type Rows = [rows: Float64Array, count: number, dtype: NativeDType, out: NativeOut | undefined];
type Product = [
  ...[columns: number | undefined, x: Float32Array, start: number, end: number],
  ...[out: Float32Array | undefined, int8: boolean],
];
type BlockProduct = [columns: number, x: Float32Array, out: Float32Array | undefined, int8: boolean];
type Totals = [start: number, end: number, totals: Float64Array];
type Numbers = [
  ...[type: number, numbers: Float32Array, columns: number, importance: Float32Array | undefined],
  out: Uint8Array | undefined,
];

type Optional = Float32Array | undefined;
type Result = [out: Float32Array, threads: number | undefined];

/**
 * What lies between the products of a network, by the rules of docs/sums.md. Results go into `out`, which is as long as they
 * are. Where there is no `cap` and no `window`, it is 0.
 */
export interface NativeNetwork {
  rmsNorm(x: Float32Array, weight: Optional, width: number, epsilon: number, ...result: Result): void;
  layerNorm(x: Float32Array, weight: Optional, bias: Optional, width: number, epsilon: number, ...result: Result): void;
  normalizeVectors(x: Float32Array, width: number, out: Float32Array): void;
  /** What is lost of `x`, whole runs of 32, when products round it to 8 bits. */
  roundingError(x: Float32Array, ...result: Result): void;
  /** `kind`: 0 silu, 1 gelu, 2 gelu_erf, 3 relu, 4 relu2, 5 sigmoid, 6 tanh. With `up`, the result is multiplied with it. */
  activate(x: Float32Array, up: Optional, kind: number, ...result: Result): void;
  softmax(x: Float32Array, width: number, scale: number, cap: number, ...result: Result): void;
  /** The maximum of `x`, and the sum of e to the power of how much less each number is. */
  sumOfPowers(x: Float32Array, out: Float32Array): void;
  meanOfRows(x: Float32Array, width: number, out: Float32Array): void;
  /** Adds `y`, as often as it fits, to `x`. */
  addInto(x: Float32Array, y: Float32Array): void;
  scaleInto(x: Float32Array, factor: number): void;
  /** `table`: for each token, the cosines of its `pairs` angles, then their sines. */
  rope(
    x: Float32Array,
    headWidth: number,
    headCount: number,
    table: Float32Array,
    pairs: number,
    adjacent: boolean,
    ...result: Result
  ): void;
  /** `type`: the number of the format, that of F32, F16 or Q8_0. */
  newCache(heads: number, keyWidth: number, valueWidth: number, type: number): NativeCache;
  /** Appends all tokens, or none if it throws. */
  cacheAppend(cache: NativeCache, keys: Float32Array, values: Float32Array): void;
  cacheTruncate(cache: NativeCache, length: number): void;
  /** A cache with the same content, which shares full pages with this one. */
  cacheFork(cache: NativeCache): NativeCache;
  /** Copies the blocks of `count` tokens from `first` on, in the order in which they were appended. */
  cacheRead(cache: NativeCache, first: number, count: number, keys: Uint8Array, values: Uint8Array): void;
  /** Appends tokens by such blocks. */
  cacheRestore(cache: NativeCache, keys: Uint8Array, values: Uint8Array): void;
  attention(
    queries: Float32Array,
    cache: NativeCache,
    heads: number,
    scale: number,
    causal: boolean,
    window: number,
    cap: number,
    sinks: Optional,
    ...result: Result
  ): void;
}

export interface NativeAddon extends NativeNetwork {
  /** Marks each {@link Failure}. */
  readonly failureMark: object;

  open(path: string, read: boolean, partial: boolean): NativeFile;
  openAsync(path: string, read: boolean, partial: boolean): Promise<NativeFile>;
  /**
   * Reads `bytes` in place: the addon keeps a reference to the array and looks up its address on every use.
   */
  parse(bytes: Uint8Array, partial: boolean): NativeFile;
  /**
   * The same for the first bytes of a file of `fileSize` bytes; undefined if the header continues after
   * `bytes`.
   */
  parse(bytes: Uint8Array, partial: boolean, fileSize: number): NativeFile | undefined;
  /**
   * Idempotent. Detaches views. Does not wait for running jobs: they keep the mapping alive until they are
   * done.
   */
  close(file: NativeFile): void;

  info(file: NativeFile): NativeFileInfo;
  /** `count` keys from number `first` on. */
  keys(file: NativeFile, first: number, count: number): NativeKeys;
  /** The number of the key with this name, in UTF-8; -1 where there is none. */
  findKey(file: NativeFile, name: string): number;
  /** The numbers of the keys whose names, decoded, hold U+FFFD, ascending: only two of these can look the same. */
  replacedKeys(file: NativeFile): Uint32Array;
  /** Decodes the value of key `index`. */
  value(file: NativeFile, index: number): GgufValue;
  /** The raw bytes of a string value, or of each string of an array of strings; undefined for other types. */
  valueBytes(file: NativeFile, index: number): OwnBytes | OwnBytes[] | undefined;
  /** Copies `out.length` of the stored bytes of the value of key `index`, from byte `first` of them on, into `out`. */
  readValue(file: NativeFile, index: number, first: number, out: Uint8Array): void;
  /** The name of key `index` as it is in the file. */
  keyBytes(file: NativeFile, index: number): OwnBytes;
  /** The same of tensors. */
  tensors(file: NativeFile, first: number, count: number): NativeTensors;
  findTensor(file: NativeFile, name: string): number;
  replacedTensors(file: NativeFile): Uint32Array;
  /** The name of tensor `index` as it is in the file. */
  tensorNameBytes(file: NativeFile, index: number): OwnBytes;

  /** The stored bytes of tensor `index`: a view for mapped files and parsed memory, otherwise a copy. */
  bytes(file: NativeFile, index: number): OwnBytes;
  /** Fills `out` with the stored bytes of tensor `index`, from byte `first` of the tensor on. */
  readBytes(file: NativeFile, index: number, first: number, out: Uint8Array): void;

  /**
   * Brings `byteLength` bytes of a file into memory, from byte `first` on, off the main thread; `lock` keeps those of a mapping
   * there until it is closed. The result is empty.
   */
  warm(
    ...of: [file: NativeFile, first: number, byteLength: number, lock: boolean, ...JobArguments]
  ): Started<Float32Array>;

  /**
   * Dequantizes elements `start` (inclusive) to `end` (exclusive) of tensor `index`: whole blocks. Fills and returns
   * `out` (length end - start) or, if it is undefined, a new array.
   */
  dequantize(...of: [...OfTensor, ...Decoding]): NativeOut;
  /** As dequantize, off the main thread. `cancel` on the job makes the promise reject with `undefined`. */
  dequantizeAsync(...of: [...OfTensor, ...Decoding, ...JobArguments]): Started<NativeOut>;
  /**
   * Dequantizes the first `count` of `rows`, of shape[0] elements each; `out` has count * shape[0] elements.
   */
  rows(...of: [...OfTensor, ...Rows]): NativeOut;
  /** As rows, off the main thread; `rows` is copied. */
  rowsAsync(...of: [...OfTensor, ...Rows, ...JobArguments]): Started<NativeOut>;
  /** As dequantize, for blocks in memory. */
  dequantizeBlocks(...of: [...Blocks, ...Decoding]): NativeOut;
  dequantizeBlocksAsync(...of: [...Blocks, ...Decoding, ...JobArguments, bigEndian: boolean]): Started<NativeOut>;

  /**
   * The products of rows `start` to `end` of tensor `index` with the vectors of `columns` numbers in `x`, by default shape[0]: for each vector
   * end - start numbers. Fills and returns `out` or, where it is undefined, a new array. Up to `threads` threads work.
   * With `int8`, the vectors are rounded to 8 bits.
   */
  matmul(...of: [...OfTensor, ...Product, threads: number | undefined]): Float32Array;
  /** Several products with the same `x`, each with an `out`: it is packed once for each type of weights. */
  matmulAll(products: readonly (readonly [...OfTensor, ...Product])[], threads: number | undefined): void;
  /** Unpacks the rows of tensor `index` for matmul with `int8`, until the file is closed; the result is empty. */
  prepareAsync(...of: [...OfTensor, ...JobArguments]): Started<Float32Array>;
  /** As matmul, off the main thread; `x` is copied. */
  matmulAsync(...of: [...OfTensor, ...Product, ...JobArguments]): Started<Float32Array>;
  /** The same for all rows of `columns` numbers of block bytes from anywhere. */
  matmulBlocks(...of: [...Blocks, ...BlockProduct, threads: number | undefined]): Float32Array;
  /** As matmulBlocks, off the main thread; `x` is copied. */
  matmulBlocksAsync(...of: [...Blocks, ...BlockProduct, ...JobArguments, bigEndian: boolean]): Started<Float32Array>;

  /**
   * The statistics of elements `start` to `end` of tensor `index`, joined to `totals`, which are those of what comes
   * before, a multiple of 2^18 elements: returns new totals. These are count, NaNs, infinities, negative infinities;
   * zeros, minimum, maximum, mean and the sum of the squared distances from it; low, high, counts of the bins between
   * them, below and above. The fields from zeros on, and those from low on, may be absent: then they are not measured.
   */
  stats(...of: [...OfTensor, ...Totals, threads: number | undefined]): Float64Array;
  /** As stats, off the main thread. */
  statsAsync(...of: [...OfTensor, ...Totals, ...JobArguments]): Started<Float64Array>;
  /** The same for blocks in memory. */
  statsBlocksAsync(
    ...of: [...Blocks, bigEndian: boolean, totals: Float64Array, ...JobArguments]
  ): Started<Float64Array>;

  /**
   * Compares elements `start` to `end` of two tensors, and joins what it finds to `totals`, which are those of what comes
   * before, a multiple of 2^18 elements: returns new totals. These are count, different, incomparable, the largest
   * error, the sum of errors, of their squares, and of the squares of the first tensor's values. Memory that can be taken
   * away is copied a part at a time, while it is compared.
   */
  compare(...of: [...OfTensor, ...OfTensor, ...Totals, threads: number | undefined]): Float64Array;
  /** As compare, off the main thread. */
  compareAsync(...of: [...OfTensor, ...OfTensor, ...Totals, ...JobArguments]): Started<Float64Array>;
  /** The same for blocks in memory; `bigEndian`: 1 if the first are, plus 2 if the second are. */
  compareBlocksAsync(
    ...of: [...Blocks, ...Blocks, bigEndian: number, totals: Float64Array, ...JobArguments]
  ): Started<Float64Array>;
  /** Whether elements `start` to `end` of two tensors of one type have different bytes: 1, or 0. `totals` has one field. */
  compareBytes(...of: [...OfTensor, ...OfTensor, ...Totals, threads: number | undefined]): Float64Array;
  /** As compareBytes, off the main thread. */
  compareBytesAsync(...of: [...OfTensor, ...OfTensor, ...Totals, ...JobArguments]): Started<Float64Array>;

  /**
   * The blocks that rows of `columns` numbers make, with a weight for each column or without; `type` is the number of the
   * format. Fills and returns `out` or, where it is undefined, a new array. Up to `threads` threads work. `best`: by the wider
   * search, where the type has one.
   */
  quantize(...of: [...Numbers, threads: number | undefined, best?: boolean]): Uint8Array;
  /** As quantize, off the main thread; `importance` is copied. */
  quantizeAsync(...of: [...Numbers, ...JobArguments, best?: boolean]): Started<Uint8Array>;

  /** The same blocks in the other byte order, in memory of their own. */
  swapBytes(type: number, blocks: Uint8Array): Uint8Array;

  /** Asks a job to stop; its promise rejects once no worker touches its memory any more. */
  cancel(job: NativeJob): void;

  /** A zeroed array in memory that the addon owns, for use as `out`. */
  allocate(length: number, dtype: NativeDType): NativeOut;
  /** Returns the memory of collected arrays of `allocate` to the system. */
  trim(): void;

  /** Every format of formats.def. */
  formats(): NativeFormat[];
  cpu(): { isa: string; available: string[]; threads: number };
  /** Ends the process at once with `code` when `milliseconds` have passed, unless it has ended by then. */
  endProcess(milliseconds: number, code: number): void;
}
