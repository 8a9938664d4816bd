/** What the values of a tensor are like, for people to read. */
import type { TensorStats } from "../decode/statistics";
import { float32Text, grouped } from "./text";

/** Rows of a table of two columns. */
export function statsRows(stats: TensorStats, { withStd }: { withStd: boolean }): [string, string][] {
  const { count, finite, nan, infinite, zeros, min, max, mean, std } = stats;
  const rows: [string, string][] = [];
  if (finite > 0) {
    rows.push(["min", float32Text(min)]);
    rows.push(["max", float32Text(max)]);
    rows.push(["mean", mean.toPrecision(6)]);
    if (withStd) rows.push(["std", std.toPrecision(6)]);
  }
  rows.push(["zeros", share(zeros, count)]);
  rows.push(["NaN", share(nan, count)]);
  rows.push(["infinite", share(infinite, count)]);
  return rows;
}

function share(part: number, count: number): string {
  const percent = ((part / count) * 100).toPrecision(3);
  return part === 0 ? "0" : `${grouped(part)} (${Number(percent)} %)`;
}

/** The value at `share` of the range, in four digits. */
export function edgeText(min: number, max: number, share: number): string {
  const value = min + (max - min) * share;
  // What rounding has left of a zero is zero, and has no sign.
  const isZero = Math.abs(value) < (max - min) * 1e-6;
  return float32Text(isZero ? 0 : Number(value.toPrecision(4)));
}
