/** Keys and values, with search; a long value in full beside the list. */
import { useMemo, useState } from "preact/hooks";
import { counted, grouped, humanBytes } from "#dist/describe/text";
import type { ModelView, ValueView } from "../lib/protocol";
import { wordsOf } from "../lib/tensor-list";
import { ask, useAnswer } from "./client";
import { Grid } from "./grid";
import { Answered, Search } from "./parts";
import { Split } from "./split";

/** Elements of an array on a page. */
const PAGE = 100;

const COLUMNS = [
  { title: "Key", className: "c-key name" },
  { title: "Type", className: "c-type note" },
  { title: "Value", className: "c-value" },
];

export function Metadata({ model }: { model: ModelView }) {
  const { metadata } = model;
  const [search, setSearch] = useState("");
  const [open, setOpen] = useState<number | undefined>(undefined);
  const found = useMemo(() => {
    const words = wordsOf(search);
    return metadata.flatMap(({ key, type, text }, i) => {
      const all = `${key} ${type} ${text}`.toLowerCase();
      return words.every((word) => all.includes(word)) ? [i] : [];
    });
  }, [metadata, search]);
  const detail = open === undefined ? undefined : <Value key={open} model={model} index={open} />;
  return (
    <Split
      detail={detail}
      detailKey={open}
      detailLabel="Value"
      onClose={() => setOpen(undefined)}
      list={
        <>
          <Search
            label="Search metadata"
            value={search}
            onInput={setSearch}
            matches={matchesText(found.length, metadata.length, "key")}
          />
          <Grid
            label="Metadata"
            columns={COLUMNS}
            count={found.length}
            selected={open === undefined ? undefined : found.indexOf(open)}
            onOpen={(i) => setOpen(found[i])}
            row={(i) => {
              const { key, type, text } = metadata[found[i] as number] as ModelView["metadata"][number];
              return { cells: [key, type, text] };
            }}
          />
        </>
      }
    />
  );
}

/** "12 of 345 keys". */
export function matchesText(found: number, all: number, noun: string): string {
  return found === all ? counted(all, noun) : `${grouped(found)} of ${counted(all, noun)}`;
}

function Value({ model, index }: { model: ModelView; index: number }) {
  const [first, setFirst] = useState(0);
  const { key, type } = model.metadata[index] as ModelView["metadata"][number];
  const answer = useAnswer(`${model.id} ${index} ${first}`, (options) =>
    ask("value", { model: model.id, key: index, first, count: PAGE }, options),
  );
  return (
    <>
      <h2 class="name">{key}</h2>
      <p class="note">{type}</p>
      <Answered answer={answer} label="Reading the value">
        {(view) => (view.kind === "text" ? <Text view={view} /> : <Elements view={view} onPage={setFirst} />)}
      </Answered>
    </>
  );
}

function Text({ view }: { view: Extract<ValueView, { kind: "text" }> }) {
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long text is scrolled by keys */}
      <pre class="value" data-testid="value" tabIndex={0}>
        {view.text}
      </pre>
      {view.isCut ? <p class="note">The first part of {humanBytes(view.byteLength)}.</p> : null}
    </>
  );
}

function Elements({
  view,
  onPage,
}: {
  view: Extract<ValueView, { kind: "array" }>;
  onPage: (first: number) => void;
}) {
  const { first, elements, length } = view;
  const end = first + elements.length;
  return (
    <>
      <div class="pager">
        <button type="button" disabled={first === 0} onClick={() => onPage(Math.max(0, first - PAGE))}>
          Previous
        </button>
        <button type="button" disabled={end >= length} onClick={() => onPage(first + PAGE)}>
          Next
        </button>
        <span class="note" role="status">
          {length === 0
            ? "no elements"
            : `${grouped(first)} to ${grouped(end - 1)} of ${counted(length, "element")}`}
        </span>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long list is scrolled by keys */}
      <ol class="elements" data-testid="value" start={first} tabIndex={0}>
        {elements.map((text, i) => (
          <li key={i}>
            <span class="note number" aria-hidden="true">
              {grouped(first + i)}
            </span>
            <code>{text}</code>
          </li>
        ))}
      </ol>
    </>
  );
}
