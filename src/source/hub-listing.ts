/** The files of a repository of Hugging Face's hub, by its API. */
import { abortable } from "../base/abortable";
import { GgufError } from "../base/errors";
import { repositoryTreeUrl, withHubToken } from "./hub";
import { brokenRequest, refusedRequest, withRetries } from "./retry";
import { publicUrl } from "./url";

/** A file of a repository. */
export interface RepositoryFile {
  readonly path: string;
  readonly size: number;
}

/** What one page, and all of them, may be: no known repository comes near. */
const MAX_PAGE_BYTES = 16 << 20;
const MAX_PAGES = 200;

/**
 * All files of a repository, of all its folders.
 * @param url hf://OWNER/NAME or hf://OWNER/NAME@REVISION
 * @param headers sent with every request
 * @throws TypeError for another URL
 * @throws GgufError ERR_GGUF_OPEN where the hub does not answer as it should; `cause.status` is the status, if that is why
 */
export async function listRepository(url: string, headers: Headers, signal?: AbortSignal): Promise<RepositoryFile[]> {
  const files: RepositoryFile[] = [];
  let next: URL | undefined = new URL(repositoryTreeUrl(url));
  for (let page = 0; next !== undefined; page++) {
    if (page === MAX_PAGES) throw failed(next, `the list has more than ${MAX_PAGES} pages`);
    const place: URL = next;
    const failing = (detail: string, cause?: unknown): GgufError => failed(place, detail, cause);
    const { response, body } = await withRetries(() => request(place, headers, signal), failing, signal);
    for (const entry of entriesOf(body, place)) files.push(entry);
    next = nextPage(response, place);
  }
  return files;
}

async function request(
  place: URL,
  given: Headers,
  signal: AbortSignal | undefined,
): Promise<{ response: Response; body: string }> {
  const failing = (detail: string, cause?: unknown): GgufError => failed(place, detail, cause);
  const headers = withHubToken(place, given);
  const sent = fetch(place, { headers, redirect: "follow", signal: signal ?? null });
  const response = await sent.catch((error: unknown) => {
    throw brokenRequest("the request failed", error, failing);
  });
  if (response.ok) return { response, body: await bodyOf(response, place, signal) };
  response.body?.cancel().catch(() => undefined);
  const { status, statusText } = response;
  const hint = status === 401 || status === 403 ? "; HF_TOKEN may have an access token" : "";
  throw refusedRequest(response, `the hub answered ${status} ${statusText}`.trimEnd() + hint, failing);
}

async function bodyOf(response: Response, place: URL, signal: AbortSignal | undefined): Promise<string> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  const reader = response.body?.getReader();
  try {
    while (reader !== undefined) {
      const { done, value } = await abortable(reader.read(), signal, () => undefined);
      if (done) break;
      length += value.length;
      if (length > MAX_PAGE_BYTES) throw failed(place, `the answer is longer than ${MAX_PAGE_BYTES} bytes`);
      pieces.push(value);
    }
    return Buffer.concat(pieces).toString();
  } catch (error) {
    if (error instanceof GgufError || signal?.aborted) throw error;
    throw brokenRequest("the connection broke", error, (...found) => failed(place, ...found));
  } finally {
    reader?.cancel().catch(() => undefined);
  }
}

function* entriesOf(body: string, place: URL): Generator<RepositoryFile, void, undefined> {
  let entries: unknown;
  try {
    entries = JSON.parse(body);
  } catch (cause) {
    throw failed(place, "the answer is no JSON", cause);
  }
  if (!Array.isArray(entries)) throw failed(place, "the answer is no list of files");
  for (const entry of entries) {
    const { type, path, size } = Object(entry) as { type?: unknown; path?: unknown; size?: unknown };
    if (type === "directory") continue;
    if (typeof path !== "string" || !Number.isSafeInteger(size) || (size as number) < 0) {
      throw failed(place, "the answer has a file without a path and a size");
    }
    yield { path, size: size as number };
  }
}

/** Where the list goes on. Only at the same server: others must not get what is sent to this one. */
function nextPage({ headers }: Response, place: URL): URL | undefined {
  const [, target] = /<([^<>]*)>\s*;\s*rel="?next"?/i.exec(headers.get("link") ?? "") ?? [];
  if (target === undefined) return undefined;
  const url = URL.canParse(target, place.href) ? new URL(target, place) : undefined;
  if (url?.origin !== place.origin) throw failed(place, "the list goes on at another server");
  return url;
}

function failed(place: URL, detail: string, cause?: unknown): GgufError {
  return new GgufError("ERR_GGUF_OPEN", detail, { path: publicUrl(place), cause });
}
