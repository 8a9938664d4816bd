/** A list, and beside it what one of its rows stands for; on a phone instead of it. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export function Split({
  list,
  detail,
  detailKey,
  detailLabel,
  testId,
  onClose,
}: {
  list: ComponentChildren;
  detail: ComponentChildren | undefined;
  /** Of the row that it stands for. */
  detailKey: string;
  detailLabel: string;
  testId?: string;
  onClose: () => void;
}) {
  const isOpen = detail !== undefined;
  const listBox = useRef<HTMLDivElement>(null);
  const detailBox = useRef<HTMLElement>(null);
  const isNew = useRef(true);
  useEffect(() => {
    const wasNew = isNew.current;
    isNew.current = false;
    if (detailBox.current === null) return;
    detailBox.current.scrollTop = 0;
    // Where it took the place of the list, it takes the focus, too.
    if (!wasNew && listBox.current?.offsetParent === null) detailBox.current.focus({ preventScroll: true });
  }, [detailKey]);
  // What had the focus is gone with it.
  useEffect(() => {
    if (!isOpen) return undefined;
    return () => {
      const grid = listBox.current?.querySelector<HTMLElement>("[role=grid]");
      requestAnimationFrame(() => {
        if (document.activeElement === document.body) grid?.focus({ preventScroll: true });
      });
    };
  }, [isOpen]);
  return (
    <div class={isOpen ? "split is-open" : "split"}>
      <div class="split-list" ref={listBox}>
        {list}
      </div>
      {isOpen ? (
        <section
          class="split-detail"
          aria-label={detailLabel}
          data-testid={testId}
          ref={detailBox}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled by keys
          tabIndex={0}
        >
          <div class="split-head">
            <span class="note">{detailLabel}</span>
            <button type="button" class="quiet" onClick={onClose}>
              Close
            </button>
          </div>
          {detail}
        </section>
      ) : null}
    </div>
  );
}
