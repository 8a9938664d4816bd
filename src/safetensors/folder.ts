/** Files beside each other, on a server: those of a model, and what describes it. */
import { GgufError } from "../base/errors";
import { checkUrl, sourceOfUrl } from "../file/remote-file";
import { isMissing } from "../file/splits";
import { isHubUrl, isRepository } from "../source/hub";
import type { Source } from "../source/source";
import { publicUrl } from "../source/url";

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

/**
 * What is at a URL: one whose path ends in '/', or that names a repository of the hub, is a folder. Files beside each other have
 * the same query, which may hold a key.
 */
export function remotePlace(url: string, given: typeof fetch | undefined, headers: Headers): Place {
  const [whole, query] = pathAndQuery(url);
  const end = whole.lastIndexOf("/") + 1;
  const path = whole.slice(0, end);
  const folder: Folder = {
    path,
    open: async (file) => sourceOfUrl(checkUrl(path + file + query), given, headers),
  };
  return end === whole.length ? { folder } : { folder, name: whole.slice(end) };
}

function pathAndQuery(url: string): [path: string, query: string] {
  // The hub's files may have any character in their names.
  if (isHubUrl(url)) return [isRepository(url) ? `${url.replace(/\/$/, "")}/` : url, ""];
  const parsed = new URL(checkUrl(url));
  return [publicUrl(parsed), parsed.search];
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
