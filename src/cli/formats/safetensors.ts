/** The safetensors format: the header's length as u64, the header as JSON, then the data of all tensors, back to back. */
import type { DType, GgufModelTensor } from "../../index";

/** Libraries that load models need to know whose layout it is: rows first is PyTorch's. */
const METADATA = '"__metadata__":{"format":"pt"}';

/**
 * The header for tensors that follow in this order. ggml's shapes have the contiguous dimension first, safetensors' have
 * it last.
 * @throws Error for a tensor whose name the format keeps for itself
 */
export function safetensorsHeader(
  dtype: DType,
  tensors: readonly Pick<GgufModelTensor, "name" | "shape" | "elementCount">[],
): Uint8Array {
  const elementBytes = dtype === "f32" ? 4 : 2;
  let end = 0;
  // Joined as text: in an object, a key such as "__proto__" would be special.
  const members = tensors.map(({ name, shape, elementCount }) => {
    if (name === "__metadata__") throw new Error("safetensors files cannot hold a tensor named '__metadata__'");
    const begin = end;
    end += elementCount * elementBytes;
    const entry = { dtype: dtype.toUpperCase(), shape: [...shape].reverse(), data_offsets: [begin, end] };
    return `${JSON.stringify(name)}:${JSON.stringify(entry)}`;
  });
  const json = Buffer.from(`{${[METADATA, ...members].join(",")}}`);
  const header = Buffer.alloc(8 + Math.ceil(json.length / 8) * 8, " ");
  header.writeBigUInt64LE(BigInt(header.length - 8));
  json.copy(header, 8);
  return header;
}
