/**
 * A list of any length, of which only the rows in sight are elements, as a table cannot have it. Arrow keys go through it, Enter
 * opens a row: the list has the focus, and names the active row (biome.json leaves out the rules that know tables alone).
 */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { escapeText, shorten } from "#dist/describe/text";
import { listHeight, rowsInSight, scrollTopFor } from "../lib/rows";

export interface GridColumn {
  readonly title: string;
  readonly className: string;
  /** What its head sorts by. */
  readonly order?: string;
  readonly isDescending?: boolean;
}

/** What a row shows: a cell for each column, or a title over all of them. */
export type GridRow =
  | { readonly cells: readonly ComponentChildren[] }
  | { readonly title: ComponentChildren; readonly isOpen: boolean };

export function Grid({
  label,
  columns,
  order,
  onOrder,
  count,
  rowHeight = 40,
  row,
  selected,
  search = "",
  onOpen,
}: {
  label: string;
  columns: readonly GridColumn[];
  /** The one that it has; after "-" reversed. */
  order?: string;
  onOrder?: (order: string) => void;
  count: number;
  rowHeight?: number;
  row: (index: number) => GridRow;
  /** The row that is shown elsewhere. */
  selected?: number | undefined;
  /** What was searched. */
  search?: string;
  onOpen?: (index: number) => void;
}) {
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const [scrollTop, setScrollTop] = useState(0);
  const [viewHeight, setViewHeight] = useState(600);
  const [active, setActive] = useState(0);
  const current = Math.min(active, Math.max(0, count - 1));

  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => setViewHeight(element.clientHeight - rowHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, [rowHeight]);

  // A list that became shorter scrolls by itself, without an event in some browsers.
  useEffect(() => {
    if (box.current !== null) setScrollTop(box.current.scrollTop);
  }, [count]);

  useEffect(() => {
    if (selected !== undefined && selected >= 0) goTo(selected);
  }, [selected]);

  const goTo = (index: number): void => {
    const next = Math.max(0, Math.min(index, count - 1));
    setActive(next);
    const element = box.current;
    if (element === null) return;
    const height = element.clientHeight - rowHeight;
    element.scrollTop = scrollTopFor(next, count, rowHeight, element.scrollTop, height);
  };

  const page = Math.max(1, Math.floor(viewHeight / rowHeight) - 1);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.target !== event.currentTarget) return; // but a head
    const targets: Record<string, () => number> = {
      ArrowDown: () => current + 1,
      ArrowUp: () => current - 1,
      PageDown: () => current + page,
      PageUp: () => current - page,
      Home: () => 0,
      End: () => count - 1,
    };
    const target = targets[event.key];
    if (target !== undefined) {
      event.preventDefault();
      goTo(target());
    } else if ((event.key === "Enter" || event.key === " ") && count > 0) {
      event.preventDefault();
      onOpen?.(current);
    }
  };

  const { first, end, top } = rowsInSight(count, rowHeight, scrollTop, viewHeight);
  const isActiveInSight = current >= first && current < end;
  const indexes = Array.from({ length: end - first }, (_, i) => first + i);
  return (
    <div
      class="grid"
      role="grid"
      aria-label={label}
      aria-rowcount={count + 1}
      aria-colcount={columns.length}
      tabIndex={0}
      aria-activedescendant={isActiveInSight ? `${id}-${current}` : undefined}
      ref={box}
      onScroll={(event) => setScrollTop(event.currentTarget.scrollTop)}
      onKeyDown={onKeyDown}
    >
      <div class="grid-row grid-head" role="row" aria-rowindex={1} style={{ height: `${rowHeight}px` }}>
        {columns.map(({ title, className, order: own, isDescending = false }) => (
          <div
            key={title}
            role="columnheader"
            class={className}
            aria-sort={
              own === undefined || order?.replace("-", "") !== own
                ? undefined
                : isDescending === (order === own)
                  ? "descending"
                  : "ascending"
            }
          >
            {own === undefined ? (
              title
            ) : (
              <button type="button" onClick={() => onOrder?.(own === order ? `-${own}` : own)}>
                {title}
              </button>
            )}
          </div>
        ))}
      </div>
      <div class="grid-body" role="rowgroup" style={{ height: `${listHeight(count, rowHeight)}px` }}>
        {count > 0 ? null : (
          <div class="none" role="row">
            <div role="gridcell">
              {search === ""
                ? "There are none in this file."
                : `Nothing has "${shorten(escapeText(search), 100)}". Escape in the search box shows all of them again.`}
            </div>
          </div>
        )}
        {indexes.map((index) => {
          const shown = row(index);
          const classes = [
            "grid-row",
            "title" in shown ? "is-title" : "",
            index === current ? "is-active" : "",
            index === selected ? "is-selected" : "",
          ];
          return (
            <div
              key={index}
              id={`${id}-${index}`}
              class={classes.filter(Boolean).join(" ")}
              role="row"
              aria-rowindex={index + 2}
              aria-selected={index === selected}
              style={{ height: `${rowHeight}px`, top: `${top + (index - first) * rowHeight}px` }}
              onClick={() => {
                setActive(index);
                onOpen?.(index);
              }}
            >
              {"title" in shown ? (
                <div role="gridcell" aria-colspan={columns.length} aria-expanded={shown.isOpen}>
                  {shown.title}
                </div>
              ) : (
                columns.map(({ title, className }, i) => (
                  <div key={title} role="gridcell" class={className}>
                    {shown.cells[i]}
                  </div>
                ))
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}
