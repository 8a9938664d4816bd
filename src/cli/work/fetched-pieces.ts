/** Pieces of models of which at least one is on a server: every byte is fetched once. */
import { runJob } from "../../decode/jobs";
import { dtypeNumber } from "../../decode/kernels";
import { allocate, type GgmlType, type GgufModel, type GgufModelTensor, ggmlTypes } from "../../index";
import { native } from "../../native";
import { PIECE_ELEMENTS, type Piece, ranges, type Task } from "./pieces";

/**
 * A function that takes tasks on `models` to pieces.
 * @param onPiece called with the elements of each piece once it was used
 */
export function fetchedPieces(
  models: readonly GgufModel<GgufModelTensor>[],
): (task: Task, signal: AbortSignal, onPiece: (elements: number) => void) => AsyncIterable<Piece> {
  const spare: Float32Array[] = [];
  return async function* ({ names, start, end }, signal, onPiece) {
    const tensors = models.map((model, i) => model.tensor(names[i] as string));
    for (const range of ranges(start, end, PIECE_ELEMENTS)) {
      const elements = range.end - range.start;
      const stored = await Promise.all(tensors.map((tensor) => tensor.read({ ...range, signal })));
      yield {
        elements,
        bytes: () => stored,
        async values(visit) {
          const buffers = models.map(() => spare.pop() ?? allocate(PIECE_ELEMENTS));
          const decoded = models.map((model, i) => {
            const { type } = tensors[i] as GgufModelTensor;
            const out = (buffers[i] as Float32Array).subarray(0, elements);
            return decode(type as GgmlType, stored[i] as Uint8Array, model.byteOrder === "big", out);
          });
          visit(...(await Promise.all(decoded)));
          spare.push(...buffers);
        },
      };
      onPiece(elements);
    }
  };
}

/** Decodes stored bytes of either byte order off this thread. */
async function decode(
  type: GgmlType,
  bytes: Uint8Array,
  bigEndian: boolean,
  out: Float32Array,
): Promise<Float32Array> {
  const { id } = ggmlTypes[type];
  await runJob(
    undefined,
    () =>
      native.dequantizeBlocksAsync(id, bytes, dtypeNumber("f32"), 0, out.length, out, undefined, bigEndian),
    (error) => error,
  );
  return out;
}
