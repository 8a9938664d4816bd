/** Two files, or two tensors of one, beside each other, and in what they differ. */
import type { ComponentChildren } from "preact";
import { useId, useMemo, useRef } from "preact/hooks";
import { counted } from "#dist/describe/text";
import { hashOf } from "../lib/address";
import {
  type Measured,
  noiseByLayer,
  PAIR_ORDERS,
  type Pair,
  type PairOrder,
  selectPairs,
  tensorPairs,
} from "../lib/pairs";
import type { ModelSource, ModelView } from "../lib/protocol";
import { searchMatcher } from "../lib/search";
import { orderIn } from "../lib/tensor-list";
import { ask, useAnswer } from "./client";
import { Grid } from "./grid";
import { MOST_AT_ONCE, useMeasured } from "./measured";
import { matchesText } from "./metadata";
import { NoiseChart } from "./noise";
import { type Chosen, decibels, TwoTensors } from "./pair";
import { Answered, Failure, Missing, Progress, Search, Section, Table, WorkBar } from "./parts";
import { Choice, short } from "./pictures";
import { go, type Step, useAddress, useView } from "./place";
import { Split } from "./split";
import { Chooser } from "./start";

/** Columns of the chart at most. */
const MOST_LAYERS = 256;

/** A model of a side: there is none yet, it is being opened, it is open, or it could not be. */
export interface Slot {
  readonly model?: ModelView;
  readonly opening?: string;
  readonly error?: string;
}

export function Compare({
  a,
  b,
  isNear,
  onChoose,
}: {
  a: ModelView;
  b: Slot;
  /** Whether both models are on this machine. */
  isNear: boolean;
  onChoose: (source: ModelSource) => void;
}) {
  const other = (
    <>
      {b.opening === undefined ? null : <Progress label={b.opening} />}
      {b.error === undefined ? null : <Failure message={b.error} />}
      {b.model?.warning === undefined ? null : <Failure message={b.model.warning} />}
      <Chooser
        fileLabel="Choose the other file"
        urlLabel="URL of another model"
        testId="compare-file"
        onChoose={onChoose}
      />
    </>
  );
  const names = useNames();
  if (b.model !== undefined) {
    return (
      <Differences key={`${a.id} ${b.model.id}`} a={a} b={b.model} names={names} startsItself={isNear} other={other} />
    );
  }
  const chosen = names.names.map((one) => ({ model: a, tensor: indexIn(a, one) }));
  return (
    <div class="page">
      <Section title="Two models" note={`${a.name} is A`}>
        <p class="note">
          With the model that a quantized one was made from, the list begins with the noisiest tensor: the one that lost
          most.
        </p>
        {other}
      </Section>
      <Section title="Two tensors of this model">
        <TensorFields a={a} b={a} {...names} />
        {chosen.some(({ tensor }) => tensor < 0) ? (
          <p class="note">Choose two tensors of the same shape.</p>
        ) : (
          <Detail a={chosen[0] as Chosen} b={chosen[1] as Chosen} />
        )}
      </Section>
    </div>
  );
}

interface Names {
  /** Of the tensors that are compared. */
  readonly names: readonly [a: string, b: string];
  readonly setNames: (names: readonly [string, string], step?: Step) => void;
}

/** The names of two tensors in the address: one that stands there alone is that of both. */
function useNames(): Names {
  const { place } = useAddress();
  const { with: nameB = place.rest, ...view } = place.view;
  return {
    names: [place.rest, nameB],
    setNames: ([one, two], step) =>
      go({ place: { ...place, rest: one, view: one === two ? view : { ...view, with: two } } }, step),
  };
}

function Detail({ a, b, known }: { a: Chosen; b: Chosen; known?: Measured | undefined }) {
  const found = known === undefined || "failure" in known ? undefined : known;
  return <TwoTensors key={`${a.model.id} ${a.tensor} ${b.model.id} ${b.tensor}`} a={a} b={b} known={found} />;
}

/** The most names that are offered. */
const OFFERED = 50;

function TensorFields({ a, b, names: [one, two], setNames }: Names & { a: ModelView; b: ModelView }) {
  return (
    <div class="fields">
      <TensorField label="Tensor A" model={a} value={one} onChange={(name) => setNames([name, two], "replace")} />
      <TensorField label="Tensor B" model={b} value={two} onChange={(name) => setNames([one, name], "replace")} />
    </div>
  );
}

function TensorField({
  label,
  model,
  value,
  onChange,
}: {
  label: string;
  model: ModelView;
  value: string;
  onChange: (name: string) => void;
}) {
  const id = useId();
  const offered = useMemo(() => {
    const matches = searchMatcher(value);
    const found: string[] = [];
    for (const name of model.tensors.names) {
      if (found.length === OFFERED) break;
      if (matches(name, name)) found.push(name);
    }
    return found;
  }, [model, value]);
  return (
    <label class="field is-wide">
      {label}
      <input
        type="text"
        list={id}
        value={value}
        placeholder="name of a tensor"
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      <datalist id={id}>
        {offered.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </label>
  );
}

const COLUMNS = [
  { title: "Name", className: "c-name name", order: "name" },
  { title: "What", className: "c-what note" },
  { title: "SNR", className: "c-snr number", order: "snr" },
  { title: "Max error", className: "c-error number", order: "error", isDescending: true },
];

const ORDER_NAMES: Record<PairOrder, string> = {
  snr: "Signal to noise",
  error: "Largest error",
  file: "As in the file",
  name: "Name",
};

function Differences({
  a,
  b,
  names,
  startsItself,
  other,
}: {
  a: ModelView;
  b: ModelView;
  names: Names;
  startsItself: boolean;
  other: ComponentChildren;
}) {
  const pairs = useMemo(() => tensorPairs(a.tensors, b.tensors), [a, b]);
  const weights = a.tensors.elementCounts.reduce((sum, count) => sum + count, 0);
  const measuring = useMeasured(a, b, pairs, startsItself && weights <= MOST_AT_ONCE);
  const { measured, work } = measuring;
  const [search, setSearch] = useView("search");
  const [orderName, setOrder] = useView("order", "snr");
  const [order, isReversed] = orderIn(PAIR_ORDERS, orderName, "snr");
  // Rows stay where they are while values are compared.
  const atRest = useRef(measured);
  if (work === undefined) atRest.current = measured;
  const sortedBy = atRest.current;
  const found = useMemo(
    () => selectPairs(pairs, sortedBy, search, order, isReversed),
    [pairs, sortedBy, search, orderName],
  );
  const noise = useMemo(() => noiseByLayer(a.tensors, pairs, measured, MOST_LAYERS), [a, pairs, measured]);
  const [nameA, nameB] = names.names;
  const chosen = { a: indexIn(a, nameA), b: indexIn(b, nameB) };
  const selected = nameA === nameB ? pairs.findIndex(({ name }) => name === nameA) : -1;
  const open = (pair: number): void => names.setNames(bothOf(pairs[pair]?.name ?? ""));
  const detail =
    nameA === "" && nameB === "" ? undefined : (
      <>
        <h2 class="name">{nameA === nameB ? nameA : `${nameA} and ${nameB}`}</h2>
        {chosen.a < 0 ? null : (
          <p class="note">
            <a href={hashOf({ tab: "tensors", rest: nameA, view: {} })}>Single weights of A and their blocks</a>
          </p>
        )}
        {chosen.a < 0 && chosen.b < 0 ? (
          <Missing noun="tensor" name={nameA} />
        ) : (
          <Detail
            a={{ model: a, tensor: chosen.a }}
            b={{ model: b, tensor: chosen.b }}
            known={measured.get(selected)}
          />
        )}
        <Section title="Other tensors">
          <TensorFields a={a} b={b} {...names} />
        </Section>
      </>
    );
  return (
    <Split
      detail={detail}
      detailKey={nameA}
      detailLabel="Two tensors"
      testId="pair"
      onClose={() => names.setNames(["", ""])}
      list={
        <>
          <Search
            label="Search differences"
            value={search}
            onInput={setSearch}
            matches={matchesText(found.length, pairs.length, "tensor")}
          >
            <Choice label="Order" options={ORDER_NAMES} value={order} onChange={(value) => setOrder(value, "push")} />
          </Search>
          <div class="overview">
            <WorkBar measuring={measuring} label="Comparing" startLabel="Compare all values" />
            <NoiseChart noise={noise} nameOf={(pair) => (pairs[pair] as Pair).name} selected={selected} onOpen={open} />
          </div>
          <Grid
            label="Differences"
            columns={COLUMNS}
            order={isReversed ? orderName : order}
            search={search}
            onOrder={(value) => setOrder(value, "push")}
            count={found.length}
            selected={selected < 0 ? undefined : found.indexOf(selected)}
            row={(i) => {
              const pair = found[i] as number;
              return { cells: cellsOf(pairs[pair] as Pair, measured.get(pair)) };
            }}
            onOpen={(i) => open(found[i] as number)}
          />
          <div class="more">
            <Metadata a={a} b={b} />
            <details>
              <summary>Another file to compare with</summary>
              {other}
            </details>
          </div>
        </>
      }
    />
  );
}

function indexIn({ tensors }: ModelView, name: string): number {
  return tensors.names.indexOf(name);
}

function bothOf(name: string): [string, string] {
  return [name, name];
}

function cellsOf(pair: Pair, found: Measured | undefined): string[] {
  const { name, what, isComparable } = pair;
  if (found === undefined) {
    return [name, what || "the same type and shape", isComparable ? "" : shortReason(pair), ""];
  }
  if ("failure" in found) return [name, found.failure, "error", ""];
  const values = found.different > 0 ? "values differ" : found.sameBytes ? "the same" : "stored differently";
  return [name, what || values, decibels(found.snr), short(found.maxError)];
}

/** Why there is no number. */
function shortReason({ a, b }: Pair): string {
  return a < 0 ? "only in B" : b < 0 ? "only in A" : "other shape";
}

function Metadata({ a, b }: { a: ModelView; b: ModelView }) {
  const keys = useAnswer(`${a.id} ${b.id}`, (options) => ask("differentKeys", { a: a.id, b: b.id }, options));
  return (
    <Answered answer={keys} label="Comparing metadata">
      {(different) =>
        different.length === 0 ? (
          <p class="note">Both files have the same metadata.</p>
        ) : (
          <details>
            <summary>
              {counted(different.length, "key")} of the metadata {different.length === 1 ? "differs" : "differ"}
            </summary>
            <Table
              label="Metadata that differs"
              columns={["Key", "A", "B"]}
              rows={different.map(({ key, a: inA, b: inB }) => [
                <span key={key} class="name">
                  {key}
                </span>,
                inA ?? "(none)",
                inB ?? "(none)",
              ])}
            />
          </details>
        )
      }
    </Answered>
  );
}
