/** A matrix averaged down to the size of a picture, in one pass over its values. */

/** The averages of the cells of a picture, row by row. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  /** Of the matrix. */
  readonly columnCount: number;
  readonly rowCount: number;
  /** The mean of the finite values of a cell; NaN where it has none. */
  readonly means: Float32Array;
  /** The mean of their magnitudes. */
  readonly magnitudes: Float32Array;
  /** How many values were not finite. */
  readonly notFinite: number;
}

/** Adds up values, which come in the order of the matrix, in pieces of any length. */
export class Averages {
  readonly width: number;
  readonly height: number;
  readonly #columns: number;
  readonly #rows: number;
  readonly #sums: Float64Array;
  readonly #sizes: Float64Array;
  readonly #counts: Float64Array;
  /** The column at which each cell of a row begins, and the number of columns at the end. */
  readonly #edges: Float64Array;
  #row = 0;
  #column = 0;
  #cell = 0;
  #notFinite = 0;

  /** A picture of at most `width` by `height` cells, no more than there are values. */
  constructor(columns: number, rows: number, width: number, height: number) {
    this.#columns = columns;
    this.#rows = rows;
    this.width = Math.min(width, columns);
    this.height = Math.min(height, rows);
    const cells = this.width * this.height;
    this.#sums = new Float64Array(cells);
    this.#sizes = new Float64Array(cells);
    this.#counts = new Float64Array(cells);
    this.#edges = Float64Array.from({ length: this.width + 1 }, (_, x) => Math.ceil((x * columns) / this.width));
  }

  /** The next values. */
  add(values: Float32Array): void {
    for (let at = 0; at < values.length; ) {
      const end = Math.min((this.#edges[this.#cell + 1] as number) - this.#column, values.length - at);
      this.#addTo(Math.floor((this.#row * this.height) / this.#rows) * this.width + this.#cell, values, at, at + end);
      at += end;
      this.#column += end;
      if (this.#column === this.#edges[this.#cell + 1]) this.#cell++;
      if (this.#column === this.#columns) {
        this.#row++;
        this.#column = 0;
        this.#cell = 0;
      }
    }
  }

  #addTo(cell: number, values: Float32Array, begin: number, end: number): void {
    let sum = 0;
    let size = 0;
    for (let i = begin; i < end; i++) {
      const value = values[i] as number;
      sum += value;
      size += Math.abs(value);
    }
    let count = end - begin;
    // What is not finite shows in the sums, and is left out then.
    if (!Number.isFinite(size)) {
      sum = 0;
      size = 0;
      for (let i = begin; i < end; i++) {
        const value = values[i] as number;
        if (Number.isFinite(value)) {
          sum += value;
          size += Math.abs(value);
        } else {
          count--;
          this.#notFinite++;
        }
      }
    }
    this.#sums[cell] = (this.#sums[cell] as number) + sum;
    this.#sizes[cell] = (this.#sizes[cell] as number) + size;
    this.#counts[cell] = (this.#counts[cell] as number) + count;
  }

  /** What has come so far. */
  picture(): Picture {
    const mean = (sums: Float64Array): Float32Array =>
      Float32Array.from(sums, (sum, cell) => sum / (this.#counts[cell] as number));
    return {
      width: this.width,
      height: this.height,
      columnCount: this.#columns,
      rowCount: this.#rows,
      means: mean(this.#sums),
      magnitudes: mean(this.#sizes),
      notFinite: this.#notFinite,
    };
  }
}

/** The colours of a picture: what is in their middle, and how far from it they end. */
export interface ColorScale {
  readonly middle: number;
  readonly limit: number;
}

/** Of the cells, those that the colours end before: single ones do not pale the rest. */
const FEW = 0.005;

/**
 * The scale for values on both sides of zero has zero in the middle. Where nearly all are on one side, as in the weights of
 * a norm, it is their median: around it they can be told apart.
 * @param cells numbers that are finite, and NaN
 * @param given what is in the middle in any case
 */
export function colorScale(cells: Float32Array, given?: number): ColorScale {
  const all = cells.slice().sort();
  let count = all.length;
  while (count > 0 && Number.isNaN(all[count - 1])) count--;
  const sorted = all.subarray(0, count);
  const at = (index: number): number => sorted[index] ?? 0;
  const atShare = (share: number): number => at(Math.floor((count - 1) * share));
  const isOneSided = atShare(0.01) > 0 || atShare(0.99) < 0;
  const middle = given ?? (isOneSided ? atShare(0.5) : 0);
  // What is farthest from the middle is at one of the ends.
  let [low, high] = [0, count - 1];
  const limit = (): number => Math.max(middle - at(low), at(high) - middle, 0);
  const farthest = limit();
  for (let few = Math.ceil((count - 1) * FEW); few > 0 && low < high; few--) {
    if (middle - at(low) > at(high) - middle) low++;
    else high--;
  }
  return { middle, limit: limit() || farthest };
}
