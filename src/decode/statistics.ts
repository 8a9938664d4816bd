/** What numbers are like: the public types, checked requests, and the totals that the addon adds to. */

import type { ProgressCallback } from "../backend/native";
import { ASYNC_OPTIONS, checkThreads, type OptionNames } from "../base/arguments";
import { GgufError, type GgufErrorSubject, invalidArgType } from "../base/errors";
import type { AsyncOptions } from "../base/options";
import type { ElementRange } from "../base/ranges";
import { checkElements } from "./request";

/** The part of a tensor to look at, and the histogram to make. */
export interface StatsOptions {
  /** First element, a multiple of the type's block size; default 0. */
  start?: number | undefined;
  /** One past the last element, a multiple of the type's block size; default the end of the tensor. */
  end?: number | undefined;
  /** How many bins a histogram has, 1 to 65536; without it there is no histogram. */
  bins?: number | undefined;
  /**
   * The range that the bins divide into equal parts: two finite numbers, the smaller one first. Default: from the minimum
   * to the maximum, for which the values are read twice.
   */
  range?: readonly [low: number, high: number] | undefined;
}

export const STATS_OPTIONS: OptionNames<StatsOptions & AsyncOptions> = {
  start: true,
  end: true,
  bins: true,
  range: true,
  ...ASYNC_OPTIONS,
  threads: true,
};

/** Statistics of the values of a tensor. */
export interface TensorStats {
  /** How many values there are. */
  count: number;
  /** Those that are finite: `count - nan - infinite`. */
  finite: number;
  /** NaNs. */
  nan: number;
  /** Infinities of either sign. */
  infinite: number;
  /** Of these, the positive ones. */
  positiveInfinity: number;
  /** Of these, the negative ones. */
  negativeInfinity: number;
  /** Zeros of either sign. */
  zeros: number;
  /** The smallest finite value, never -0; NaN where no value is finite. */
  min: number;
  /** The largest finite value, never -0; NaN where no value is finite. */
  max: number;
  /** Of the finite values; NaN where there is none. */
  mean: number;
  /** The standard deviation of the finite values: the root of the mean squared distance from the mean. */
  std: number;
  /** Present if `bins` was given, and absent if no value is finite, so that there is no range. */
  histogram?: {
    /** The given range, or from the minimum to the maximum. */
    range: [low: number, high: number];
    /**
     * How many values are in each bin. A value in the range is in bin floor((value - low) * (bins / (high - low))), or
     * in the last one.
     */
    counts: Float64Array;
    /** Finite values below the range. */
    below: number;
    /** Finite values above the range. */
    above: number;
  };
}

/** A checked request for statistics. */
export interface StatsRequest extends ElementRange {
  bins: number | undefined;
  range: readonly [number, number] | undefined;
  /** How many threads may work; undefined where the addon chooses. */
  threads: number | undefined;
  /** The options of asynchronous work among them, as they were read. */
  asyncOptions: AsyncOptions;
}

const MAX_BINS = 65_536;

/** Fields of totals: the first four alone where only these are wanted. */
const FINITE_FIELDS = 4;
const FIELDS = 9;

/** @param given what `checkOptions` returned for {@link STATS_OPTIONS} */
export function checkStats(
  given: StatsOptions & AsyncOptions,
  elementCount: number,
  blockSize: number,
  subject?: GgufErrorSubject,
): StatsRequest {
  const { start, end } = checkElements(given, elementCount, blockSize, subject);
  const threads = checkThreads(given.threads, subject);
  return {
    start,
    end,
    bins: checkBins(given.bins, subject),
    range: checkRange(given.range, subject),
    threads,
    asyncOptions: given,
  };
}

function checkBins(bins: unknown, subject: GgufErrorSubject | undefined): number | undefined {
  if (bins === undefined) return undefined;
  if (typeof bins !== "number") throw invalidArgType("options.bins", "of type number", bins);
  if (!Number.isInteger(bins) || bins < 1 || bins > MAX_BINS) {
    const detail = `options.bins must be a whole number from 1 to ${MAX_BINS}, found ${bins}`;
    throw new GgufError("ERR_GGUF_RANGE", detail, subject);
  }
  return bins;
}

function checkRange(range: unknown, subject: GgufErrorSubject | undefined): readonly [number, number] | undefined {
  if (range === undefined) return undefined;
  const [low, high] = Array.isArray(range) && range.length === 2 ? (range as unknown[]) : [];
  if (typeof low !== "number" || typeof high !== "number") {
    throw invalidArgType("options.range", "an array of two numbers", range);
  }
  // The width of the range must be a number, too.
  if (!(low <= high) || !Number.isFinite(high - low)) {
    const detail = `options.range must be two finite numbers, the smaller one first, found ${low} and ${high}`;
    throw new GgufError("ERR_GGUF_RANGE", detail, subject);
  }
  return [low, high];
}

/** Totals of nothing, for the addon to add to: see NativeAddon.stats. */
function newTotals(bins = 0, range: readonly [number, number] = [0, 0]): Float64Array {
  const totals = new Float64Array(bins === 0 ? FIELDS : FIELDS + 2 + bins + 2);
  totals.set([0, 0, 0, 0, 0, Infinity, -Infinity]);
  if (bins > 0) totals.set(range, FIELDS);
  return totals;
}

/** Totals of nothing with which only `count`, NaNs and infinities are counted. */
export function newFiniteTotals(): Float64Array {
  return new Float64Array(FINITE_FIELDS);
}

/** What is not finite: all that is counted with {@link newFiniteTotals}. */
export interface NotFinite {
  count: number;
  nan: number;
  infinite: number;
}

export function notFinite([count, nan, positive, negative]: Float64Array): NotFinite {
  return {
    count: count as number,
    nan: nan as number,
    infinite: (positive as number) + (negative as number),
  };
}

/**
 * The passes over the values that a request takes: yields the totals to add to, expects the sums, and returns the
 * result.
 */
export function* statsPasses({ bins, range }: StatsRequest): Generator<Float64Array, TensorStats, Float64Array> {
  if (bins !== undefined && range !== undefined) {
    const totals = yield newTotals(bins, range);
    return { ...summary(totals), histogram: histogram(totals) };
  }
  const stats = summary(yield newTotals());
  if (bins === undefined || stats.finite === 0) return stats;
  return { ...stats, histogram: histogram(yield newTotals(bins, [stats.min, stats.max])) };
}

/** Runs the passes of a request; `onProgress` counts the elements of all as if it were one. */
export async function runStatsPasses(
  request: StatsRequest,
  onProgress: ProgressCallback | undefined,
  measure: (totals: Float64Array, onProgress: ProgressCallback | undefined) => Promise<Float64Array>,
): Promise<TensorStats> {
  const count = request.bins !== undefined && request.range === undefined ? 2 : 1;
  const passes = statsPasses(request);
  for (let pass = 0, next = passes.next(); ; pass++) {
    if (next.done) return next.value;
    const report =
      onProgress && ((done: number, total: number) => onProgress(Math.floor((pass * total + done) / count), total));
    next = passes.next(await measure(next.value, report));
  }
}

function summary(totals: Float64Array): TensorStats {
  const [count, nan, positiveInfinity, negativeInfinity, zeros, min, max, mean, squares] = totals as unknown as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const infinite = positiveInfinity + negativeInfinity;
  const finite = count - nan - infinite;
  const numbers =
    finite === 0 ? { min: NaN, max: NaN, mean: NaN, std: NaN } : { min, max, mean, std: Math.sqrt(squares / finite) };
  return { count, finite, nan, infinite, positiveInfinity, negativeInfinity, zeros, ...numbers };
}

function histogram(totals: Float64Array): Required<TensorStats>["histogram"] {
  const end = totals.length - 2;
  const [low, high] = totals.subarray(FIELDS) as unknown as [number, number];
  const [below, above] = totals.subarray(end) as unknown as [number, number];
  return { range: [low, high], counts: totals.slice(FIELDS + 2, end), below, above };
}
