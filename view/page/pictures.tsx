/** Pictures: bars of shares, a histogram, a heatmap. Each says in words what it shows. */

import type { TensorStats } from "gguf-native";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { shadeColor } from "#dist/describe/model-picture";
import { edgeText } from "#dist/describe/stats-text";
import { counted, float32Text, grouped, humanBytes } from "#dist/describe/text";
import { type ColorScale, colorScale, type Picture } from "../lib/averages";
import { useTheme } from "./theme";

/** A number in few digits. */
export function short(value: number): string {
  return float32Text(Number(value.toPrecision(4)));
}

/** Parts of a whole, beside each other. `shade` tells them apart, here and in the table beneath. */
export function ShareBar({
  label,
  parts,
}: {
  label: string;
  parts: readonly { readonly name: string; readonly bytes: number; readonly shade: number }[];
}) {
  const total = parts.reduce((sum, { bytes }) => sum + bytes, 0);
  const text = parts.map(({ name, bytes }) => `${name} ${humanBytes(bytes)}`).join(", ");
  return (
    <div class="share-bar" role="img" aria-label={`${label}: ${text}`}>
      {parts.map(({ name, bytes, shade }) => (
        <span
          key={name}
          class="shade"
          title={`${name}: ${humanBytes(bytes)}`}
          style={{ flexGrow: total > 0 ? bytes / total : 0, ...shadeOf(shade) }}
        />
      ))}
    </div>
  );
}

/** For elements of the class `shade`. */
export function shadeOf(index: number): { "--shade": string } {
  return { "--shade": `light-dark(${shadeColor(index, false)}, ${shadeColor(index, true)})` };
}

const HISTOGRAM_WIDTH = 640;
const HISTOGRAM_HEIGHT = 180;

export function Histogram({ histogram }: { histogram: Required<TensorStats>["histogram"] }) {
  const {
    range: [low, high],
    counts,
  } = histogram;
  const most = counts.reduce((a, b) => Math.max(a, b), 1);
  const step = HISTOGRAM_WIDTH / counts.length;
  const fullest = counts.indexOf(most);
  const edge = (share: number): string => edgeText(low, high, share);
  const label = `Histogram of ${counts.length} bins from ${edge(0)} to ${edge(1)}; the fullest begins at ${edge(fullest / counts.length)} and has ${counted(most, "value")}`;
  return (
    <figure class="histogram">
      <svg
        role="img"
        data-testid="histogram"
        aria-label={label}
        viewBox={`0 0 ${HISTOGRAM_WIDTH} ${HISTOGRAM_HEIGHT}`}
        preserveAspectRatio="none"
      >
        {Array.from(counts, (count, i) => {
          // A bin with few values can be seen, too.
          const height = count === 0 ? 0 : Math.max(1.5, (count / most) * HISTOGRAM_HEIGHT);
          return (
            <rect
              key={i}
              class="bar"
              x={i * step + step * 0.06}
              y={HISTOGRAM_HEIGHT - height}
              width={step * 0.88}
              height={height}
            >
              <title>{`from ${edge(i / counts.length)}: ${grouped(count)}`}</title>
            </rect>
          );
        })}
      </svg>
      <figcaption class="axis" aria-hidden="true">
        {[0, 0.25, 0.5, 0.75, 1].map((share) => (
          <span key={share}>{edge(share)}</span>
        ))}
      </figcaption>
    </figure>
  );
}

/** A type, with its colour. */
export function TypeName({ types, type }: { types: readonly string[]; type: number }) {
  return (
    <span class="type">
      <i class="swatch shade" style={shadeOf(type)} />
      {types[type]}
    </span>
  );
}

/** What a number is of another one; what is larger fades out. */
export function Bar({ share }: { share: number }) {
  const fading = "linear-gradient(to right, var(--accent) 80%, transparent)";
  const style = { width: `${100 * Math.min(1, share)}%`, ...(share > 1 && { background: fading }) };
  return <span class="mini-bar" aria-hidden="true" style={style} />;
}

type Color = readonly [red: number, green: number, blue: number];

/** Colours of no value, and of the largest negative, zero and positive ones. */
interface Palette {
  readonly none: Color;
  readonly low: Color;
  readonly zero: Color;
  readonly high: Color;
}

const LIGHT: Palette = {
  none: [214, 40, 40],
  low: [184, 92, 20],
  zero: [246, 246, 244],
  high: [31, 79, 168],
};
const DARK: Palette = { none: [255, 90, 90], low: [240, 160, 90], zero: [28, 30, 35], high: [122, 168, 255] };

/** What of the values of a cell is shown. */
export type Measure = "means" | "magnitudes";

/** What a tip takes at most beside the pointer. */
const TIP_WIDTH = 200;

export function Heatmap({
  picture,
  title,
  testId,
  measure,
  scale,
  origin = { row: 0, column: 0 },
  tip,
  children,
}: {
  picture: Picture;
  title: string;
  testId: string;
  measure: Measure;
  /** Its colours, where it shares them with other pictures. */
  scale?: ColorScale | undefined;
  /** Where in the tensor the picture begins. */
  origin?: { readonly row: number; readonly column: number };
  /** What is said of the weight that is pointed at, beside its place. */
  tip?: (row: number, column: number) => ComponentChildren;
  /** What is over the picture. */
  children?: ComponentChildren;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const palette = useTheme().isDark ? DARK : LIGHT;
  const [pointed, setPointed] = useState<{ x: number; y: number; isAtRight: boolean } | undefined>(undefined);
  const { width, height, columnCount, rowCount, notFinite } = picture;
  const cells = picture[measure];
  // It sorts all cells, and a pointer that moves draws the figure again and again.
  const { middle, limit } = useMemo(
    () => scale ?? colorScale(cells, measure === "means" ? undefined : 0),
    [measure, cells, scale],
  );
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (context) paint(context, cells, width, height, { middle, limit }, palette);
  }, [cells, width, height, middle, limit, palette]);

  const cellRows = rowCount / height;
  const cellColumns = columnCount / width;
  const perCell =
    cellRows > 1 || cellColumns > 1
      ? `; each of ${width} x ${height} cells is the ${measure === "means" ? "mean" : "mean magnitude"} of about ${grouped(Math.round(cellRows * cellColumns))} values`
      : "";
  const finite = notFinite > 0 ? `; ${counted(notFinite, "value")} not finite` : "";
  const low = measure === "means" ? short(middle - limit) : "0";
  const high = short(middle + limit);
  const around = middle === 0 ? "" : `; the middle colour is the median, ${short(middle)}`;
  const label = `${title}: ${counted(rowCount, "row")} of ${counted(columnCount, "column")}${perCell}; colours from ${low} to ${high}${around}${finite}`;
  const onMove = (event: PointerEvent): void => {
    const box = (event.currentTarget as HTMLCanvasElement).getBoundingClientRect();
    const within = (share: number): number => Math.max(0, Math.min(1 - 1e-9, share));
    setPointed({
      x: within((event.clientX - box.left) / box.width),
      y: within((event.clientY - box.top) / box.height),
      isAtRight: event.clientX > innerWidth - TIP_WIDTH,
    });
  };
  return (
    <figure class="heatmap">
      <div class="canvas">
        <canvas
          ref={canvas}
          width={width}
          height={height}
          role="img"
          aria-label={label}
          data-testid={testId}
          style={{ aspectRatio: `${width} / ${Math.max(height, width / 16)}` }}
          onPointerMove={onMove}
          onPointerLeave={() => setPointed(undefined)}
        />
        {children}
        {pointed === undefined ? null : pointedAt(pointed)}
      </div>
      <figcaption aria-hidden="true">
        <span class="legend">
          <span>{low}</span>
          <span class={measure === "means" ? "ramp is-diverging" : "ramp"} />
          <span>{high}</span>
        </span>
        <span class="note">{`${counted(rowCount, "row")} x ${counted(columnCount, "column")}${around}${finite}`}</span>
      </figcaption>
    </figure>
  );

  /** What is said beside the pointer, on the side where there is room. */
  function pointedAt({ x, y, isAtRight }: { x: number; y: number; isAtRight: boolean }) {
    const [row, column] = [origin.row + Math.floor(y * rowCount), origin.column + Math.floor(x * columnCount)];
    const beside = (isBefore: boolean): string => (isBefore ? "calc(-100% - 12px)" : "14px");
    const style = {
      left: `${100 * x}%`,
      top: `${100 * y}%`,
      transform: `translate(${beside(isAtRight)}, ${beside(y > 0.5)})`,
    };
    const cell = cells[Math.floor(y * height) * width + Math.floor(x * width)] as number;
    return (
      <div class="tip" style={style} aria-hidden="true" data-testid="tip">
        {tip?.(row, column)}
        {perCell === "" && tip ? null : <b>{`${perCell === "" ? "" : "mean "}${short(cell)}`}</b>}
        <span>{`row ${grouped(row)}, column ${grouped(column)}`}</span>
      </div>
    );
  }
}

function paint(
  context: CanvasRenderingContext2D,
  cells: Float32Array,
  width: number,
  height: number,
  { middle, limit }: ColorScale,
  { none, low, zero, high }: Palette,
): void {
  const image = context.createImageData(width, height);
  const pixels = image.data;
  for (const [i, value] of cells.entries()) {
    const share = limit > 0 ? Math.max(-1, Math.min(1, (value - middle) / limit)) : 0;
    const end = share < 0 ? low : high;
    // The root makes small values visible.
    const amount = Math.sqrt(Math.abs(share));
    for (let c = 0; c < 3; c++) {
      const [from, to] = [zero[c] as number, end[c] as number];
      pixels[4 * i + c] = Number.isNaN(value) ? (none[c] as number) : from + (to - from) * amount;
    }
    pixels[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

/** A list to choose from. */
export function Choice<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: T;
  options: Readonly<Record<T, string>>;
  onChange: (value: T) => void;
}) {
  const id = useId();
  return (
    <span class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value as T)}>
        {Object.entries<string>(options).map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
    </span>
  );
}

/** What pictures show of their cells. */
export function MeasureChoice(props: { measure: Measure; onChange: (measure: Measure) => void }) {
  const options = { means: "the mean", magnitudes: "the magnitude" };
  return <Choice label="Colours show" value={props.measure} options={options} onChange={props.onChange} />;
}
