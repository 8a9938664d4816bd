/** Signal to noise by layer: a dot for each tensor, and a line through the worst of each layer. */
import type { NoiseByLayer } from "../lib/pairs";
import { decibels } from "./pair";

const WIDTH = 1000;
const HEIGHT = 100;
/** Of the height, for what has no error at all. */
const EXACT = 0.15;
/** More dots tell nothing: then there are those of the worst alone. */
const MOST_DOTS = 3000;
const MOST_NAMES = 6;

export function NoiseChart({
  noise: { titles, points, worst },
  nameOf,
  selected,
  onOpen,
}: {
  noise: NoiseByLayer;
  nameOf: (pair: number) => string;
  /** -1 where none is. */
  selected: number;
  onOpen: (pair: number) => void;
}) {
  const [lowest] = [...points].sort((p, q) => p.snr - q.snr);
  if (lowest === undefined) return null;
  const most = points.reduce((max, { snr }) => (Number.isFinite(snr) ? Math.max(max, snr) : max), lowest.snr);
  const bottom = Number.isFinite(lowest.snr) ? Math.floor(lowest.snr / 10) * 10 : 0;
  const top = Number.isFinite(most) ? Math.max(bottom + 10, Math.ceil(most / 10) * 10) : bottom + 10;
  const x = (column: number): number => ((column + 0.5) / titles.length) * WIDTH;
  const y = (snr: number): number => {
    const height = Number.isFinite(snr) ? (snr - bottom) / (top - bottom) : snr > 0 ? 1 + EXACT : 0;
    return HEIGHT * (1 - height / (1 + EXACT + 0.05));
  };
  // The selected one comes last, over the others.
  const dots = (points.length > MOST_DOTS ? [...worst] : [...points]).sort(
    (p, q) => Number(p.pair === selected) - Number(q.pair === selected),
  );
  /** Some of the columns have their names beneath, what is outside of layers in any case. */
  const step = Math.ceil(titles.length / MOST_NAMES);
  const isNamed = (i: number): boolean => i === titles.length - 1 || (i % step === 0 && i <= titles.length - 1 - step);
  const label = `Signal to noise by layer; the lowest is ${nameOf(lowest.pair)} with ${decibels(lowest.snr)}`;
  const marks: [level: number, text: string][] = [bottom, (bottom + top) / 2, top].map((level) => [level, `${level}`]);
  if (points.some(({ snr }) => snr === Number.POSITIVE_INFINITY)) marks.push([Number.POSITIVE_INFINITY, "exact"]);
  return (
    <figure class="noise">
      <figcaption class="note">Signal to noise in dB, by layer: each tensor, and the worst of each layer</figcaption>
      <div class="noise-plot">
        <div class="noise-scale" aria-hidden="true">
          {marks.map(([level, text]) => (
            <span key={text} style={{ top: `${(y(level) / HEIGHT) * 100}%` }}>
              {text}
            </span>
          ))}
        </div>
        {/* biome-ignore lint/a11y/useKeyWithClickEvents: with keys, tensors are opened in the list */}
        <svg
          role="img"
          data-testid="noise"
          aria-label={label}
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          onClick={(event) => {
            const pair = (event.target as Element).getAttribute("data-pair");
            if (pair !== null) onOpen(Number(pair));
          }}
        >
          {marks.map(([level, text]) => (
            <path key={text} class="noise-line" d={`M0 ${y(level)}H${WIDTH}`} />
          ))}
          <polyline class="noise-worst" points={worst.map(({ column, snr }) => `${x(column)},${y(snr)}`).join(" ")} />
          {/* A line of no length with round ends is a dot, however the picture is stretched. */}
          {dots.map(({ pair, column, snr }) => (
            <path
              key={pair}
              class={pair === selected ? "noise-dot is-selected" : "noise-dot"}
              d={`M${x(column)} ${y(snr)}h0`}
              data-pair={pair}
            >
              <title>{`${nameOf(pair)}: ${decibels(snr)}`}</title>
            </path>
          ))}
        </svg>
      </div>
      <div class="axis" aria-hidden="true">
        <div>
          {titles.map((title, i) =>
            isNamed(i) ? (
              <span key={title} style={{ left: `min(${x(i) / (WIDTH / 100)}%, 100% - 12px)` }}>
                {title.replace(/ to .*/s, "")}
              </span>
            ) : null,
          )}
        </div>
      </div>
    </figure>
  );
}
