/** A list, and beside it what one of its rows stands for; on a phone instead of it. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export function Split({
  list,
  detail,
  detailLabel,
  testId,
  onClose,
}: {
  list: ComponentChildren;
  detail: ComponentChildren | undefined;
  detailLabel: string;
  testId?: string;
  onClose: () => void;
}) {
  const isOpen = detail !== undefined;
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    if (box.current !== null) box.current.scrollTop = 0;
  }, [detail]);
  return (
    <div class={isOpen ? "split is-open" : "split"}>
      <div class="split-list">{list}</div>
      {isOpen ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled by keys
        <section class="split-detail" aria-label={detailLabel} data-testid={testId} ref={box} tabIndex={0}>
          <button type="button" class="quiet close" onClick={onClose}>
            Close
          </button>
          {detail}
        </section>
      ) : null}
    </div>
  );
}
