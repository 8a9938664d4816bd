/** Numbers about the values of tensors, computed on all cores. */
import type { GgufTensor } from "../index";
import { withProgress } from "./terminal";
import { float32Text, grouped } from "./text";
import type { Histogram, HistogramSetup } from "./work/histogram";
import { type Part, partBytes, partsOf, type Source } from "./work/pieces";
import { emptyScan, mergeScan, type Scan } from "./work/scan";
import { spread, type WorkName } from "./work/spread";

/** Does work on every part of some tensors, under a progress line; `onDone` gets the results in order. */
export async function overParts<Result>(
  label: string,
  work: WorkName,
  setup: unknown,
  tensors: readonly GgufTensor[],
  onDone: (part: Part, result: Result) => void,
): Promise<void> {
  const parts = partsOf(tensors);
  const total = parts.reduce((sum, part) => sum + partBytes(part), 0);
  await withProgress(label, total, async (progress) => {
    const advance = (part: Part): void => progress.advance(partBytes(part));
    const results = await spread<Part, Result>(work, setup, parts, partBytes, advance);
    results.forEach((result, i) => {
      onDone(parts[i] as Part, result);
    });
  });
}

/** Scans tensors of a file; the results by name. */
export async function scanTensors(
  source: Source,
  tensors: readonly GgufTensor[],
): Promise<Map<string, Scan>> {
  const scans = new Map(tensors.map(({ name }) => [name, emptyScan()]));
  await overParts<Scan>(source.path, "scan", source, tensors, ({ name }, scan) => {
    mergeScan(scans.get(name) as Scan, scan);
  });
  return scans;
}

export function finiteCount({ elements, nan, positiveInfinity, negativeInfinity }: Scan): number {
  return elements - nan - positiveInfinity - negativeInfinity;
}

/** NaN where no value is finite. */
export function meanOf(scan: Scan): number {
  return scan.sum / finiteCount(scan);
}

/** How a tensor's values are distributed, and their standard deviation; `scan` is what scanning it gave. */
export async function distributionOf(
  source: Source,
  tensor: GgufTensor,
  scan: Scan,
  bins: number,
): Promise<{ counts: number[]; std: number }> {
  const counts = new Array<number>(bins).fill(0);
  let squares = 0;
  const setup: HistogramSetup = { ...source, min: scan.min, max: scan.max, mean: meanOf(scan), bins };
  await overParts<Histogram>(source.path, "histogram", setup, [tensor], (_part, result) => {
    result.counts.forEach((count, bin) => {
      counts[bin] = (counts[bin] as number) + count;
    });
    squares += result.squares;
  });
  return { counts, std: Math.sqrt(squares / finiteCount(scan)) };
}

/** Lines for a table of two columns. */
export function scanRows(scan: Scan, std?: number): [string, string][] {
  const share = (count: number): string => {
    const percent = ((count / scan.elements) * 100).toPrecision(3);
    return count === 0 ? "0" : `${grouped(count)} (${Number(percent)} %)`;
  };
  return [
    ...(finiteCount(scan) === 0
      ? []
      : ([
          ["min", float32Text(scan.min)],
          ["max", float32Text(scan.max)],
          ["mean", meanOf(scan).toPrecision(6)],
        ] as [string, string][])),
    ...(std === undefined || Number.isNaN(std) ? [] : [["std", std.toPrecision(6)] as [string, string]]),
    ["zeros", share(scan.zeros)],
    ["NaN", share(scan.nan)],
    ["infinite", share(scan.positiveInfinity + scan.negativeInfinity)],
  ];
}
