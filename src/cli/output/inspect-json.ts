/** `gguf-native inspect --json`: everything the header holds. json.ts says how values are written. */
import { type InspectView, typeTotals } from "./inspect-view";
import { metadataValueJson } from "./json";

/** Writes one line per key and per tensor, so that memory stays bounded by the largest value. */
export function writeInspectJson(view: InspectView, write: (text: string) => void): void {
  const { path, file, sections } = view;
  write("{");
  let separator = "\n";
  const member = (key: string, json: string): void => {
    write(`${separator}  ${JSON.stringify(key)}: ${json}`);
    separator = ",\n";
  };
  if (sections.summary) {
    const { paths, version, byteOrder, byteLength, alignment, tensors } = file;
    for (const [key, value] of Object.entries({ path, paths, version, byteOrder, byteLength, alignment })) {
      member(key, JSON.stringify(value));
    }
    member("tensorCount", String(tensors.size));
    let parameterCount = 0;
    for (const tensor of tensors.values()) parameterCount += tensor.elementCount;
    member("parameterCount", String(parameterCount));
    member("types", JSON.stringify(Object.fromEntries(typeTotals(tensors.values()))));
  }
  if (sections.metadata) {
    member("metadata", "{");
    const json = (key: string): string => `${JSON.stringify(key)}: ${metadataValueJson(file.metadata, key)}`;
    writeItems(view.keys, write, json);
    write("}");
  }
  if (sections.tensors) {
    member("tensors", "[");
    // Of a split model, which file an offset counts in.
    const split = file.paths.length > 1;
    writeItems(view.tensors, write, (tensor) =>
      JSON.stringify(split ? { ...tensor.toJSON(), path: tensor.path } : tensor),
    );
    write("]");
  }
  write("\n}\n");
}

function writeItems<T>(items: Iterable<T>, write: (text: string) => void, json: (item: T) => string): void {
  let separator = "\n";
  for (const item of items) {
    write(`${separator}    ${json(item)}`);
    separator = ",\n";
  }
  if (separator === ",\n") write("\n  ");
}
