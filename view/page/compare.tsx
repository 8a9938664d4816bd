/** Two tensors or two files side by side, and in what they differ. */

import type { TensorComparison } from "gguf-native";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { counted, grouped } from "#dist/describe/text";
import { type Pair, tensorPairs } from "../lib/pairs";
import type { ModelSource, ModelView, TensorAddress } from "../lib/protocol";
import { wordsOf } from "../lib/tensor-list";
import { ask, messageOf, useAnswer } from "./client";
import { Grid } from "./grid";
import { Answered, Facts, Failure, Progress, Section, Table } from "./parts";
import { Heatmap, type Measure, MeasureChoice, short } from "./pictures";
import { Chooser } from "./start";
import { PICTURE } from "./tensor";

export function Compare({
  a,
  b,
  onChoose,
}: {
  a: ModelView;
  b: { readonly model?: ModelView; readonly opening?: string; readonly error?: string };
  onChoose: (source: ModelSource) => void;
}) {
  const other = b.model ?? a;
  const [names, setNames] = useState<readonly [string, string]>(["", ""]);
  const [first, second] = [a.tensors.names.indexOf(names[0]), other.tensors.names.indexOf(names[1])];
  return (
    <div class="page">
      <Section title="Files">
        <Facts
          facts={[
            ["A", a.name],
            ["B", b.model === undefined ? "the same file, until another one is chosen" : b.model.name],
          ]}
        />
        {b.opening === undefined ? null : <Progress label={b.opening} />}
        {b.error === undefined ? null : <Failure message={b.error} />}
        {b.model?.warning === undefined ? null : <Failure message={b.model.warning} />}
        <Chooser
          fileLabel="Choose the other file"
          urlLabel="URL of another model"
          testId="compare-file"
          onChoose={onChoose}
        />
      </Section>
      {b.model === undefined ? null : (
        <Differences
          key={`${a.id} ${b.model.id}`}
          a={a}
          b={b.model}
          onOpen={(name) => setNames([name, name])}
        />
      )}
      <Section title="Two tensors">
        <div class="fields">
          <TensorField
            label="Tensor A"
            model={a}
            value={names[0]}
            onChange={(name) => setNames([name, names[1]])}
          />
          <TensorField
            label="Tensor B"
            model={other}
            value={names[1]}
            onChange={(name) => setNames([names[0], name])}
          />
        </div>
        {first < 0 || second < 0 ? (
          <p class="note">Choose two tensors of the same shape: of A, and of B.</p>
        ) : (
          <SideBySide
            key={`${a.id} ${first} ${other.id} ${second}`}
            a={{ model: a.id, tensor: first }}
            b={{ model: other.id, tensor: second }}
            sameShape={a.tensors.shapes[first] === other.tensors.shapes[second]}
          />
        )}
      </Section>
    </div>
  );
}

/** The most names that are offered. */
const OFFERED = 50;

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
    const words = wordsOf(value);
    const found: string[] = [];
    for (const name of model.tensors.names) {
      if (found.length === OFFERED) break;
      if (words.every((word) => name.toLowerCase().includes(word))) found.push(name);
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
  { title: "Name", className: "c-name name" },
  { title: "What", className: "c-what note" },
  { title: "SNR", className: "c-short number" },
  { title: "Max error", className: "c-short number" },
];

/** What is known of the values of a pair. */
type Measured = TensorComparison | { readonly failure: string };

function Differences({ a, b, onOpen }: { a: ModelView; b: ModelView; onOpen: (name: string) => void }) {
  const pairs = useMemo(() => tensorPairs(a.tensors, b.tensors), [a, b]);
  const [measured, setMeasured] = useState<ReadonlyMap<number, Measured>>(new Map());
  const [work, setWork] = useState<{ done: number; total: number } | undefined>(undefined);
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  const keys = useAnswer(`${a.id} ${b.id}`, (options) => ask("differentKeys", { a: a.id, b: b.id }, options));

  const measure = async (): Promise<void> => {
    const controller = new AbortController();
    running.current = controller;
    const { signal } = controller;
    const results = new Map<number, Measured>();
    const comparable = [...pairs.entries()].filter(([, pair]) => pair.isComparable);
    for (const [done, [i, pair]] of comparable.entries()) {
      setWork({ done, total: comparable.length });
      try {
        results.set(i, await ask("compare", addresses(a, b, pair), { signal }));
      } catch (error) {
        if (signal.aborted) break;
        results.set(i, { failure: messageOf(error) });
      }
      setMeasured(new Map(results));
    }
    setWork(undefined);
  };

  const row = (i: number) => {
    const pair = pairs[i] as Pair;
    const found = measured.get(i);
    const cells = [pair.name, pair.what || "the same type and shape", "", ""];
    if (found !== undefined && "failure" in found) cells[1] = found.failure;
    else if (found !== undefined) {
      if (pair.what === "")
        cells[1] =
          found.different > 0 ? "values differ" : found.sameBytes ? "the same" : "stored differently";
      cells[2] = decibels(found.snr);
      cells[3] = short(found.maxError);
    }
    return { cells };
  };
  const differing = pairs.filter(({ what }) => what !== "").length;
  return (
    <>
      <Section
        title="Tensors"
        note={`${counted(pairs.length, "tensor")}, ${grouped(differing)} of another type or shape, or in one file alone`}
      >
        {work === undefined ? (
          <button type="button" class="secondary" onClick={() => void measure()}>
            Compare all values
          </button>
        ) : (
          <div class="fields">
            <Progress label="Comparing" done={work.done} total={work.total} />
            <button type="button" class="secondary" onClick={() => running.current?.abort()}>
              Stop
            </button>
          </div>
        )}
        <div class="boxed">
          <Grid
            label="Differences"
            columns={COLUMNS}
            count={pairs.length}
            row={row}
            onOpen={(i) => {
              const pair = pairs[i];
              if (pair?.isComparable) onOpen(pair.name);
            }}
          />
        </div>
      </Section>
      <Section title="Metadata">
        <Answered answer={keys} label="Comparing metadata">
          {(different) =>
            different.length === 0 ? (
              <p class="note">Both files have the same metadata.</p>
            ) : (
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
            )
          }
        </Answered>
      </Section>
    </>
  );
}

function addresses(a: ModelView, b: ModelView, pair: Pair): { a: TensorAddress; b: TensorAddress } {
  return { a: { model: a.id, tensor: pair.a }, b: { model: b.id, tensor: pair.b } };
}

function decibels(ratio: number): string {
  if (Number.isFinite(ratio)) return `${ratio.toFixed(1)} dB`;
  return ratio > 0 ? "exact" : "?";
}

function SideBySide({ a, b, sameShape }: { a: TensorAddress; b: TensorAddress; sameShape: boolean }) {
  const [measure, setMeasure] = useState<Measure>("means");
  const size = { width: PICTURE.width / 2, height: PICTURE.height / 2 };
  const pictureA = useAnswer("a", (options) => ask("picture", { ...a, ...size }, options));
  const pictureB = useAnswer("b", (options) => ask("picture", { ...b, ...size }, options));
  const sides = [
    { title: "A", testId: "picture-a", answer: pictureA },
    { title: "B", testId: "picture-b", answer: pictureB },
  ];
  return (
    <>
      <MeasureChoice measure={measure} onChange={setMeasure} />
      <div class="side-by-side">
        {sides.map(({ title, testId, answer }) => (
          <div key={title}>
            <h3>{title}</h3>
            <Answered answer={answer} label={`Averaging ${title}`}>
              {(picture) => <Heatmap picture={picture} title={title} testId={testId} measure={measure} />}
            </Answered>
          </div>
        ))}
        {sameShape ? <Difference a={a} b={b} measure={measure} /> : null}
      </div>
      {sameShape ? (
        <Errors a={a} b={b} />
      ) : (
        <p class="note">They have different shapes, so there is no difference to show.</p>
      )}
    </>
  );
}

function Difference({ a, b, measure }: { a: TensorAddress; b: TensorAddress; measure: Measure }) {
  const size = { width: PICTURE.width / 2, height: PICTURE.height / 2 };
  const answer = useAnswer("difference", (options) => ask("difference", { a, b, ...size }, options));
  return (
    <div>
      <h3>A - B</h3>
      <Answered answer={answer} label="Subtracting">
        {(picture) => (
          <Heatmap picture={picture} title="Difference A - B" testId="difference" measure={measure} />
        )}
      </Answered>
    </div>
  );
}

function Errors({ a, b }: { a: TensorAddress; b: TensorAddress }) {
  const answer = useAnswer("errors", (options) => ask("compare", { a, b }, options));
  return (
    <Answered answer={answer} label="Comparing">
      {({ count, different, incomparable, maxError, meanError, rmsError, relativeError, snr, sameBytes }) => (
        <Facts
          testId="comparison"
          facts={[
            [
              "values that differ",
              `${grouped(different)} of ${grouped(count)}${sameBytes ? ", and the same bytes" : ""}`,
            ],
            ["largest error", short(maxError)],
            ["mean error", short(meanError)],
            ["root mean square", short(rmsError)],
            ["relative error", short(relativeError)],
            ["signal to noise", decibels(snr)],
            ...(incomparable > 0 ? [["not comparable", grouped(incomparable)] as const] : []),
          ]}
        />
      )}
    </Answered>
  );
}
