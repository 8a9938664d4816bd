/** What a scan found, for people to read. */
import { finiteCount, meanOf, type Scan } from "../work/scan";
import { float32Text, grouped } from "./text";

/** Rows of a table of two columns. `std` is left out where it is not known. */
export function scanRows(scan: Scan, std?: number): [string, string][] {
  const rows: [string, string][] = [];
  if (finiteCount(scan) > 0) {
    rows.push(["min", float32Text(scan.min)]);
    rows.push(["max", float32Text(scan.max)]);
    rows.push(["mean", meanOf(scan).toPrecision(6)]);
  }
  if (std !== undefined && !Number.isNaN(std)) rows.push(["std", std.toPrecision(6)]);
  rows.push(["zeros", share(scan.zeros, scan)]);
  rows.push(["NaN", share(scan.nan, scan)]);
  rows.push(["infinite", share(scan.positiveInfinity + scan.negativeInfinity, scan)]);
  return rows;
}

function share(count: number, { elements }: Scan): string {
  const percent = ((count / elements) * 100).toPrecision(3);
  return count === 0 ? "0" : `${grouped(count)} (${Number(percent)} %)`;
}
