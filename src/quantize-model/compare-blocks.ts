/** Whether the bytes of a model are what quantizing another one gives: {@link compareQuantized}. */
import { native } from "../backend/native";
import { haveSameBytes } from "../base/bytes";
import { GgufError } from "../base/errors";
import { partsOf } from "../base/ranges";
import { type GgmlType, ggmlTypes, isGgmlType } from "../base/types";
import type { GgufModel } from "../file/model";
import type { GgufModelTensor } from "../file/model-tensor";
import type { Search } from "../quantize/request";
import { Encoder } from "./encode";
import type { ImportanceMatrix } from "./importance-matrix";
import { checkPlanned, type PlannedTensor } from "./plan";

/** What is found of a tensor. */
export interface TensorOrigin {
  name: string;
  type: string;
  /** The type in the other model; absent where that has no such tensor. */
  from?: string;
  /** Whether all bytes are those that quantizing gives: all bytes of the other tensor, where the types are the same. */
  same: boolean;
  blocks: number;
  /** How many blocks are others. */
  differentBlocks: number;
  /** Why there is nothing to compare with. */
  problem?: string;
}

/** A tensor and what it should be made of. */
interface Pair {
  readonly tensor: GgufModelTensor;
  /** Absent where there is nothing to compare with. */
  readonly made?: PlannedTensor;
  readonly problem?: string;
}

/**
 * Compares the tensors of `model` with what quantizing those of `base` to their types gives, in file order; then names those
 * that are missing. Holds no more than a few pieces at a time.
 * @param search how `model` was quantized
 * @param onBytes told how many bytes of `model` were compared
 */
export async function* compareQuantized(
  model: GgufModel,
  base: GgufModel,
  importance: ImportanceMatrix | undefined,
  search: Search | undefined,
  onBytes: (count: number) => void,
): AsyncGenerator<TensorOrigin, void, undefined> {
  const pairs = Array.from(model.tensors.values(), (tensor) => pairOf(tensor, base, importance));
  const stop = new AbortController();
  const encoder = new Encoder(
    pairs.flatMap(({ made }) => (made?.to === undefined ? [] : [{ ...made, to: made.to }])),
    stop.signal,
    { search },
  );
  const isBigEndian = [model, base].map(({ byteOrder }) => byteOrder === "big") as [boolean, boolean];
  try {
    for (const pair of pairs) yield await originOf(pair, isBigEndian, encoder, onBytes);
  } finally {
    stop.abort();
    await encoder.idle();
  }
  for (const { name, type } of base.tensors.values()) {
    if (model.tensors.has(name)) continue;
    yield { name, type, from: type, same: false, blocks: 0, differentBlocks: 0, problem: "it is missing" };
  }
}

function pairOf(tensor: GgufModelTensor, base: GgufModel, importance: ImportanceMatrix | undefined): Pair {
  if (!isGgmlType(tensor.type)) return { tensor, problem: "its type is not known" };
  const other = base.tensors.get(tensor.name);
  if (other === undefined) return { tensor, problem: "there is nothing that it could be made of" };
  if (String(other.shape) !== String(tensor.shape)) {
    return { tensor, problem: `its shape was ${other.shape.join(" x ")}` };
  }
  const isCopied = other.type === tensor.type;
  const weights = isCopied ? undefined : importance?.weights(other);
  const to = isCopied ? undefined : tensor.type;
  const made: PlannedTensor = { tensor: other, to, wanted: undefined, lacksImportance: false, weights };
  try {
    checkPlanned(made, importance, true);
  } catch (error) {
    if (!(error instanceof GgufError)) throw error;
    return { tensor, problem: error.message };
  }
  return { tensor, made };
}

async function originOf(
  { tensor, made, problem }: Pair,
  [isBigEndian, isBaseBigEndian]: readonly [boolean, boolean],
  encoder: Encoder,
  onBytes: (count: number) => void,
): Promise<TensorOrigin> {
  const { name, type } = tensor;
  if (made === undefined) {
    onBytes(tensor.byteLength || 0);
    return { name, type, same: false, blocks: 0, differentBlocks: 0, ...(problem && { problem }) };
  }
  const { blockSize, typeSize } = ggmlTypes[type as GgmlType];
  const origin = { name, type, from: made.tensor.type, same: true };
  let [start, differentBlocks] = [0, 0];
  const { to } = made;
  const pieces = to === undefined ? storedPieces(made.tensor, isBaseBigEndian) : encoder.blocks({ ...made, to });
  for await (const expected of pieces) {
    const end = start + (expected.length / typeSize) * blockSize;
    const found = await stored(tensor, start, end, isBigEndian);
    differentBlocks += countDifferent(expected, found, typeSize);
    start = end;
    onBytes(expected.length);
  }
  return { ...origin, same: differentBlocks === 0, blocks: tensor.elementCount / blockSize, differentBlocks };
}

/** Blocks of a tensor, little-endian. */
async function stored(tensor: GgufModelTensor, start: number, end: number, isBigEndian: boolean): Promise<Uint8Array> {
  const bytes = await tensor.read({ start, end });
  return isBigEndian ? native.swapBytes(ggmlTypes[tensor.type as GgmlType].id, bytes) : bytes;
}

async function* storedPieces(tensor: GgufModelTensor, isBigEndian: boolean): AsyncGenerator<Uint8Array> {
  for (const { start, end } of partsOf(0, tensor.elementCount)) yield stored(tensor, start, end, isBigEndian);
}

function countDifferent(a: Uint8Array, b: Uint8Array, size: number): number {
  if (haveSameBytes(a, b)) return 0;
  let count = 0;
  for (let at = 0; at < a.length; at += size) {
    if (!haveSameBytes(a.subarray(at, at + size), b.subarray(at, at + size))) count++;
  }
  return count;
}
