/** Where everything is in a file: the header as bytes, and the data of each tensor after it. */
import { GgufError } from "../base/errors";
import { utf8 } from "../base/text-decoder";
import { alignUp, HeaderBytes, type HeaderFormat, lengthBytes } from "./header-bytes";

/** What it is aligned to where that key is absent. */
export const DEFAULT_ALIGNMENT = 32;

/** The most bytes that are handed on in one piece. */
export const PIECE_BYTES = 4 << 20;

/** The most keys, and the most tensors, of a file that is written: there are objects for each, of some hundred bytes. */
const MOST_ENTRIES = 2 ** 20;

/** @throws GgufError ERR_GGUF_RANGE for more keys or tensors than are written */
export function checkCount(count: number, what: "metadata keys" | "tensors", path: string | undefined): void {
  if (count <= MOST_ENTRIES) return;
  const detail = `${count} ${what} are more than can be written, ${MOST_ENTRIES}`;
  throw new GgufError("ERR_GGUF_RANGE", detail, { path });
}

/** What the header says of a tensor, without its offset. */
export interface TensorEntry {
  readonly name: string | Uint8Array;
  /** The number in the file. */
  readonly type: number;
  readonly shape: readonly number[];
  readonly byteLength: number;
}

/** A file to be written. */
export interface Contents<T extends TensorEntry = TensorEntry> {
  readonly format: HeaderFormat;
  readonly alignment: number;
  /** Key, type and value of each, in `format`. */
  readonly entries: readonly Uint8Array[];
  /** How many they are, where several are in one array. */
  readonly entryCount?: number;
  readonly tensors: readonly T[];
}

export interface Layout {
  /** All that comes before the tensor data, without the padding. */
  readonly header: Uint8Array;
  /** Where tensor data starts. */
  readonly dataOffset: number;
  /** Of the whole file. The data of the last tensor is padded as well. */
  readonly byteLength: number;
}

/** Bytes of the preamble of a file: magic, version and both counts. */
export function preambleBytes(format: HeaderFormat): number {
  return 8 + 2 * lengthBytes(format);
}

export function writePreamble(out: HeaderBytes, tensorCount: number, entryCount: number): HeaderBytes {
  return out.raw(utf8("GGUF")).int(4, out.format.version).count(tensorCount).count(entryCount);
}

/** Places the tensors one behind the other, each at a multiple of the alignment. */
export function layOut(contents: Contents): Layout {
  const { format, alignment, entries, entryCount = entries.length, tensors } = contents;
  const out = writePreamble(new HeaderBytes(format), tensors.length, entryCount);
  for (const entry of entries) out.raw(entry);
  let dataBytes = 0;
  for (const { name, type, shape, byteLength } of tensors) {
    out.string(name).int(4, shape.length);
    for (const dim of shape) out.count(dim);
    out.int(4, type).int64(BigInt(dataBytes));
    dataBytes += alignUp(byteLength, alignment);
  }
  const dataOffset = alignUp(out.length, alignment);
  const byteLength = dataOffset + dataBytes;
  if (byteLength > Number.MAX_SAFE_INTEGER) {
    throw new GgufError("ERR_GGUF_INVALID", `the file would have ${byteLength} bytes, more than 2^53`);
  }
  return { header: out.bytes, dataOffset, byteLength };
}

/** The file, piece by piece: its header, and what `dataOf` yields for each tensor, padded. */
export async function* fileChunks<T extends TensorEntry>(
  { alignment, tensors }: Contents<T>,
  { header, dataOffset }: Layout,
  dataOf: (tensor: T) => AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield header;
  yield* zeros(dataOffset - header.length);
  for (const tensor of tensors) {
    yield* dataOf(tensor);
    yield* zeros(alignUp(tensor.byteLength, alignment) - tensor.byteLength);
  }
}

/** `length` zeros, in pieces. */
export function* zeros(length: number): Generator<Uint8Array, void, undefined> {
  for (let left = length; left > 0; left -= PIECE_BYTES) yield new Uint8Array(Math.min(left, PIECE_BYTES));
}
