/** Metadata keys in the order in which they are read: what the model is first, then what its architecture needs. */
import type { GgufMetadata } from "../file/metadata";
import { stringText } from "./metadata-text";

/**
 * Keys of one kind together, by what stands before the first dot: "general", then the architecture, then the others as they
 * come in the file. Those without a dot are of the kind "".
 */
export function keysByKind(metadata: GgufMetadata, keys: Iterable<string>): Map<string, string[]> {
  const architecture = stringText(metadata, "general.architecture");
  const groups = new Map<string, string[]>([
    ["general", []],
    [architecture ?? "general", []],
  ]);
  for (const key of keys) {
    const end = key.indexOf(".");
    const kind = end < 0 ? "" : key.slice(0, end);
    const group = groups.get(kind);
    if (group === undefined) groups.set(kind, [key]);
    else group.push(key);
  }
  for (const [kind, group] of groups) if (group.length === 0) groups.delete(kind);
  return groups;
}
