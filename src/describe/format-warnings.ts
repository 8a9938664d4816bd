/** What the specification asks of a model and readers do not insist on: reasons to warn, not errors. */

import { type GgmlType, ggmlTypes, MAX_TENSOR_NAME_BYTES } from "../base/types";
import { QUANTIZATION_VERSION_KEY } from "../file/metadata-keys";
import type { GgufModel } from "../file/model";
import type { GgufModelTensor } from "../file/model-tensor";
import { foreignRemarks } from "./foreign";
import { counted } from "./text";

/** Words in lower case, digits and underscores, joined by dots. */
const KEY = /^[a-z0-9_]+(\.[a-z0-9_]+)+$/;

/** A sentence for each rule that a model breaks, with the first names that do. */
export function formatWarnings(file: GgufModel<GgufModelTensor>): string[] {
  const { metadata, tensors } = file;
  // llama.cpp begins keys with the architecture as it is, such as gpt-oss.
  const architecture = metadata.get("general.architecture");
  const prefix =
    typeof architecture === "string" && /^[\x21-\x7e]+$/.test(architecture) ? `${architecture}.` : undefined;
  const keys = new Finds();
  for (const key of metadata.keys()) {
    const isPrefixed = prefix !== undefined && key.startsWith(prefix);
    if (!KEY.test(isPrefixed ? `x.${key.slice(prefix.length)}` : key)) keys.add(key);
  }
  const names = new Finds();
  let isQuantized = false;
  for (const tensor of tensors.values()) {
    isQuantized ||= (ggmlTypes[tensor.type as GgmlType]?.blockSize ?? 1) > 1;
    if (tensor.nameBytes().length > MAX_TENSOR_NAME_BYTES) names.add(tensor.name);
  }
  // In a split model, the first file has the keys of all.
  const hasVersion = metadata.has(QUANTIZATION_VERSION_KEY) || Number(metadata.get("split.no") ?? 0) > 0;
  return [
    ...(isQuantized && !hasVersion ? [`tensors are quantized, and ${QUANTIZATION_VERSION_KEY} is missing`] : []),
    ...keys.text("key is", "keys are", "not lower-case ASCII words with dots between them, such as a.b_c"),
    ...foreignRemarks(file),
    ...names.text("tensor name has", "tensor names have", `more than ${MAX_TENSOR_NAME_BYTES} bytes`),
  ];
}

/** How many there are, and the first three. */
class Finds {
  #count = 0;
  readonly #shown: string[] = [];

  add(name: string): void {
    this.#count++;
    if (this.#shown.length < 3) this.#shown.push(`'${name}'`);
  }

  /** A sentence about them, if there are any. */
  text(one: string, many: string, what: string): string[] {
    if (this.#count === 0) return [];
    const rest = this.#count - this.#shown.length;
    const all = [...this.#shown, ...(rest > 0 ? [counted(rest, "other")] : [])].join(", ");
    return [`${this.#count === 1 ? `1 ${one}` : `${this.#count} ${many}`} ${what}: ${all}`];
  }
}
