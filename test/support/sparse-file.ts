/** Files of enormous tensors that take almost no space on disk. */
import { closeSync, ftruncateSync, openSync, writeSync } from "node:fs";
import { ByteWriter } from "./byte-writer";
import { emulated } from "./emulated";
import { writeTensorInfo } from "./gguf-writer";
import { safetensors } from "./safetensors-files";

export interface SparseTensor {
  name: string;
  type: number;
  shape: number[];
  byteLength: number;
  /** Bytes at their offsets in the tensor; the rest is zero. */
  pieces?: readonly { at: number; bytes: Uint8Array }[];
}

/** Writes the file. Returns a test's `skip`: why this cannot be done here, or false. */
export function writeSparseGguf(path: string, tensors: readonly SparseTensor[]): string | false {
  if (emulated) return "the emulator keeps a record of every page that is mapped: gigabytes of them";
  const header = new ByteWriter();
  header.bytes(Buffer.from("GGUF")).u32(3).u64(tensors.length).u64(0);
  const places: number[] = [];
  let end = 0;
  for (const tensor of tensors) {
    places.push(end);
    writeTensorInfo(header, tensor, end);
    end += Math.ceil(tensor.byteLength / 32) * 32;
  }
  header.align(32);
  const pieces = tensors.flatMap(({ pieces = [] }, i) =>
    pieces.map(({ at, bytes }) => ({ at: places[i]! + at, bytes })),
  );
  return writeSparse(path, header.done(), end, pieces);
}

/** Writes a file of safetensors, all numbers of which are 0. Returns the same. */
export function writeSparseSafetensors(
  path: string,
  tensors: Readonly<Record<string, { dtype: string; shape: readonly number[]; byteLength: number }>>,
): string | false {
  let end = 0;
  const entries = Object.entries(tensors).map(([name, { dtype, shape, byteLength }]) => {
    const begin = end;
    end += byteLength;
    return [name, { dtype, shape, data_offsets: [begin, end] }] as const;
  });
  return writeSparse(path, safetensors(Object.fromEntries(entries)), end);
}

/** Writes a header and, after it, data that is zero but for these pieces. */
export function writeSparse(
  path: string,
  header: Uint8Array,
  dataBytes: number,
  pieces: readonly { at: number; bytes: Uint8Array }[] = [],
): string | false {
  const file = openSync(path, "w");
  try {
    writeSync(file, header);
    ftruncateSync(file, header.length + dataBytes);
    for (const { at, bytes } of pieces) writeSync(file, bytes, 0, bytes.length, header.length + at);
    return false;
  } catch (error) {
    return `this file system: ${(error as Error).message}`;
  } finally {
    closeSync(file);
  }
}
