/** All that is in a model, short: what two models are compared by. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { openSync } from "gguf-native";

export const sha256 = (data: string | Uint8Array): string => createHash("sha256").update(data).digest("hex");

/** Keys with their types and values, tensors in their order with their types, shapes and digests. */
export function modelFacts(path: string): { metadata: Record<string, unknown>; tensors: string[] } {
  const file = openSync(path);
  const metadata: [string, unknown][] = [];
  for (const [key, value] of file.metadata) {
    const type = file.metadata.typeOf(key)!;
    const name = type.type === "array" ? `${type.elementType}[${type.length}]` : type.type;
    const plain = JSON.stringify(ArrayBuffer.isView(value) ? Array.from(value as Uint8Array) : value);
    metadata.push([key, `${name} ${plain.length > 200 ? sha256(plain) : plain}`]);
  }
  const tensors = Array.from(file.tensors.values(), (tensor) => {
    return `${tensor.name} ${tensor.type} [${tensor.shape}] ${sha256(tensor.bytes())}`;
  });
  file.close();
  return { metadata: Object.fromEntries(metadata.sort(([a], [b]) => (a < b ? -1 : 1))), tensors };
}

/** The same, and a digest of all bytes: keys and padding are in the same order, too. */
export function fileFacts(path: string): object {
  return { ...modelFacts(path), bytes: sha256(readFileSync(path)) };
}
