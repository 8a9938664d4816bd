/** A tensor as a picture that one looks at more closely: down to single weights, and what stands in their blocks. */
import { useEffect, useRef, useState } from "preact/hooks";
import { float32Text, grouped } from "#dist/describe/text";
import type { Picture } from "../lib/averages";
import type { BlockView } from "../lib/block-scales";
import type { Region, TensorAddress, WeightView } from "../lib/protocol";
import { isWhole, moved, type Size, showing, wholeOf, zoomed } from "../lib/zoom";
import { ask, useAnswer } from "./client";
import { CopyButton, pictureOf, savePicture } from "./copy";
import { Answered, Facts, Failure } from "./parts";
import { Heatmap, type Measure } from "./pictures";

/** Cells of the picture at most. */
export const PICTURE = { width: 512, height: 512 };
/** Lines that are drawn between blocks, and between rows, at most. */
const MOST_LINES = 32;
/** A pointer that moves less has clicked. */
const CLICK_PIXELS = 5;
const STEP = 2;

interface Weight {
  readonly row: number;
  readonly column: number;
}

export function CloserLook({
  name,
  id,
  address,
  measure,
  size,
  blockSize,
  first,
}: {
  name: string;
  /** Of the tensor. */
  id: string;
  address: TensorAddress;
  measure: Measure;
  size: Size;
  blockSize: number;
  /** The picture of the whole. */
  first: Picture;
}) {
  const [region, setRegion] = useState<Region>(wholeOf(size));
  const [weight, setWeight] = useState<Weight | undefined>(undefined);
  const box = useRef<HTMLFieldSetElement>(null);
  const whole = isWhole(region, size);
  const answer = useAnswer(`${id} ${JSON.stringify(region)}`, (options) =>
    whole ? Promise.resolve(first) : ask("picture", { ...address, ...PICTURE, region }, options),
  );
  // Until a closer picture is there, the last one stays.
  const shown = useRef({ picture: first, region });
  if (answer.state === "done") shown.current = { picture: answer.result, region };
  const gestures = useGestures(box, region, size, setRegion, (x, y) =>
    setWeight({
      row: Math.min(size.rows - 1, region.row + Math.floor(y * region.rows)),
      column: Math.min(size.columns - 1, region.column + Math.floor(x * region.columns)),
    }),
  );
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== event.currentTarget) return;
    const arrows: Record<string, readonly [rows: number, columns: number]> = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
    };
    const arrow = arrows[event.key];
    if (event.key === "+" || event.key === "=") setRegion(zoomed(region, size, 1 / STEP));
    else if (event.key === "-") setRegion(zoomed(region, size, STEP));
    else if (event.key === "0") setRegion(wholeOf(size));
    else if (event.key === "Enter") {
      setWeight({ row: region.row + (region.rows >> 1), column: region.column + (region.columns >> 1) });
    } else if (event.key === "Escape" && weight !== undefined) setWeight(undefined);
    else if (arrow !== undefined && weight !== undefined) {
      const row = Math.max(0, Math.min(size.rows - 1, weight.row + arrow[0]));
      const column = Math.max(0, Math.min(size.columns - 1, weight.column + arrow[1]));
      setWeight({ row, column });
      setRegion(showing(region, size, row, column));
    } else if (arrow !== undefined && !whole) {
      setRegion(moved(region, size, (arrow[0] * region.rows) / 8, (arrow[1] * region.columns) / 8));
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  if (answer.state === "failed") return <Failure message={answer.message} />;
  const { picture, region: part } = shown.current;
  if (picture.width * picture.height === 0) return <p class="note">No values.</p>;
  return (
    <div class="closer-look">
      <div class="closer-picture">
        <fieldset
          class={whole ? "closer" : "closer is-zoomed"}
          ref={box}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: keys zoom and move what it shows
          tabIndex={0}
          aria-label="Look closer: + and - zoom, 0 shows the whole, arrows move, Enter takes a weight"
          data-testid="closer"
          onKeyDown={onKeyDown}
          {...gestures}
        >
          <Heatmap
            {...{ picture, measure, origin: part, title: "Values", testId: "heatmap" }}
            tip={(row, column) => <Tip id={id} address={address} weight={{ row, column }} />}
          >
            <Overlay region={part} blockSize={blockSize} weight={weight} />
          </Heatmap>
        </fieldset>
        <div class="pager">
          <button type="button" onClick={() => setRegion(zoomed(region, size, 1 / STEP))}>
            Zoom in
          </button>
          <button type="button" disabled={whole} onClick={() => setRegion(zoomed(region, size, STEP))}>
            Zoom out
          </button>
          <button type="button" disabled={whole} onClick={() => setRegion(wholeOf(size))}>
            Whole
          </button>
          <button type="button" onClick={() => void savePicture(box.current, name)}>
            Save as PNG
          </button>
          <CopyButton what="PNG" content={() => pictureOf(box.current, name)} />
          <CopyButton what="name" content={name} />
          <span class="note" data-testid="region" role="status">
            {whole
              ? "all rows and columns"
              : `rows ${grouped(region.row)} to ${grouped(region.row + region.rows - 1)}, columns ${grouped(region.column)} to ${grouped(region.column + region.columns - 1)}`}
          </span>
        </div>
      </div>
      {weight === undefined ? (
        <p class="note">Click a weight, or press Enter on the picture: its block, scales and codes are shown here.</p>
      ) : (
        <WeightFacts id={id} address={address} weight={weight} />
      )}
    </div>
  );
}

/** A pointer that moves on within this time asks nothing. */
const REST_MS = 60;

/** What is known of the weight that is pointed at. */
export function Tip({ id, address, weight: { row, column } }: { id: string; address: TensorAddress; weight: Weight }) {
  const answer = useAnswer(`${id} ${row} ${column}`, async (options) => {
    await new Promise((resolve) => setTimeout(resolve, REST_MS));
    options.signal?.throwIfAborted();
    return ask("weight", { ...address, row, column }, options);
  });
  if (answer.state !== "done") return <b>…</b>;
  const { value, block } = answer.result;
  const code = block?.codes[block.position];
  return (
    <>
      <b>{float32Text(value)}</b>
      {block === null ? null : (
        <span>{`block ${grouped(block.number)}${code === undefined ? "" : `, code ${code}`}`}</span>
      )}
    </>
  );
}

/** Wheel, drag, pinch and click, each in parts of the picture. */
function useGestures(
  box: { readonly current: HTMLElement | null },
  region: Region,
  size: Size,
  onRegion: (region: Region) => void,
  onClick: (x: number, y: number) => void,
) {
  const now = useRef({ region, size });
  now.current = { region, size };
  const pointers = useRef(new Map<number, { x: number; y: number }>());
  const start = useRef({ region, x: 0, y: 0, distance: 0, isMoved: false });
  const placeOf = (event: { clientX: number; clientY: number }): { x: number; y: number } => {
    const canvas = box.current?.querySelector("canvas");
    if (!canvas) return { x: 0, y: 0 };
    const { left, top, width, height } = canvas.getBoundingClientRect();
    return { x: (event.clientX - left) / width, y: (event.clientY - top) / height };
  };
  const middleOf = (): { x: number; y: number; distance: number } => {
    const [a = { x: 0, y: 0 }, b = a] = [...pointers.current.values()];
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, distance: Math.hypot(a.x - b.x, a.y - b.y) };
  };
  const begin = (isMoved: boolean): void => {
    start.current = { region: now.current.region, ...middleOf(), isMoved };
  };
  // Listeners of the framework are passive: they could not keep the page where it is.
  const isThere = box.current !== null;
  useEffect(() => {
    const element = box.current;
    const onWheel = (event: WheelEvent): void => {
      const { region: from, size: all } = now.current;
      if (!(event.target instanceof HTMLCanvasElement)) return;
      // Where there is nothing to zoom out of, the page scrolls.
      if (event.deltaY === 0 || (event.deltaY > 0 && isWhole(from, all))) return;
      event.preventDefault();
      const { x, y } = placeOf(event);
      const lines = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? 1 : 30;
      const factor = 2 ** Math.max(-1, Math.min(1, (event.deltaY * lines) / 200));
      now.current = { region: zoomed(from, all, factor, x, y), size: all };
      onRegion(now.current.region);
    };
    element?.addEventListener("wheel", onWheel, { passive: false });
    return () => element?.removeEventListener("wheel", onWheel);
  }, [isThere, box.current]);
  return {
    onPointerDown: (event: PointerEvent) => {
      if (!(event.target instanceof HTMLCanvasElement) || event.button !== 0) return;
      pointers.current.set(event.pointerId, placeOf(event));
      begin(pointers.current.size > 1);
    },
    onPointerMove: (event: PointerEvent) => {
      if (!pointers.current.has(event.pointerId)) return;
      pointers.current.set(event.pointerId, placeOf(event));
      const from = start.current;
      const { x, y, distance } = middleOf();
      const { width, height } = (event.target as HTMLElement).getBoundingClientRect();
      if (Math.hypot((x - from.x) * width, (y - from.y) * height) > CLICK_PIXELS) from.isMoved = true;
      if (!from.isMoved) return;
      const factor = distance > 0 && from.distance > 0 ? from.distance / distance : 1;
      const closer = zoomed(from.region, size, factor, from.x, from.y);
      onRegion(moved(closer, size, (from.y - y) * closer.rows, (from.x - x) * closer.columns));
    },
    onPointerUp: (event: PointerEvent) => {
      if (!pointers.current.delete(event.pointerId)) return;
      const { isMoved } = start.current;
      const { x, y } = placeOf(event);
      if (pointers.current.size > 0) begin(true);
      else if (!isMoved && x >= 0 && x < 1 && y >= 0 && y < 1) onClick(x, y);
    },
    onPointerCancel: (event: PointerEvent) => void pointers.current.delete(event.pointerId),
    onPointerLeave: (event: PointerEvent) => void pointers.current.delete(event.pointerId),
  };
}

/** Borders of blocks and rows, where they are far enough from each other, and the weight that was taken. */
function Overlay({
  region: { row, column, rows, columns },
  blockSize,
  weight,
}: {
  region: Region;
  blockSize: number;
  weight: Weight | undefined;
}) {
  const first = Math.ceil(column / blockSize) * blockSize;
  const count = Math.max(0, Math.ceil((column + columns - first) / blockSize));
  const borders = blockSize > 1 && count <= MOST_LINES ? count : 0;
  return (
    <svg class="overlay" aria-hidden="true" viewBox={`${column} ${row} ${columns} ${rows}`} preserveAspectRatio="none">
      {Array.from({ length: borders }, (_, i) => first + i * blockSize).map((x) => (
        <line key={x} class="border" x1={x} x2={x} y1={row} y2={row + rows} />
      ))}
      {borders > 0 && rows <= MOST_LINES
        ? Array.from({ length: rows }, (_, i) => (
            <line key={i} class="border" x1={column} x2={column + columns} y1={row + i} y2={row + i} />
          ))
        : null}
      {weight === undefined ? null : <rect class="weight" x={weight.column} y={weight.row} width={1} height={1} />}
    </svg>
  );
}

function WeightFacts({ id, address, weight }: { id: string; address: TensorAddress; weight: Weight }) {
  const { row, column } = weight;
  const answer = useAnswer(`${id} ${row} ${column}`, (options) => ask("weight", { ...address, row, column }, options));
  return (
    <Answered answer={answer} label="Reading the weight">
      {(view) => (
        <section class="weight-facts" aria-label="Weight">
          <Facts facts={factsOf(view)} testId="weight" />
          {view.block === null ? null : <Codes block={view.block} />}
          <div class="pager">
            <CopyButton what="value" content={float32Text(view.value)} />
            <CopyButton what="JSON" content={jsonOf(view)} />
          </div>
        </section>
      )}
    </Answered>
  );
}

/** The codes of a block, 16 in a line; that of the weight is marked. */
function Codes({ block: { codes, position } }: { block: BlockView }) {
  if (codes.length === 0) return null;
  const label = `Codes of the block; that of the weight is ${codes[position]}`;
  return (
    <div class="codes" role="img" aria-label={label} data-testid="codes">
      {Array.from(codes, (code, i) => (i === position ? <mark key={i}>{code}</mark> : <span key={i}>{code}</span>))}
    </div>
  );
}

function factsOf({ value, row, column, block }: WeightView): [string, string][] {
  const facts: [string, string][] = [
    ["value", float32Text(value)],
    ["row", grouped(row)],
    ["column", grouped(column)],
  ];
  return block === null ? facts : [...facts, ...blockFacts(block)];
}

function blockFacts({ number, position, size, scales, minimum, run, codes }: BlockView): [string, string][] {
  const facts: [string, string][] = [
    ["block", `${grouped(number)}, weight ${position} of ${size}`],
    [scales.length > 1 ? "scales of the block" : "scale of the block", scales.map(float32Text).join(", ")],
  ];
  if (minimum !== undefined) facts.push(["minimum of the block", float32Text(minimum)]);
  if (run === null) return facts;
  facts.push(["code", String(codes[position])]);
  if (run.scale === scales[0] && run.size === size) return facts;
  facts.push([`scale of these ${run.size}`, float32Text(run.scale)]);
  if (run.minimum !== undefined) facts.push([`minimum of these ${run.size}`, float32Text(run.minimum)]);
  return facts;
}

function jsonOf({ block, ...weight }: WeightView): string {
  const codes = block === null ? undefined : Array.from(block.codes);
  return JSON.stringify(block === null ? weight : { ...weight, block: { ...block, codes } }, null, 2);
}
