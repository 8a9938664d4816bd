/**
 * Models that Ollama has on this machine: `ollama://NAME:TAG`. Its manifest of a name says which blob has the weights. A
 * manifest is not trusted: it names a blob by its digest, of a size that must be the blob's, and nothing else.
 */
import { stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { GgufError, invalidArgValue } from "../base/errors";
import { FileSource } from "./file";

/** A name: a registry and a namespace, which may be absent, the model, a tag. No part begins with a dot. */
const NAME =
  /^ollama:\/\/(?:(?:(?<host>\w[\w.-]*)\/)?(?<namespace>\w[\w.-]*)\/)?(?<model>\w[\w.-]*)(?::(?<tag>\w[\w.-]*))?$/i;

/** The longest manifest: known ones have about a kilobyte. */
const MAX_MANIFEST_BYTES = 1 << 20;

const WEIGHTS = "application/vnd.ollama.image.model";

/**
 * The path of the weights of a model. Nothing is fetched.
 * @throws TypeError for what is no such name
 * @throws GgufError ERR_GGUF_OPEN where Ollama does not have it, or a manifest says what it may not
 */
export async function ollamaPath(name: string): Promise<string> {
  const parts = NAME.exec(name)?.groups;
  if (parts === undefined) {
    throw invalidArgValue("name", "must be of the form ollama://[NAMESPACE/]NAME[:TAG]", name);
  }
  const { host = "registry.ollama.ai", namespace = "library", model = "", tag = "latest" } = parts;
  const folder = process.env.OLLAMA_MODELS || join(homedir(), ".ollama", "models");
  const place = join(folder, "manifests", host, namespace, model, tag);
  const { digest, size } = weightsOf(await readManifest(place, name), place);
  const blobs = join(folder, "blobs");
  // Older versions write a colon, which not every system has in names.
  for (const path of [join(blobs, `sha256-${digest}`), join(blobs, `sha256:${digest}`)]) {
    const found = await stat(path).catch(() => undefined);
    if (found === undefined) continue;
    if (found.isFile() && found.size === size) return path;
    throw refused(path, `is not the file of ${size} bytes that ${place} names`);
  }
  throw refused(place, `names a blob that is not in ${blobs}: run 'ollama pull ${name.slice(9)}'`);
}

async function readManifest(place: string, name: string): Promise<unknown> {
  const file = await FileSource.open(place).catch((error: GgufError) => {
    if ((error.cause as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    const detail = `is not there, so Ollama does not have ${name} on this machine (OLLAMA_MODELS names another folder)`;
    throw refused(place, detail, error.cause);
  });
  try {
    if (file.byteLength > MAX_MANIFEST_BYTES) {
      throw refused(place, `is longer than ${MAX_MANIFEST_BYTES} bytes`);
    }
    const bytes = Buffer.alloc(file.byteLength);
    await file.read(0, bytes);
    try {
      return JSON.parse(bytes.toString());
    } catch (cause) {
      throw refused(place, `is no JSON: ${(cause as Error).message}`, cause);
    }
  } finally {
    await file.close();
  }
}

function weightsOf(manifest: unknown, place: string): { digest: string; size: number } {
  const { layers } = Object(manifest) as { layers?: unknown };
  const weights = Array.isArray(layers)
    ? layers.filter((layer) => (Object(layer) as { mediaType?: unknown }).mediaType === WEIGHTS)
    : [];
  if (weights.length !== 1) throw refused(place, `names ${weights.length} files of weights, not one`);
  const { digest, size } = weights[0] as { digest?: unknown; size?: unknown };
  const [, hex] = typeof digest === "string" ? (/^sha256:([0-9a-f]{64})$/.exec(digest) ?? []) : [];
  if (hex === undefined) throw refused(place, "names a blob by what is no SHA-256");
  if (!Number.isSafeInteger(size)) throw refused(place, "names a blob without its size");
  return { digest: hex, size: size as number };
}

function refused(path: string, detail: string, cause?: unknown): GgufError {
  return new GgufError("ERR_GGUF_OPEN", detail, { path, cause });
}
