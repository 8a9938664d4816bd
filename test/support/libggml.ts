/** ggml's own library, the optional peer of the benchmarks. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type GgmlType, ggmlTypes } from "gguf-native";
import { type KoffiLibrary, llamaBins, loadKoffi } from "./koffi";

/** ggml's blocks of rows of `columns` numbers (default: of one row), with a weight for each column or without. */
export type Quantizer = (
  type: GgmlType,
  values: Float32Array,
  columns?: number,
  importance?: Float32Array,
) => Uint8Array;

/** ggml's reference rounding; or why it cannot be had here. */
export async function libggmlQuantizer(): Promise<Quantizer | string> {
  const library = join(llamaBins, "libggml-base.so");
  if (!existsSync(library) || process.platform !== "linux" || process.arch !== "x64") {
    return "libggml is not installed (npm --prefix bench install, on Linux on x86-64)";
  }
  const koffi = await loadKoffi();
  const parameters = ["int", "void *", "void *", "int64_t", "int64_t", "int64_t", "void *"];
  let ggml: KoffiLibrary;
  try {
    ggml = koffi.load(library);
  } catch (error) {
    return `libggml cannot be loaded: ${(error as Error).message}`; // an old C++ library, say
  }
  const quantizeChunk = ggml.func("ggml_quantize_chunk", "size_t", parameters);
  const quantizeQ8K = ggml.func("quantize_row_q8_K_ref", "void", ["void *", "void *", "int64_t"]);
  return (type, values, columns = values.length, importance) => {
    const { id, blockSize, typeSize } = ggmlTypes[type];
    const blocks = new Uint8Array((values.length / blockSize) * typeSize);
    // The type of sums, which models do not have: ggml writes it in another way.
    if (type === "Q8_K") quantizeQ8K(values, blocks, values.length);
    else quantizeChunk(id, values, blocks, 0, values.length / columns, columns, importance ?? null);
    return blocks;
  };
}

/** Says which block is another one, of which numbers. */
export function assertSameBlocks(
  type: GgmlType,
  actual: Uint8Array,
  expected: Uint8Array,
  values: Float32Array,
  name: string,
): void {
  if (Buffer.compare(actual, expected) === 0) return;
  const { typeSize, blockSize } = ggmlTypes[type];
  const block = Math.floor(actual.findIndex((byte, i) => byte !== expected[i]) / typeSize);
  const hex = (bytes: Uint8Array): string =>
    Buffer.from(bytes.subarray(block * typeSize, (block + 1) * typeSize)).toString("hex");
  const numbers = values.subarray(block * blockSize, (block + 1) * blockSize);
  assert.equal(hex(actual), hex(expected), `block ${block} of ${type}, ${name}: ${numbers.join(" ")}`);
}
