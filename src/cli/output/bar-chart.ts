/** Draws histograms in a terminal. */

import { edgeText } from "../../describe/stats-text";
import { grouped } from "../../describe/text";
import type { Terminal } from "./terminal";

/** The values that the bins divide into equal parts. */
export interface ValueRange {
  min: number;
  max: number;
}

/** Eighths of a character cell, from the left. */
const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/** A line per bin: where it begins, a bar, how many values are in it. */
export function histogramLines(
  { min, max }: ValueRange,
  counts: readonly number[],
  { width, quiet }: Terminal,
): string[] {
  const most = counts.reduce((a, b) => Math.max(a, b), 1);
  const edges = counts.map((_, i) => edgeText(min, max, i / counts.length));
  const numbers = counts.map(grouped);
  const edgeWidth = Math.max(...edges.map(({ length }) => length));
  const numberWidth = Math.max(...numbers.map(({ length }) => length));
  const barWidth = Math.max(1, width - edgeWidth - numberWidth - 6);
  return counts.map((count, i) => {
    const eighths = Math.round((count / most) * barWidth * 8);
    const full = "█".repeat(Math.floor(eighths / 8)) + EIGHTHS[eighths % 8];
    // A bin with few values still has a bar.
    const bar = count > 0 && full === "" ? EIGHTHS[1] : full;
    const edge = (edges[i] as string).padStart(edgeWidth);
    return `  ${quiet(edge)}  ${(bar as string).padEnd(barWidth)}  ${(numbers[i] as string).padStart(numberWidth)}`;
  });
}
