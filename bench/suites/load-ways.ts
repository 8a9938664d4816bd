/** The ways to turn all tensors of a model into numbers: where the results lie, and how the calls follow each other. */
import { allocate, type GgufTensor } from "gguf-native";

type Output = Float32Array<ArrayBufferLike>;

/** Where the results of a model lie. */
export const OUTPUTS = {
  "no out": undefined,
  "allocate()": (length) => allocate(length),
  SharedArrayBuffer: (length) => new Float32Array(new SharedArrayBuffer(4 * length)),
  "new Float32Array": (length) => new Float32Array(length),
} satisfies Record<string, ((length: number) => Output) | undefined>;

/** Outputs that all tensors share: each gets a part. */
const SHARED_OUTPUTS = {
  "one allocate()": "allocate()",
  "one SharedArrayBuffer": "SharedArrayBuffer",
} as const;

export type OutputName = keyof typeof OUTPUTS | keyof typeof SHARED_OUTPUTS;
export const OUTPUT_NAMES = [...Object.keys(OUTPUTS), ...Object.keys(SHARED_OUTPUTS)] as OutputName[];

export const ORDERS = ["Promise.all", "one await each", "dequantizeSync"] as const;
export type Order = (typeof ORDERS)[number];

/** Loads all tensors. Returns the results, so that none is freed meanwhile. */
export async function load(
  tensors: readonly GgufTensor[],
  outputs: OutputName,
  order: Order,
): Promise<readonly Output[]> {
  const next = outputMaker(tensors, outputs);
  if (order === "Promise.all") {
    return await Promise.all(tensors.map((tensor) => tensor.dequantize({ out: next(tensor.elementCount) })));
  }
  const results: Output[] = [];
  for (const tensor of tensors) {
    const out = next(tensor.elementCount);
    results.push(
      order === "dequantizeSync" ? tensor.dequantizeSync({ out }) : await tensor.dequantize({ out }),
    );
  }
  return results;
}

function outputMaker(
  tensors: readonly GgufTensor[],
  outputs: OutputName,
): (length: number) => Output | undefined {
  if (outputs in OUTPUTS) {
    const make = OUTPUTS[outputs as keyof typeof OUTPUTS] as ((length: number) => Output) | undefined;
    return (length) => make?.(length);
  }
  const all = OUTPUTS[SHARED_OUTPUTS[outputs as keyof typeof SHARED_OUTPUTS]](
    tensors.reduce((sum, { elementCount }) => sum + elementCount, 0),
  );
  let at = 0;
  return (length) => {
    at += length;
    return all.subarray(at - length, at);
  };
}
