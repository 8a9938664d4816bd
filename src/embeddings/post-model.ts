/** An open model for another thread. */
import { GgufError } from "../base/errors";
import { filesOf, type GgufModel } from "../file/model";
import { mappedFiles } from "../file/unchanged";
import { GgufWriter } from "../writer/writer";
import { allocated } from "./in-memory";
import type { PostedPlace } from "./place";

/** @throws GgufError ERR_GGUF_CLOSED, ERR_GGUF_OUT_OF_MEMORY; otherwise as reading */
export async function postModel(model: GgufModel, signal: AbortSignal | undefined): Promise<PostedPlace> {
  const [path] = model.paths;
  if (model.closed) throw new GgufError("ERR_GGUF_CLOSED", "the file was closed", { path });
  const [first, ...others] = mappedFiles(model);
  if (first !== undefined && others.length + 1 === filesOf(model).length) return [first, ...others];
  return sharedBytes(GgufWriter.from(model), path, signal);
}

/** The file that would be written, in memory that another thread can share. */
export async function sharedBytes(
  writer: GgufWriter,
  path: string | undefined,
  signal: AbortSignal | undefined,
): Promise<Uint8Array> {
  const bytes = allocated(writer.byteLength, path, SharedArrayBuffer);
  let at = 0;
  for await (const chunk of writer.chunks()) {
    signal?.throwIfAborted();
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}
