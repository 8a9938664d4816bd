/** Work: how far the values of a part of a tensor are from those in another file. */
import { type GgmlType, type GgufTensor, ggmlTypes, openSync } from "../../index";
import { type Part, partReader } from "./pieces";

export interface Comparison {
  elements: number;
  /** Whether even the stored bytes are the same. */
  identical: boolean;
  /** Values that are not the same number: 0 and -0 are, NaN and NaN are. */
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
  const counts = { elements: 0, different: 0, incomparable: 0 };
  return { ...counts, identical: true, maxError: 0, sumError: 0, sumSquares: 0 };
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

export function prepare(paths: readonly [string, string]): (part: Part) => Comparison {
  const a = openSync(paths[0]);
  const b = openSync(paths[1]);
  const read = partReader(a, b);
  return (part) => {
    const total = emptyComparison();
    total.elements = part.end - part.start;
    if (a.byteOrder === b.byteOrder && sameBytes(a.tensor(part.name), b.tensor(part.name), part))
      return total;
    total.identical = false;
    read(part, (x, y) => add(total, x as Float32Array, y as Float32Array));
    return total;
  };
}

/** Whether a part is stored in the same type and the same bytes. */
function sameBytes(a: GgufTensor, b: GgufTensor, { start, end }: Part): boolean {
  if (a.type !== b.type) return false;
  const { blockSize, typeSize } = ggmlTypes[a.type as GgmlType];
  const [from, to] = [start, end].map((element) => (element / blockSize) * typeSize);
  return Buffer.compare(a.bytes().subarray(from, to), b.bytes().subarray(from, to)) === 0;
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
