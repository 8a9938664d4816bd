/** Opening GGUF files on a server: {@link openRemote} and {@link RemoteGgufFile}. */

import { whenAborted } from "../base/abortable";
import { checkBoolean, checkOptions, checkSignal, isUrl, type OptionNames } from "../base/arguments";
import { invalidArgType, invalidArgValue } from "../base/errors";
import { type HeaderLimits, readHeader } from "../source/header";
import { HttpSource } from "../source/http";
import { resolveHubUrl, withHubToken } from "../source/hub";
import type { Source } from "../source/source";
import { closeFile, OpenFile } from "./handle";
import { GgufModel } from "./model";
import { RemoteGgufTensor, type RemoteOpenFile } from "./remote-tensor";
import { shardNumber, siblingPath } from "./shard-names";
import { MAX_OPENING, openEach, shardsOf } from "./splits";

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

const REMOTE_OPTIONS: OptionNames<RemoteOptions> = {
  fetch: true,
  headers: true,
  signal: true,
  partial: true,
  splits: true,
};

/** The first request brings enough for most headers without a vocabulary, and a good part of the others. */
const HEADER_LIMITS: HeaderLimits = { firstBytes: 512 << 10, maxBytes: 256 << 20 };

/**
 * A GGUF file on a server, or a `Blob` in a browser, or all files of a split model as one: like a `GgufFile`, but the data
 * of a tensor is fetched when it is requested. It keeps no connection open; `close()` frees the header.
 */
export class RemoteGgufFile extends GgufModel<RemoteGgufTensor> {
  readonly #opened: readonly RemoteOpenFile[];

  private constructor(files: [RemoteOpenFile, ...RemoteOpenFile[]]) {
    super(files, RemoteGgufTensor.at);
    this.#opened = files;
  }

  override close(): void {
    super.close();
    for (const { source } of this.#opened) source.close().catch(() => undefined);
  }

  /** @internal */
  static of(files: [RemoteOpenFile, ...RemoteOpenFile[]]): RemoteGgufFile {
    return new RemoteGgufFile(files);
  }
}

/** Reads the header of a source. @internal */
export async function openSource(
  source: Source,
  partial: boolean,
  signal: AbortSignal | undefined,
): Promise<RemoteOpenFile> {
  const { handle } = await readHeader(source, HEADER_LIMITS, partial, signal);
  return Object.assign(new OpenFile(handle, source.path), { source });
}

/**
 * Opens a GGUF file on a server. It reads only the header, by HTTP range requests.
 *
 * A request is retried if its connection breaks or the server answers 408, 429 or 5xx (but not 501 or 505),
 * up to five failures in a row; it continues where the transfer broke. The pause before a retry is what the
 * server requests with `Retry-After`, in seconds or as a date, but at most 10 seconds. The only time limit is
 * that of `fetch`: pass `signal: AbortSignal.timeout(ms)` for another one. Up to eight files of a split model
 * are opened at a time; requests for the first ones begin when the name ends in `-00001-of-00020.gguf`.
 *
 * Files of Hugging Face have URLs of the form `hf://OWNER/NAME/FILE`, too, or `hf://OWNER/NAME@REVISION/FILE`. If the
 * environment variable `HF_TOKEN` has an access token, it is sent with requests for them, unless `headers` has
 * `authorization`; to `https://huggingface.co` alone, or to the server that `HF_ENDPOINT` names in its place, and not to
 * where that redirects.
 *
 * @param url an `http:`, `https:` or `hf:` URL; redirects are followed
 * @throws TypeError for an argument of the wrong type
 * @throws GgufError ERR_GGUF_OPEN if the server answers with an error (`cause.status` is the status), cannot
 *   be reached, or does not support range requests; ERR_GGUF_CHANGED if the file changes during the call;
 *   otherwise as `open`
 * @throws the reason of `options.signal` if it is aborted
 */
export async function openRemote(url: string | URL, options?: RemoteOptions): Promise<RemoteGgufFile> {
  const { fetch: given, headers, signal, partial, splits } = checkOptions(options, REMOTE_OPTIONS);
  const place = checkUrl(url);
  checkFetch(given);
  const checkedSignal = checkSignal(signal);
  const isPartial = checkBoolean("options.partial", partial, false);
  const isSplit = checkBoolean("options.splits", splits, true);
  const sentHeaders = new Headers(headers);
  const open = async (shard: string, stop: AbortSignal): Promise<RemoteOpenFile> => {
    return openSource(sourceOfUrl(shard, given, sentHeaders), isPartial, stop);
  };
  const early = new EarlyOpenings(isSplit ? expectedFiles(place) : [place], open, checkedSignal);
  try {
    const shards = shardsOf<RemoteOpenFile>(place, isSplit, siblingUrl);
    const openShard = (shard: string, stop: AbortSignal): Promise<RemoteOpenFile> =>
      early.take(shard, stop) ?? open(shard, stop);
    return RemoteGgufFile.of(await openEach(shards, openShard, checkedSignal));
  } finally {
    early.discard();
  }
}

/** The source of a URL that {@link checkUrl} has checked. @internal */
export function sourceOfUrl(place: string, given: typeof fetch | undefined, headers: Headers): HttpSource {
  const url = new URL(place);
  return new HttpSource(url, given ?? fetch, withHubToken(url, headers));
}

/** @internal */
export function checkFetch(given: unknown): typeof fetch | undefined {
  if (given === undefined || typeof given === "function") return given as typeof fetch | undefined;
  throw invalidArgType("options.fetch", "of type function", given);
}

/**
 * Files whose opening begins at once: the first one, and others that its name promises before its header confirms them.
 * That saves the time of one request.
 */
class EarlyOpenings {
  readonly #begun = new Map<string, { stop: AbortController; file: Promise<RemoteOpenFile> }>();
  readonly #forget: () => void;

  constructor(
    places: readonly string[],
    open: (place: string, signal: AbortSignal) => Promise<RemoteOpenFile>,
    signal: AbortSignal | undefined,
  ) {
    signal?.throwIfAborted();
    this.#forget = whenAborted(signal, () => this.discard());
    for (const place of places) {
      const stop = new AbortController();
      const file = open(place, stop.signal);
      file.catch(() => undefined); // an error counts only if the file is needed
      this.#begun.set(place, { stop, file });
    }
  }

  /** The file at `place`, if its opening has begun. From now on `signal` aborts it. */
  take(place: string, signal: AbortSignal): Promise<RemoteOpenFile> | undefined {
    const begun = this.#begun.get(place);
    if (begun === undefined) return undefined;
    this.#begun.delete(place);
    whenAborted(signal, () => begun.stop.abort(signal.reason));
    return begun.file;
  }

  /** Aborts what was not taken, and closes it. */
  discard(): void {
    this.#forget();
    for (const { stop, file } of this.#begun.values()) {
      stop.abort();
      file.then(closeFile, () => undefined);
    }
    this.#begun.clear();
  }
}

/** The file at `place`, and others of its model if its name says that there are others: as many as are opened at a time. */
function expectedFiles(place: string): string[] {
  const files = [place];
  const count = shardNumber(new URL(place).pathname)?.count ?? 0;
  for (let no = 0; no < count && files.length < MAX_OPENING; no++) {
    const sibling = siblingUrl(place, no, count);
    if (sibling !== undefined && sibling !== place) files.push(sibling);
  }
  return files;
}

/** The URL to fetch, without credentials and fragment. @internal */
export function checkUrl(url: unknown): string {
  if (typeof url !== "string" && !isUrl(url)) {
    throw invalidArgType("url", "of type string or an instance of URL", url);
  }
  const resolved = resolveHubUrl(String(url));
  if (!URL.canParse(resolved)) throw invalidArgValue("url", "must be a URL", url);
  const { protocol, username, password, href } = new URL(resolved);
  if (protocol !== "http:" && protocol !== "https:") {
    throw invalidArgValue("url", "must be an http:, https: or hf: URL; files are opened with open()", href);
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
