/**
 * Blocks as models have them: normally distributed weights, quantized. Code that branches on weights is much faster if the
 * same few blocks come again and again, since processors learn the branches. So they repeat only after 4 Mi weights.
 */
import { writeFileSync } from "node:fs";
import { type GgmlType, ggmlTypes, type QuantizableType, quantizeSync } from "gguf-native";
import { type GgufSpec, writeGguf } from "../test/support/gguf-writer";
import { Random } from "../test/support/random";
import { temporaryFile } from "./paths";

/** Standard deviation of the weights, as in the linear layers of a language model. */
const DEVIATION = 0.02;
const DISTINCT = 2 ** 22;
const COLUMNS = 4096;

/** The types that models store no weights in, or that there is no encoder for. */
const NOT_WEIGHTS: Record<Exclude<GgmlType, QuantizableType>, true> = {
  ...{ Q8_1: true, I8: true, I16: true, I32: true, I64: true, F64: true, PQ2_0: true, PTQ1_0: true },
};
export const WEIGHT_TYPES = Object.keys(ggmlTypes).filter((type) => !(type in NOT_WEIGHTS)) as GgmlType[];

let numbers: Float32Array | undefined;

/** The first of the weights, the same in every run. */
export function gaussians(count: number): Float32Array {
  if (numbers === undefined) {
    const random = new Random(1);
    numbers = Float32Array.from({ length: DISTINCT }, () => random.gaussian() * DEVIATION);
  }
  return numbers.subarray(0, count);
}

/** Blocks of `elements` weights, the same in every run. */
export function gaussianBlocks(type: GgmlType, elements: number): Uint8Array {
  return fillBlocks(type, new Uint8Array(bytesOf(type, elements)));
}

export function bytesOf(type: GgmlType, elements: number): number {
  return (elements / ggmlTypes[type].blockSize) * ggmlTypes[type].typeSize;
}

/** Fills memory with whole blocks. Returns it. */
export function fillBlocks(type: GgmlType, out: Uint8Array): Uint8Array {
  const { blockSize, typeSize } = ggmlTypes[type];
  const weights = gaussians(Math.min(DISTINCT, (out.length / typeSize) * blockSize));
  const columns = weights.length % COLUMNS === 0 ? COLUMNS : weights.length;
  const importance = new Float32Array(columns).fill(1); // types of the least bits need it
  const first = out.subarray(0, bytesOf(type, weights.length));
  quantizeSync(type as QuantizableType, weights, { columns, importance, out: first });
  for (let at = first.length; at < out.length; at += first.length) {
    out.set(first.subarray(0, out.length - at), at);
  }
  return out;
}

export interface TensorInput {
  name: string;
  type: GgmlType;
  shape: number[];
  /** Default: weights. */
  bytes?: Uint8Array;
}

/** Writes a model to a temporary file. Returns its path. */
export function writeTensors(
  name: string,
  tensors: readonly TensorInput[],
  metadata: GgufSpec["metadata"] = [],
): string {
  const path = temporaryFile(name);
  const made = tensors.map(({ name, type, shape, bytes }) => ({
    ...{ name, type: ggmlTypes[type].id, shape },
    bytes:
      bytes ??
      gaussianBlocks(
        type,
        shape.reduce((a, b) => a * b, 1),
      ),
  }));
  writeFileSync(path, writeGguf({ metadata, tensors: made }));
  return path;
}
