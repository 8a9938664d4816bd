/** Work: how many values there are of each kind, their range and their sum. */
import type { Work } from "./pieces";

export interface Scan {
  elements: number;
  nan: number;
  positiveInfinity: number;
  negativeInfinity: number;
  /** Of either sign. */
  zeros: number;
  /** Of the finite values; Infinity and -Infinity where there is none. */
  min: number;
  max: number;
  /** Of the finite values. */
  sum: number;
}

export function scan(): Work<Scan> {
  return async (pieces) => {
    const total = emptyScan();
    for await (const piece of pieces) await piece.values((values) => add(total, values as Float32Array));
    return total;
  };
}

export function emptyScan(): Scan {
  return {
    elements: 0,
    nan: 0,
    positiveInfinity: 0,
    negativeInfinity: 0,
    zeros: 0,
    min: Infinity,
    max: -Infinity,
    sum: 0,
  };
}

/** Adds one scan to another. */
export function mergeScan(total: Scan, part: Scan): void {
  total.elements += part.elements;
  total.nan += part.nan;
  total.positiveInfinity += part.positiveInfinity;
  total.negativeInfinity += part.negativeInfinity;
  total.zeros += part.zeros;
  total.min = Math.min(total.min, part.min);
  total.max = Math.max(total.max, part.max);
  total.sum += part.sum;
}

function add(total: Scan, values: Float32Array): void {
  let { min, max, sum, zeros } = total;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    // Infinity - Infinity and NaN - NaN are NaN: one test for everything that is not finite.
    if (value - value !== 0) {
      if (value === Infinity) total.positiveInfinity++;
      else if (value === -Infinity) total.negativeInfinity++;
      else total.nan++;
      continue;
    }
    if (value < min) min = value;
    if (value > max) max = value;
    if (value === 0) zeros++;
    sum += value;
  }
  total.elements += values.length;
  // Adding 0 takes the sign from a zero: it depends on which of two zeros came first.
  total.min = min + 0;
  total.max = max + 0;
  total.sum = sum;
  total.zeros = zeros;
}

/** How many values are finite. */
export function finiteCount({ elements, nan, positiveInfinity, negativeInfinity }: Scan): number {
  return elements - nan - positiveInfinity - negativeInfinity;
}

/** The mean of the finite values; NaN where no value is finite. */
export function meanOf(scan: Scan): number {
  return scan.sum / finiteCount(scan);
}
