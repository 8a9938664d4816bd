/** The WebAssembly module beside the TypeScript reference, in Node and in browsers: nothing of Node is used. */

import * as reference from "gguf-native/reference";
import { type GgmlType, ggmlTypes } from "gguf-native/reference";
import { dequantize } from "#wasm/kernels";
import { inModule } from "#wasm/module";
import { type Contender, type Patience, race, type Timing } from "./measure";
import { gaussianBlocks } from "./weights";

/** One MiB of output, of weights that do not repeat. */
export const WEIGHTS = 2 ** 18;

/** Seconds to dequantize {@link WEIGHTS} weights of a type, by contender. `others` are further ones. */
export async function raceModule(
  type: GgmlType,
  patience: Patience,
  others: (blocks: Uint8Array, out: Float32Array) => Contender[] = () => [],
): Promise<Map<string, Timing>> {
  const blocks = gaussianBlocks(type, WEIGHTS);
  const out = new Float32Array(WEIGHTS);
  const { id } = ggmlTypes[type];
  const wasm = (): void => dequantize(id, blocks, false, 0, out);
  const scalar = (): void => {
    inModule(({ exports }) => exports.use_scalar(1));
    wasm();
    inModule(({ exports }) => exports.use_scalar(0));
  };
  const typescript = (): void => void reference.dequantizeSync(type, blocks, { out });
  const contenders: Contender[] = [
    ...others(blocks, out),
    { name: "wasm", run: wasm },
    { name: "scalar", run: scalar },
    { name: "typescript", run: typescript },
  ];
  return race(contenders, patience);
}
