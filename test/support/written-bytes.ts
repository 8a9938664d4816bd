/** What a writer writes. */
import { type GgufMetadata, type GgufWriter, parse } from "gguf-native";
import { type GgufSpec, writeGguf } from "./gguf-writer";

export async function bytesOf(writer: GgufWriter): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of writer.chunks()) chunks.push(Uint8Array.from(chunk));
  return Buffer.concat(chunks);
}

/** The metadata of a file that has these keys and nothing else. */
export const metadataOf = (metadata: GgufSpec["metadata"] & object): GgufMetadata =>
  parse(writeGguf({ metadata })).metadata;

export async function* pieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
