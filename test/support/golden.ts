/**
 * The golden file: block bytes and ggml's own result for each type, read with a reader of its own (a dozen lines
 * that trust the file), so that tests of the reference depend on nothing else.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type GgmlType, ggmlTypes } from "gguf-native/reference";
import { fixtures } from "./paths";

export interface GoldenCase {
  /** Such as `Q4_K.random_bits`. */
  name: string;
  type: GgmlType;
  blocks: Uint8Array;
  /** ggml's result; absent for the types of {@link WITHOUT_GOLDEN}. */
  expected?: Float32Array;
}

/** Every type: the reference and the native kernels turn all of them into numbers. */
export const ALL_TYPES: readonly GgmlType[] = Object.keys(ggmlTypes) as GgmlType[];

/**
 * Those without a result in the golden file: F32, in which results are stored; those that ggml itself does not
 * dequantize; new ones, until ggml's result is there. The native kernels are compared with the reference instead.
 */
export const WITHOUT_GOLDEN: readonly GgmlType[] = ["F32", "Q8_1", "I8", "I16", "I32", "I64", "F64"];

export const goldenPath = join(fixtures, "golden.gguf");

export function readGolden(): GoldenCase[] {
  const tensors = readTensors(readFileSync(goldenPath));
  const cases: GoldenCase[] = [];
  for (const [name, { type, bytes }] of tensors) {
    if (name.endsWith(".f32")) continue;
    const result = tensors.get(`${name}.f32`);
    const found = Object.entries(ggmlTypes).find(([, info]) => info.id === type);
    const expected = result && { expected: new Float32Array(result.bytes.slice().buffer) };
    cases.push({ name, type: found![0] as GgmlType, blocks: bytes, ...expected });
  }
  return cases;
}

/** The tensors of a little-endian file with few kinds of metadata, such as the golden file. */
function readTensors(file: Buffer): Map<string, { type: number; bytes: Uint8Array }> {
  let at = 8;
  const skip = (bytes: number) => {
    at += bytes;
    return at - bytes;
  };
  const u32 = () => file.readUInt32LE(skip(4));
  const u64 = () => Number(file.readBigUInt64LE(skip(8)));
  const string = () => {
    const length = u64();
    return file.toString("utf8", skip(length), at);
  };
  const tensorCount = u64();
  const keyCount = u64();
  for (let i = 0; i < keyCount; i++) {
    string();
    if (u32() === 8) string();
    else u32();
  }
  const infos = Array.from({ length: tensorCount }, () => {
    const name = string();
    const shape = Array.from({ length: u32() }, u64);
    return { name, elements: shape.reduce((a, b) => a * b, 1), type: u32(), offset: u64() };
  });
  const dataStart = Math.ceil(at / 32) * 32;
  const tensors = new Map<string, { type: number; bytes: Uint8Array }>();
  for (const { name, elements, type, offset } of infos) {
    const info = Object.values(ggmlTypes).find(({ id }) => id === type)!;
    const start = dataStart + offset;
    const bytes = new Uint8Array(file.subarray(start, start + (elements / info.blockSize) * info.typeSize));
    tensors.set(name, { type, bytes });
  }
  return tensors;
}
