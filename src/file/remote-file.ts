/** Opening GGUF files on a server: {@link openRemote} and {@link RemoteGgufFile}. */

import { checkBoolean, checkOptions, checkSignal } from "../arguments";
import { invalidArgType, invalidArgValue } from "../errors";
import { type HeaderLimits, readHeader } from "../source/header";
import { HttpSource } from "../source/http";
import { OpenFile } from "./handle";
import { GgufModel } from "./model";
import { RemoteGgufTensor, type RemoteOpenFile } from "./remote-tensor";
import { joinTensors, openEach, shardsOf, siblingPath } from "./splits";

/** Options of {@link openRemote}. */
export interface RemoteOptions {
  /** The function that makes requests; default the `fetch` of the runtime. */
  fetch?: typeof fetch | undefined;
  /**
   * Sent with every request, such as `{ authorization: "Bearer ..." }`. `fetch` removes that header if it is
   * redirected to another origin.
   */
  headers?: ConstructorParameters<typeof Headers>[0];
  /** Aborts the opening; the methods of tensors take their own signals. */
  signal?: AbortSignal | undefined;
  /** Accept a file that is shorter than its header says. Default false. */
  partial?: boolean | undefined;
  /** Open all files of a split model as one; their URLs differ only in the shard number. Default true. */
  splits?: boolean | undefined;
}

/** The first request brings enough for most headers without a vocabulary, and a good part of the others. */
const HEADER_LIMITS: HeaderLimits = { firstBytes: 512 << 10, maxBytes: 256 << 20 };

/**
 * A GGUF file on a server, or all files of a split model as one: like a `GgufFile`, but the data of a tensor
 * is fetched when it is requested. It keeps no connection open; `close()` frees the header.
 */
export class RemoteGgufFile extends GgufModel<RemoteGgufTensor> {
  private constructor(files: [RemoteOpenFile, ...RemoteOpenFile[]]) {
    super(files, () => joinTensors(files, RemoteGgufTensor.list));
  }

  /** @internal */
  static of(files: [RemoteOpenFile, ...RemoteOpenFile[]]): RemoteGgufFile {
    return new RemoteGgufFile(files);
  }
}

/**
 * Opens a GGUF file on a server. It reads only the header, by HTTP range requests.
 *
 * A request is retried if its connection breaks or the server answers 408, 429 or 5xx (but not 501 or 505),
 * up to five failures in a row; it continues where the transfer broke. The pause before a retry is what the
 * server requests with `Retry-After`, in seconds or as a date, but at most 10 seconds. The only time limit is
 * that of `fetch`: pass `signal: AbortSignal.timeout(ms)` for another one. Up to eight files of a split model
 * are opened at a time.
 *
 * @param url an `http:` or `https:` URL; redirects are followed
 * @throws TypeError for an argument of the wrong type
 * @throws GgufError ERR_GGUF_OPEN if the server answers with an error (`cause.status` is the status), cannot
 *   be reached, or does not support range requests; ERR_GGUF_CHANGED if the file changes during the call;
 *   otherwise as `open`
 * @throws the reason of `options.signal` if it is aborted
 */
export async function openRemote(url: string | URL, options?: RemoteOptions): Promise<RemoteGgufFile> {
  const { fetch: given, headers, signal, partial, splits } = checkOptions(options);
  const place = checkUrl(url);
  if (given !== undefined && typeof given !== "function") {
    throw invalidArgType("options.fetch", "of type function", given);
  }
  const checkedSignal = checkSignal(signal);
  const isPartial = checkBoolean("options.partial", partial, false);
  const sentHeaders = new Headers(headers);
  const shards = shardsOf<RemoteOpenFile>(place, checkBoolean("options.splits", splits, true), siblingUrl);
  const open = async (shard: string, stop: AbortSignal): Promise<RemoteOpenFile> => {
    const source = new HttpSource(new URL(shard), given ?? fetch, sentHeaders);
    const { handle } = await readHeader(source, HEADER_LIMITS, isPartial, stop);
    return Object.assign(new OpenFile(handle, source.path), { source });
  };
  return RemoteGgufFile.of(await openEach(shards, open, checkedSignal));
}

function checkUrl(url: unknown): string {
  if (typeof url !== "string" && !(url instanceof URL)) {
    throw invalidArgType("url", "of type string or an instance of URL", url);
  }
  if (!URL.canParse(String(url))) throw invalidArgValue("url", "must be a URL", url);
  const { protocol, username, password, href } = new URL(url);
  if (protocol !== "http:" && protocol !== "https:") {
    throw invalidArgValue("url", "must be an http: or https: URL; files are opened with open()", href);
  }
  if (username !== "" || password !== "") {
    throw invalidArgValue(
      "url",
      "must not contain a user name or password: give headers: { authorization: ... }",
      protocol,
    );
  }
  const parsed = new URL(href);
  parsed.hash = "";
  return parsed.href;
}

function siblingUrl(place: string, no: number, count: number): string | undefined {
  const url = new URL(place);
  const path = siblingPath(url.pathname, no, count);
  if (path === undefined) return undefined;
  url.pathname = path;
  return url.href;
}
