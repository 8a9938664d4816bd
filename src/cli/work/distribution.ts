/** Work: how finite values are distributed. */
import type { Work } from "./pieces";

/** What a scan has found of a tensor's finite values. */
export interface ScannedRange {
  min: number;
  max: number;
  mean: number;
}

export interface DistributionSetup {
  bins: number;
  /** By the names of tensors. */
  ranges: ReadonlyMap<string, ScannedRange>;
}

export interface Distribution {
  /** Values per bin: `bins` equal parts of the range from `min` to `max`. */
  counts: number[];
  /** The sum of the squares of the distances from the mean. */
  squares: number;
}

export function distribution({ bins, ranges }: DistributionSetup): Work<Distribution> {
  return async (pieces, { name }) => {
    const { min, max, mean } = ranges.get(name) as ScannedRange;
    const scale = max > min ? bins / (max - min) : 0;
    const counts = new Float64Array(bins);
    let squares = 0;
    for await (const piece of pieces) {
      await piece.values((values = new Float32Array()) => {
        for (let i = 0; i < values.length; i++) {
          const value = values[i] as number;
          if (value - value !== 0) continue; // not finite
          const bin = Math.min(bins - 1, Math.floor((value - min) * scale));
          counts[bin] = (counts[bin] as number) + 1;
          squares += (value - mean) ** 2;
        }
      });
    }
    return { counts: Array.from(counts), squares };
  };
}

export function emptyDistribution(bins: number): Distribution {
  return { counts: new Array<number>(bins).fill(0), squares: 0 };
}

/** Adds one distribution to another. */
export function mergeDistribution(total: Distribution, part: Distribution): void {
  part.counts.forEach((count, bin) => {
    total.counts[bin] = (total.counts[bin] as number) + count;
  });
  total.squares += part.squares;
}
