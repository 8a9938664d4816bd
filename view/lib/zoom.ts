/** Which part of a matrix a picture shows: moved, and made larger or smaller around a point. */
import type { Region } from "./protocol";

/** Rows and columns that can be seen at the least. */
const FEWEST = 8;

export interface Size {
  readonly rows: number;
  readonly columns: number;
}

export function wholeOf({ rows, columns }: Size): Region {
  return { row: 0, column: 0, rows, columns };
}

export function isWhole(region: Region, { rows, columns }: Size): boolean {
  return region.rows === rows && region.columns === columns;
}

/**
 * The part of which a point stays where it is.
 * @param factor below 1 shows less, and that larger
 * @param x where the point is, from 0 at the left to 1
 * @param y from 0 at the top to 1
 */
export function zoomed(region: Region, size: Size, factor: number, x = 0.5, y = 0.5): Region {
  const scaled = (count: number, all: number): number =>
    Math.min(all, Math.max(Math.min(FEWEST, all), Math.round(count * factor)));
  const [rows, columns] = [scaled(region.rows, size.rows), scaled(region.columns, size.columns)];
  return moved({ ...region, rows, columns }, size, (region.rows - rows) * y, (region.columns - columns) * x);
}

/** The part so many rows and columns further on, as far as there are some. */
export function moved(region: Region, size: Size, rows: number, columns: number): Region {
  const within = (at: number, count: number, all: number): number => Math.max(0, Math.min(all - count, Math.round(at)));
  return {
    ...region,
    row: within(region.row + rows, region.rows, size.rows),
    column: within(region.column + columns, region.columns, size.columns),
  };
}

/** The part, moved so that it has a weight. */
export function showing(region: Region, size: Size, row: number, column: number): Region {
  const by = (at: number, first: number, count: number): number =>
    at < first ? at - first : Math.max(0, at - (first + count - 1));
  return moved(region, size, by(row, region.row, region.rows), by(column, region.column, region.columns));
}
