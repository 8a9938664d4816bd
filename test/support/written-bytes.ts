/** What a writer writes. */
import type { GgufWriter } from "gguf-native";

export async function bytesOf(writer: GgufWriter): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of writer.chunks()) chunks.push(Uint8Array.from(chunk));
  return Buffer.concat(chunks);
}

export async function* pieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
