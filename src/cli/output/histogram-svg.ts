/** The histogram of one tensor as an SVG picture. */
import { edgeText } from "../../describe/stats-text";
import { grouped } from "../../describe/text";
import type { ValueRange } from "./bar-chart";
import { document, labelWidth, textAt } from "./svg";

const WIDTH = 800;
const HEIGHT = 400;
const TOP = 50;
const BOTTOM = 50;
/** Between a label and what it is about, or the edge. */
const GAP = 8;

export function histogramSvg(title: string, { min, max }: ValueRange, counts: readonly number[]): string {
  const most = counts.reduce((a, b) => Math.max(a, b), 1);
  const edges = [0, 0.25, 0.5, 0.75, 1].map((share) => ({ share, label: edgeText(min, max, share) }));
  // Half of the first and the last label stands beside the plot.
  const halfLabel = Math.max(...edges.map(({ label }) => labelWidth(label) / 2));
  const left = Math.max(labelWidth(grouped(most)) + GAP, halfLabel) + GAP;
  const right = WIDTH - halfLabel - GAP;
  const base = HEIGHT - BOTTOM;
  const step = (right - left) / counts.length;
  const bars = counts.map((count, i) => {
    const height = (count / most) * (base - TOP);
    const place = `x="${(left + i * step).toFixed(2)}" y="${(base - height).toFixed(2)}"`;
    const size = `width="${(step * 0.92).toFixed(2)}" height="${height.toFixed(2)}"`;
    const label = `from ${edgeText(min, max, i / counts.length)}: ${grouped(count)}`;
    return `<rect ${place} ${size}><title>${label}</title></rect>`;
  });
  return document(title, WIDTH, HEIGHT, [
    `<g fill="#4878a8">${bars.join("")}</g>`,
    `<path d="M${left.toFixed(2)} ${TOP}V${base}H${right.toFixed(2)}" fill="none" stroke="#333"/>`,
    textAt(left - GAP, TOP + 5, "end", grouped(most)),
    textAt(left - GAP, base + 5, "end", "0"),
    ...edges.map(({ share, label }) => textAt(left + (right - left) * share, base + 22, "middle", label)),
  ]);
}
