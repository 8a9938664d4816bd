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
  detailKey: number | undefined;
  detailLabel: string;
  testId?: string;
  onClose: () => void;
}) {
  const isOpen = detail !== undefined;
  const listBox = useRef<HTMLDivElement>(null);
  const detailBox = useRef<HTMLElement>(null);
  useEffect(() => {
    if (detailKey === undefined || detailBox.current === null) return;
    detailBox.current.scrollTop = 0;
    // Where it took the place of the list, it takes the focus, too.
    if (listBox.current?.offsetParent === null) detailBox.current.focus({ preventScroll: true });
  }, [detailKey]);
  const close = (): void => {
    onClose();
    requestAnimationFrame(() => listBox.current?.querySelector<HTMLElement>("[role=grid]")?.focus());
  };
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
          onKeyDown={(event) => {
            if (event.key === "Escape") close();
          }}
        >
          <button type="button" class="quiet close" onClick={close}>
            Close
          </button>
          {detail}
        </section>
      ) : null}
    </div>
  );
}
