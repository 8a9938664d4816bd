/**
 * The golden file: block bytes and a hash of ggml's own result for each type, read with a reader of its own (a dozen lines
 * that trust the file), so that tests of the reference depend on nothing else. `reference.test` compares the reference with
 * these hashes; other tests compare with the reference.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type GgmlType, ggmlTypes } from "gguf-native/reference";
import { fixtures } from "./paths";

export interface GoldenCase {
  /** Such as `Q4_K.random_bits`. */
  name: string;
  type: GgmlType;
  blocks: Uint8Array;
  /** {@link hashOfNumbers} of ggml's result; absent for the types of {@link WITHOUT_GOLDEN}. */
  hash: string | undefined;
}

/** Every type: the reference and the native kernels turn all of them into numbers. */
export const ALL_TYPES: readonly GgmlType[] = Object.keys(ggmlTypes) as GgmlType[];

/**
 * Those without a hash in the golden file: F32, which is its own result; those that ggml itself does not dequantize, or does
 * not have; new ones, until ggml's result is there.
 */
export const WITHOUT_GOLDEN: readonly GgmlType[] = ["F32", "Q8_1", "I8", "I16", "I32", "I64", "F64", "PQ2_0", "PTQ1_0"];

export const goldenPath = join(fixtures, "golden.gguf");

/** SHA-256 of numbers, in which one NaN is like another. */
export function hashOfNumbers(numbers: Float32Array): string {
  const bits = new Uint32Array(numbers.slice().buffer);
  for (const [i, number] of numbers.entries()) if (Number.isNaN(number)) bits[i] = 0x7fc00000;
  return createHash("sha256").update(bits).digest("hex");
}

export function readGolden(): GoldenCase[] {
  const file = readFileSync(goldenPath);
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
  const values = new Map<string, string | number>();
  for (let i = 0; i < keyCount; i++) values.set(string(), u32() === 8 ? string() : u32());
  const hashes = JSON.parse(values.get("golden.sha256") as string) as Record<string, string>;
  const infos = Array.from({ length: tensorCount }, () => {
    const name = string();
    const shape = Array.from({ length: u32() }, u64);
    return { name, elements: shape.reduce((a, b) => a * b, 1), type: u32(), offset: u64() };
  });
  const dataStart = Math.ceil(at / 32) * 32;
  return infos.map(({ name, elements, type: id, offset }) => {
    const type = ALL_TYPES.find((each) => ggmlTypes[each].id === id)!;
    const { blockSize, typeSize } = ggmlTypes[type];
    const start = dataStart + offset;
    const blocks = new Uint8Array(file.subarray(start, start + (elements / blockSize) * typeSize));
    return { name, type, blocks, hash: hashes[name] };
  });
}
