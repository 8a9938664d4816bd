/** Work: how the finite values of a part of a tensor are distributed. */
import { openSync } from "../../index";
import { type Part, partReader, type Source } from "./pieces";

/** Of the values of a tensor; with their mean the squares can be summed at the same time. */
export interface Span {
  min: number;
  max: number;
  mean: number;
}

export interface HistogramSetup extends Source {
  bins: number;
  /** By the names of tensors. */
  spans: ReadonlyMap<string, Span>;
}

export interface Histogram {
  /** Values per bin: `bins` equal parts of the range from `min` to `max`. */
  counts: number[];
  /** The sum of the squares of the distances from the mean. */
  squares: number;
}

export function prepare({ path, splits, bins, spans }: HistogramSetup): (part: Part) => Histogram {
  const read = partReader(openSync(path, { splits, partial: true }));
  return (part) => {
    const { min, max, mean } = spans.get(part.name) as Span;
    const scale = max > min ? bins / (max - min) : 0;
    const counts = new Float64Array(bins);
    let squares = 0;
    read(part, (values = new Float32Array()) => {
      for (let i = 0; i < values.length; i++) {
        const value = values[i] as number;
        if (value - value !== 0) continue; // not finite
        const bin = Math.min(bins - 1, Math.floor((value - min) * scale));
        counts[bin] = (counts[bin] as number) + 1;
        squares += (value - mean) ** 2;
      }
    });
    return { counts: Array.from(counts), squares };
  };
}
