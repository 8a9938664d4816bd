/** Work: how far the values of a tensor in one model are from those in another. */
import type { Work } from "./pieces";

export interface ComparisonSetup {
  /** The tensors that both models store in the same type and byte order: the same bytes are the same values. */
  sameEncoding: ReadonlySet<string>;
}

export interface Comparison {
  elements: number;
  /** Whether even the stored bytes are the same. */
  identical: boolean;
  /** Values that differ; 0 and -0 are the same, and so are NaN and NaN. */
  different: number;
  /** Values that are a NaN or an infinity in one file and something else in the other: they have no error. */
  incomparable: number;
  /** The largest distance between two finite values. */
  maxError: number;
  /** The sum of the distances between finite values, and of their squares. */
  sumError: number;
  sumSquares: number;
}

export function emptyComparison(): Comparison {
  return {
    elements: 0,
    identical: true,
    different: 0,
    incomparable: 0,
    maxError: 0,
    sumError: 0,
    sumSquares: 0,
  };
}

/** Adds one comparison to another. */
export function mergeComparison(total: Comparison, part: Comparison): void {
  total.elements += part.elements;
  total.identical &&= part.identical;
  total.different += part.different;
  total.incomparable += part.incomparable;
  total.maxError = Math.max(total.maxError, part.maxError);
  total.sumError += part.sumError;
  total.sumSquares += part.sumSquares;
}

export function compare({ sameEncoding }: ComparisonSetup): Work<Comparison> {
  return async (pieces, { name }) => {
    const total = emptyComparison();
    for await (const piece of pieces) {
      total.elements += piece.elements;
      if (sameEncoding.has(name)) {
        const [a, b] = piece.bytes() as [Uint8Array, Uint8Array];
        if (Buffer.compare(a, b) === 0) continue;
      }
      total.identical = false;
      await piece.values((a, b) => add(total, a as Float32Array, b as Float32Array));
    }
    return total;
  };
}

function add(total: Comparison, a: Float32Array, b: Float32Array): void {
  for (let i = 0; i < a.length; i++) {
    const x = a[i] as number;
    const y = b[i] as number;
    if (x === y || (Number.isNaN(x) && Number.isNaN(y))) continue;
    total.different++;
    const error = Math.abs(x - y);
    // Not finite where either value is not, or where both are so large that the distance is not.
    if (error - error !== 0) {
      total.incomparable++;
      continue;
    }
    if (error > total.maxError) total.maxError = error;
    total.sumError += error;
    total.sumSquares += error * error;
  }
}
