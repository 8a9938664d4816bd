/** Some values of a tensor, wherever its blocks begin and end. */
import type { GgmlType } from "../base/types";
import { ggmlTypes } from "../base/types";
import type { GgufModelTensor } from "../file/model-tensor";

/** `count` values from number `start` on. */
export async function valuesOf(tensor: GgufModelTensor, start: number, count: number): Promise<Float32Array> {
  const info = Object.hasOwn(ggmlTypes, tensor.type) ? ggmlTypes[tensor.type as GgmlType] : undefined;
  // Only whole blocks are decoded. A tensor of an unknown type fails below, with its name.
  const blockSize = info?.blockSize ?? 1;
  const first = Math.floor(start / blockSize) * blockSize;
  const end = Math.min(Math.ceil((start + count) / blockSize) * blockSize, tensor.elementCount);
  const values = await tensor.dequantize({ start: first, end });
  return values.subarray(start - first, start - first + count);
}
