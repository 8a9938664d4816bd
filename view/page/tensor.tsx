/** One tensor: what its values are like, pictures of them, the first ones, and the scales of its blocks. */
import { useState } from "preact/hooks";
import { type GgmlType, ggmlTypes } from "#dist/base/types";
import { statsRows } from "#dist/describe/stats-text";
import { counted, float32Text, grouped, humanBytes } from "#dist/describe/text";
import type { ModelView, ScalesView, ValuesView } from "../lib/protocol";
import { ask, useAnswer } from "./client";
import { CopyButton, saveSvg } from "./copy";
import { CloserLook, PICTURE } from "./look";
import { Answered, Facts, Progress, Section, Table } from "./parts";
import { Bar, Histogram, type Measure, MeasureChoice } from "./pictures";

const BINS = 64;
const FEW = 8;
const SCALES = 32;

export function TensorDetail({ model, index }: { model: ModelView; index: number }) {
  const { tensors } = model;
  const address = { model: model.id, tensor: index };
  const key = `${model.id} ${index}`;
  const [measure, setMeasure] = useState<Measure>("means");
  const picture = useAnswer(key, (options) => ask("picture", { ...address, ...PICTURE }, options));
  const elementCount = tensors.elementCounts[index] as number;
  const facts: [string, string][] = [
    ["type", tensors.types[tensors.typeOf[index] as number] as string],
    ["shape", tensors.shapes[index] as string],
    ["weights", grouped(elementCount)],
    ["bytes", humanBytes(tensors.byteLengths[index] as number)],
    ["offset", grouped(tensors.offsets[index] as number)],
  ];
  return (
    <>
      <h2 class="name">{tensors.names[index]}</h2>
      <Facts facts={facts} />
      <Section title="Statistics">
        {/* One pass after the other, the picture first: it is what one looks at. */}
        {picture.state === "busy" ? <Progress label="Measuring" /> : <Statistics id={key} address={address} />}
      </Section>
      <Section title="Values" note={<MeasureChoice measure={measure} onChange={setMeasure} />}>
        {picture.state === "done" ? (
          <CloserLook
            key={key}
            id={key}
            name={tensors.names[index] as string}
            address={address}
            measure={measure}
            size={{ rows: picture.result.rowCount, columns: picture.result.columnCount }}
            blockSize={blockSizeOf(tensors.types[tensors.typeOf[index] as number] as string)}
            first={picture.result}
          />
        ) : (
          <Answered answer={picture} label="Averaging">
            {() => null}
          </Answered>
        )}
      </Section>
      <FirstValues id={key} address={address} />
      <Scales id={key} address={address} />
    </>
  );
}

function blockSizeOf(type: string): number {
  return Object.hasOwn(ggmlTypes, type) ? ggmlTypes[type as GgmlType].blockSize : 1;
}

interface PartProps {
  /** Of the tensor. */
  id: string;
  address: { model: number; tensor: number };
}

function Statistics({ id, address }: PartProps) {
  const answer = useAnswer(id, (options) => ask("stats", { ...address, bins: BINS }, options));
  return (
    <Answered answer={answer} label="Measuring">
      {(stats) => (
        <div class="statistics">
          {stats.histogram === undefined ? null : (
            <div>
              <Histogram histogram={stats.histogram} />
              <button
                type="button"
                class="quiet"
                onClick={({ currentTarget }) =>
                  saveSvg(currentTarget.parentElement?.querySelector("svg") ?? null, "histogram")
                }
              >
                Save as SVG
              </button>
            </div>
          )}
          <Facts facts={statsRows(stats, { withStd: true })} testId="stats" />
        </div>
      )}
    </Answered>
  );
}

function FirstValues({ id, address }: PartProps) {
  const [row, setRow] = useState(0);
  const [column, setColumn] = useState(0);
  const answer = useAnswer(`${id} ${row} ${column}`, (options) =>
    ask("values", { ...address, row, column, rows: FEW, columns: FEW }, options),
  );
  return (
    <Section title="First values" note="each in the digits that tell it from its neighbours">
      <Answered answer={answer} label="Reading values">
        {(view) => (
          <>
            <Steps view={view} onRow={setRow} onColumn={setColumn} />
            <CopyButton
              what="values"
              content={view.values
                .map((values) => Array.from(values, (value) => float32Text(value)).join("\t"))
                .join("\n")}
            />
            <Table
              label="First values"
              testId="values"
              columns={[
                "Row",
                ...Array.from({ length: view.values[0]?.length ?? 0 }, (_, i) => ({
                  title: grouped(column + i),
                  isNumber: true as const,
                })),
              ]}
              rows={view.values.map((values, i) => [
                grouped(row + i),
                ...Array.from(values, (value) => float32Text(value)),
              ])}
            />
          </>
        )}
      </Answered>
    </Section>
  );
}

/** Other rows and columns. */
function Steps({
  view,
  onRow,
  onColumn,
}: {
  view: ValuesView;
  onRow: (row: number) => void;
  onColumn: (column: number) => void;
}) {
  const field = (label: string, value: number, count: number, onChange: (value: number) => void) => (
    <label class="field">
      {label}
      <input
        type="number"
        min={0}
        max={Math.max(0, count - 1)}
        step={FEW}
        value={value}
        onChange={(event) => {
          const wanted = Math.floor(event.currentTarget.valueAsNumber);
          if (wanted >= 0 && wanted < count) onChange(wanted);
          else event.currentTarget.value = String(value);
        }}
      />
    </label>
  );
  return (
    <div class="fields">
      {field("From row", view.row, view.rowCount, onRow)}
      {field("From column", view.column, view.columnCount, onColumn)}
      <span class="note">
        of {counted(view.rowCount, "row")} and {counted(view.columnCount, "column")}
      </span>
    </div>
  );
}

function Scales({ id, address }: PartProps) {
  const [first, setFirst] = useState(0);
  const answer = useAnswer(`${id} ${first}`, (options) => ask("scales", { ...address, first, count: SCALES }, options));
  if (answer.state === "done" && answer.result === null) return null;
  return (
    <Section title="Scales of blocks" note="what the codes of a block are multiplied with">
      <Answered answer={answer} label="Reading scales">
        {(view) => (view === null ? null : <ScaleTable view={view} onFirst={setFirst} />)}
      </Answered>
    </Section>
  );
}

function ScaleTable({ view, onFirst }: { view: ScalesView; onFirst: (first: number) => void }) {
  const { first, scales, blockCount, blockSize } = view;
  const end = first + scales.length;
  const hasMinimum = scales.some(({ minimum }) => minimum !== undefined);
  const most = Math.max(0, ...scales.flatMap(({ scales: all }) => all.map(Math.abs)).filter(Number.isFinite));
  return (
    <>
      <div class="pager">
        <button type="button" disabled={first === 0} onClick={() => onFirst(Math.max(0, first - SCALES))}>
          Previous blocks
        </button>
        <button type="button" disabled={end >= blockCount} onClick={() => onFirst(end)}>
          Next blocks
        </button>
        <span class="note">
          {blockCount === 0
            ? "no blocks"
            : `${grouped(first)} to ${grouped(end - 1)} of ${grouped(blockCount)}, ${blockSize} weights each`}
        </span>
      </div>
      <Table
        label="Scales of blocks"
        testId="scales"
        columns={[
          "Block",
          { title: "Scale", isNumber: true },
          ...(hasMinimum ? [{ title: "Minimum", isNumber: true as const }] : []),
          "Size",
        ]}
        rows={scales.map(({ scales: all, minimum }, i) => [
          grouped(first + i),
          all.map(float32Text).join(", "),
          ...(hasMinimum ? [minimum === undefined ? "" : float32Text(minimum)] : []),
          <Bar key="bar" share={most > 0 ? Math.abs(all[0] as number) / most : 0} />,
        ])}
      />
    </>
  );
}
