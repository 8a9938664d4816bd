/** Tensors decoded for writing. */
import { PART_ELEMENTS, partsOf } from "../../base/ranges";
import { allocateArray, type Dequantized, type DType, type GgufModelTensor } from "../../index";

/** Yields all of a tensor; the next piece is decoded on the addon's threads while the caller writes this one. */
export async function* decodedAhead<D extends DType>(
  tensor: GgufModelTensor,
  dtype: D,
): AsyncGenerator<Dequantized<D>> {
  const todo = partsOf(0, tensor.elementCount);
  const length = Math.min(tensor.elementCount, PART_ELEMENTS);
  const buffers = [allocateArray(length, dtype), allocateArray(length, dtype)] as const;
  const decode = (turn: 0 | 1): Promise<Dequantized<D>> | undefined => {
    const range = todo.next().value;
    if (range === undefined) return undefined;
    const out = buffers[turn].subarray(0, range.end - range.start) as Dequantized<D>;
    const job = tensor.dequantize<D>({ dtype, ...range, out }) as Promise<Dequantized<D>>;
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
