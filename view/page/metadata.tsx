/** Keys and values, with search; a long value in full beside the list. */
import { useMemo, useState } from "preact/hooks";
import { counted, grouped, humanBytes } from "#dist/describe/text";
import { isChatTemplate } from "../lib/chat-template";
import type { ModelView, ValueView } from "../lib/protocol";
import { searchMatcher } from "../lib/search";
import { ChatTemplate } from "./chat-template";
import { ask, useAnswer } from "./client";
import { Grid } from "./grid";
import { Answered, Missing, Search } from "./parts";
import { useView } from "./place";
import { Split } from "./split";

/** Elements of an array on a page. */
const PAGE = 100;

const COLUMNS = [
  { title: "Key", className: "c-key name" },
  { title: "Type", className: "c-type note" },
  { title: "Value", className: "c-value" },
];

export function Metadata({
  model,
  name,
  onOpen,
}: {
  model: ModelView;
  /** Of the key whose value is shown, if one is. */
  name: string;
  onOpen: (name: string) => void;
}) {
  const { metadata } = model;
  const [search, setSearch] = useView("search");
  const open = name === "" ? -1 : metadata.findIndex(({ key }) => key === name);
  const found = useMemo(() => {
    const matches = searchMatcher(search);
    return metadata.flatMap(({ key, type, text }, i) => (matches(key, `${key} ${type} ${text}`) ? [i] : []));
  }, [metadata, search]);
  const detail =
    open >= 0 ? (
      <Value key={open} model={model} index={open} />
    ) : name === "" ? undefined : (
      <Missing noun="key" name={name} />
    );
  return (
    <Split
      detail={detail}
      detailKey={name}
      detailLabel="Value"
      onClose={() => onOpen("")}
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
            search={search}
            selected={open < 0 ? undefined : found.indexOf(open)}
            onOpen={(i) => onOpen(metadata[found[i] as number]?.key ?? "")}
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
        {(view) =>
          view.kind === "array" ? (
            <Elements view={view} onPage={setFirst} />
          ) : type === "string" && isChatTemplate(key) ? (
            <ChatTemplate model={model} index={index} source={<Text view={view} />} />
          ) : (
            <Text view={view} />
          )
        }
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

function Elements({ view, onPage }: { view: Extract<ValueView, { kind: "array" }>; onPage: (first: number) => void }) {
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
          {length === 0 ? "no elements" : `${grouped(first)} to ${grouped(end - 1)} of ${counted(length, "element")}`}
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
