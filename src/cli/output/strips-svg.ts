/** The values of many tensors as an SVG picture: a strip for each, all on one scale, so that an eye finds the odd one. */

import { escapeText, escapeXml, float32Text, grouped } from "../../describe/text";
import type { GgufModelTensor, TensorStats } from "../../index";
import { document, labelWidth, textAt } from "./svg";

/** A tensor and what its values are like. */
export interface Strip {
  readonly tensor: GgufModelTensor;
  readonly stats: TensorStats;
}

const WIDTH = 1000;
/** Where the first strip begins, and what each takes. */
const TOP = 84;
const ROW = 18;
const GAP = 10;
/** The most of the width that names take, and what remarks on the right take. */
const MOST_NAMES = 340;
const REMARKS = 170;
const BAD = "#b3261e";

/**
 * A line from the minimum to the maximum, a box of one standard deviation on either side of the mean, and a mark at the
 * mean. Tensors of one kind in different blocks follow each other. The scale is linear near zero and logarithmic beyond,
 * so that tensors of every magnitude can be seen on it.
 */
export function stripsSvg(title: string, all: readonly Strip[]): string {
  const longest = all.reduce((most, { tensor }) => Math.max(most, labelWidth(escapeText(tensor.name))), 0);
  const left = Math.min(MOST_NAMES, longest) + 2 * GAP;
  const middle = (left + WIDTH - REMARKS) / 2;
  const scale = scaleOf(all);
  const x = (value: number): number => middle + scale.place(value) * (middle - left);
  const bands: string[] = [];
  const strips: string[] = [];
  let y = TOP;
  for (const [i, kind] of byKind(all).entries()) {
    const fill = i % 2 === 0 ? "#f2f4f7" : "#fff";
    bands.push(`<rect y="${y}" width="${WIDTH}" height="${kind.length * ROW}" fill="${fill}"/>`);
    for (const strip of kind) {
      strips.push(drawn(strip, left, y + ROW / 2, x));
      y += ROW;
    }
  }
  const legend = "line: minimum to maximum; box: mean ± standard deviation; linear near 0, logarithmic beyond";
  return document(title, WIDTH, y + GAP, [
    textAt(WIDTH / 2, 48, "middle", legend, WIDTH - 2 * GAP, "#666"),
    ...bands,
    ...tickLines(scale, x, y),
    ...strips,
  ]);
}

/** Tensors whose names differ in numbers only, together. */
function byKind(all: readonly Strip[]): Strip[][] {
  const kinds = new Map<string, Strip[]>();
  for (const strip of all) {
    const kind = strip.tensor.name.replace(/\d+/g, "0");
    const strips = kinds.get(kind) ?? [];
    kinds.set(kind, strips);
    strips.push(strip);
  }
  return [...kinds.values()];
}

/** Where values stand. */
interface Scale {
  /** From -1 to 1. */
  place(value: number): number;
  /** Values worth a label, the most important first. */
  readonly marks: readonly number[];
}

function scaleOf(all: readonly Strip[]): Scale {
  const finite = all.map(({ stats }) => stats).filter((stats) => stats.finite > 0);
  const largest = finite.reduce((most, { min, max }) => Math.max(most, -min, max), 0) || 1;
  // Linear as far as the values of an ordinary tensor go.
  const deviations = finite.map(({ std }) => std).filter((std) => std > 0);
  const near = deviations.sort((a, b) => a - b)[deviations.length >> 1] ?? largest;
  const powers: number[] = [];
  for (let power = Math.floor(Math.log10(largest)); 10 ** power >= near / 2; power--) powers.push(10 ** power);
  const sizes = powers.length > 0 ? powers : [largest];
  return {
    place: (value) => Math.asinh(value / near) / Math.asinh(largest / near),
    marks: [0, ...sizes.flatMap((size) => [-size, size])],
  };
}

/** A line for each mark whose label does not touch another. */
function tickLines({ marks }: Scale, x: (value: number) => number, bottom: number): string[] {
  const taken: [from: number, to: number][] = [];
  return marks.flatMap((value) => {
    const label = float32Text(Number(value.toPrecision(3)));
    const [from, to] = [x(value) - labelWidth(label) / 2 - GAP, x(value) + labelWidth(label) / 2 + GAP];
    if (taken.some((other) => from < other[1] && other[0] < to)) return [];
    taken.push([from, to]);
    const line = `<path d="M${x(value).toFixed(2)} ${TOP - 4}V${bottom}" stroke="${value === 0 ? "#999" : "#ddd"}"/>`;
    return [line, textAt(x(value), TOP - GAP, "middle", label, WIDTH, "#666")];
  });
}

/** The name, the strip, and what there is to remark. */
function drawn({ tensor, stats }: Strip, left: number, y: number, x: (value: number) => number): string {
  const { finite, count, min, max, mean, std } = stats;
  const name = escapeText(tensor.name);
  const notFinite = count - finite;
  const color = notFinite > 0 ? BAD : "#222";
  const remark = count === 0 ? "empty" : notFinite > 0 ? `${grouped(notFinite)} not finite` : "";
  const parts = [
    textAt(left - GAP, y + 4.5, "end", name, left - 2 * GAP, color),
    textAt(WIDTH - GAP, y + 4.5, "end", remark, REMARKS - 2 * GAP, color),
  ];
  if (finite > 0) {
    const [low, high] = [Math.max(min, mean - std), Math.min(max, mean + std)];
    const box = `x="${x(low).toFixed(2)}" y="${y - 5}" width="${(x(high) - x(low)).toFixed(2)}" height="10"`;
    const short = (value: number): string => float32Text(Number(value.toPrecision(4)));
    const values = `min ${short(min)}, max ${short(max)}, mean ${short(mean)}, std ${short(std)}`;
    parts.push(
      `<g><title>${escapeXml(name)}: ${values}</title>`,
      `<path d="M${x(min).toFixed(2)} ${y}H${x(max).toFixed(2)}" stroke="#4878a8" stroke-linecap="square"/>`,
      `<rect ${box} fill="#9fbbd6"/>`,
      `<path d="M${x(mean).toFixed(2)} ${y - 6}v12" stroke="#1d3f63" stroke-width="2"/></g>`,
    );
  }
  return parts.join("");
}
