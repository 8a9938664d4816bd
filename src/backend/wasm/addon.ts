/**
 * The native surface over the WebAssembly module: what the addon does on many threads is done here on the calling one, a
 * piece at a time, so that memory stays bounded. Nothing of an open file is in the module; its bytes are brought there
 * when they are needed.
 */
import { haveSameBytes } from "../../base/bytes";
import { errorAbout, GgufError, invalidArgType } from "../../base/errors";
import type { OwnBytes } from "../../base/options";
import { partsOf } from "../../base/ranges";
import { plain } from "../../base/typed-arrays";
import type {
  NativeAddon,
  NativeDType,
  NativeFile,
  NativeFormat,
  NativeJob,
  NativeOut,
  ProgressCallback,
} from "../native-surface";
import { type FileBytes, goneBlocks, MemoryBytes } from "./bytes-of-file";
import { failure } from "./failure";
import { type ParsedHeader, parseHeader } from "./header";
import { cancelJob, startJob } from "./jobs";
import * as kernels from "./kernels";

/** Numbers of a step: about a millisecond of work, and whole chunks of statistics. */
const STEP_NUMBERS = 2 ** 18;

/** Multiplications of a step, and the fewest rows, which share the work of bringing the vectors. */
const STEP_MULTIPLICATIONS = 2 ** 21;
const STEP_ROWS = 48;

/** Jobs of so many numbers, or multiplications, are done at once. */
const SMALL_NUMBERS = 2 ** 16;
const SMALL_MULTIPLICATIONS = 2 ** 18;

/** Opens a file by its path. */
export type OpenBytes = (path: string) => { bytes: FileBytes; header: (partial: boolean) => ParsedHeader };

type Started<T> = { job: NativeJob; promise: Promise<T> };

/** Closes files that were forgotten. */
const forgotten = new FinalizationRegistry<FileBytes>((bytes) => bytes.release());

/** An open file. */
class WasmFile {
  readonly bytes: FileBytes;
  #header: ParsedHeader | undefined;

  constructor(bytes: FileBytes, header: ParsedHeader) {
    this.bytes = bytes;
    this.#header = header;
    forgotten.register(this, bytes, this);
  }

  static of(file: unknown): WasmFile {
    if (file instanceof WasmFile) return file;
    throw invalidArgType("file", "an open GGUF file", file);
  }

  get header(): ParsedHeader {
    if (this.#header !== undefined) return this.#header;
    throw new GgufError("ERR_GGUF_CLOSED", "the file is closed", { path: this.bytes.path });
  }

  close(): void {
    if (this.#header === undefined) return;
    this.#header = undefined;
    forgotten.unregister(this);
    this.bytes.release();
  }
}

/** Blocks of a tensor or of an array: what is read of them, and what is known about them. */
interface Blocks {
  readonly format: NativeFormat;
  readonly bigEndian: boolean;
  readonly path: string | undefined;
  /** Whether the blocks are memory that can go away while a job runs. */
  readonly isMemory: boolean;
  /** The blocks of `count` elements from `first` on. */
  take(first: number, count: number): Uint8Array;
  /** Throws unless the blocks of all these elements are there. */
  check(first: number, count: number): void;
  retain(): void;
  release(): void;
}

function blocksOfTensor(file: NativeFile, index: number): Blocks {
  const { bytes, header } = WasmFile.of(file);
  const { path } = bytes;
  const { offset } = header.extent(index);
  const format = about(path, () => kernels.formatOf(header.typeOf(index)));
  const { blockSize, typeSize } = format;
  // Exact, which numbers beyond 2^53 are not.
  const place = (elements: number): bigint => BigInt(elements / blockSize) * BigInt(typeSize);
  const begin = (first: number): bigint => offset + place(first);
  return {
    format,
    bigEndian: header.info().bigEndian,
    path,
    isMemory: bytes instanceof MemoryBytes,
    // An empty tensor may lie past the end of the file.
    take: (first, count) =>
      count === 0 ? new Uint8Array() : bytes.take(Number(begin(first)), Number(place(count))),
    check: (first, count) => bytes.check(count === 0 ? 0n : begin(first), place(count)),
    retain: () => bytes.retain(),
    release: () => bytes.release(),
  };
}

function blocksOfArray(type: number, array: Uint8Array, bigEndian: boolean): Blocks {
  const format = kernels.formatOf(type);
  const { blockSize, typeSize } = format;
  const place = (elements: number): number => (elements / blockSize) * typeSize;
  const { length } = array;
  const check = (first: number, count: number): void => {
    if (array.length !== length || place(first + count) > length) throw goneBlocks();
  };
  const take = (first: number, count: number): Uint8Array => {
    check(first, count);
    return array.subarray(place(first), place(first + count));
  };
  const nothing = (): void => undefined;
  return {
    ...{ format, bigEndian, path: undefined, isMemory: true },
    ...{ take, check, retain: nothing, release: nothing },
  };
}

/** Runs `work`; errors get the path of the file that they are about. */
function about<T>(path: string | undefined, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw path !== undefined && error instanceof GgufError ? errorAbout(error, { path }) : error;
  }
}

function newArray(dtype: NativeDType, length: number): NativeOut {
  return dtype === 0 ? new Float32Array(length) : new Uint16Array(length);
}

/**
 * Starts work on blocks that fills `out`, and is over when all its numbers are done. Nothing else runs during a step: it
 * writes where the array is then.
 */
function start<A extends NativeOut>(
  blocks: Blocks,
  out: A,
  work: Iterator<number, void, undefined>,
  onProgress: ProgressCallback | undefined,
  isSmall: boolean,
): Started<A> {
  const total = out.length;
  const check = (): void => {
    if (out.length === total) return;
    throw failure("ERR_GGUF_RANGE", "out was detached, moved or resized while the work was going on");
  };
  function next(): IteratorResult<number, void> {
    check();
    return work.next();
  }
  function finish(): A {
    check();
    return out;
  }
  return startOn([blocks], { steps: { next }, total, finish }, onProgress, isSmall);
}

/** Starts work on blocks, which stay there until it is over. */
function startOn<Result>(
  sources: readonly Blocks[],
  { steps, total, finish }: { steps: Iterator<number, void, undefined>; total: number; finish: () => Result },
  onProgress: ProgressCallback | undefined,
  isSmall: boolean,
): Started<Result> {
  for (const source of sources) source.retain();
  const release = (): void => {
    for (const source of sources) source.release();
  };
  const { path } = sources[0] as Blocks;
  const next = (): IteratorResult<number, void> => about(path, () => steps.next());
  const inMemory = sources.every(({ isMemory }) => isMemory);
  return startJob({ steps: { next }, total, finish, release }, onProgress, isSmall && inMemory);
}

/** Dequantizes elements `first` to `end`, a step at a time. */
function* dequantize(
  blocks: Blocks,
  dtype: NativeDType,
  first: number,
  end: number,
  out: NativeOut,
): Generator<number, void, undefined> {
  const { format, bigEndian } = blocks;
  for (const { start: from, end: to } of partsOf(first, end, STEP_NUMBERS)) {
    const part = out.subarray(from - first, to - first);
    kernels.dequantize(format.id, blocks.take(from, to - from), bigEndian, dtype, part);
    yield to - first;
  }
}

/** Dequantizes rows in their order, as many at a time as make a step. */
function* dequantizeRows(
  blocks: Blocks,
  rows: Float64Array,
  columns: number,
  dtype: NativeDType,
  out: NativeOut,
): Generator<number, void, undefined> {
  const rowsOfStep = Math.max(1, Math.floor(STEP_NUMBERS / Math.max(1, columns)));
  for (const { start, end } of partsOf(0, rows.length, rowsOfStep)) {
    const copied = copyRows(blocks, rows.subarray(start, end), columns);
    const part = out.subarray(start * columns, end * columns);
    for (const done of dequantize(copied, dtype, 0, part.length, part)) yield start * columns + done;
  }
}

/** The blocks of rows, one after the other. */
function copyRows({ format, bigEndian, take }: Blocks, rows: Float64Array, columns: number): Blocks {
  const rowBytes = (columns / format.blockSize) * format.typeSize;
  const copy = new Uint8Array(rows.length * rowBytes);
  for (const [i, row] of rows.entries()) copy.set(take(row * columns, columns), i * rowBytes);
  return blocksOfArray(format.id, copy, bigEndian);
}

/** Multiplies rows `first` to `end`, as many at a time as make a step. */
function* multiply(
  blocks: Blocks,
  columns: number,
  first: number,
  end: number,
  x: Float32Array,
  out: Float32Array,
  int8: boolean,
): Generator<number, void, undefined> {
  if (x.length === 0) return;
  const { format, bigEndian } = blocks;
  const vectors = x.length / columns;
  const rowsOfStep = Math.max(STEP_ROWS, Math.floor(STEP_MULTIPLICATIONS / Math.max(1, x.length)));
  for (const { start: row, end: next } of partsOf(first, end, rowsOfStep)) {
    const rows = blocks.take(row * columns, (next - row) * columns);
    kernels.multiply(format.id, rows, bigEndian, columns, x, out.subarray(row - first), int8, end - first);
    yield (next - first) * vectors;
  }
}

/** Joins the statistics of elements `first` to `end` to totals. */
function* measure(
  blocks: Blocks,
  first: number,
  end: number,
  totals: { of: Float64Array },
): Generator<number, void, undefined> {
  const { format, bigEndian } = blocks;
  for (const { start: from, end: to } of partsOf(first, end, STEP_NUMBERS)) {
    totals.of = kernels.stats(format.id, blocks.take(from, to - from), bigEndian, totals.of);
    yield to - first;
  }
}

function* compare(
  a: Blocks,
  b: Blocks,
  first: number,
  end: number,
  totals: { of: Float64Array },
): Generator<number, void, undefined> {
  for (const { start: from, end: to } of partsOf(first, end, STEP_NUMBERS)) {
    const [blocksA, blocksB] = [a, b].map((blocks) => ({
      type: blocks.format.id,
      blocks: about(blocks.path, () => blocks.take(from, to - from)),
      bigEndian: blocks.bigEndian,
    })) as [kernels.ComparedBlocks, kernels.ComparedBlocks];
    totals.of = kernels.compare(blocksA, blocksB, totals.of);
    yield to - first;
  }
}

/** Stops at the first difference. */
function* compareBytes(
  a: Blocks,
  b: Blocks,
  first: number,
  end: number,
  totals: { of: Float64Array },
): Generator<number, void, undefined> {
  for (const { start: from, end: to } of partsOf(first, end, STEP_NUMBERS)) {
    const [bytesA, bytesB] = [a, b].map((blocks) => about(blocks.path, () => blocks.take(from, to - from)));
    if (!haveSameBytes(bytesA as Uint8Array, bytesB as Uint8Array)) {
      totals.of = Float64Array.of(1);
      return;
    }
    yield to - first;
  }
}

/** Does all steps at once. */
function run({ path }: Blocks, steps: Iterable<number>): void {
  about(path, () => {
    for (const _ of steps);
  });
}

function columnsOf(file: NativeFile, index: number): number {
  return WasmFile.of(file).header.columnsOf(index);
}

/** The bytes of a metadata value in its file. */
function valueBytes({ bytes, header }: WasmFile, index: number, first = 0, byteLength?: number): Uint8Array {
  const value = header.valuePlace(index);
  const begin = value.begin + first;
  const count = byteLength ?? value.end - begin;
  bytes.check(BigInt(begin), BigInt(count));
  return bytes.take(begin, count);
}

/** Statistics and comparisons as jobs. */
function startTotals(
  sources: readonly Blocks[],
  count: number,
  before: Float64Array,
  work: (totals: { of: Float64Array }) => Iterator<number, void, undefined>,
  onProgress: ProgressCallback | undefined,
): Started<Float64Array> {
  const totals = { of: before.slice() };
  const steps = work(totals);
  return startOn(
    sources,
    { steps, total: count, finish: () => totals.of },
    onProgress,
    count <= SMALL_NUMBERS,
  );
}

/** Makes the surface; `openBytes` opens files. */
export function wasmAddon(openBytes: OpenBytes): NativeAddon {
  const open = (path: string, partial: boolean): NativeFile =>
    about(path, () => {
      const { bytes, header } = openBytes(path);
      try {
        return asNative(new WasmFile(bytes, header(partial)));
      } catch (error) {
        bytes.release();
        throw error;
      }
    });

  return withPlainArrays({
    failureMark: Object.freeze({}),

    open: (path, _read, partial) => open(path, partial),
    openAsync: async (path, _read, partial) => open(path, partial),
    parse: ((bytes: Uint8Array, partial: boolean, fileSize?: number) => {
      const header = parseHeader(bytes, partial, fileSize);
      return header && asNative(new WasmFile(new MemoryBytes(bytes), header));
    }) as NativeAddon["parse"],
    close: (file) => WasmFile.of(file).close(),

    info: (file) => WasmFile.of(file).header.info(),
    keys: (file, first, count) => WasmFile.of(file).header.keys(first, count),
    findKey: (file, name) => WasmFile.of(file).header.findKey(name),
    replacedKeys: (file) => WasmFile.of(file).header.replacedKeys(),
    value: (file, index) => {
      const opened = WasmFile.of(file);
      return about(opened.bytes.path, () => opened.header.value(index, valueBytes(opened, index)));
    },
    valueBytes: (file, index) => {
      const opened = WasmFile.of(file);
      return about(opened.bytes.path, () => opened.header.valueBytes(index, valueBytes(opened, index)));
    },
    readValue: (file, index, first, out) => {
      const opened = WasmFile.of(file);
      about(opened.bytes.path, () => out.set(valueBytes(opened, index, first, out.length)));
    },
    keyBytes: (file, index) => WasmFile.of(file).header.keyBytes(index),
    tensors: (file, first, count) => WasmFile.of(file).header.tensors(first, count),
    findTensor: (file, name) => WasmFile.of(file).header.findTensor(name),
    replacedTensors: (file) => WasmFile.of(file).header.replacedTensors(),
    tensorNameBytes: (file, index) => WasmFile.of(file).header.tensorNameBytes(index),

    bytes: (file, index) => {
      const { bytes, header } = WasmFile.of(file);
      const { offset, byteLength } = header.extent(index);
      const begin = byteLength === 0n ? 0n : offset; // an empty tensor may lie past the end of the file
      return about(bytes.path, () => {
        bytes.check(begin, byteLength);
        return bytes.take(Number(begin), Number(byteLength)) as OwnBytes;
      });
    },
    readBytes: (file, index, first, out) => {
      const { bytes, header } = WasmFile.of(file);
      if (out.length === 0) return;
      const begin = header.extent(index).offset + BigInt(first);
      about(bytes.path, () => {
        bytes.check(begin, BigInt(out.length));
        out.set(bytes.take(Number(begin), out.length));
      });
    },

    dequantize: (file, index, dtype, first, end, out) => {
      const blocks = blocksOfTensor(file, index);
      about(blocks.path, () => blocks.check(first, end - first));
      const array = out ?? newArray(dtype, end - first);
      run(blocks, dequantize(blocks, dtype, first, end, array));
      return array;
    },
    dequantizeAsync: (file, index, dtype, first, end, out, onProgress) => {
      const blocks = blocksOfTensor(file, index);
      return startDequantize(blocks, dtype, first, end, out, onProgress);
    },
    rows: (file, index, rows, count, dtype, out) => {
      const blocks = blocksOfTensor(file, index);
      const columns = columnsOf(file, index);
      const asked = rows.subarray(0, count);
      about(blocks.path, () => checkRows(blocks, asked, columns));
      const array = out ?? newArray(dtype, count * columns);
      run(blocks, dequantizeRows(blocks, asked, columns, dtype, array));
      return array;
    },
    rowsAsync: (file, index, rows, count, dtype, out, onProgress) => {
      const blocks = blocksOfTensor(file, index);
      const columns = columnsOf(file, index);
      const asked = rows.slice(0, count);
      about(blocks.path, () => checkRows(blocks, asked, columns));
      const length = count * columns;
      if (blocks.isMemory) {
        // Memory may change after the call.
        const copied = copyRows(blocks, asked, columns);
        return startDequantize(copied, dtype, 0, length, out, onProgress);
      }
      const array = out ?? newArray(dtype, length);
      const work = dequantizeRows(blocks, asked, columns, dtype, array);
      return start(blocks, array, work, onProgress, length <= SMALL_NUMBERS);
    },
    dequantizeBlocks: (type, array, dtype, first, end, out) => {
      const blocks = blocksOfArray(type, array, false);
      const result = out ?? newArray(dtype, end - first);
      run(blocks, dequantize(blocks, dtype, first, end, result));
      return result;
    },
    dequantizeBlocksAsync: (type, array, dtype, first, end, out, onProgress, bigEndian) => {
      // `out` may overlap the blocks.
      const source = array.buffer === out?.buffer ? array.slice() : array;
      const blocks = blocksOfArray(type, source, bigEndian);
      return startDequantize(blocks, dtype, first, end, out, onProgress);
    },

    matmul: (file, index, x, first, end, out, _threads, int8) => {
      const blocks = blocksOfTensor(file, index);
      const columns = columnsOf(file, index);
      about(blocks.path, () => blocks.check(first * columns, (end - first) * columns));
      return multiplyNow(blocks, columns, first, end, x, out, int8);
    },
    matmulAsync: (file, index, x, first, end, out, onProgress, int8) => {
      const blocks = blocksOfTensor(file, index);
      const columns = columnsOf(file, index);
      about(blocks.path, () => blocks.check(first * columns, (end - first) * columns));
      return multiplyLater(blocks, columns, first, end, x, out, onProgress, int8);
    },
    matmulBlocks: (type, array, columns, x, out, _threads, int8) => {
      const blocks = blocksOfArray(type, array, false);
      return multiplyNow(blocks, columns, 0, elementsOf(blocks, array) / columns, x, out, int8);
    },
    matmulBlocksAsync: (type, array, columns, x, out, onProgress, int8, bigEndian) => {
      const blocks = blocksOfArray(type, array, bigEndian);
      const rowCount = elementsOf(blocks, array) / columns;
      return multiplyLater(blocks, columns, 0, rowCount, x, out, onProgress, int8);
    },

    stats: (file, index, first, end, totals) => {
      const blocks = blocksOfTensor(file, index);
      about(blocks.path, () => blocks.check(first, end - first));
      const joined = { of: totals.slice() };
      run(blocks, measure(blocks, first, end, joined));
      return joined.of;
    },
    statsAsync: (file, index, first, end, totals, onProgress) => {
      const blocks = blocksOfTensor(file, index);
      about(blocks.path, () => blocks.check(first, end - first));
      return startTotals(
        [blocks],
        end - first,
        totals,
        (joined) => measure(blocks, first, end, joined),
        onProgress,
      );
    },
    statsBlocksAsync: (type, array, bigEndian, totals, onProgress) => {
      const blocks = blocksOfArray(type, array, bigEndian);
      const count = elementsOf(blocks, array);
      return startTotals([blocks], count, totals, (joined) => measure(blocks, 0, count, joined), onProgress);
    },

    compareAsync: (fileA, indexA, fileB, indexB, first, end, totals, onProgress) =>
      startComparison(compare, fileA, indexA, fileB, indexB, first, end, totals, onProgress),
    compareBytesAsync: (fileA, indexA, fileB, indexB, first, end, totals, onProgress) =>
      startComparison(compareBytes, fileA, indexA, fileB, indexB, first, end, totals, onProgress),
    compareBlocksAsync: (typeA, arrayA, typeB, arrayB, bigEndian, totals) => {
      const a = blocksOfArray(typeA, arrayA, (bigEndian & 1) !== 0);
      const b = blocksOfArray(typeB, arrayB, (bigEndian & 2) !== 0);
      const count = elementsOf(a, arrayA);
      return startTotals([a, b], count, totals, (joined) => compare(a, b, 0, count, joined), undefined);
    },

    quantize: (type, values, out) => {
      const { blockSize, typeSize } = kernels.formatOf(type);
      if (values.length / blockSize !== out.length / typeSize) {
        throw failure("ERR_GGUF_RANGE", "the numbers or out were detached, moved or resized");
      }
      kernels.quantize(type, values, out);
      return out;
    },
    swapBytes: kernels.swapBytes,

    cancel: cancelJob,

    allocate: (length, dtype) => {
      if (!Number.isSafeInteger(length) || length < 0) {
        throw failure("ERR_GGUF_RANGE", `length must be a whole number, found ${length}`);
      }
      try {
        return newArray(dtype, length);
      } catch (cause) {
        const detail = `there is no memory for ${length} elements`;
        throw new GgufError("ERR_GGUF_RANGE", detail, { cause });
      }
    },
    // What was collected is the system's again.
    trim: () => undefined,

    formats: kernels.formats,
    cpu: () => ({ isa: "wasm", available: ["wasm"], threads: 1 }),
  });
}

/** The surface with arrays of callers as {@link plain} ones: everything here relies on their lengths and methods. */
function withPlainArrays(addon: NativeAddon): NativeAddon {
  const entries = Object.entries(addon).map(([name, member]) => {
    if (typeof member !== "function") return [name, member];
    const call = member as (...args: unknown[]) => unknown;
    const adapted = (...args: unknown[]): unknown =>
      call(...args.map((arg) => (ArrayBuffer.isView(arg) ? plain(arg as Uint8Array) : arg)));
    return [name, adapted];
  });
  return Object.fromEntries(entries) as NativeAddon;
}

function asNative(file: WasmFile): NativeFile {
  return file as unknown as NativeFile;
}

function elementsOf({ format: { blockSize, typeSize } }: Blocks, array: Uint8Array): number {
  return (array.length / typeSize) * blockSize;
}

/** Throws unless the bytes up to the last of these rows are there. */
function checkRows(blocks: Blocks, rows: Float64Array, columns: number): void {
  const count = rows.reduce((most, row) => Math.max(most, row + 1), 0);
  blocks.check(0, count * columns);
}

function startDequantize(
  blocks: Blocks,
  dtype: NativeDType,
  first: number,
  end: number,
  out: NativeOut | undefined,
  onProgress: ProgressCallback | undefined,
): Started<NativeOut> {
  const count = end - first;
  about(blocks.path, () => blocks.check(first, count));
  const array = out ?? newArray(dtype, count);
  const work = dequantize(blocks, dtype, first, end, array);
  return start(blocks, array, work, onProgress, count <= SMALL_NUMBERS);
}

function productLength(columns: number, first: number, end: number, x: Float32Array): number {
  return x.length === 0 ? 0 : (x.length / columns) * (end - first);
}

function multiplyNow(
  blocks: Blocks,
  columns: number,
  first: number,
  end: number,
  x: Float32Array,
  out: Float32Array | undefined,
  int8: boolean,
): Float32Array {
  const y = out ?? new Float32Array(productLength(columns, first, end, x));
  // `out` may overlap `x`.
  const vectors = x.buffer === y.buffer ? x.slice() : x;
  run(blocks, multiply(blocks, columns, first, end, vectors, y, int8));
  return y;
}

function multiplyLater(
  blocks: Blocks,
  columns: number,
  first: number,
  end: number,
  x: Float32Array,
  out: Float32Array | undefined,
  onProgress: ProgressCallback | undefined,
  int8: boolean,
): Started<Float32Array> {
  const y = out ?? new Float32Array(productLength(columns, first, end, x));
  const vectors = x.length === 0 ? x : x.slice(); // one that is detached cannot be copied
  const work = multiply(blocks, columns, first, end, vectors, y, int8);
  return start(blocks, y, work, onProgress, y.length * columns <= SMALL_MULTIPLICATIONS);
}

function startComparison(
  work: typeof compare,
  fileA: NativeFile,
  indexA: number,
  fileB: NativeFile,
  indexB: number,
  first: number,
  end: number,
  totals: Float64Array,
  onProgress: ProgressCallback | undefined,
): Started<Float64Array> {
  const a = blocksOfTensor(fileA, indexA);
  const b = blocksOfTensor(fileB, indexB);
  for (const blocks of [a, b]) about(blocks.path, () => blocks.check(first, end - first));
  return startTotals([a, b], end - first, totals, (joined) => work(a, b, first, end, joined), onProgress);
}
