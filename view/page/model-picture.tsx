/** A model at a glance: a cell for each tensor, which opens it, in the colours that were chosen. */
import type { TensorComparison, TensorStats } from "gguf-native";
import { h, type VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Coloring, modelPicture, type SvgElement, svgText } from "#dist/describe/model-picture";
import { humanBytes } from "#dist/describe/text";
import { hashOf } from "../lib/address";
import { tensorPairs } from "../lib/pairs";
import type { ModelView } from "../lib/protocol";
import { saveSvgAsPng, saveSvgText } from "./copy";
import { MOST_AT_ONCE, useMeasured } from "./measured";
import { decibels } from "./pair";
import { Section, WorkBar } from "./parts";
import { Choice, short } from "./pictures";
import { useView } from "./place";
import { useTheme } from "./theme";

type Both = TensorStats & TensorComparison;
type Of = (found: Both) => number;

/** What cells may be coloured by; `of` makes it of what was measured. */
const COLORS: Record<string, { name: string; of?: Of } & Partial<Coloring>> = {
  type: { name: "Type" },
  size: { name: "Size", title: "size", textOf: humanBytes, choose: "sum", isLogarithmic: true },
  deviation: { name: "Deviation", of: ({ std }) => std, title: "deviation", isLogarithmic: true },
  zeros: {
    ...{ name: "Share of zeros", title: "zeros", textOf: (share) => `${short(100 * share)} %` },
    of: ({ zeros, count }) => zeros / count,
  },
  outliers: {
    ...{ name: "Outliers", title: "farthest from the mean, in deviations", isLogarithmic: true },
    of: ({ min, max, mean, std }) => Math.max(mean - min, max - mean) / std,
  },
  snr: {
    ...{ name: "Signal to noise", title: "signal to noise", textOf: decibels, choose: "min" },
    of: ({ snr }) => snr,
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
  const names = Object.keys(COLORS).filter((one) => one !== "snr" || other !== undefined);
  const name = names.includes(wanted) ? wanted : "type";
  const options = Object.fromEntries(names.map((one) => [one, COLORS[one]?.name as string]));
  const { of, ...given } = COLORS[name] as (typeof COLORS)[string];
  const sizeOf = (tensor: number): number | undefined => model.tensors.byteLengths[tensor] || undefined;
  const coloring: Coloring = {
    ...{ title: "", textOf: short, choose: "max", isLogarithmic: false, numberOf: sizeOf },
    ...given,
  };
  const partner = name === "snr" ? other : undefined;
  const props = { model, coloring, other: partner, isNear };
  return (
    <Section
      title="At a glance"
      note={<Choice label="Colours show" value={name} options={options} onChange={setWanted} />}
    >
      {of === undefined ? (
        <Drawn model={model} other={undefined} coloring={name === "type" ? undefined : coloring} />
      ) : (
        <Measured key={partner?.id} of={of} {...props} />
      )}
    </Section>
  );
}

function Measured({ model, other, isNear, coloring, of }: PictureProps & { coloring: Coloring; of: Of }) {
  // The tensors of the first model come first, in its order.
  const pairs = useMemo(() => tensorPairs(model.tensors, (other ?? model).tensors), [model, other]);
  const weights = model.tensors.elementCounts.reduce((a, b) => a + b, 0);
  const measuring = useMeasured<TensorStats>(model, other, pairs, isNear && weights <= MOST_AT_ONCE);
  const numberOf = (tensor: number): number | undefined => {
    const found = measuring.measured.get(tensor);
    const value = found === undefined || "failure" in found ? Number.NaN : of(found as Both);
    return Number.isNaN(value) ? undefined : value;
  };
  return (
    <>
      <WorkBar measuring={measuring} label="Measuring" startLabel="Measure all tensors" />
      <Drawn model={model} other={other} coloring={{ ...coloring, numberOf }} />
    </>
  );
}

function Drawn(props: Omit<PictureProps, "isNear"> & { coloring: Coloring | undefined }) {
  const { other, coloring } = props;
  const { name, tensors } = props.model;
  const title = other === undefined ? name : `${name} and ${other.name}`;
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const { isDark } = useTheme();
  useEffect(() => {
    const observer = new ResizeObserver(() => setWidth(box.current?.clientWidth ?? 0));
    observer.observe(box.current as HTMLElement);
    return () => observer.disconnect();
  }, []);
  const options = { title, isDark, coloring };
  const linkOf = (those: readonly number[], number: number) => ({
    href: addressOf(those.map((tensor) => tensors.names[tensor] as string)),
    tabindex: number === 0 ? 0 : -1,
  });
  const saved = (): string => `${svgText(modelPicture(tensors, options))}\n`;
  return (
    <>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the cells are links; arrows go from one to another */}
      <div class="model-picture" data-testid="model-picture" ref={box} onKeyDown={onArrow}>
        {width === 0 ? null : shown(modelPicture(tensors, { ...options, width, linkOf }))}
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
  const targets = {
    ...{ ArrowRight: links[at + 1], ArrowLeft: links[at - 1], Home: links[0], End: links.at(-1) },
    ...{ ArrowDown: inColumn[row + 1], ArrowUp: inColumn[row - 1] },
  };
  const next = targets[event.key as keyof typeof targets];
  if (next === undefined) return;
  event.preventDefault();
  from.setAttribute("tabindex", "-1");
  next.setAttribute("tabindex", "0");
  next.focus();
}
