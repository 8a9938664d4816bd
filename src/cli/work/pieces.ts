/** Tensors in pieces, so that memory stays bounded however large they are. All counts are elements. */

/** What one task is about: a part of a tensor that each of the models has, whole blocks. */
export interface Task {
  /** The tensor's name in the first of the models. */
  readonly name: string;
  /** Its name in each of them. Names that are not UTF-8 are made unique in each, and so may differ. */
  readonly names: readonly string[];
  readonly start: number;
  readonly end: number;
  /** How much work it is, in bytes. */
  readonly cost: number;
}

/** A piece of a task: the same elements in each of the models. */
export interface Piece {
  readonly elements: number;
  /** The bytes as stored, in each of the models. */
  bytes(): readonly Uint8Array[];
  /** Calls `visit` with the values in each of the models, some at a time and in order. They are good until it returns. */
  values(visit: (...values: readonly Float32Array[]) => void): void | Promise<void>;
}

/** The pieces of a task in order. */
export type Pieces = Iterable<Piece> | AsyncIterable<Piece>;

/** What is done with the pieces of a task. */
export type Work<Result> = (pieces: Pieces, task: Task) => Promise<Result>;

/** The most elements of a piece. A multiple of every block size, as all sizes here. */
export const PIECE_ELEMENTS = 2 ** 22;

/** A range of elements. */
export interface ElementRange {
  readonly start: number;
  readonly end: number;
}

/** `start` to `end` in steps. */
export function* ranges(start: number, end: number, step: number): Generator<ElementRange> {
  for (; start < end; start += step) yield { start, end: Math.min(end, start + step) };
}

/**
 * Tasks of a piece each for work on values: enough to make the way to a thread and back cheap, little enough to share
 * work out evenly. They do not depend on where the model is, and so neither do results that are sums.
 * @param namesOf the name of a tensor in each of the models, if there are several
 */
export function valueTasks(
  tensors: Iterable<{ name: string; elementCount: number }>,
  namesOf = (name: string): readonly string[] => [name],
): Task[] {
  return Array.from(tensors).flatMap(({ name, elementCount }) =>
    Array.from(ranges(0, elementCount, PIECE_ELEMENTS), ({ start, end }) => {
      const cost = (end - start) * Float32Array.BYTES_PER_ELEMENT;
      return { name, names: namesOf(name), start, end, cost };
    }),
  );
}
