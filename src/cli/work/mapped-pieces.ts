/** Pieces of models that are mapped by this thread. */
import { type GgmlType, type GgufFile, type GgufTensor, ggmlTypes } from "../../index";
import { type ElementRange, PIECE_ELEMENTS, type Piece, ranges, type Task } from "./pieces";

/** What is decoded before it is looked at: it stays in the cache. */
const CACHED_ELEMENTS = 2 ** 18;

/** A function that takes tasks on `files` to pieces. */
export function mappedPieces(files: readonly GgufFile[]): (task: Task) => Iterable<Piece> {
  const buffers = files.map(() => new Float32Array(CACHED_ELEMENTS));
  return function* ({ names, start, end }) {
    const tensors = files.map((file, i) => file.tensor(names[i] as string));
    for (const range of ranges(start, end, PIECE_ELEMENTS)) {
      yield {
        elements: range.end - range.start,
        bytes: () => tensors.map((tensor) => storedBytes(tensor, range)),
        values(visit) {
          for (const cached of ranges(range.start, range.end, CACHED_ELEMENTS)) {
            const length = cached.end - cached.start;
            const decoded = tensors.map((tensor, i) =>
              tensor.dequantizeSync({ ...cached, out: (buffers[i] as Float32Array).subarray(0, length) }),
            );
            visit(...decoded);
          }
        },
      };
    }
  };
}

function storedBytes(tensor: GgufTensor, { start, end }: ElementRange): Uint8Array {
  const { blockSize, typeSize } = ggmlTypes[tensor.type as GgmlType];
  return tensor.bytes().subarray((start / blockSize) * typeSize, (end / blockSize) * typeSize);
}
