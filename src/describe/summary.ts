/** What a model is, in a few facts. */

import { fileTypeName } from "../file/file-types";
import type { GgufModel } from "../file/model";
import type { GgufModelTensor } from "../file/model-tensor";
import { countOf, numberOf } from "../file/scalars";
import { stringText } from "./metadata-text";
import { counted, grouped, humanBytes, humanCount } from "./text";

/** The most models that one was made from, which are named. */
const MOST_BASES = 4;

/** Names of facts, and what they are; text of the file is escaped. */
export function summaryFacts(file: GgufModel<GgufModelTensor>): [name: string, value: string][] {
  const { metadata, tensors } = file;
  const facts: [string, string][] = [];
  const architecture = stringText(metadata, "general.architecture");
  if (architecture !== undefined) facts.push(["architecture", architecture]);
  const name = stringText(metadata, "general.name");
  if (name !== undefined) facts.push(["name", name]);
  const fileType = numberOf(metadata, "general.file_type");
  if (fileType !== undefined) {
    facts.push(["file type", fileTypeName(fileType) ?? `${fileType}, which this version does not know`]);
  }
  const license = stringText(metadata, "general.license");
  if (license !== undefined) facts.push(["licence", license]);
  facts.push(...originFacts(file));
  let [parameters, weightBytes] = [0, 0];
  for (const { elementCount, byteLength } of tensors.values()) {
    parameters += elementCount;
    weightBytes += byteLength;
  }
  const bits = parameters > 0 ? (8 * weightBytes) / parameters : Number.NaN;
  const each = Number.isNaN(bits) ? "" : `, ${bits.toFixed(2)} bits each`;
  facts.push(["parameters", `${humanCount(parameters)} in ${counted(tensors.size, "tensor")}${each}`]);
  const network = networkText(file, architecture);
  if (network !== "") facts.push(["network", network]);
  const endianness = file.byteOrder === "big" ? ", big-endian" : "";
  const bytes = `${humanBytes(file.byteLength)} (${counted(file.byteLength, "byte")})`;
  const format = file.format === "gguf" ? `GGUF version ${file.version}` : file.format;
  facts.push(["size", bytes], ["format", `${format}${endianness}`]);
  if (file.paths.length > 1) facts.push(["files", grouped(file.paths.length)]);
  const context = numberOf(metadata, `${architecture}.context_length`);
  if (context !== undefined) facts.push(["context length", grouped(context)]);
  return facts;
}

/** What the weights were made from, by whom, and with what importance, as far as the metadata says. */
function originFacts({ metadata }: GgufModel<GgufModelTensor>): [name: string, value: string][] {
  const first = (...keys: string[]): string | undefined =>
    keys.map((key) => stringText(metadata, key)).find((text) => text !== undefined);
  const bases = Array.from(
    { length: Math.min(MOST_BASES, countOf(metadata, "general.base_model.count") ?? 0) },
    (_, i) => first(`general.base_model.${i}.name`, `general.base_model.${i}.repo_url`),
  ).filter((base) => base !== undefined);
  const source = first("general.source.repo_url", "general.source.url", "general.source.huggingface.repository");
  const chunks = countOf(metadata, "quantize.imatrix.chunks_count");
  const importance = first("quantize.imatrix.dataset", "quantize.imatrix.file");
  const facts: [name: string, value: string | undefined][] = [
    ["made from", bases.join(", ") || source],
    ["quantized by", first("general.quantized_by")],
    ["importance", importance && importance + (chunks ? `, ${counted(chunks, "chunk")}` : "")],
  ];
  return facts.filter((fact): fact is [string, string] => fact[1] !== undefined);
}

/** The numbers of a network, as far as the metadata has them: "32 layers, 4,096 wide, 32 heads (8 of keys)". */
function networkText({ metadata }: GgufModel<GgufModelTensor>, architecture: string | undefined): string {
  const number = (key: string): number | undefined => countOf(metadata, `${architecture}.${key}`);
  const [layers, width] = [number("block_count"), number("embedding_length")];
  const [heads, keyHeads] = [number("attention.head_count"), number("attention.head_count_kv")];
  const tokens = metadata.typeOf("tokenizer.ggml.tokens");
  const ofKeys = keyHeads === undefined || keyHeads === heads ? "" : ` (${grouped(keyHeads)} of keys)`;
  return [
    layers && counted(layers, "layer"),
    width && `${grouped(width)} wide`,
    heads && `${counted(heads, "head")}${ofKeys}`,
    tokens?.type === "array" && `${grouped(tokens.length)} tokens`,
  ]
    .filter((part) => part)
    .join(", ");
}
