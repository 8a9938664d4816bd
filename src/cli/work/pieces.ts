/** Tensors in pieces, so that memory stays bounded however large they are. All counts are elements. */
import {
  allocate,
  type Dequantized,
  type DType,
  type GgufFile,
  type GgufModelTensor,
  type GgufTensor,
} from "../../index";

/** A model that every thread opens for itself. */
export interface Source {
  path: string;
  /** Whether all files of a split model are it, or just this one. */
  splits: boolean;
}

/** A part of a tensor: whole blocks. */
export interface Part {
  name: string;
  start: number;
  end: number;
}

/** A tensor in a file or on a server. */
export type DecodableTensor = GgufModelTensor & Pick<GgufTensor, "dequantize">;

/** What one task of a worker is about: enough to make its round trip cheap, little enough to share work out evenly. */
const TASK_ELEMENTS = 2 ** 22;

/** What is decoded before it is looked at: it stays in the cache. A multiple of every block size, as all sizes here. */
const CACHED_ELEMENTS = 2 ** 18;

/** What is decoded ahead while the piece before it is written. */
const WRITTEN_ELEMENTS = 2 ** 22;

function* ranges(start: number, end: number, step: number): Generator<{ start: number; end: number }> {
  for (; start < end; start += step) yield { start, end: Math.min(end, start + step) };
}

/** The tensors in parts for `spread`. */
export function partsOf(tensors: readonly GgufTensor[]): Part[] {
  return tensors.flatMap(({ name, elementCount }) =>
    Array.from(ranges(0, elementCount, TASK_ELEMENTS), (range) => ({ name, ...range })),
  );
}

/** Bytes of a part once it is dequantized. */
export function partBytes({ start, end }: Part): number {
  return (end - start) * 4;
}

/**
 * A function that hands the values of a part of a tensor to `visit`, a piece at a time: those of each of the files, which
 * all have such a tensor. They are good until the next piece.
 */
export function partReader(
  ...files: readonly GgufFile[]
): (part: Part, visit: (...values: readonly Float32Array[]) => void) => void {
  const buffers = files.map(() => new Float32Array(CACHED_ELEMENTS));
  return ({ name, start, end }, visit) => {
    const tensors = files.map((file) => file.tensor(name));
    for (const range of ranges(start, end, CACHED_ELEMENTS)) {
      const length = range.end - range.start;
      visit(
        ...tensors.map((tensor, i) =>
          tensor.dequantizeSync({ ...range, out: (buffers[i] as Float32Array).subarray(0, length) }),
        ),
      );
    }
  };
}

/** Yields all of a tensor; the next piece is decoded on the addon's threads while the caller writes this one. */
export async function* decodedAhead<D extends DType>(
  tensor: DecodableTensor,
  dtype: D,
): AsyncGenerator<Dequantized<D>> {
  const todo = ranges(0, tensor.elementCount, WRITTEN_ELEMENTS);
  const length = Math.min(tensor.elementCount, WRITTEN_ELEMENTS);
  const buffers = [allocate(length, dtype), allocate(length, dtype)] as const;
  const decode = (turn: 0 | 1): Promise<Dequantized<D>> | undefined => {
    const range = todo.next().value;
    if (range === undefined) return undefined;
    const out = buffers[turn].subarray(0, range.end - range.start) as Dequantized<D>;
    const job = tensor.dequantize<D>({ dtype, ...range, out });
    job.catch(() => undefined); // reported when it is awaited, if it still is
    return job;
  };
  let turn: 0 | 1 = 0;
  for (let job = decode(turn); job !== undefined; ) {
    const values = await job;
    turn = turn === 0 ? 1 : 0;
    job = decode(turn);
    yield values;
  }
}
