import { dot } from "../vectors";

/** Writes the products of rows `first` to `last` of `matrix` with `x` to the same elements of `y`. */
export function multiplyRows(
  matrix: Float32Array,
  x: Float32Array,
  y: Float32Array,
  first: number,
  last: number,
): void {
  for (let row = first; row < last; row++) y[row] = dot(matrix, row * x.length, x, 0, x.length);
}
