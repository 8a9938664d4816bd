import { createHash } from "node:crypto";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type GgufFile, openSync } from "gguf-native";
import { arr, f32, type GgufSpec, str, type TypedValue, u64, writeGguf } from "./gguf-writer";
import { temporaryFolder } from "./paths";

export const root = temporaryFolder();
export const folder = () => mkdtempSync(join(root, "edit-"));
export const notUtf8 = Uint8Array.of(0x80, 0xff);

export const metadata: [string | Uint8Array, TypedValue][] = [
  ["general.architecture", str("test")],
  [notUtf8, str(notUtf8)],
  ["test.context_length", u64(100n)],
  ["test.scale", f32(0.5)],
  ["tokenizer.ggml.tokens", arr("string", ["<s>", notUtf8])],
  ["nested", arr("array", [arr("string", [notUtf8]), arr("uint8", [1])])],
];
export const tensors = [
  { name: "a", type: 0, shape: [2], bytes: new Uint8Array(Float32Array.of(1, 2).buffer) },
  { name: notUtf8, type: 24, shape: [1, 2, 3], bytes: Uint8Array.of(1, 2, 3, 4, 5, 6) },
  { name: "b", type: 0, shape: [], bytes: new Uint8Array(Float32Array.of(3).buffer) },
];

export function written(spec: GgufSpec = {}, dir = folder()): string {
  const path = join(dir, "model.gguf");
  writeFileSync(path, writeGguf({ metadata, tensors, ...spec }));
  return path;
}

/** Everything of a file but the keys in `without`: values, types and raw strings, tensors and their bytes. */
export function contentsOf(file: GgufFile, without: readonly string[] = []) {
  const keys = [...file.metadata.keys()].filter((key) => !without.includes(key));
  const entries = keys.map((key) => {
    const type = file.metadata.typeOf(key)!;
    const isText = type.type === "string" || (type.type === "array" && type.elementType === "string");
    return [key, type, isText ? file.metadata.bytes(key) : file.metadata.get(key)];
  });
  const all = [...file.tensors.values()].map((tensor) => {
    const { name, type, shape, elementCount, byteLength } = tensor;
    const hash = createHash("sha256").update(tensor.bytes()).digest("hex");
    return { name, type, shape, elementCount, byteLength, hash };
  });
  const contents = { byteOrder: file.byteOrder, version: file.version, entries, tensors: all };
  file.close();
  return structuredClone(contents);
}
export const read = (path: string, without: readonly string[] = []) => contentsOf(openSync(path), without);
