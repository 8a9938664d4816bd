/** How far the values of two tensors are apart. */

import { native } from "../backend/native";
import { checkAsync } from "../base/arguments";
import { haveSameBytes } from "../base/bytes";
import { GgufError, type GgufErrorSubject } from "../base/errors";
import type { AsyncOptions, ReadOptions } from "../base/options";
import type { ElementRange } from "../base/ranges";
import type { GgmlTypeInfo } from "../base/types";
import { attempt, runJob } from "../decode/jobs";
import { explainFailure } from "../decode/request";
import { handleOf, type OpenFile } from "./handle";
import { forEachPart } from "./parts";

/** The result of {@link GgufModelTensor.compare} and {@link GgufTensor.compareSync}: `a` is the tensor itself, `b` the other. */
export interface TensorComparison {
  /** How many values were compared. */
  count: number;
  /** Whether even the stored bytes are the same, in the same type and byte order. */
  sameBytes: boolean;
  /** Values that differ; 0 and -0 are equal, and so are two NaNs. */
  different: number;
  /** Of these, values without an error: a NaN or an infinity in one tensor, something else in the other. */
  incomparable: number;
  /** The largest error, |a - b|; 0 where there is none. */
  maxError: number;
  /** The mean error, equal values included. */
  meanError: number;
  /** The root of the mean squared error. */
  rmsError: number;
  /**
   * The root of the sum of the squared errors, over that of the squares of a: 0 where there is no error, else Infinity
   * where a is 0.
   */
  relativeError: number;
  /** The signal-to-noise ratio in decibels: 10 log10(sum of a^2 / sum of (a - b)^2); Infinity where there is no error. */
  snr: number;
}

/** What is compared. @internal */
export interface ComparedTensor {
  info: GgmlTypeInfo;
  file: OpenFile;
  position: number;
  subject: GgufErrorSubject;
  read(options: ReadOptions): Promise<Uint8Array>;
}

/** So many elements are copied and compared in this thread: the way to another and back would take longer. */
const SMALL_ELEMENTS = 2 ** 15;

/** Of larger tensors so many bytes are: most that differ do so from the beginning. */
const FIRST_BYTES = 2 ** 12;

/** Fields of the addon's totals. */
const FIELDS = 7;

/** The totals of nothing, to which others are joined. @internal */
export function noTotals(): Float64Array {
  return new Float64Array(FIELDS);
}

/** Compares two tensors of `count` elements each. @internal */
export async function compareTensors(
  a: ComparedTensor,
  b: ComparedTensor,
  count: number,
  options: AsyncOptions,
): Promise<TensorComparison> {
  const checked = checkAsync(options, a.subject);
  checked.signal?.throwIfAborted();
  const compare = isInFile(a.file) && isInFile(b.file) ? compareInFiles : compareParts;
  return compare(a, b, count, checked);
}

/** The same, at once, of tensors whose bytes are on this machine. @internal */
export function compareTensorsNow(
  a: ComparedTensor,
  b: ComparedTensor,
  count: number,
  threads: number | undefined,
): TensorComparison {
  const run = (compare: typeof native.compare, totals: Float64Array): Float64Array =>
    attempt(
      () => compare(handleOf(a.file), a.position, handleOf(b.file), b.position, 0, count, totals, threads),
      (error) => explainEither(error, a, b, count),
    );
  const same = haveSameEncoding(a, b) && run(native.compareBytes, new Float64Array(1))[0] === 0;
  return comparisonOf(same ? equalTotals(count) : run(native.compare, noTotals()), same);
}

function explainEither(error: unknown, a: ComparedTensor, b: ComparedTensor, count: number): unknown {
  const isAboutB = error instanceof GgufError && error.path === b.subject.path && error.path !== a.subject.path;
  return explainFailure(error, count, isAboutB ? b.subject : a.subject);
}

/** Whether the data is in a file on this machine, rather than on a server or in memory. */
function isInFile({ path, source }: OpenFile): boolean {
  return path !== undefined && source === undefined;
}

/** Whether the same bytes are the same values. */
function haveSameEncoding(a: ComparedTensor, b: ComparedTensor): boolean {
  return a.info.id === b.info.id && a.file.info.bigEndian === b.file.info.bigEndian;
}

/** In place: the bytes first, up to the first difference; only where there is one, the values. */
async function compareInFiles(
  a: ComparedTensor,
  b: ComparedTensor,
  count: number,
  { signal, onProgress, threads }: AsyncOptions,
): Promise<TensorComparison> {
  const explain = (error: unknown): unknown => explainEither(error, a, b, count);
  // The bytes and then the values are one piece of work: it does not go back when the second begins.
  let most = 0;
  const report =
    onProgress &&
    ((done: number, total: number): void => {
      if (done <= most) return;
      most = done;
      onProgress(done, total);
    });
  const run = (compare: typeof native.compareAsync, totals: Float64Array): Promise<Float64Array> =>
    runJob(
      { signal, onProgress: report, threads },
      (...how) => compare(handleOf(a.file), a.position, handleOf(b.file), b.position, 0, count, totals, ...how),
      explain,
    );
  // Copied: views would keep a file mapped after it is closed.
  const start = ({ file, position }: ComparedTensor, length: number): Uint8Array => {
    const bytes = new Uint8Array(length);
    attempt(() => native.readBytes(handleOf(file), position, 0, bytes), explain);
    return bytes;
  };
  if (count <= SMALL_ELEMENTS) {
    const [ofA, ofB] = [a, b].map((each) => start(each, bytesOf(each, count))) as [Uint8Array, Uint8Array];
    const same = haveSameEncoding(a, b) && haveSameBytes(ofA, ofB);
    const totals = same
      ? equalTotals(count)
      : await compareBytes(a, ofA, b, ofB, noTotals(), { signal, threads }, explain);
    onProgress?.(count, count);
    return comparisonOf(totals, same);
  }
  if (haveSameEncoding(a, b) && haveSameBytes(start(a, FIRST_BYTES), start(b, FIRST_BYTES))) {
    const [differ] = await run(native.compareBytesAsync, new Float64Array(1));
    if (differ === 0) return comparisonOf(equalTotals(count), true);
  }
  return comparisonOf(await run(native.compareAsync, noTotals()), false);
}

function bytesOf({ info }: ComparedTensor, count: number): number {
  return (count / info.blockSize) * info.typeSize;
}

/** The totals of values of which each is the same in both. */
function equalTotals(count: number): Float64Array {
  return new Float64Array(FIELDS).fill(count, 0, 1);
}

/** Joins the comparison of some elements, of which these are all bytes, to `totals`. */
function compareBytes(
  a: ComparedTensor,
  ofA: Uint8Array,
  b: ComparedTensor,
  ofB: Uint8Array,
  totals: Float64Array,
  options: AsyncOptions,
  explain: (error: unknown) => unknown,
): Promise<Float64Array> {
  const bigEndian = (a.file.info.bigEndian ? 1 : 0) + (b.file.info.bigEndian ? 2 : 0);
  return runJob(
    options,
    (...how) => native.compareBlocksAsync(a.info.id, ofA, b.info.id, ofB, bigEndian, totals, ...how),
    explain,
  );
}

/** A part at a time, each fetched once. */
async function compareParts(
  a: ComparedTensor,
  b: ComparedTensor,
  count: number,
  { signal, onProgress, threads }: AsyncOptions,
): Promise<TensorComparison> {
  let sameBytes = haveSameEncoding(a, b);
  let totals: Float64Array = noTotals();
  const explain = (error: unknown): unknown => explainFailure(error, count, a.subject);
  const fetch = ({ start, end }: ElementRange, signal: AbortSignal): Promise<Uint8Array[]> =>
    Promise.all([a, b].map((tensor) => tensor.read({ start, end, signal })));
  await forEachPart({ start: 0, end: count }, signal, fetch, async (bytes, part, signal) => {
    const [ofA, ofB] = bytes as [Uint8Array, Uint8Array];
    sameBytes &&= haveSameBytes(ofA, ofB);
    totals = await compareBytes(a, ofA, b, ofB, totals, { signal, threads }, explain);
    onProgress?.(part.end, count);
  });
  return comparisonOf(totals, sameBytes);
}

/** What totals of the addon come to. @internal */
export function comparisonOf(totals: Float64Array, sameBytes: boolean): TensorComparison {
  const [count, different, incomparable, maxError, sumErrors, sumSquares, signal] = totals as unknown as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const comparable = Math.max(1, count - incomparable);
  return {
    count,
    sameBytes,
    different,
    incomparable,
    maxError,
    meanError: sumErrors / comparable,
    rmsError: Math.sqrt(sumSquares / comparable),
    relativeError: sumSquares === 0 ? 0 : Math.sqrt(sumSquares / signal),
    snr: sumSquares === 0 ? Infinity : 10 * Math.log10(signal / sumSquares),
  };
}
