/** What a model is, in a few facts. */

import { fileTypeName } from "../file/file-types";
import type { GgufModel } from "../file/model";
import type { GgufModelTensor } from "../file/model-tensor";
import { numberOf } from "../file/scalars";
import { stringText } from "./metadata-text";
import { counted, grouped, humanBytes, humanCount } from "./text";

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
  let parameters = 0;
  for (const tensor of tensors.values()) parameters += tensor.elementCount;
  facts.push(["parameters", `${humanCount(parameters)} in ${counted(tensors.size, "tensor")}`]);
  const endianness = file.byteOrder === "big" ? ", big-endian" : "";
  const bytes = `${humanBytes(file.byteLength)} (${counted(file.byteLength, "byte")})`;
  const format = file.format === "gguf" ? `GGUF version ${file.version}` : file.format;
  facts.push(["size", `${bytes}, ${format}${endianness}`]);
  if (file.paths.length > 1) facts.push(["files", grouped(file.paths.length)]);
  const context = numberOf(metadata, `${architecture}.context_length`);
  if (context !== undefined) facts.push(["context length", grouped(context)]);
  return facts;
}
