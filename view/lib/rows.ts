/** Which rows of a long list are in sight, so that only these are made. */

/** No list is taller: browsers lay out no element of more than some ten million pixels. */
const MAX_HEIGHT = 8_000_000;

/** A part of a list. */
export interface RowsInSight {
  /** From the first row up to, but not with, another one. */
  readonly first: number;
  readonly end: number;
  /** Where the first one begins, in pixels from the top of the list. */
  readonly top: number;
}

/** How tall the element of a list is. A very long list is pressed together: it scrolls by more than a pixel a pixel. */
export function listHeight(count: number, rowHeight: number): number {
  return Math.min(count * rowHeight, MAX_HEIGHT);
}

/** What is in sight where a list is scrolled to, and a few rows before and after it. */
export function rowsInSight(count: number, rowHeight: number, scrollTop: number, viewHeight: number): RowsInSight {
  const margin = 6;
  const position = positionOf(count, rowHeight, scrollTop, viewHeight);
  const first = Math.max(0, Math.min(count, Math.floor(position / rowHeight)) - margin);
  const end = Math.min(count, Math.ceil((position + viewHeight) / rowHeight) + margin);
  return { first, end, top: scrollTop - position + first * rowHeight };
}

/** Where to scroll to so that a row is in sight; where it is already, nowhere else. */
export function scrollTopFor(
  row: number,
  count: number,
  rowHeight: number,
  scrollTop: number,
  viewHeight: number,
): number {
  const position = positionOf(count, rowHeight, scrollTop, viewHeight);
  const wanted = Math.min(row * rowHeight, Math.max(position, (row + 1) * rowHeight - viewHeight));
  if (wanted === position) return scrollTop;
  const [whole, shown] = [count * rowHeight - viewHeight, listHeight(count, rowHeight) - viewHeight];
  return whole <= 0 ? 0 : (wanted * shown) / whole;
}

/** The pixel of the whole list that is at the top. */
function positionOf(count: number, rowHeight: number, scrollTop: number, viewHeight: number): number {
  const [whole, shown] = [count * rowHeight - viewHeight, listHeight(count, rowHeight) - viewHeight];
  if (shown <= 0) return 0;
  return (Math.max(0, Math.min(scrollTop, shown)) * whole) / shown;
}
