/** Files beside each other, on a server: those of a model, and what describes it. */
import { GgufError } from "../base/errors";
import { checkUrl, sourceOfUrl } from "../file/remote-file";
import { isMissing } from "../file/splits";
import { isHubUrl, isRepository } from "../source/hub";
import type { Source } from "../source/source";

/** Where the files of a model are. */
export interface Folder {
  readonly path: string;
  /** A source may find out only when it is read that there is no such file. */
  open(name: string): Promise<Source>;
}

/** A file in a folder; without `name`, the model that the folder holds. */
export interface Place {
  readonly folder: Folder;
  readonly name?: string;
}

/** What is at a URL: one that ends in '/', or names a repository of the hub, is a folder. */
export function remotePlace(url: string, given: typeof fetch | undefined, headers: Headers): Place {
  const isFolder = isRepository(url) || url.endsWith("/");
  const [, path = "", name = ""] = (isFolder ? undefined : /^(.*\/)([^/]+)$/s.exec(url)) ?? [];
  const base = isFolder ? `${url.replace(/\/$/, "")}/` : path;
  const folder: Folder = {
    path: base.replace(/[?#].*$/s, ""),
    open: async (file) => {
      const place = isHubUrl(base) || !isFolder ? checkUrl(base + file) : new URL(file, checkUrl(base)).href;
      return sourceOfUrl(place, given, headers);
    },
  };
  return isFolder ? { folder } : { folder, name };
}

/**
 * All bytes of a small file; undefined where there is none of this name.
 * @param isCut whether its first `most` bytes are enough
 * @throws GgufError ERR_GGUF_RANGE for one of more than `most` bytes; ERR_GGUF_OPEN
 */
export async function readFileOf(
  folder: Folder,
  name: string,
  most: number,
  signal?: AbortSignal,
  isCut = false,
): Promise<Uint8Array | undefined> {
  let source: Source;
  try {
    source = await folder.open(name);
  } catch (error) {
    if (error instanceof GgufError && isMissing(error)) return undefined;
    throw error;
  }
  try {
    const first = new Uint8Array(Math.min(source.byteLength, 1 << 16));
    const arrived = await source.read(0, first, signal);
    if (source.byteLength > most && !isCut) {
      const detail = `it has ${source.byteLength} bytes; at most ${most} are read`;
      throw new GgufError("ERR_GGUF_RANGE", detail, { path: source.path });
    }
    const bytes = new Uint8Array(Math.min(source.byteLength, most));
    bytes.set(first.subarray(0, arrived));
    await source.read(arrived, bytes.subarray(arrived), signal);
    return bytes;
  } catch (error) {
    if (error instanceof GgufError && isMissing(error)) return undefined;
    throw error;
  } finally {
    await source.close();
  }
}
