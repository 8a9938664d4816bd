/**
 * The rows of a remote tensor: the extents of the file that are fetched for them, and the place of each row.
 */
import { forEachConcurrently } from "../source/concurrent";

/**
 * Rows with at most this many bytes between them are fetched together. A request takes about 100 ms, or 17 ms
 * if six are in flight; at 100 Mbit/s, the bytes of such a gap take 5 ms.
 */
const MAX_GAP_BYTES = 64 << 10;

/**
 * The maximum size of one request, unless a single row is larger. It limits the memory used in addition to
 * the rows.
 */
const MAX_EXTENT_BYTES = 4 << 20;

/** The number of requests in flight. Browsers make as many to one server. */
const MAX_REQUESTS = 6;

/**
 * Rows `first` to `last`: they include all rows at the places `from` to `to` (exclusive) of a sorted list.
 */
interface RowExtent {
  from: number;
  to: number;
  first: number;
  last: number;
}

/**
 * Fetches `rows` of `rowBytes` bytes each into `target`, in the given order. Each row is fetched once, even
 * if it occurs more than once.
 *
 * @param read fills an array with the bytes of the tensor from `first` on
 * @param arrived is called with the number of rows that have arrived
 */
export async function fetchRows(
  rows: Float64Array,
  rowBytes: number,
  target: Uint8Array,
  signal: AbortSignal | undefined,
  read: (first: number, bytes: Uint8Array, signal: AbortSignal) => Promise<void>,
  arrived: ((rows: number) => void) | undefined,
): Promise<void> {
  const order = new Uint32Array(rows.length).map((_, i) => i);
  order.sort((a, b) => (rows[a] as number) - (rows[b] as number));
  const row = (place: number): number => rows[order[place] as number] as number;
  let done = 0;
  await forEachConcurrently(
    extentsOf(row, rows.length, rowBytes),
    MAX_REQUESTS,
    signal,
    async ({ from, to, first, last }, signal) => {
      const bytes = new Uint8Array((last + 1 - first) * rowBytes);
      await read(first * rowBytes, bytes, signal);
      signal.throwIfAborted();
      for (let place = from; place < to; place++) {
        const at = (row(place) - first) * rowBytes;
        target.set(bytes.subarray(at, at + rowBytes), (order[place] as number) * rowBytes);
      }
      done += to - from;
      arrived?.(done);
    },
  );
}

/** The extents that contain `count` sorted rows. */
function* extentsOf(
  row: (place: number) => number,
  count: number,
  rowBytes: number,
): Generator<RowExtent, void, undefined> {
  for (let from = 0, to = 0; from < count; from = to) {
    const first = row(from);
    let last = first;
    for (to = from + 1; to < count; to++) {
      const next = row(to);
      const gapBytes = (next - last - 1) * rowBytes;
      const extentBytes = (next + 1 - first) * rowBytes;
      if (next !== last && (gapBytes > MAX_GAP_BYTES || extentBytes > MAX_EXTENT_BYTES)) break;
      last = next;
    }
    yield { from, to, first, last };
  }
}
