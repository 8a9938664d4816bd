/** Files of enormous tensors that take almost no space on disk. */
import { closeSync, ftruncateSync, openSync, writeSync } from "node:fs";
import { ByteWriter } from "./byte-writer";
import { emulated } from "./emulated";
import { writeTensorInfo } from "./gguf-writer";

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
  const file = openSync(path, "w");
  try {
    writeSync(file, header.done());
    ftruncateSync(file, header.offset + end);
    tensors.forEach(({ pieces = [] }, i) => {
      for (const { at, bytes } of pieces) {
        writeSync(file, bytes, 0, bytes.length, header.offset + places[i]! + at);
      }
    });
    return false;
  } catch (error) {
    return `this file system: ${(error as Error).message}`;
  } finally {
    closeSync(file);
  }
}
