/** Small parts that every view is made of. */
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { escapeText, shorten } from "#dist/describe/text";
import type { Answer } from "./client";
import type { Measuring } from "./measured";

/** Work under way. */
export function Progress({ label, done = 0, total = 0 }: { label: string; done?: number; total?: number }) {
  const percent = total > 0 ? Math.min(100, Math.floor((done / total) * 100)) : undefined;
  return (
    <div class="progress">
      <span class="progress-label">
        {label}
        {percent === undefined ? "" : ` ${percent} %`}
      </span>
      <div
        class={percent === undefined ? "progress-bar is-moving" : "progress-bar"}
        role="progressbar"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        {...(percent === undefined ? {} : { "aria-valuenow": percent })}
      >
        <div style={{ width: `${percent ?? 30}%` }} />
      </div>
    </div>
  );
}

/** How far the work on all tensors is, with a button to stop it; or one to start it. */
export function WorkBar(props: { measuring: Measuring<unknown>; label: string; startLabel: string }) {
  const { work, isComplete, start, stop } = props.measuring;
  if (work !== undefined) {
    return (
      <div class="fields">
        <Progress label={props.label} done={work.done} total={work.total} />
        <button type="button" onClick={stop}>
          Stop
        </button>
      </div>
    );
  }
  return isComplete ? null : (
    <button type="button" onClick={start}>
      {props.startLabel}
    </button>
  );
}

export function Failure({ message }: { message: string }) {
  return (
    <p class="failure" role="alert">
      {message}
    </p>
  );
}

/** What the address names is not in the file. */
export function Missing({ noun, name }: { noun: string; name: string }) {
  return <Failure message={`There is no ${noun} named ${shorten(escapeText(name), 300)} in this file.`} />;
}

/** The answer to a question, or how far it is. */
export function Answered<T>({
  answer,
  label,
  children,
}: {
  answer: Answer<T>;
  label: string;
  children: (result: T) => ComponentChildren;
}) {
  if (answer.state === "busy") return <Progress label={label} done={answer.done} total={answer.total} />;
  if (answer.state === "failed") return <Failure message={answer.message} />;
  return <>{children(answer.result)}</>;
}

/** A part of a view, with its heading. */
export function Section({
  title,
  note,
  children,
}: {
  title: string;
  note?: ComponentChildren;
  children: ComponentChildren;
}) {
  const id = useId();
  return (
    <section class="section" aria-labelledby={id}>
      <div class="section-head">
        <h2 id={id}>{title}</h2>
        {note === undefined ? null : <span class="note">{note}</span>}
      </div>
      {children}
    </section>
  );
}

/** Names and values. */
export function Facts({
  facts,
  testId,
}: {
  facts: readonly (readonly [name: string, value: string])[];
  testId?: string;
}) {
  return (
    <dl class="facts" data-testid={testId}>
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{capital(name)}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** A small table. Columns of numbers are on the right. */
export function Table({
  label,
  columns,
  rows,
  testId,
}: {
  label: string;
  columns: readonly (string | { readonly title: string; readonly isNumber: true })[];
  rows: readonly (readonly ComponentChildren[])[];
  testId?: string;
}) {
  const classOf = (i: number): string | undefined => (typeof columns[i] === "object" ? "number" : undefined);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table is scrolled by keys
    <section class="table" aria-label={`Table: ${label}`} tabIndex={0} data-testid={testId}>
      <table aria-label={label}>
        <thead>
          <tr>
            {columns.map((column, i) => {
              const title = typeof column === "object" ? column.title : column;
              return (
                <th key={title} scope="col" class={classOf(i)}>
                  {title}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, r) => (
            <tr key={r}>
              {row.map((cell, i) =>
                i === 0 ? (
                  <th key={i} scope="row" class={classOf(i)}>
                    {cell}
                  </th>
                ) : (
                  <td key={i} class={classOf(i)}>
                    {cell}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** A search box, and how many there are. */
export function Search({
  label,
  value,
  onInput,
  matches,
  children,
}: {
  label: string;
  value: string;
  onInput: (value: string) => void;
  matches: string;
  children?: ComponentChildren;
}) {
  return (
    <div class="search">
      <input
        type="search"
        aria-label={label}
        placeholder={label}
        value={value}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      {children}
      <span class="note" data-testid="matches" role="status">
        {matches}
      </span>
    </div>
  );
}
