/** `gguf-native inspect --json`: everything the header holds. json.ts says how values are written. */

import { typeTotals } from "../../describe/type-totals";
import { fileTypeName } from "../../file/file-types";
import { numberOf } from "../../file/scalars";
import type { GgufMetadata, GgufModel, GgufModelTensor } from "../../index";
import type { InspectView } from "./inspect-view";
import { exactJson } from "./json";
import { differentBytes, metadataJson } from "./value-json";

/** One line per key and per tensor, long values in pieces, so that memory stays bounded. */
export function* inspectJson(view: InspectView): Generator<string, void, undefined> {
  yield "{";
  let separator = "\n";
  for (const [name, json] of members(view)) {
    yield `${separator}  ${JSON.stringify(name)}: `;
    yield* json;
    separator = ",\n";
  }
  yield "\n}\n";
}

/** The summary of a model. */
export function summaryJson(path: string, file: GgufModel<GgufModelTensor>): Record<string, unknown> {
  const { paths, version, byteOrder, byteLength, alignment, tensors } = file;
  let parameterCount = 0;
  for (const tensor of tensors.values()) parameterCount += tensor.elementCount;
  const types = Object.fromEntries(typeTotals(tensors.values()));
  const fileType = fileTypeName(numberOf(file.metadata, "general.file_type") ?? Number.NaN) ?? null;
  const facts = { path, paths, version, byteOrder, byteLength, alignment };
  return { ...facts, fileType, tensorCount: tensors.size, parameterCount, types };
}

type Member = [name: string, json: Iterable<string>];

function* members({ path, file, sections, memory, keys, tensors }: InspectView): Generator<Member, void, undefined> {
  if (sections.summary) {
    for (const [name, value] of Object.entries(summaryJson(path, file))) yield [name, [JSON.stringify(value)]];
  }
  if (memory !== undefined) {
    const { weights, cache } = memory;
    const types = JSON.parse(JSON.stringify(Object.fromEntries(weights.types))) as unknown;
    yield ["memory", [exactJson({ weights: { bytes: weights.bytes, types }, cache })]];
  }
  if (sections.metadata) yield ["metadata", list("{}", keys, (key) => keyJson(file.metadata, key))];
  // Of a split model, which file an offset counts in.
  const split = file.paths.length > 1;
  if (sections.tensors) yield ["tensors", list("[]", tensors, (tensor) => [tensorJson(tensor, split)])];
}

function* keyJson(metadata: GgufMetadata, key: string): Generator<string, void, undefined> {
  yield `${JSON.stringify(key)}: `;
  yield* metadataJson(metadata, key);
}

function tensorJson(tensor: GgufModelTensor, withPath: boolean): string {
  const name = differentBytes("nameBytes", tensor.name, tensor.nameBytes());
  const { scale } = tensor;
  return JSON.stringify({
    ...tensor.toJSON(),
    ...name,
    ...(scale === undefined ? {} : { scale: scale.name }),
    ...(withPath ? { path: tensor.path } : {}),
  });
}

function* list<T>(
  brackets: "{}" | "[]",
  items: Iterable<T>,
  json: (item: T) => Iterable<string>,
): Generator<string, void, undefined> {
  yield brackets[0] as string;
  let separator = "";
  for (const item of items) {
    yield `${separator}\n    `;
    yield* json(item);
    separator = ",";
  }
  if (separator !== "") yield "\n  ";
  yield brackets[1] as string;
}
