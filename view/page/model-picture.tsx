/** A model at a glance: a cell for each tensor, which opens it, in the colours that were chosen. */
import type { TensorStats } from "gguf-native";
import { h, type VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import {
  type Coloring,
  modelPicture,
  type PictureCell,
  type SvgElement,
  svgText,
} from "#dist/describe/model-picture";
import { humanBytes } from "#dist/describe/text";
import { hashOf } from "../lib/address";
import { tensorPairs } from "../lib/pairs";
import type { ModelView } from "../lib/protocol";
import { saveSvgAsPng, saveSvgText } from "./copy";
import { type Measuring, MOST_AT_ONCE, useMeasured, useStats } from "./measured";
import { decibels } from "./pair";
import { Section, WorkBar } from "./parts";
import { Choice, short } from "./pictures";
import { useView } from "./place";
import { useTheme } from "./theme";

const COLORS = {
  type: "Type",
  size: "Size",
  deviation: "Deviation",
  zeros: "Share of zeros",
  outliers: "Outliers",
  snr: "Signal to noise",
};

/** What is measured of a tensor. */
const STATS: Record<string, Omit<Coloring, "numberOf"> & { of: (stats: TensorStats) => number }> = {
  deviation: { title: "deviation", of: ({ std }) => std, textOf: short, choose: "max", isLogarithmic: true },
  zeros: {
    title: "zeros",
    of: ({ zeros, count }) => zeros / count,
    textOf: (share) => `${short(100 * share)} %`,
    ...{ choose: "max", isLogarithmic: false },
  },
  outliers: {
    title: "farthest from the mean, in deviations",
    of: ({ min, max, mean, std }) => Math.max(mean - min, max - mean) / std,
    textOf: short,
    ...{ choose: "max", isLogarithmic: true },
  },
};

interface PictureProps {
  model: ModelView;
  /** The one that it is compared with. */
  other: ModelView | undefined;
  /** Whether reading values costs nothing. */
  isNear: boolean;
}

export function ModelPicture({ model, other, isNear }: PictureProps) {
  const [wanted, setWanted] = useView("colours", "type");
  const { snr, ...ofOne } = COLORS;
  const options: Record<string, string> = other === undefined ? ofOne : { ...ofOne, snr };
  const name = Object.hasOwn(options, wanted) ? wanted : "type";
  const bySize: Coloring = {
    ...{ title: "size", textOf: humanBytes, choose: "sum", isLogarithmic: true },
    numberOf: (tensor) => model.tensors.byteLengths[tensor] || undefined,
  };
  const startsItself = isNear && model.tensors.elementCounts.reduce((a, b) => a + b, 0) <= MOST_AT_ONCE;
  return (
    <Section
      title="At a glance"
      note={<Choice label="Colours show" value={name} options={options} onChange={setWanted} />}
    >
      {name === "snr" && other !== undefined ? (
        <BySnr key={other.id} model={model} other={other} startsItself={startsItself} />
      ) : name in STATS ? (
        <ByStats model={model} name={name} startsItself={startsItself} />
      ) : (
        <Drawn model={model} coloring={name === "size" ? bySize : undefined} />
      )}
    </Section>
  );
}

function ByStats({ model, name, startsItself }: { model: ModelView; name: string; startsItself: boolean }) {
  const measuring = useStats(model, startsItself);
  const { of, ...coloring } = STATS[name] as (typeof STATS)[string];
  const numberOf = (tensor: number): number | undefined => {
    const stats = measuring.measured.get(tensor);
    const value = stats === undefined || "failure" in stats || stats.finite === 0 ? Number.NaN : of(stats);
    return Number.isNaN(value) ? undefined : value;
  };
  return <Measured model={model} measuring={measuring} coloring={{ ...coloring, numberOf }} />;
}

function BySnr({
  model,
  other,
  startsItself,
}: Required<Pick<PictureProps, "model">> & { other: ModelView; startsItself: boolean }) {
  // Those of the first model come first, in its order.
  const pairs = useMemo(() => tensorPairs(model.tensors, other.tensors), [model, other]);
  const measuring = useMeasured(model, other, pairs, startsItself);
  const coloring: Coloring = {
    ...{ title: "signal to noise", textOf: decibels, choose: "min", isLogarithmic: false },
    numberOf: (tensor) => {
      const found = measuring.measured.get(tensor);
      return found === undefined || "failure" in found || Number.isNaN(found.snr) ? undefined : found.snr;
    },
  };
  return <Measured model={model} measuring={measuring} coloring={coloring} />;
}

function Measured(props: { model: ModelView; measuring: Measuring<unknown>; coloring: Coloring }) {
  return (
    <>
      <WorkBar measuring={props.measuring} label="Measuring" startLabel="Measure all tensors" />
      <Drawn model={props.model} coloring={props.coloring} />
    </>
  );
}

function Drawn({
  model: { name: title, tensors },
  coloring,
}: {
  model: ModelView;
  coloring: Coloring | undefined;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const { isDark } = useTheme();
  useEffect(() => {
    const observer = new ResizeObserver(() => setWidth(box.current?.clientWidth ?? 0));
    observer.observe(box.current as HTMLElement);
    return () => observer.disconnect();
  }, []);
  const options = { title, isDark, coloring };
  const linkOf = ({ tensors: [only = 0, ...others] }: PictureCell, number: number) => ({
    href: addressOf([only, ...others].map((tensor) => tensors.names[tensor] as string)),
    tabindex: number === 0 ? 0 : -1,
  });
  const picture = width === 0 ? null : modelPicture(tensors, { ...options, width, linkOf });
  const saved = (): string => `${svgText(modelPicture(tensors, options))}\n`;
  return (
    <>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the cells are links; arrows go from one to another */}
      <div class="model-picture" data-testid="model-picture" ref={box} onKeyDown={onArrow}>
        {picture && shown(picture)}
      </div>
      <div class="pager">
        <button type="button" onClick={() => saveSvgText(saved(), title)}>
          Save as SVG
        </button>
        <button type="button" onClick={() => void saveSvgAsPng(saved(), title)}>
          Save as PNG
        </button>
      </div>
    </>
  );
}

function shown({ tag, attributes, children }: SvgElement): VNode {
  return h(tag, attributes, ...children.map((child) => (typeof child === "string" ? child : shown(child))));
}

/** Where a tensor is shown; of several the list of those whose names begin and end alike. */
function addressOf(names: readonly string[]): string {
  const [first = "", ...others] = names;
  if (others.length === 0) return hashOf({ tab: "tensors", rest: first, view: {} });
  let [begin, end] = [first.length, first.length];
  for (const name of others) {
    while (!name.startsWith(first.slice(0, begin))) begin--;
    while (!name.endsWith(first.slice(first.length - end))) end--;
  }
  const search = `${first.slice(0, begin)}*${first.slice(Math.max(begin, first.length - end))}`;
  return hashOf({ tab: "tensors", rest: "", view: { search } });
}

/** One cell takes part in the order of the Tab key: from there, arrows go on. */
function onArrow(event: KeyboardEvent): void {
  const links = [...(event.currentTarget as HTMLElement).querySelectorAll("a")];
  const from = links.find((link) => link === event.target);
  if (from === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  const inColumn = links.filter(({ dataset }) => dataset.column === from.dataset.column);
  const [at, row] = [links.indexOf(from), inColumn.indexOf(from)];
  const targets: Record<string, SVGAElement | HTMLAnchorElement | undefined> = {
    ArrowRight: links[at + 1],
    ArrowLeft: links[at - 1],
    ArrowDown: inColumn[row + 1],
    ArrowUp: inColumn[row - 1],
    Home: links[0],
    End: links.at(-1),
  };
  const next = targets[event.key];
  if (next === undefined) return;
  event.preventDefault();
  from.setAttribute("tabindex", "-1");
  next.setAttribute("tabindex", "0");
  next.focus();
}
