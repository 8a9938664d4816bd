/** NumPy's .npy format, version 1.0: a magic number, the length of the header, the header padded to 64 bytes, data. */
import type { DType } from "../../index";

/** The header for a tensor; `shape` is ggml's, contiguous dimension first: NumPy's C order is its reverse. */
export function npyHeader(dtype: Exclude<DType, "bf16">, shape: readonly number[]): Uint8Array {
  const dims = [...shape].reverse();
  const tuple = dims.length === 1 ? `(${dims[0]},)` : `(${dims.join(", ")})`;
  const descr = dtype === "f32" ? "<f4" : "<f2";
  const dict = `{'descr': '${descr}', 'fortran_order': False, 'shape': ${tuple}, }`;
  const total = Math.ceil((10 + dict.length + 1) / 64) * 64;
  const header = Buffer.alloc(total, " ");
  header.write("\x93NUMPY\x01\x00", "latin1");
  header.writeUInt16LE(total - 10, 8);
  header.write(dict, 10, "latin1");
  header.write("\n", total - 1, "latin1");
  return header;
}
