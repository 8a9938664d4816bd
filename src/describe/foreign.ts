/** What of a model is another program's: said of it by `inspect` and `verify`. */

import { foreignType } from "../base/foreign-types";
import type { GgmlType } from "../base/types";
import type { GgufModel } from "../file/model";
import type { GgufModelTensor } from "../file/model-tensor";
import { counted, grouped } from "./text";

const ROTATION = "prism.hadamard.";

/** Types that are read here, but not by ggml. */
const FORK_TYPES: ReadonlySet<string> = new Set<GgmlType>(["PQ2_0", "PTQ1_0"]);

/** A sentence for each type that is not ggml's, and one where weights are not the model's own numbers. */
export function foreignRemarks({ metadata, tensors }: GgufModel<GgufModelTensor>): string[] {
  const counts = new Map<string, number>();
  for (const { type } of tensors.values()) {
    if (foreignType(type) !== undefined || FORK_TYPES.has(type)) counts.set(type, (counts.get(type) ?? 0) + 1);
  }
  const remarks = Array.from(counts, ([type, count]) => {
    const whose = foreignType(type);
    const which = `${counted(count, "tensor")} of type ${type}`;
    return whose === undefined
      ? `${which}, which PrismML's fork of llama.cpp reads, but ggml does not`
      : `${which}: ${whose}, whose data is not read here`;
  });
  for (const key of metadata.keys()) {
    if (!key.startsWith(ROTATION)) continue;
    const type = metadata.typeOf(`${ROTATION}weight_names`);
    const which = type?.type === "array" ? `${grouped(type.length)} weights` : "weights";
    remarks.push(
      `${which} are rotated (${ROTATION}*): only a program that rotates what it multiplies with them, such as PrismML's fork of llama.cpp, runs the model, and values shown are of the rotated weights`,
    );
    break;
  }
  return remarks;
}
