/** Numbers about the values of tensors, computed on all cores. */
import type { GgufTensor } from "../../index";
import { withProgress } from "../output/terminal";
import { float32Text, grouped } from "../output/text";
import type { Histogram, HistogramSetup, Span } from "./histogram";
import { type Part, partBytes, partsOf, type Source } from "./pieces";
import { emptyScan, mergeScan, type Scan } from "./scan";
import { spread, type WorkName } from "./spread";

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

/** How a tensor's values are distributed: values per bin, and their standard deviation. */
export interface Distribution {
  counts: number[];
  std: number;
}

/** Those of tensors of a file, by name; `scans` is what scanning them gave. */
export async function distributionsOf(
  source: Source,
  tensors: readonly GgufTensor[],
  scans: ReadonlyMap<string, Scan>,
  bins: number,
): Promise<Map<string, Distribution>> {
  const totals = new Map<string, Histogram>();
  const spans = new Map<string, Span>();
  for (const [name, scan] of scans) {
    totals.set(name, { counts: new Array<number>(bins).fill(0), squares: 0 });
    spans.set(name, { min: scan.min, max: scan.max, mean: meanOf(scan) });
  }
  const setup: HistogramSetup = { ...source, bins, spans };
  await overParts<Histogram>(source.path, "histogram", setup, tensors, ({ name }, part) => {
    const total = totals.get(name) as Histogram;
    part.counts.forEach((count, bin) => {
      total.counts[bin] = (total.counts[bin] as number) + count;
    });
    total.squares += part.squares;
  });
  return new Map(
    Array.from(totals, ([name, { counts, squares }]) => {
      const std = Math.sqrt(squares / finiteCount(scans.get(name) as Scan));
      return [name, { counts, std }];
    }),
  );
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
