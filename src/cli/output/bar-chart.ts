/** Draws histograms: bars in a terminal, and a picture. */
import type { Terminal } from "./terminal";
import { float32Text, grouped } from "./text";

/** The values that the bins divide into equal parts. */
interface ValueRange {
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

/** The value at `share` of the range, in four digits. */
function edgeText(min: number, max: number, share: number): string {
  const value = min + (max - min) * share;
  // What rounding has left of a zero is zero, and has no sign.
  const isZero = Math.abs(value) < (max - min) * 1e-9;
  return float32Text(isZero ? 0 : Number(value.toPrecision(4)));
}

const WIDTH = 800;
const HEIGHT = 400;
const LEFT = 90;
const RIGHT = 20;
const TOP = 50;
const BOTTOM = 50;

/** The same as an SVG picture. */
export function histogramSvg(title: string, { min, max }: ValueRange, counts: readonly number[]): string {
  const most = counts.reduce((a, b) => Math.max(a, b), 1);
  const plotWidth = WIDTH - LEFT - RIGHT;
  const plotHeight = HEIGHT - TOP - BOTTOM;
  const base = TOP + plotHeight;
  const step = plotWidth / counts.length;
  const bars = counts.map((count, i) => {
    const height = (count / most) * plotHeight;
    const place = `x="${(LEFT + i * step).toFixed(2)}" y="${(base - height).toFixed(2)}"`;
    const size = `width="${(step * 0.92).toFixed(2)}" height="${height.toFixed(2)}"`;
    const label = `from ${edgeText(min, max, i / counts.length)}: ${grouped(count)}`;
    return `<rect ${place} ${size}><title>${label}</title></rect>`;
  });
  const text = (x: number, y: number, anchor: string, content: string): string =>
    `<text x="${x}" y="${y}" text-anchor="${anchor}">${escapeXml(content)}</text>`;
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) =>
    text(LEFT + plotWidth * share, base + 22, "middle", edgeText(min, max, share)),
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="13">`,
    `<title>${escapeXml(title)}</title>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    text(WIDTH / 2, 28, "middle", title),
    `<g fill="#4878a8">${bars.join("")}</g>`,
    `<path d="M${LEFT} ${TOP}V${base}H${WIDTH - RIGHT}" fill="none" stroke="#333"/>`,
    text(LEFT - 8, TOP + 5, "end", grouped(most)),
    text(LEFT - 8, base + 5, "end", "0"),
    ...ticks,
    "</svg>\n",
  ].join("\n");
}

function escapeXml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
